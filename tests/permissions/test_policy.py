"""The policy: deny over ask over allow in any order and from any layer, then the mode."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.permissions import RuleLine
from ba_tui.core.tool import Effect, ToolFacts
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.rule import read_rule
from ba_tui.permissions.verdicts import Allow, Ask, Deny, JudgedCall
from tests.permissions.toolset import CLOCK, EDIT, FETCH, READ, SHELL, judge, lines, policy, tool, verdict


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("")
    (folder / ".env").write_text("KEY=1")
    (folder / ".git").mkdir()
    return folder


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("default", ["allow", "allow", "ask", "ask", "allow", "ask"]),
        ("accept-edits", ["allow", "allow", "allow", "ask", "allow", "ask"]),
        ("plan", ["allow", "allow", "deny", "deny", "allow", "deny"]),
    ],
)
def test_modes(root: Path, mode: Any, expected: list[str]) -> None:
    rules = policy(root, mode=mode, held=True)
    calls = [(READ, "src/a.py"), (CLOCK, ""), (EDIT, "src/a.py"), (SHELL, "make")]
    calls += [(SHELL, "git status"), (FETCH, "https://x.org")]
    assert [judge(rules, each, about) for each, about in calls] == expected


def test_the_mode_can_change_and_must_exist(root: Path) -> None:
    rules = policy(root)
    rules.set_mode("plan")
    assert rules.mode == "plan"
    assert "present the plan" in str(rules.judge(JudgedCall(EDIT, {"path": "src/a.py"}, root)))
    with pytest.raises(UsageError, match="no mode 'yolo'"):
        rules.set_mode("yolo")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("mode", ["default", "accept-edits"])
def test_outside_the_workspace_everything_asks(root: Path, mode: Any) -> None:
    rules = policy(root, mode=mode)
    for each in (READ, EDIT):
        judged = rules.judge(JudgedCall(each, {"path": "../other.txt"}, root))
        assert isinstance(judged, Ask)
        assert "outside the workspace" in judged.risks
        assert judged.rule == f"{each.name}({root.parent / 'other.txt'})"


def test_a_rule_without_a_pattern_never_reaches_outside(root: Path) -> None:
    rules = policy(root, *lines("allow", "edit_file", "*"))
    assert judge(rules, EDIT, "src/a.py") == "allow"
    assert judge(rules, EDIT, "/etc/hosts") == "ask"
    assert judge(policy(root, *lines("allow", "edit_file(/etc/**)")), EDIT, "/etc/hosts") == "allow"
    assert judge(policy(root, *lines("allow", "edit_file(@outside)")), EDIT, "/etc/hosts") == "allow"


def test_secrets_are_denied_to_every_tool_that_names_one(root: Path) -> None:
    (root / "innocent.txt").symlink_to(".env")
    (root / ".env.local").symlink_to("src/a.py")
    rules = policy(root, *lines("allow", "*", "read_file(.env)", "shell(cat .env)"), mode="accept-edits")
    for about in (".env", "src/../.env", "innocent.txt", ".env.local", "~/.ssh/id_rsa", "file:///proc/self/environ"):
        assert judge(rules, READ, about) == "deny", about
        assert judge(rules, EDIT, about) == "deny", about
    assert judge(rules, SHELL, "cat .env") == "deny"
    assert judge(rules, READ, ".env.example") == "allow"
    judged = rules.judge(JudgedCall(READ, {"path": "innocent.txt"}, root))
    assert isinstance(judged, Deny)
    assert ".env holds secrets" in judged.reason


def test_a_hard_link_of_a_secret_is_one(root: Path) -> None:
    (root / "src" / "notes.txt").hardlink_to(root / ".env")
    (root / "b.py").hardlink_to(root / "src" / "a.py")
    for each, about in [(READ, "src/notes.txt"), (EDIT, "src/notes.txt"), (SHELL, "cd src && head notes.txt")]:
        assert judge(policy(root), each, about) == "deny", each.name
    assert judge(policy(root), READ, "b.py") == "allow"


def test_our_own_keys_are_secret_and_our_own_settings_guarded(root: Path, ba_home: Path) -> None:
    rules = policy(root, *lines("allow", f"*({ba_home}/**)"))
    assert judge(rules, READ, str(ba_home / "keys.yaml")) == "deny"
    assert judge(rules, READ, str(ba_home / "config.yaml")) == "allow"
    assert judge(rules, EDIT, str(ba_home / "config.yaml")) == "ask"
    assert judge(rules, EDIT, str(ba_home / "approvals.yaml")) == "ask"


@pytest.mark.parametrize(
    "path", [".git/config", ".github/workflows/ci.yml", ".ba/config.yaml", ".claude/x", "link/config"]
)
def test_guarded_paths_ask_even_when_edits_are_accepted(root: Path, path: str) -> None:
    (root / "link").symlink_to(".git")
    rules = policy(root, *lines("allow", "edit_file"), mode="accept-edits")
    assert judge(rules, EDIT, path) == "ask"
    assert judge(rules, READ, path) == "allow"


def test_folders_above_the_workspace_guard_nothing(tmp_path: Path) -> None:
    inside = tmp_path / ".claude" / "work"
    inside.mkdir(parents=True)
    assert judge(policy(inside, mode="accept-edits"), EDIT, "a.py") == "allow"


def test_a_path_that_is_none_is_denied_in_words(root: Path) -> None:
    assert judge(policy(root), READ, "a\0b") == "deny"
    assert judge(policy(root), READ, "file://server/x") == "deny"


def test_all_paths_of_a_call_count(root: Path) -> None:
    both = tool("copy", Effect.WRITE, "source", ("source", "targets"))
    rules = policy(root, *lines("allow", "copy(src/**)"), mode="default")
    args = {"source": "src/a.py", "targets": ["src/b.py", "src/c.py"]}
    assert isinstance(rules.judge(JudgedCall(both, args, root)), Allow)
    assert isinstance(rules.judge(JudgedCall(both, {**args, "targets": ["src/b.py", "doc.md"]}, root)), Ask)
    assert isinstance(rules.judge(JudgedCall(both, {**args, "targets": ["src/b.py", ".env"]}, root)), Deny)


def test_a_call_without_its_path_is_about_the_root(root: Path) -> None:
    rules = policy(root, *lines("deny", "read_file(src/**)"))
    assert isinstance(rules.judge(JudgedCall(READ, {}, root)), Allow)


@pytest.mark.parametrize(
    ("pattern", "path", "covered"),
    [
        ("src/**", "src/a.py", True),
        ("src/**", "src/deep/er/a.py", True),
        ("src/", "src/a.py", True),
        ("src/*", "src/deep/a.py", False),
        ("*.py", "src/a.py", False),
        ("**/*.py", "src/a.py", True),
        ("**/*.py", "a.py", True),
        ("src/?.py", "src/a.py", True),
        ("src/[ab].py", "src/a.py", True),
        ("src/[!a].py", "src/a.py", False),
        ("./src/a.py", "src/a.py", True),
        ("src/a.py", "src/../src/a.py", True),
        ("SRC/**", "src/a.py", False),
        ("src/a[", "src/a[", True),
        ("src/(x)", "src/(x)", True),
    ],
)
def test_file_patterns(root: Path, pattern: str, path: str, covered: bool) -> None:
    assert (judge(policy(root, *lines("allow", f"edit_file({pattern})")), EDIT, path) == "allow") == covered


def test_strict_rules_do_not_mind_the_case(root: Path) -> None:
    assert judge(policy(root, *lines("deny", "*(SRC/**)")), READ, "src/a.py") == "deny"
    assert judge(policy(root, *lines("deny", "*(**/a.py)")), READ, "/elsewhere/a.py") == "deny"


def test_strict_rules_hold_from_every_folder_of_the_workspace(root: Path) -> None:
    workspace = Workspace(root / "src", (root,))
    rules = Policy(workspace, lines("deny", "*(src/**)"))
    assert judge(rules, READ, "a.py") == "deny"
    assert judge(Policy(workspace, lines("allow", "edit_file(src/**)")), EDIT, "a.py") == "ask"


def test_a_denied_folder_is_denied_to_commands_too(root: Path) -> None:
    rules = policy(root, *lines("deny", "*(src/**)"))
    assert judge(rules, SHELL, "head -3 ./src/a.py") == "deny"
    assert isinstance(rules.judge(JudgedCall(SHELL, {"command": "cat a.py"}, root / "src")), Deny)
    assert judge(rules, SHELL, "ls doc") == "allow"


def test_a_command_runs_only_when_its_words_were_allowed(root: Path) -> None:
    rules = policy(root, *lines("allow", "*", "@read", "shell(make all)"))
    for same in ("make all", "make all ", "make  all", "make 'all';", "make all\n", "make all && ls"):
        assert judge(rules, SHELL, same) == "allow", same
    for other in ("make al", "MAKE all", "make all x", "make all; make", "./make all", "make $X"):
        assert judge(rules, SHELL, other) == "ask", other


@pytest.mark.parametrize("verdict", ["ask", "deny"])
def test_strict_rules_about_commands_do_not_mind_blanks(root: Path, verdict: str) -> None:
    rules = policy(root, *lines(verdict, "shell(git push)"), *lines("allow", "shell(git push)"))
    assert judge(rules, SHELL, "git   push ") == verdict
    assert judge(policy(root, *lines("deny", "shell"), *lines("allow", "shell(ls)")), SHELL, "ls") == "deny"


def test_what_would_be_remembered_is_the_narrowest_rule(root: Path) -> None:
    rules = policy(root)

    def suggested(each: Any, about: str) -> str | None:
        judged = rules.judge(JudgedCall(each, {each.facts.target: about}, root))
        assert isinstance(judged, Ask)
        return judged.rule

    assert suggested(SHELL, "make all") == "shell(make all:*)"
    assert suggested(EDIT, "src/../src/a.py") == "edit_file(src/a.py)"
    assert suggested(EDIT, "src/a[1]*.py") == "edit_file(src/a[[]1][*].py)"
    assert suggested(FETCH, "https://x.org/a?b") == "web_fetch(domain:x.org)"
    assert suggested(SHELL, "a\nb") == "shell(a)\nshell(b)"
    for command in ("x" * 201, "make *.py", "make \x1b[2J", "make \u202e", ""):
        assert suggested(SHELL, command) is None, command


def test_every_suggestion_covers_the_call_it_came_from(root: Path) -> None:
    for each, about in [(SHELL, "a b 'c d'"), (EDIT, "src/a[1]*?.py"), (READ, "/etc/hosts")]:
        rules = policy(root)
        judged = rules.judge(JudgedCall(each, {each.facts.target: about}, root))
        assert isinstance(judged, Ask)
        assert judged.rule is not None
        rules.remember(judged.rule, "session")
        assert judge(rules, each, about) == "allow"
        assert judge(rules, each, about + "x") == "ask"


def test_an_answer_outranks_the_rule_it_answered_and_no_other(root: Path) -> None:
    rules = policy(root, *lines("ask", "edit_file(src/**)"))
    judged = rules.judge(JudgedCall(EDIT, {"path": ".git/config"}, root))
    assert isinstance(judged, Ask)
    assert judged.rule == "edit_file(.git/config)"
    rules.remember(judged.rule, "session")
    assert judge(rules, EDIT, ".git/config") == "allow"
    assert judge(rules, EDIT, ".git/hooks/x") == "ask"
    assert judge(rules, EDIT, "src/a.py") == "ask"


def test_an_answer_counts_for_calls_that_were_asked_about_alone(root: Path) -> None:
    rules = policy(root, *lines("ask", "edit_file(src/**)"))
    assert judge(rules, EDIT, "src/a.py") == "ask"
    rules.remember("edit_file(src/b.py)", "session")
    assert judge(rules, EDIT, "src/b.py") == "ask"
    rules.remember("edit_file(src/b.py)", "session")
    assert judge(rules, EDIT, "src/b.py") == "allow"
    assert judge(rules, EDIT, "src/a.py") == "ask"


def test_what_is_granted_allows_for_as_long_as_it_is_there(root: Path) -> None:
    granted = [read_rule("edit_file(src/**)", "allow", "a skill"), read_rule("outside(make)", "allow", "a skill")]
    rules = policy(root, *lines("deny", "edit_file(src/c.py)"))
    rules.grant(lambda: granted)
    assert [judge(rules, EDIT, name) for name in ("src/a.py", "src/c.py", "doc.md")] == ["allow", "deny", "ask"]
    shown = [(line.rule, line.source, line.hits) for line in rules.rules() if line.source == "a skill"]
    assert shown == [("edit_file(src/**)", "a skill", 1)]
    granted.clear()
    assert judge(rules, EDIT, "src/a.py") == "ask"


def test_an_edited_answer_counts_for_the_call_it_was_given_to(root: Path) -> None:
    rules = policy(root)
    assert judge(rules, EDIT, ".git/config") == "ask"
    rules.remember("edit_file(.git/**)", "session")
    assert judge(rules, EDIT, ".git/info/exclude") == "allow"


def test_an_answer_never_outranks_a_denial(root: Path) -> None:
    rules = policy(root, *lines("deny", "edit_file(src/**)"))
    rules.remember("edit_file(src/a.py)", "session")
    assert judge(rules, EDIT, "src/a.py") == "deny"
    rules = policy(root, mode="plan")
    rules.remember("edit_file(doc.md)", "session")
    assert judge(rules, EDIT, "doc.md") == "deny"


def test_a_given_allow_rule_outranks_the_mode_but_no_ask_rule(root: Path) -> None:
    rules = policy(root, *lines("allow", "edit_file(**)", "web_fetch"))
    assert judge(rules, EDIT, "doc.md") == "allow"
    assert judge(rules, FETCH, "https://x.org") == "allow"
    assert judge(rules, EDIT, ".git/config") == "ask"


@pytest.mark.parametrize(
    "rule", ["shell(g*t:*)", "python", "shell(git * x)", "edit_file(", "x y", "shell(make all)\n", ""]
)
def test_an_answer_that_is_no_rule_is_refused(root: Path, rule: str) -> None:
    rules = policy(root)
    with pytest.raises(UsageError):
        rules.remember(rule, "always")
    assert judge(rules, SHELL, "make all") == "ask"


def test_rules_show_source_and_hits(root: Path) -> None:
    rules = policy(root, *lines("allow", "shell(ls)"))
    judge(rules, SHELL, "ls")
    judge(rules, SHELL, "ls")
    judge(rules, READ, ".env")
    judge(rules, EDIT, ".git/config")
    judge(rules, EDIT, ".git/config")
    rules.remember("shell(pwd)", "session")
    shown = {line.rule: (line.verdict, line.source, line.hits) for line in rules.rules()}
    assert shown["shell(ls)"] == ("allow", "test", 2)
    assert shown["*(@secret)"] == ("deny", "bundled", 1)
    assert shown["@write(@guarded)"] == ("ask", "bundled", 1)
    assert shown["shell(pwd)"] == ("allow", "this session", 0)
    assert [line.verdict for line in rules.rules()] == ["deny", "ask", "allow", "allow"]


def test_rules_that_cannot_be_read_are_told_and_count_for_nothing(root: Path) -> None:
    wrong = RuleLine("shell(r*m)", "allow", "/home/ann/config.yaml:3")
    rules = policy(root, wrong, *lines("deny", "edit_file"))
    assert rules.problems[0].startswith("/home/ann/config.yaml:3: permission rule 'shell(r*m)': ")
    assert judge(rules, SHELL, "rm x") == "ask"
    assert judge(rules, EDIT, "a") == "deny"


RULES = st.lists(
    st.tuples(
        st.sampled_from(["deny", "ask", "allow"]),
        st.sampled_from(
            [
                "*",
                "edit_file",
                "edit_file(src/**)",
                "edit_file(src/a.py)",
                "@write",
                "@read",
                "read_file",
                "*(src/**)",
                "shell(ls)",
                "web_fetch",
                "*(@outside)",
                "mcp.*",
                "edit_file(/etc/**)",
            ]
        ),
    ),
    max_size=8,
)
CALLS = st.sampled_from(
    [
        (EDIT, "src/a.py"),
        (EDIT, "doc.md"),
        (EDIT, "/etc/hosts"),
        (READ, "src/a.py"),
        (READ, "/etc/hosts"),
        (SHELL, "ls"),
        (SHELL, "ls src/a.py"),
        (FETCH, "https://x.org"),
    ]
)
STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}


@settings(max_examples=300, deadline=None)
@given(given_rules=RULES, call=CALLS, mode=st.sampled_from(["default", "accept-edits", "plan"]), data=st.data())
def test_order_never_matters_and_strict_rules_only_tighten(
    root: Path, given_rules: list[tuple[str, str]], call: tuple[Any, str], mode: Any, data: st.DataObject
) -> None:
    def judged(rules: list[tuple[str, str]]) -> str:
        return judge(_policy(root, rules, mode), *call)

    verdict = judged(given_rules)
    assert judged(data.draw(st.permutations(given_rules))) == verdict
    deny = data.draw(st.sampled_from([rule for name, rule in given_rules if name != "allow"] or ["*"]))
    assert STRICTNESS[judged([*given_rules, ("deny", deny)])] >= STRICTNESS[verdict]
    assert STRICTNESS[judged([*given_rules, ("ask", deny)])] >= min(STRICTNESS[verdict], 1)
    allow = data.draw(st.sampled_from(["*", "edit_file", "edit_file(src/**)", "shell(ls)", "web_fetch"]))
    assert STRICTNESS[judged([*given_rules, ("allow", allow)])] <= STRICTNESS[verdict]
    if verdict in {"ask", "deny"} and any(name == verdict for name, _ in given_rules):
        assert (judged([*given_rules, ("allow", "*")]) == "deny") == (verdict == "deny")


def _policy(root: Path, rules: list[tuple[str, str]], mode: Any) -> Policy:
    return policy(root, *(RuleLine(rule, verdict, "test") for verdict, rule in rules), mode=mode, bundled=False)


def test_paths_within_an_argument_are_judged_like_any(root: Path) -> None:
    facts = ToolFacts(paths_of=lambda args: tuple(str(args.get("patch", "")).split()))
    patch = replace(tool("apply_patch", Effect.WRITE, "", ()), facts=facts)
    rules = policy(root, mode="accept-edits")

    def verdict_on(text: str) -> str:
        return verdict(rules.judge(JudgedCall(patch, {"patch": text}, root)))

    assert verdict_on("src/a.py src/new.py") == "allow"
    assert verdict_on("") == "allow", "it names nothing, so it can change nothing"
    assert verdict_on("src/a.py ../other.txt") == "ask"
    assert verdict_on("src/a.py .env") == "deny"
    assert verdict_on("src/a.py nul\0") == "deny"
    assert verdict_on("src/a.py .git/config") == "ask"
    (root / "src" / "plain.txt").symlink_to(root / ".env")
    assert verdict_on("src/plain.txt") == "deny"
    judged = policy(root).judge(JudgedCall(patch, {"patch": "src/a.py"}, root))
    assert isinstance(judged, Ask)
    assert judged.rule == "apply_patch(src/a.py)"
    assert patch.target({"patch": "src/a.py  src/b.py"}) == "src/a.py, src/b.py"
