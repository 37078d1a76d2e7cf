"""What is thought of git: another repository may run its own programs, and what is stored of secrets stays there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ba_tui.permissions.verdicts import Ask, JudgedCall
from tests.permissions.toolset import SHELL, judge, lines, policy


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "src" / "own" / ".git").mkdir(parents=True)
    for name in ("README.md", "a.txt"):
        (folder / name).write_text("x")
    return folder


def test_another_repository_may_run_its_own_programs(root: Path) -> None:
    rules = policy(root, *lines("allow", "shell(git:*)"), held=True)
    for name in ("objects", "refs"):
        (root / "bare" / name).mkdir(parents=True)
    (root / "bare" / "HEAD").write_text("ref: refs/heads/main")
    (root / "common").mkdir()
    (root / "common" / "HEAD").symlink_to("refs/heads/main")
    (root / "common" / "commondir").write_text("../bare")
    (root / "deep" / "tree").mkdir(parents=True)
    (root / "deep" / "tree" / ".git").write_text("gitdir: ../../bare")
    for command in (
        "cd bare && git status",
        "cd common && git diff",
        "cd deep/tree && git log",
        "git -C src/own status",
        "git -C src -C own status",
        "git -C src -C .. -C bare status",
        "git -C 'common' --no-pager diff",
        "git -C $X status",
        "GIT_DIR=bare git status",
        "export GIT_DIR=bare; git status",
        "env GIT_DIR=bare git status",
    ):
        assert judge(rules, SHELL, command) == "ask", command
    assert judge(rules, SHELL, "cd src && git status") == "allow"
    assert judge(rules, SHELL, "git -C src -C .. status") == "allow"


def test_a_repository_that_a_command_moved_into_before_is_still_another_one(root: Path) -> None:
    rules = policy(root, held=True)
    judged = rules.judge(JudgedCall(SHELL, {"command": "git status"}, root / "src" / "own"))
    assert isinstance(judged, Ask)
    assert judged.reason == "`git` would use the settings of another repository."


def test_what_git_has_stored_of_secrets_is_not_shown(root: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=root, check=True, capture_output=True)

    git("init", "-q")
    git("add", "a.txt", "README.md")
    rules = policy(root, held=True)
    shows = (
        "git diff",
        "git show",
        "git log -p",
        "git log -U3 -1",
        "git grep x",
        "git stash show",
        "cd src && git diff",
    )
    assert {judge(rules, SHELL, command) for command in shows} == {"allow"}
    (root / "conf").mkdir()
    (root / "conf" / ".env.local").write_text("KEY=1")
    git("add", "-f", "conf/.env.local")
    for command in shows:
        judged = rules.judge(JudgedCall(SHELL, {"command": command}, root))
        assert isinstance(judged, Ask), command
        assert ".env.local, which holds secrets, and this may print it" in judged.reason
    assert judge(policy(root, *lines("allow", "shell(git:*)")), SHELL, "git diff") == "ask"
    assert {judge(rules, SHELL, each) for each in ("git status", "git log --stat", "git ls-files")} == {"allow"}


def test_git_that_is_sent_to_other_settings_asks(root: Path) -> None:
    (root / ".git").mkdir()
    rules = policy(root, held=True)
    assert judge(rules, SHELL, "git status") == "allow"
    (root / ".git" / "commondir").write_text("../src\n")
    assert judge(rules, SHELL, "git status") == "ask"
    assert judge(rules, SHELL, "cd src && git log") == "ask"
