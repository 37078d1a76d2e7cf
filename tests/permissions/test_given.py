"""Rules that a person gives and takes back, a project's own that wait, and how often rules decided."""

from __future__ import annotations

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.permissions import RuleLine, RuleScope
from ba_tui.permissions.answers import LARGEST, GrantedRules, add_hits, grantable, hits_of, read_hits
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.verdicts import Ask, Bounds, JudgedCall
from ba_tui.resources import places
from ba_tui.settings import load_settings
from tests.permissions.toolset import CLOCK, EDIT, READ, SHELL, judge, lines, policy


@pytest.fixture
def root(tmp_path: Path, ba_home: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def offered(rule: str, terms: str = "", verdict: str = "allow") -> RuleLine:
    return RuleLine(rule, verdict, "/srv/.ba/config.yaml:2", layer="project", terms=terms)


def again(root: Path, *rules: RuleLine) -> Policy:
    """The policy of the next start."""
    return policy(root, *load_settings({}, places(), root, {}).rules, *rules)


@pytest.mark.parametrize("scope", ["session", "project", "user"])
@pytest.mark.parametrize("verdict", ["allow", "ask", "deny"])
def test_a_rule_comes_and_goes(root: Path, scope: RuleScope, verdict: Any) -> None:
    rules = policy(root)
    call, before = (EDIT, "ask") if verdict == "allow" else (READ, "allow")
    line = rules.add(f"{call.name}(a.py)", verdict, scope)
    assert line in rules.rules()
    assert line.layer == scope
    assert judge(rules, call, "a.py") == verdict
    after = again(root)
    assert judge(after, call, "a.py") == (before if scope == "session" else verdict)
    rules.remove(line)
    assert line not in rules.rules()
    assert judge(rules, call, "a.py") == before
    assert judge(again(root), call, "a.py") == before


def test_a_rule_of_the_project_is_not_one_of_another(root: Path) -> None:
    policy(root).add("edit_file(a.py)", "allow", "project")
    other = root.parent / "other"
    other.mkdir()
    assert not policy(other).problems
    assert judge(policy(other), EDIT, "a.py") == "ask"


def test_rules_of_others_stay(root: Path) -> None:
    rules = policy(root, *lines("deny", "now"), offered("edit_file(src/**)"))
    for line in rules.rules():
        with pytest.raises(UsageError, match="not one of your rules"):
            rules.remove(line)
    with pytest.raises(UsageError, match="permission rule"):
        rules.add("edit_file(", "allow", "user")


def test_giving_a_rule_is_no_answer_to_an_ask_rule(root: Path) -> None:
    rules = policy(root, *lines("ask", "edit_file(src/**)"))
    rules.add("edit_file(src/a.py)", "allow", "project")
    assert judge(rules, EDIT, "src/a.py") == "ask"
    rules.remember("edit_file(src/a.py)", "session")
    assert judge(rules, EDIT, "src/a.py") == "allow"
    assert judge(rules, EDIT, "src/b.py") == "ask"


def test_what_a_project_allows_waits_and_what_it_denies_does_not(root: Path) -> None:
    project = [offered("edit_file(src/**)"), offered("now", verdict="deny"), offered("shell(make)", verdict="ask")]
    rules = policy(root, *project)
    judged = rules.judge(JudgedCall(EDIT, {"path": "src/a.py"}, root))
    assert isinstance(judged, Ask)
    assert (judged.rule, judged.by) == ("edit_file(src/**)", "edit_file(src/**)")
    assert "once you confirm it" in judged.reason
    assert "/srv/.ba/config.yaml:2" in judged.reason
    assert [judge(rules, CLOCK, ""), judge(rules, SHELL, "make"), judge(rules, EDIT, "a.py")] == ["deny", "ask", "ask"]
    assert [line.rule for line in rules.rules() if line.waiting] == ["edit_file(src/**)"]
    assert judge(policy(root, *project, mode="accept-edits"), EDIT, "src/a.py") == "allow"


@pytest.mark.parametrize("way", ["always", "add"])
def test_a_waiting_rule_is_confirmed_once(root: Path, way: str) -> None:
    waiting = offered("edit_file(src/**)")
    rules = policy(root, waiting)
    judge(rules, EDIT, "src/a.py")
    if way == "always":
        rules.remember("edit_file(src/**)", "always")
    else:
        rules.add("edit_file(src/**)", "allow", "project")
    assert judge(again(root, waiting), EDIT, "src/b.py") == "allow"
    assert not any(line.waiting for line in again(root, waiting).rules())
    changed = again(root, offered("edit_file(**)"))
    assert [line.rule for line in changed.rules() if line.waiting] == ["edit_file(**)"]
    assert judge(changed, EDIT, "b.py") == "ask"


def test_confirming_takes_the_conditions_along(root: Path) -> None:
    small, large = (json.dumps({"when": {"size": {"max": size}}}) for size in (5, 500))
    rules = policy(root, offered("edit_file(a)", small))
    rules.add("edit_file(a)", "allow", "project")
    after = again(root, offered("edit_file(a)", small))

    def verdict(size: int) -> str:
        return type(after.judge(JudgedCall(EDIT, {"path": "a", "size": size}, root))).__name__

    assert [verdict(5), verdict(6)] == ["Allow", "Ask"]
    assert not any(line.waiting for line in after.rules())
    assert any(line.waiting for line in again(root, offered("edit_file(a)", large)).rules())


def test_a_waiting_rule_never_beats_denials_or_questions(root: Path) -> None:
    rules = policy(root, offered("edit_file(**)"), *lines("deny", "edit_file(x)"), *lines("ask", "edit_file(y)"))
    rules.add("edit_file(**)", "allow", "project")
    assert [judge(rules, EDIT, name) for name in "xyz"] == ["deny", "ask", "allow"]


def test_hits_are_counted_over_sessions(root: Path) -> None:
    bounds = Bounds(own=places(), hits=hits_of(places(), root))

    def counted() -> dict[str, int]:
        return {line.rule: line.hits for line in policy(root, *lines("allow", "now"), bounds=bounds).rules()}

    for calls in (2, 3):
        rules = policy(root, *lines("allow", "now"), bounds=bounds)
        for _ in range(calls):
            judge(rules, CLOCK, "")
        assert next(line for line in rules.rules() if line.rule == "now").hits == (2 if calls == 2 else 5)
        rules.save_hits()
        rules.save_hits()
    judge(rules, READ, ".env")
    rules.save_hits()
    assert counted() == {"now": 5, "*(@secret)": 1, "@write(@guarded)": 0}


def test_a_broken_file_of_hits_is_no_trouble(tmp_path: Path) -> None:
    path = tmp_path / "state" / "hits.jsonl"
    add_hits(path, {"allow now": 2})
    with path.open("ab") as file:
        file.write(b'[1]\n{"allow now": "x", "ask shell": true, "deny x": -1}\n\xff\xfe\n{"allow now": 1}\n{"torn')
    assert read_hits(path)["allow now"] == 3
    path.write_bytes(b'{"allow now": 1}\n' * (LARGEST // 16))
    add_hits(path, {"allow now": 1})
    assert path.stat().st_size < 100
    assert read_hits(path)["allow now"] == LARGEST // 16 + 1
    link = tmp_path / "link"
    link.symlink_to(path)
    add_hits(link, {"allow now": 1})
    add_hits(tmp_path / "state" / "hits.jsonl" / "below", {"allow now": 1})
    assert read_hits(path)["allow now"] == LARGEST // 16 + 1


def test_removing_what_is_gone_by_now_is_told(root: Path) -> None:
    rules = policy(root)
    line = rules.add("now", "deny", "user")
    places().settings.write_text("")
    rules.remove(line)
    with pytest.raises(UsageError, match=r"is not in .*config\.yaml"):
        rules.remove(replace(line, source="elsewhere"))


def test_rules_given_at_the_same_time_are_all_kept(root: Path) -> None:
    rules = policy(root)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: rules.remember(f"edit_file({name})", "always"), "abcdefgh"))
    assert [judge(rules, EDIT, name) for name in "abcdefgh"] == ["allow"] * 8
    assert [judge(again(root), EDIT, name) for name in "abcdefgh"] == ["allow"] * 8


def test_counts_are_for_the_user_alone_and_stay_readable(tmp_path: Path) -> None:
    path = tmp_path / "state" / "rule-hits" / "work.jsonl"
    assert read_hits(path) == {}
    add_hits(path, {})
    assert not path.parent.exists()
    add_hits(path, {"allow edit_file(öl)": 10**9 - 1, "deny now": 1})
    add_hits(path, {"deny now": 2})
    assert path.read_text(encoding="utf-8").splitlines()[0] == '{"allow edit_file(öl)": 999999999, "deny now": 1}'
    assert read_hits(path) == {"allow edit_file(öl)": 10**9 - 1, "deny now": 3}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text(json.dumps({"allow edit_file(öl)": 10**9, "deny now": 5}) + "\n" + " " * (LARGEST - 50))
    assert read_hits(path) == {"deny now": 5}
    # The file is made small again once it is larger than it may be, and no earlier.
    line = b'{"x": 1}\n'
    for free, left in ((len(line), LARGEST), (len(line) - 1, len(line))):
        path.write_bytes(b"\n" * (LARGEST - free))
        add_hits(path, {"x": 1})
        assert path.stat().st_size == left
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    add_hits(pipe, {"deny now": 1})
    assert read_hits(pipe) == {}


def test_rules_that_somebody_brings_are_sorted_out_and_read_once(caplog: pytest.LogCaptureFixture) -> None:
    texts = ("shell(git status)", "@write", "mcp__x__y", "lost", "shell(g*t:*)", "now(", "now")
    good, other = grantable(texts, {"shell", "now"})
    assert good == ("shell(git status)", "@write", "mcp__x__y", "now")
    assert other == ("lost", "shell(g*t:*)", "now(")
    given: list[tuple[str, ...]] = [("now", "now(")]
    rules = GrantedRules(lambda: given[0], "the skill trip")
    caplog.set_level("INFO")
    first = rules()
    assert [(rule.text, rule.verdict, rule.source) for rule in first] == [("now", "allow", "the skill trip")]
    assert rules() is first
    assert [record.getMessage() for record in caplog.records] == [
        "the skill trip names now(: the skill trip: permission rule 'now(': expected a pattern between ( and )."
    ]
    given[0] = ("shell(ls)",)
    assert [rule.text for rule in rules()] == ["shell(ls)"]
