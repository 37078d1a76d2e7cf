"""In which profile a command runs, what nothing would hold, and how it may leave the sandbox."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.events import MAIN, PERSON, Mode
from ba_tui.core.ports.permissions import RuleLine
from ba_tui.permissions.rule import read_rule
from ba_tui.permissions.verdicts import Allow, Ask, Bounds, Deny, JudgedCall, Judgement
from ba_tui.resources import places
from tests.permissions.toolset import EDIT, PYTHON, SHELL, judge, lines, policy

HELD = Bounds(unheld=str, confined=lambda: True)
ALONE = Bounds(unheld=lambda: "there is no sandbox")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    for name in (".git", "src"):
        (root / name).mkdir(parents=True)
    (root / "a.txt").write_text("a")
    (tmp_path / "other.txt").write_text("x")
    return root


def judged(
    root: Path, command: str, *rules: RuleLine, mode: Mode = "default", bounds: Bounds = HELD, **args: Any
) -> Judgement:
    return policy(root, *rules, mode=mode, bounds=bounds).judge(JudgedCall(SHELL, {"command": command, **args}, root))


def profile(verdict: Judgement) -> str:
    if isinstance(verdict, Deny):
        return "deny"
    told = [verdict.profile.name, *(["git"] if verdict.profile.git else [])]
    told += ["packages"] if verdict.profile.packages else []
    return " ".join([*(["ask"] if isinstance(verdict, Ask) else []), *told])


@pytest.mark.parametrize(
    ("command", "rules", "mode", "expected"),
    [
        ("git status && ls -la", (), "default", "reading"),
        ("git status", ("shell(git status)",), "default", "working"),
        ("git status && ls", ("shell(git status)",), "default", "reading"),
        ("ls > out", ("write_file(out)",), "default", "working"),
        ("git status && ls", ("shell",), "default", "working"),
        ("git log -1 | cat", ("shell(git log:*)",), "default", "reading"),
        ("make", ("shell(make)",), "default", "working"),
        ("make | tail", ("shell(make)",), "default", "working"),
        ("make | git log", ("shell(make)",), "default", "ask working"),
        ("make", (), "default", "ask working"),
        ("make", (), "auto", "working"),
        ("git log", (), "auto", "reading"),
        ("git log", (), "plan", "reading"),
        ("git add a.txt", ("shell(git add:*)",), "default", "working git"),
        ("cd src && git add . | tail", ("shell(git add:*)",), "default", "working git"),
        ("git commit -m x", (), "default", "ask working git"),
        ("git commit -m x", (), "auto", "working git"),
        ("make | git add -A", (), "auto", "ask working git"),
        ("npm ci", ("shell(npm ci)",), "default", "working packages"),
        ("uv pip install x", (), "default", "ask working packages"),
        ("python3 -m venv .venv", (), "auto", "ask working packages"),
        ("npm run build", ("shell(npm run build)",), "default", "working"),
        ("uv run pytest", ("shell(uv run pytest)",), "default", "working"),
    ],
)
def test_the_verdict_says_in_which_profile_it_runs(
    root: Path, command: str, rules: tuple[str, ...], mode: Mode, expected: str
) -> None:
    verdict = judged(root, command, *lines("allow", *rules), mode=mode)
    assert profile(verdict) == expected, verdict


@pytest.mark.parametrize(
    ("command", "rule", "by"),
    [
        ("git status && ls", "shell", ""),
        ("git log -1 | cat", "shell(git log:*)", "shell(git log:*)"),
        ("make && ls", "shell", "shell"),
    ],
)
def test_a_broad_rule_does_not_decide_about_what_only_reads(root: Path, command: str, rule: str, by: str) -> None:
    verdict = judged(root, command, *lines("allow", rule))
    assert isinstance(verdict, Allow)
    assert verdict.by == by


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("cat a.txt ../other.txt", "`cat` accesses {root}/other.txt, which is outside the workspace."),
        ("/usr/bin/cat ../other.txt", "`cat` accesses {root}/other.txt, which is outside the workspace."),
        ("rm a.txt", "`rm` deletes a.txt."),
        ("rm a.txt src/b src/c", "`rm` deletes a.txt and 2 more."),
        ("rmdir src", "`rmdir` deletes src."),
        ("mkdir x", "`mkdir` creates x."),
        ("cp a.txt b.txt", "`cp` writes b.txt."),
        ("mv a.txt b.txt src", "`mv` writes src."),
        ("tee n m < a.txt", "`tee` writes n."),
        ("echo x > out", "`echo` writes out."),
        ("chmod +x a.txt", "`chmod` changes rights."),
        ("./run", "`./run` is unknown to ba."),
        ("make", "`make` runs the project's own commands."),
        ("ls -R /", "`ls` accesses /, which is outside the workspace."),
        ("tree /", "`tree` accesses /, which is outside the workspace."),
        ("cat /etc/hosts", "`cat` accesses /etc/hosts, which is outside the workspace."),
        ("ls /", ""),
        ("ls ~", ""),
        ("cat /usr/share/x", ""),
    ],
)
def test_a_command_that_asks_says_why(root: Path, command: str, reason: str) -> None:
    verdict = judged(root, command)
    assert (verdict.reason if isinstance(verdict, Ask) else "") == reason.format(root=root.parent)


def test_words_before_a_star_cover_what_deletes_or_makes_files_here_and_no_other_writing(root: Path) -> None:
    for command, rule, expected in [
        ("touch n", "shell(touch:*)", "working"),
        ("rm a.txt", "shell(rm:*)", "working"),
        ("rm a.txt", "write_file(a.txt)", "ask working"),
        ("mkdir x", "shell(mkdir:*)", "working"),
        ("rm .git/config", "shell(rm:*)", "ask working"),
        ("touch ../x", "shell(touch:*)", "ask working"),
        ("cp a.txt b.txt", "shell(cp:*)", "ask working"),
        ("cp a.txt b.txt", "shell(cp a.txt b.txt)", "working"),
    ]:
        assert profile(judged(root, command, *lines("allow", rule))) == expected, (command, rule)


def test_a_text_without_a_command_is_told_as_that(root: Path) -> None:
    for text in ("", " ", "\n"):
        verdict = judged(root, text, *lines("allow", "shell"))
        assert isinstance(verdict, Ask)
        assert (verdict.reason, verdict.rule) == ("It contains no command.", None)


def test_lists_of_commands_run_one_by_one_each_in_its_profile(root: Path) -> None:
    verdict = judged(
        root,
        "git add -A && git commit -m 'x y'; git log -1",
        *lines("allow", "shell(git add:*)", "shell(git commit:*)"),
    )
    assert isinstance(verdict, Allow)
    told = [(step.text, step.profile.name, step.profile.git, step.joined) for step in verdict.steps]
    assert told == [
        ("git add -A", "working", True, False),
        ("git commit -m 'x y'", "working", True, True),
        ("git log -1", "reading", False, False),
    ]
    moved = judged(root, "cd src && git add b && make", *lines("allow", "shell(git add:*)", "shell(make)"))
    assert isinstance(moved, Allow)
    assert [step.text for step in moved.steps] == ["cd src", "git add b", "make"]


@pytest.mark.parametrize(
    "command",
    [
        "git add -A || git commit -m x",
        "git add -A & git commit -m x",
        "x=1; git add $x; git commit -m x",
        "set -e; git add -A; git commit -m x",
        "git add -A; git commit -m x; echo $?",
        "(git add -A; git commit -m x)",
        "if true; then git add -A; git commit -m x; fi",
        "git add -A && git commit -F - <<E\nx\nE",
        "cd .. && git add -A && git commit -m x",
        "git add -A && git commit -m x && make",
    ],
)
def test_what_can_not_run_one_by_one_asks_as_a_whole(root: Path, command: str) -> None:
    verdict = judged(root, command, *lines("allow", "shell(git add:*)", "shell(git commit:*)"))
    assert isinstance(verdict, Ask), verdict
    background = judged(root, "git add -A && git commit -m x", *lines("allow", "shell(git:*)"), background=True)
    assert isinstance(background, Ask)


@pytest.mark.parametrize(
    "command",
    [
        "printf -v d src; rm -rf $d/b; git add -A",
        "make ${d:=src}; rm -rf $d/b; git add -A",
        "echo $((d=5)); make; git add f$d",
        "make | cat; git add ${PIPESTATUS[0]}",
        "cd src; make; git add ~-/b",
    ],
)
def test_a_list_that_sets_its_own_variables_is_not_taken_apart(root: Path, command: str) -> None:
    verdict = judged(root, command, mode="auto")
    assert isinstance(verdict, Ask), verdict
    assert isinstance(judged(root, "make; git add -A", mode="auto"), Allow)


def test_without_a_sandbox_only_a_short_list_runs_unasked(root: Path) -> None:
    for command in (
        "ls -la",
        "cat a.txt | head -3",
        "cd src && ls",
        "wc -l a.txt; echo done",
        "grep -r x .",
        "find . -name x",
    ):
        verdict = judged(root, command, bounds=ALONE)
        assert (profile(verdict), isinstance(verdict, Allow) and verdict.profile.plain) == ("reading", True), command
    for command in ("git status", "(cd src && ls)", "ls && git log"):
        verdict = judged(root, command, bounds=ALONE)
        assert isinstance(verdict, Ask), command
        assert verdict.reason.endswith("and there is no sandbox.")
    assert profile(judged(root, "git status", *lines("allow", "shell(git status)"), bounds=ALONE)) == "working"
    assert profile(judged(root, "git log", mode="plan", bounds=ALONE)) == "ask working"


def test_what_a_reader_tried_to_write_is_judged_by_mode_and_rule(root: Path) -> None:
    def tried(command: str, *rules: RuleLine, mode: Mode = "default", bounds: Bounds = HELD) -> Judgement:
        rules_of = policy(root, *rules, mode=mode, bounds=bounds)
        return rules_of.judge(JudgedCall(SHELL, {"command": command}, root, tried="x.txt"))

    asked = tried("ruff check .")
    assert isinstance(asked, Ask)
    assert "tried to write x.txt" in asked.reason
    assert profile(asked) == "ask working"
    assert profile(tried("ruff check .", mode="accept-edits")) == "ask working"
    assert profile(tried("ruff check .", mode="auto")) == "working"
    assert profile(tried("ruff check .", mode="plan")) == "deny"
    assert profile(tried("ruff check .", *lines("deny", "shell(ruff:*)"))) == "deny"


@pytest.mark.parametrize(
    ("command", "rules", "expected"),
    [
        ("git push", ("outside(git push:*)",), "outside"),
        ("git push origin main | tail -3", ("outside(git push:*)",), "outside"),
        ("git push && make", ("outside(git push:*)",), "ask working git"),
        ("git push && git log", ("outside(git push:*)",), "ask working git"),
        ("git push --force", ("outside(git push:*)",), "ask working git"),
        ("git push", ("shell(git push:*)", "shell", "*"), "working git"),
        ("git push", ("outside(git pull:*)",), "ask working git"),
    ],
)
def test_only_a_rule_of_its_own_leads_outside(root: Path, command: str, rules: tuple[str, ...], expected: str) -> None:
    assert profile(judged(root, command, *lines("allow", *rules))) == expected


def test_asking_to_leave_the_sandbox_is_its_own_question(root: Path) -> None:
    for rules in ((), ("shell(git push:*)",), ("shell",), ("*",), ("@execute(git push)",)):
        verdict = judged(root, "git push", *lines("allow", *rules), mode="auto", outside=True)
        assert isinstance(verdict, Ask), rules
        assert (verdict.profile.name, verdict.rule) == ("outside", "outside(git push)")
        assert "outside the sandbox" in verdict.risks
    assert profile(judged(root, "git push", *lines("allow", "outside(git push)"), outside=True)) == "outside"
    assert profile(judged(root, "git status", outside=True)) == "ask outside"
    denied = judged(root, "git push", *lines("allow", "outside(git push)"), *lines("deny", "outside"), outside=True)
    assert isinstance(denied, Deny)
    assert (
        profile(judged(root, "git push", *lines("allow", "outside(git push)"), *lines("ask", "outside")))
        == "ask working git"
    )
    assert profile(judged(root, "git push", mode="plan", outside=True)) == "deny"
    code = policy(root, bounds=HELD).judge(JudgedCall(PYTHON, {"code": "1", "outside": True}, root))
    assert isinstance(code, Ask)
    assert (code.profile.name, code.rule) == ("outside", None)
    silent = RuleLine("shell", "ask", "test", terms=json.dumps({"timeout": 5, "on_timeout": "allow"}))
    quiet = judged(root, "git push", silent, outside=True)
    assert isinstance(quiet, Ask)
    assert quiet.on_timeout == "deny"


@pytest.mark.parametrize(
    ("verdict", "rule", "args", "agent", "expected"),
    [
        ("deny", "outside", {"outside": True}, MAIN, "deny"),
        ("deny", "shell(git push)", {"outside": True}, PERSON, "deny"),
        ("ask", "outside", {"outside": True}, MAIN, "ask outside"),
        ("ask", "shell(git push)", {"outside": True}, MAIN, "ask outside"),
        ("allow", "outside(git push)", {"outside": True}, MAIN, "outside"),
        ("allow", "outside(git push)", {}, MAIN, "outside"),
        ("allow", "outside(git push)", {}, PERSON, "outside"),
        ("allow", "shell(git push)", {}, MAIN, "working git"),
    ],
)
def test_each_decision_counts_once_and_names_its_rule(
    root: Path, verdict: Any, rule: str, args: dict[str, Any], agent: str, expected: str
) -> None:
    rules = policy(root, *lines(verdict, rule), bounds=HELD)
    judged = rules.judge(JudgedCall(SHELL, {"command": "git push", **args}, root, agent))
    assert (profile(judged), judged.by) == (expected, rule)
    assert [(line.rule, line.hits) for line in rules.rules() if line.hits] == [(rule, 1)]
    if rule == "outside" and isinstance(judged, Deny):
        assert judged.reason.startswith("Running it outside the sandbox is denied by the rule outside")


def test_a_rule_about_leaving_the_sandbox_is_not_the_strongest(root: Path) -> None:
    allowed = lines("allow", "outside(git push)")
    for verdict, rule, expected in [
        ("ask", "shell(git push)", "ask outside"),
        ("ask", "outside(git push)", "ask outside"),
        ("ask", "edit_file", "outside"),
        ("deny", "outside(git pull)", "outside"),
        ("deny", "outside(git push)", "deny"),
    ]:
        verdict_ = judged(root, "git push", *allowed, *lines(verdict, rule), outside=True)
        assert profile(verdict_) == expected, (verdict, rule)
    timed = RuleLine("outside(git push)", "allow", "test", terms=json.dumps({"when": {"timeout": {"max": 60}}}))
    told = [profile(judged(root, "git push", timed, outside=True, timeout=each)) for each in (60, 61, "soon")]
    assert told == ["outside", "ask outside", "ask outside"]


def test_without_a_sandbox_there_is_no_outside(root: Path) -> None:
    assert profile(judged(root, "make", *lines("allow", "outside(make)"), bounds=ALONE)) == "ask working"
    assert profile(judged(root, "make", *lines("allow", "shell(make)"), bounds=ALONE, outside=True)) == "working"


def test_what_a_skill_or_a_project_says_leads_nowhere(root: Path) -> None:
    project = RuleLine("outside(make)", "allow", "project", layer="project")
    rules = policy(root, project, bounds=Bounds(own=places(), unheld=str, confined=lambda: True))
    assert profile(rules.judge(JudgedCall(SHELL, {"command": "make"}, root))) == "ask working"
    rules.grant(lambda: [read_rule("outside(make)", "allow", "a skill")])
    assert profile(rules.judge(JudgedCall(SHELL, {"command": "make"}, root))) == "ask working"
    rules.remember("outside(make)", "session")
    assert profile(rules.judge(JudgedCall(SHELL, {"command": "make"}, root))) == "outside"
    assert [line.leaves for line in rules.rules() if line.rule == "outside(make)"] == [True, True]


def test_files_elsewhere_that_a_command_names_come_with_its_profile(root: Path, tmp_path: Path) -> None:
    read = judged(root, "cat ../other.txt")
    assert isinstance(read, Ask)
    assert read.profile.readable == (tmp_path / "other.txt",)
    written = judged(root, "cp a.txt ../other.txt")
    assert isinstance(written, Ask)
    assert tmp_path / "other.txt" in written.profile.writable
    assert not judged(root, "cp a.txt /etc/hosts").profile.writable  # pyright: ignore[reportAttributeAccessIssue]


def test_file_tools_ask_about_protected_files_in_every_mode(root: Path) -> None:
    modes: tuple[Mode, ...] = ("default", "accept-edits", "auto")
    for path in (".npmrc", ".vscode/tasks.json", "mise.toml", ".husky/x", ".github/workflows/a.yml", ".gitmodules"):
        for mode in modes:
            assert isinstance(
                policy(root, mode=mode, bounds=HELD).judge(JudgedCall(EDIT, {"path": path}, root)), Ask
            ), path


def test_nothing_is_held_beside_what_a_rule_allows(root: Path) -> None:
    rules = policy(root, *lines("allow", "shell(make:*)"), bounds=HELD)
    assert [judge(rules, SHELL, each) for each in ("git status", "make", "make && ls")] == ["allow"] * 3
    judged = rules.judge(JudgedCall(SHELL, {"command": "make && git status"}, root))
    assert isinstance(judged, Allow)
    assert [(step.text, step.profile.name) for step in judged.steps] == [("make", "working"), ("git status", "reading")]
    judged = rules.judge(JudgedCall(SHELL, {"command": "make | git log"}, root))
    assert isinstance(judged, Ask)
    assert judged.reason == "`git` runs unasked only in a sandbox, and not together with a command that a rule allows."
    assert judge(rules, SHELL, "make || (pwd && ls)") == "ask"
