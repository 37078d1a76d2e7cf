"""Verdicts in less usual cases: lists of commands, second questions, git with secrets, who asks, what is counted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.effects import OUTSIDE, READING, WORKING, AgentCeiling
from ba_tui.core.errors import UsageError
from ba_tui.core.events import PERSON, Mode
from ba_tui.core.ports.permissions import RuleLine
from ba_tui.core.tool import Effect, Tool
from ba_tui.permissions.policy import REMEMBERED_ASKS, Policy
from ba_tui.permissions.verdicts import RESTRICTED, Allow, Ask, Bounds, Deny, JudgedCall, Judgement
from ba_tui.resources import places
from tests.permissions.test_git_safety import git
from tests.permissions.toolset import EDIT, FETCH, KERNEL, PYTHON, READ, SHELL, judge, lines, policy, tool, verdict

HELD = Bounds(unheld=str, confined=lambda: True, walled=lambda: True, bypass=True)
ALONE = Bounds(unheld=lambda: "there is no sandbox", bypass=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    for name in (".git", "src"):
        (root / name).mkdir(parents=True)
    (root / "a.txt").write_text("a")
    return root


@pytest.fixture
def tracked(tmp_path: Path) -> Path:
    """A repository that has a file with secrets."""
    root = tmp_path / "tracked"
    root.mkdir()
    git(root, "init", "-q")
    (root / ".env").write_text("KEY=1\n")
    git(root, "add", "-f", ".env")
    git(root, "commit", "-qm", "one")
    return root


def judged(
    root: Path, command: str, *rules: RuleLine, mode: Mode = "default", bounds: Bounds = HELD, **args: Any
) -> Judgement:
    return policy(root, *rules, mode=mode, bounds=bounds).judge(JudgedCall(SHELL, {"command": command, **args}, root))


def allowed(judgement: Judgement) -> Allow:
    assert isinstance(judgement, Allow), judgement
    return judgement


def asked(judgement: Judgement) -> Ask:
    assert isinstance(judgement, Ask), judgement
    return judgement


def hits(rules: Policy) -> dict[str, int]:
    return {line.rule: line.hits for line in rules.rules() if line.hits}


async def test_who_waits_for_another_mode_is_woken(root: Path) -> None:
    rules = policy(root, bounds=Bounds(quiet=0.0))
    waiting = asyncio.create_task(rules.mode_changes.settled())
    await asyncio.sleep(0)
    with pytest.raises(UsageError):
        rules.set_mode("bypass")
    await asyncio.sleep(0)
    assert not waiting.done()
    rules.set_mode("plan")
    async with asyncio.timeout(20):
        await waiting


def test_where_only_reading_is_allowed_other_modes_are_refused_in_words(root: Path) -> None:
    bounds = Bounds(restricted=RESTRICTED, bypass=True)
    assert policy(root, mode="plan", bounds=bounds).mode == "plan"
    rules = policy(root, mode="bypass", bounds=bounds)
    assert rules.mode == "default"
    for mode in ("auto", "bypass"):
        with pytest.raises(UsageError, match=f"Mode {mode} is not available here: only reading") as refused:
            rules.set_mode(mode)
        assert refused.value.hint == "Modes: default, plan."
    with pytest.raises(UsageError, match="There is no mode 'yolo'"):
        policy(root, mode="yolo")  # pyright: ignore[reportArgumentType]
    assert policy(root).level == "default"


def test_a_list_that_needs_no_steps_is_one_verdict(root: Path) -> None:
    both = lines("allow", "shell(git add -A && git commit -m x)")
    whole = allowed(judged(root, "git add -A && git commit -m x", *both))
    assert (whole.by, whole.steps, whole.profile.git) == (both[0].rule, (), True)
    assert allowed(judged(root, "git status && ls")).steps == ()
    for command in ("make; touch b", "make; ls"):
        assert allowed(judged(root, command, mode="auto")) == Allow("", WORKING), command


def test_a_list_in_steps_names_the_first_rule_and_counts_each(root: Path) -> None:
    rules = policy(root, *lines("allow", "shell(git add:*)", "shell(git commit:*)"), bounds=HELD)
    call = JudgedCall(SHELL, {"command": "git log -1; git add -A && git commit -m x"}, root)
    judgement = allowed(rules.judge(call))
    assert judgement.by == "shell(git add:*)"
    assert judgement.profile == WORKING
    assert hits(rules) == {"shell(git add:*)": 1, "shell(git commit:*)": 1}
    assert allowed(judged(root, "make; git add -A", mode="auto")).by == ""
    tried = replace(call, tried="a.txt")
    assert isinstance(rules.judge(tried), Ask), "what tried to write is not taken apart"


def test_a_list_follows_its_folders(root: Path) -> None:
    inside = "cd src && git add -A && touch ../x"
    steps = allowed(judged(root, inside, mode="auto")).steps
    assert [(step.text, step.joined) for step in steps] == [
        ("cd src", False),
        ("git add -A", True),
        ("touch ../x", True),
    ]
    assert asked(judged(root, "cd src && git add -A && touch ../../x", mode="auto")).profile.git
    exact = lines(
        "allow", "shell(cd ..)", "shell(cd)", "shell(cd missing)", "shell(git add -A)", "shell(git commit -m x)"
    )
    for cd in ("cd ..", "cd", "cd missing"):
        assert allowed(judged(root, cd, *exact)), cd
        assert isinstance(judged(root, f"{cd} && git add -A && git commit -m x", *exact), Ask), cd
    assert allowed(judged(root, "cd src && git add -A && git commit -m x", *exact)).by == "shell(git add -A)"


def test_a_list_with_a_part_that_leaves_the_sandbox_asks_as_a_whole(root: Path) -> None:
    rules = lines("allow", "shell(git add:*)", "shell(git push:*)", "outside(git push:*)")
    assert allowed(judged(root, "git push", *rules)).profile == OUTSIDE
    assert isinstance(judged(root, "git add -A && git push", *rules), Ask)
    assert allowed(judged(root, "git add -A && git push", *rules[:2])).steps


def test_a_rule_for_one_part_holds_no_reader_beside_it_without_a_sandbox(root: Path) -> None:
    rule = lines("allow", "shell(git status)")
    why = asked(judged(root, "git status && ls", *rule, bounds=ALONE)).reason
    assert why == "It seems to only read, but nothing keeps it from writing: there is no sandbox."
    assert allowed(judged(root, "git status && ls", *rule)).profile.name == "reading"
    assert allowed(judged(root, "git status", *rule, bounds=ALONE)).by == "shell(git status)"
    assert allowed(judged(root, "ls", bounds=ALONE)).profile.plain


def test_git_asks_where_a_file_with_secrets_can_not_be_hidden(tracked: Path) -> None:
    said = "tracks .env, which holds secrets, so the file is not hidden from this command"
    plain = asked(judged(tracked, "git add -A"))
    assert plain.reason == f"`git` may change the repository; git {said}."
    assert plain.profile.unhidden == (tracked / ".env",)
    assert asked(judged(tracked, "git add -A", *lines("allow", "shell(git add:*)"))).reason == f"Git {said}."
    assert said in asked(judged(tracked, "git add -A", mode="auto")).reason
    exact = allowed(judged(tracked, "git add -A", *lines("allow", "shell(git add -A)")))
    assert (exact.by, exact.profile.unhidden) == ("shell(git add -A)", (tracked / ".env",))
    open_ = allowed(judged(tracked, "git add -A", *lines("allow", "shell(git add:*)"), bounds=ALONE))
    assert open_.profile.unhidden == ()
    assert allowed(judged(tracked, "git status")).profile.name == "reading"


def test_what_the_user_types_asks_nothing(root: Path, tracked: Path) -> None:
    def typed(at: Path, each: Tool, about: str, *rules: RuleLine, bounds: Bounds = HELD) -> Judgement:
        call = JudgedCall(each, {each.facts.target: about}, at, PERSON)
        return policy(at, *rules, mode="plan", bounds=bounds).judge(call)

    assert allowed(typed(tracked, SHELL, "git add -A")).profile.unhidden == (tracked / ".env",)
    assert allowed(typed(tracked, SHELL, "git add -A", bounds=ALONE)).profile.unhidden == ()
    assert allowed(typed(root, SHELL, "git add -A")).profile.git
    assert typed(root, SHELL, "ls") == Allow("", WORKING)
    for each, about in ((PYTHON, "print(1)"), (EDIT, "a.txt"), (READ, "a.txt")):
        assert typed(root, each, about, *lines("allow", "outside(print(1))")) == Allow(), each.name
    rules = lines("allow", "outside(make)")
    assert typed(root, SHELL, "make", *rules) == Allow("outside(make)", OUTSIDE)
    assert typed(root, SHELL, "make", *rules, *lines("ask", "outside(make)")) == Allow("", WORKING)
    assert isinstance(typed(root, SHELL, "make", *lines("deny", "shell(make)")), Deny)


@pytest.mark.parametrize("strict", ["deny", "ask"])
def test_a_strict_rule_about_leaving_keeps_a_command_in_the_sandbox(root: Path, strict: str) -> None:
    rules = (*lines("allow", "outside(git push)", "shell(git push)"), *lines(strict, "outside(git push)"))
    judgement = judged(root, "git push", *rules)
    assert allowed(judgement) == Allow("shell(git push)", replace(WORKING, git=True))
    other = (*lines("allow", "outside(git push)"), *lines(strict, "outside(git pull)"))
    assert allowed(judged(root, "git push", *other)).profile == OUTSIDE


def test_bypass_runs_outside_what_asks_for_it(root: Path) -> None:
    assert judged(root, "git push", mode="bypass", outside=True) == Allow("", OUTSIDE)
    assert isinstance(judged(root, "git push", *lines("deny", "outside"), mode="bypass", outside=True), Deny)
    assert allowed(judged(root, "git push", mode="bypass")).profile.name == "working"
    for no in (False, None, "yes", 1):
        assert allowed(judged(root, "git status", outside=no)).profile.name == "reading", no


def test_questions_of_a_tool_are_put_in_bypass_too(root: Path) -> None:
    remembers = replace(EDIT, name="remember", facts=replace(EDIT.facts, asks="it writes to memory", paths=()))
    for mode in ("bypass", "auto", "accept-edits"):
        question = asked(policy(root, mode=mode, bounds=HELD).judge(JudgedCall(remembers, {"path": "x"}, root)))
        assert (question.reason, question.risks, question.rule) == ("It writes to memory.", ("writes to memory",), None)


def test_a_second_look_at_one_question_counts_once(root: Path) -> None:
    rules = policy(root, *lines("ask", "edit_file"), bundled=False)

    def ask(path: str) -> str:
        return asked(rules.judge(JudgedCall(EDIT, {"path": path}, root))).by

    assert [ask("a.txt"), ask("a.txt"), ask("a.txt")] == ["edit_file"] * 3
    assert hits(rules) == {"edit_file": 1}
    ask("b.txt")
    assert hits(rules) == {"edit_file": 2}
    ask("a.txt")
    assert hits(rules) == {"edit_file": 3}
    rules.remember("edit_file(a.txt)\nedit_file(b.txt)", "session")
    assert [judge(rules, EDIT, name) for name in ("a.txt", "b.txt", "c.txt")] == ["allow", "allow", "ask"]


def test_only_the_last_questions_are_remembered(root: Path) -> None:
    rules = policy(root, *lines("ask", "edit_file"), bundled=False)
    for number in range(REMEMBERED_ASKS + 1):
        assert judge(rules, EDIT, f"{number}.txt") == "ask"
    rules.remember("edit_file(0.txt)\nedit_file(1.txt)", "session")
    assert [judge(rules, EDIT, name) for name in ("0.txt", "1.txt")] == ["ask", "allow"]


def test_an_answer_names_the_questions_that_it_settles_and_no_others(root: Path) -> None:
    rules = policy(root, *lines("ask", "edit_file(src/**)"), bounds=Bounds(own=places()))
    for path in ("src/a.py", "a.txt"):
        assert judge(rules, EDIT, path) == "ask"
    rules.remember("edit_file(src/a.py)\nedit_file(a.txt)", "always")
    kept = places().approvals.read_text()
    assert kept.count("edit_file(src/**)") == 1
    for path in ("src/a.py", "a.txt"):
        assert judge(rules, EDIT, path) == "allow"
        assert judge(policy(root, *lines("ask", "edit_file(src/**)")), EDIT, path) == "allow", "it is kept"


def test_a_rule_that_was_added_has_no_hits_and_does_not_wait(root: Path) -> None:
    rules = policy(root)
    line = rules.add("edit_file(a.txt)", "allow", "session")
    assert (line.hits, line.waiting, line.verdict) == (0, False, "allow")
    assert judge(rules, EDIT, "a.txt") == "allow"
    assert hits(rules) == {"edit_file(a.txt)": 1}
    assert not any(each.waiting for each in rules.rules())
    rules.remove(line)
    assert judge(rules, EDIT, "a.txt") == "ask"


@pytest.mark.parametrize("strict", ["deny", "ask"])
def test_only_what_a_project_allows_waits(root: Path, strict: str) -> None:
    project = [RuleLine("edit_file", kind, "project", layer="project") for kind in ("allow", strict)]
    rules = policy(root, *project, bundled=False)
    assert {(line.verdict, line.waiting) for line in rules.rules()} == {("allow", True), (strict, False)}
    assert judge(rules, EDIT, "a.txt") == strict
    user = RuleLine("edit_file", "allow", "user", layer="user")
    assert judge(policy(root, user), EDIT, "a.txt") == "allow"


def test_hits_are_written_only_where_there_is_a_file(root: Path, tmp_path: Path) -> None:
    rules = policy(root, *lines("allow", "edit_file"), bounds=Bounds(hits=tmp_path / "hits.json"))
    assert judge(rules, EDIT, "a.txt") == "allow"
    rules.save_hits()
    assert "edit_file" in (tmp_path / "hits.json").read_text()
    assert hits(rules) == {"edit_file": 1}, "from the file"
    rules.save_hits()
    assert hits(rules) == {"edit_file": 1}
    nowhere = policy(root, *lines("allow", "edit_file"))
    assert judge(nowhere, EDIT, "a.txt") == "allow"
    nowhere.save_hits()
    assert hits(nowhere) == {}


def test_a_ceiling_without_reading_runs_no_reader(root: Path) -> None:
    rules = policy(root, bounds=HELD)

    def judged_for(ceiling: AgentCeiling, each: Tool = SHELL, **args: Any) -> Judgement:
        return rules.judge(JudgedCall(each, args, root, "main/a-1", ceiling))

    reads = AgentCeiling(frozenset({Effect.READ}), outside=False)
    writes = AgentCeiling(frozenset({Effect.WRITE}))
    assert allowed(judged_for(reads, command="ls")).profile.name == "reading"
    refused = judged_for(writes, command="ls")
    assert refused == Deny("The agent main/a-1 is limited to: write.")
    assert allowed(judged_for(reads, KERNEL, code="print(1)")).profile == READING
    assert isinstance(judged_for(reads, PYTHON, code="print(1)"), Deny)
    assert isinstance(judged_for(writes, KERNEL, code="print(1)"), Deny)
    assert isinstance(judged_for(reads, EDIT, path="a.txt", outside=True), Deny)
    assert allowed(judged_for(reads, READ, path="a.txt", outside=True))
    assert judged_for(reads, command="ls", outside=True) == Deny(
        "The agent main/a-1 may run nothing outside the sandbox."
    )
    assert allowed(judged_for(reads, command="ls", outside="yes"))
    within = AgentCeiling(outside=False)
    assert judged_for(AgentCeiling(tools=frozenset({"read_file"})), command="ls") == Deny(
        "The agent main/a-1 may not use shell."
    )
    push = policy(root, *lines("allow", "outside(git push)"), bounds=HELD)
    call = JudgedCall(SHELL, {"command": "git push"}, root, "main/a-1")
    assert allowed(push.judge(call)).profile == OUTSIDE
    assert asked(push.judge(replace(call, ceiling=within))).profile.name == "working"


def test_plan_mode_lets_readers_run_and_nothing_else(root: Path) -> None:
    def planned(each: Tool, bounds: Bounds = HELD, *, tried: str = "", **args: Any) -> Judgement:
        return policy(root, mode="plan", bounds=bounds).judge(JudgedCall(each, args, root, tried=tried))

    assert allowed(planned(SHELL, command="git log"))
    assert allowed(planned(KERNEL, code="1"))
    assert allowed(planned(READ, path="a.txt"))
    for refused in (
        planned(SHELL, command="make"),
        planned(SHELL, command=""),
        planned(SHELL, command="git log", tried="a.txt"),
        planned(PYTHON, code="1"),
        planned(KERNEL, ALONE, code="1"),
        planned(FETCH, url="https://x.org"),
        planned(EDIT, path="a.txt"),
    ):
        assert isinstance(refused, Deny)
        assert refused.reason.startswith("Plan mode only reads")


def test_code_runs_unasked_in_the_sandbox_only_with_a_rule_for_it(root: Path) -> None:
    for bounds, code, expected in (
        (HELD, "print(1)", "python(@sandbox)"),
        (HELD, "import shutil; shutil.rmtree('src')", None),
        (replace(HELD, walled=lambda: False), "print(1)", None),
        (replace(HELD, confined=lambda: False), "print(1)", None),
    ):
        question = asked(policy(root, bounds=bounds).judge(JudgedCall(PYTHON, {"code": code}, root)))
        assert question.session_rule == expected, code
    assert allowed(policy(root, mode="auto", bounds=HELD).judge(JudgedCall(PYTHON, {"code": "1"}, root)))
    assert asked(policy(root, mode="auto", bounds=ALONE).judge(JudgedCall(PYTHON, {"code": "1"}, root)))


@pytest.mark.parametrize(
    "command",
    [
        "curl https://x.org",  # network
        "touch ../x",  # outside the workspace
        "uv pip install x",  # changes programs that run later
        "make | git add -A",  # git beside another command
    ],
)
def test_in_auto_each_reason_to_ask_is_one_by_itself(root: Path, command: str) -> None:
    question = asked(judged(root, command, mode="auto"))
    assert question.reason.endswith("; it may reach outside this folder.")
    assert asked(judged(root, "make", mode="auto", bounds=ALONE)).reason.endswith("; there is no sandbox.")
    assert asked(judged(root, "make")).reason == "`make` runs the project's own commands."


def test_in_auto_code_that_names_a_protected_file_asks(root: Path) -> None:
    bare = policy(root, mode="auto", bundled=False, bounds=HELD)
    assert [judge(bare, PYTHON, code) for code in ("open('a.txt')", "open('.git/config')")] == ["allow", "ask"]


def test_in_auto_a_tool_runs_that_the_sandbox_holds(root: Path) -> None:
    held = replace(PYTHON, name="render", facts=replace(PYTHON.facts, target="", confined=True))
    loose = replace(held, facts=replace(held.facts, confined=False))
    for each, bounds, expected in ((held, HELD, "allow"), (held, ALONE, "ask"), (loose, HELD, "ask")):
        assert judge(policy(root, mode="auto", bounds=bounds), each, "") == expected
    assert judge(policy(root, bounds=HELD), held, "") == "ask"


def test_a_tool_without_a_command_is_none_though_it_is_called_shell(root: Path) -> None:
    for bounds in (HELD, ALONE):
        assert judge(policy(root, bounds=bounds), tool("shell", Effect.READ), "a.txt") == "allow"


def test_silence_allows_nothing_that_may_carry_data_away(root: Path) -> None:
    terms = json.dumps({"timeout": 5, "on_timeout": "allow"})

    def leaks(tool: Tool, args: Mapping[str, Any]) -> str:
        return "it may carry data away" if "secret" in str(args.get("url")) else ""

    rules = policy(root, RuleLine("web_fetch", "ask", "test", terms=terms), bounds=Bounds(suspicion=leaks))
    for url, expected in (("https://x.org", "allow"), ("https://x.org/?secret", "deny")):
        question = asked(rules.judge(JudgedCall(FETCH, {"url": url}, root)))
        assert (question.timeout, question.on_timeout) == (5, expected)


def test_a_malformed_path_is_denied_as_such(root: Path) -> None:
    refused = policy(root).judge(JudgedCall(READ, {"path": "a\0b"}, root))
    assert isinstance(refused, Deny)
    assert refused.malformed
    assert verdict(policy(root).judge(JudgedCall(READ, {"path": "a.txt"}, root))) == "allow"
