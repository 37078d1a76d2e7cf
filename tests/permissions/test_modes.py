"""Modes auto and bypass, callers that may only read, and what else makes a call ask."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Mode
from ba_tui.core.ports.permissions import RuleLine
from ba_tui.core.tool import Effect, Tool
from ba_tui.permissions.verdicts import RESTRICTED, Ask, Bounds, Deny, JudgedCall, check_bypass, contained
from tests.permissions.toolset import CLOCK, EDIT, FETCH, READ, SHELL, judge, lines, policy, tool

CALLS = [(READ, "a.py"), (CLOCK, ""), (EDIT, "a.py"), (SHELL, "make"), (FETCH, "https://x.org")]
BYPASS = Bounds(bypass=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "work" / ".git").mkdir(parents=True)
    return tmp_path / "work"


def test_auto_asks_about_commands_and_what_rules_ask(root: Path) -> None:
    rules = policy(root, *lines("allow", "shell(make)"), *lines("ask", "web_fetch(domain:evil.org)"), mode="auto")
    assert [judge(rules, each, about) for each, about in CALLS] == ["allow"] * 5
    assert judge(rules, SHELL, "make all") == "ask"
    assert judge(rules, FETCH, "https://a.evil.org") == "ask"
    assert judge(rules, EDIT, ".git/hooks/pre-commit") == "ask"
    assert judge(rules, EDIT, "../other") == "ask"
    assert judge(rules, READ, ".env") == "deny"
    asked = policy(root, mode="auto").judge(JudgedCall(SHELL, {"command": "make"}, root))
    assert isinstance(asked, Ask)
    assert "there is no sandbox" in asked.reason


def test_in_a_sandbox_commands_run_that_stay_here(root: Path) -> None:
    active = [True]
    rules = policy(root, *lines("deny", "shell(rm x)"), mode="auto", bounds=Bounds(confined=lambda: active[0]))
    for command in ("make", "touch a", "rm a", "python -m pytest"):
        assert judge(rules, SHELL, command) == "allow", command
    for command in ("touch ../a", "rm /etc/hosts", "curl https://x.org", "git push", "cp a .git/hooks/pre-commit"):
        assert judge(rules, SHELL, command) == "ask", command
    assert judge(rules, SHELL, "rm x") == "deny"
    assert judge(rules, SHELL, "rm .env") == "deny"
    active[0] = False
    assert judge(rules, SHELL, "touch a") == "ask"
    rules.set_mode("default")
    active[0] = True
    assert judge(rules, SHELL, "touch a") == "ask"


def test_bypass_only_stops_at_denials(root: Path) -> None:
    rules = policy(root, *lines("deny", "web_fetch"), *lines("ask", "*"), mode="bypass", bounds=BYPASS)
    assert [judge(rules, each, about) for each, about in CALLS] == [*["allow"] * 4, "deny"]
    assert judge(rules, EDIT, "/etc/hosts") == "allow"
    assert judge(rules, READ, ".env") == "deny"
    assert rules.level == "admin"


def test_bypass_is_there_only_when_it_was_asked_for(root: Path) -> None:
    plain = policy(root)
    assert list(plain.modes()) == ["default", "accept-edits", "plan", "auto"]
    with pytest.raises(UsageError, match="only be chosen at the start"):
        plain.set_mode("bypass")
    with pytest.raises(UsageError):
        policy(root, mode="bypass")
    started = policy(root, bounds=BYPASS)
    assert list(started.modes())[-1] == "bypass"
    started.set_mode("bypass")
    assert started.mode == "bypass"


def test_who_may_only_read_does_not_write_whatever_rules_say(root: Path) -> None:
    rules = policy(root, *lines("allow", "edit_file"), mode="auto", bounds=Bounds(restricted=RESTRICTED, bypass=True))
    assert rules.level == "restricted"
    assert rules.mode == "default"
    assert [judge(rules, each, about) for each, about in CALLS] == ["allow", "allow", "deny", "deny", "deny"]
    denied = rules.judge(JudgedCall(EDIT, {"path": "a.py"}, root))
    assert isinstance(denied, Deny)
    assert denied.reason == RESTRICTED
    assert list(rules.modes()) == ["default", "plan"]
    with pytest.raises(UsageError, match="only reading"):
        rules.set_mode("auto")


def test_a_suspicion_asks_unless_a_rule_names_the_call(root: Path) -> None:
    def leaks(tool: Tool, args: Mapping[str, Any]) -> str:
        return "it may carry data away" if "?data=" in str(args.get("url")) else ""

    bounds, leaking = Bounds(suspicion=leaks), "https://x.org/?data=abc"
    asked = policy(root, *lines("allow", "web_fetch"), mode="auto", bounds=bounds).judge(
        JudgedCall(FETCH, {"url": leaking}, root)
    )
    assert isinstance(asked, Ask)
    assert asked.reason == "It may carry data away."
    for rule in ("web_fetch(https://**)", "@network", "*", "web_fetch(https://x.?rg/*)"):
        assert judge(policy(root, *lines("allow", rule), bounds=bounds), FETCH, leaking) == "ask", rule
    for rule in ("domain:x.org", "domain:*.x.org", f"{leaking.replace('?', '[?]')}"):
        judged = judge(policy(root, *lines("allow", f"web_fetch({rule})"), bounds=bounds), FETCH, leaking)
        assert judged == ("allow" if rule == "domain:x.org" else "ask"), rule
    below = leaking.replace("x.org", "a.x.org")
    assert judge(policy(root, *lines("allow", "web_fetch(domain:*.x.org)"), bounds=bounds), FETCH, below) == "allow"
    assert judge(policy(root, mode="auto", bounds=bounds), FETCH, "https://x.org/") == "allow"


SEARCH = tool("web_search", Effect.NETWORK, "query", ())


def test_in_auto_a_call_to_an_unnamed_host_asks_unless_a_rule_names_it(root: Path) -> None:
    def unnamed(tool: Tool, args: Mapping[str, Any], *, held: bool) -> str:
        return "" if held else "it contacts x.org"

    bounds = Bounds(unnamed=unnamed)
    for rule, expected in (("web_fetch", "ask"), ("@network", "ask"), ("web_fetch(domain:x.org)", "allow")):
        rules = policy(root, *lines("allow", rule), mode="auto", bounds=bounds)
        assert judge(rules, FETCH, "https://x.org/") == expected, rule
    assert judge(policy(root, *lines("allow", "web_fetch"), bounds=bounds), FETCH, "https://x.org/") == "allow"
    assert judge(policy(root, mode="auto", bounds=bounds), SEARCH, "weather") == "ask"
    assert judge(policy(root, *lines("allow", "web_search"), mode="auto", bounds=bounds), SEARCH, "weather") == "allow"


def said(rule: str, **terms: Any) -> RuleLine:
    return RuleLine(rule, "ask", "test", terms=json.dumps(terms))


@pytest.mark.parametrize(
    ("rules", "about", "expected"),
    [
        ([said("edit_file", timeout=5)], "a", (5, "deny")),
        ([said("edit_file", timeout=5, on_timeout="escalate")], "a", (5, "escalate")),
        ([said("edit_file", timeout=5, on_timeout="allow")], "a", (5, "allow")),
        ([said("edit_file", timeout=5, on_timeout="allow")], "../a", (5, "deny")),
        ([said("edit_file", timeout=5, on_timeout="allow"), said("edit_file(a)")], "a", (5, "deny")),
        ([said("edit_file", timeout=5, on_timeout="allow"), said("*", timeout=3)], "a", (3, "deny")),
        (
            [said("edit_file", timeout=9, on_timeout="allow"), said("*", timeout=3, on_timeout="allow")],
            "a",
            (3, "allow"),
        ),
        ([said("edit_file")], "a", (300, "deny")),
        ([], "a", (300, "deny")),
    ],
)
def test_how_long_a_question_waits(root: Path, rules: list[RuleLine], about: str, expected: tuple[float, str]) -> None:
    judged = policy(root, *rules, bounds=Bounds(timeout=300)).judge(JudgedCall(EDIT, {"path": about}, root))
    assert isinstance(judged, Ask)
    assert (judged.timeout, judged.on_timeout) == expected


def test_silence_is_no_yes_to_what_can_not_be_undone(root: Path) -> None:
    rules = policy(root, said("shell", timeout=5, on_timeout="allow"))
    told = [("make", "allow"), ("rm -rf a", "deny"), ("touch ../x", "deny"), ('make "$X"', "deny"), ("$X", "deny")]
    for command, expected in (*told, ("eval $X", "deny"), ("make $(cat x)", "deny")):
        judged = rules.judge(JudgedCall(SHELL, {"command": command}, root))
        assert isinstance(judged, Ask)
        assert judged.on_timeout == expected, command


def test_bypass_as_root_needs_a_word_or_a_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(UsageError, match="as root") as refused:
        check_bypass(confirmed=False, env={}, root=tmp_path)
    assert "--yes-bypass-as-root" in refused.value.hint
    check_bypass(confirmed=True, env={}, root=tmp_path)
    (tmp_path / ".dockerenv").touch()
    check_bypass(confirmed=False, env={}, root=tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    check_bypass(confirmed=False, env={}, root=tmp_path / "nowhere")


def test_the_inside_of_a_container(tmp_path: Path) -> None:
    assert not contained({}, tmp_path)
    assert contained({"container": "podman"}, tmp_path)
    (tmp_path / "proc" / "1").mkdir(parents=True)
    (tmp_path / "proc" / "1" / "cgroup").write_text("0::/init.scope\n")
    assert not contained({}, tmp_path)
    (tmp_path / "proc" / "1" / "cgroup").write_text("0::/kubepods/pod1\n")
    assert contained({}, tmp_path)


def test_edits_of_a_copy_of_the_project_need_no_mode(root: Path) -> None:
    copied = replace(EDIT, facts=replace(EDIT.facts, copied=True))
    assert [judge(policy(root), each, "a.txt") for each in (copied, EDIT)] == ["allow", "ask"]
    assert judge(policy(root), copied, "../a.txt") == "ask"
    mail = tool("mail", Effect.WRITE, "to", ())
    modes: dict[Mode, str] = {"accept-edits": "ask", "default": "ask", "auto": "allow"}
    for mode, expected in modes.items():
        assert judge(policy(root, mode=mode), mail, "ann") == expected, mode
    judged = policy(root).judge(JudgedCall(mail, {"to": "ann"}, root))
    assert isinstance(judged, Ask)
    assert judged.reason == "Changes need approval in default mode."


@pytest.mark.parametrize(
    ("sql", "modes", "reason"),
    [
        ("SELECT 1", ("default", "accept-edits", "auto"), ""),
        ("DELETE FROM t", ("auto",), "Changes to data need approval in default mode."),
        ("nonsense !", (), "This SQL can't be checked."),
    ],
)
def test_sql_that_writes_is_no_edit(root: Path, sql: str, modes: tuple[Mode, ...], reason: str) -> None:
    query = tool("query", Effect.READ, "sql", ())
    query = replace(query, facts=replace(query.facts, sql="sql"))
    every: tuple[Mode, ...] = ("default", "accept-edits", "auto")
    for mode in every:
        expected = "allow" if mode in modes else "ask"
        assert judge(policy(root, mode=mode), query, sql) == expected, mode
    judged = policy(root).judge(JudgedCall(query, {"sql": sql}, root))
    assert (judged.reason if isinstance(judged, Ask) else "") == reason
