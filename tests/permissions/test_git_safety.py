"""What git runs of a hostile repository: nothing, for all commands that only read; and which secrets it would print."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ba_tui.core.effects import READING, WORKING, Profile
from ba_tui.permissions.sandbox.git_settings import GitHistory, exposed, git_environment, skipped_hooks, stored_secrets
from ba_tui.permissions.shell.simple_commands import ResolvedCommand
from ba_tui.permissions.verdicts import Allow, Ask, Bounds, JudgedCall
from tests.permissions.toolset import SHELL, lines, policy

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
ALONE = Profile("working", git=True)
PROGRAMS = (
    "core.fsmonitor", "core.pager", "pager.status", "diff.external", "diff.d.command", "diff.e.textconv",
    "filter.f.clean", "filter.f.process", "gpg.program", "gpg.openpgp.program", "merge.m.driver", "tar.x.command",
    "man.m.cmd", "alias.status", "core.sshCommand", "core.editor", "sequence.editor", "diff.D.textconv",
)  # fmt: skip


def run(root: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    known = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", **environment}
    return subprocess.run(words, cwd=root, env=known, capture_output=True, text=True, check=False)


def git(root: Path, *words: str, **environment: str) -> str:
    return run(root, "git", "-c", "user.name=A", "-c", "user.email=a@b.c", *words, **environment).stdout


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    git(root, "init", "-q")
    for name in ("a.txt", "b.txt", "c.txt"):
        (root / name).write_text("before\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    for name in ("a.txt", "b.txt", "c.txt"):
        (root / name).write_text("after\n")
    return root


@pytest.fixture
def hostile(root: Path) -> Path:
    program = root / "evil"
    program.write_text(f"#!/bin/sh\ntouch {root}/RAN\ncat\n")
    program.chmod(0o755)
    (root / ".gitattributes").write_text("a.txt diff=d filter=f\nb.txt diff=e merge=m\nc.txt diff=D\n")
    (root / ".git" / "more").write_text(f"[diff]\n\texternal = {program}\n")
    for key in PROGRAMS:
        git(root, "config", key, str(program))
    git(root, "config", "include.path", "more")
    git(root, "config", "log.showSignature", "true")
    return root


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize(
    "words",
    [
        ["status"], ["diff"], ["diff", "--stat"], ["log", "-p"], ["show"], ["blame", "a.txt"], ["diff", "HEAD"],
        ["log", "--show-signature"], ["stash", "list"], ["grep", "after"], ["ls-files", "-m"], ["archive", "HEAD"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_hostile_repository_runs_nothing(hostile: Path, words: list[str], held: bool) -> None:
    known = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
    safe = git_environment(hostile, "git status", READING, known, held=held)
    done = run(hostile, "git", *words, **safe)
    assert not (hostile / "RAN").exists(), done
    assert done.returncode == 0


def test_differences_are_still_shown(hostile: Path) -> None:
    safe = git_environment(hostile, "git diff", READING, os.environ, held=True)
    text = git(hostile, "diff", **safe)
    assert text.count("-before") == text.count("+after") == 3
    assert "+++ b/a.txt" in text


def test_what_the_person_set_before_still_counts(root: Path) -> None:
    own = {**os.environ, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "Ada"}
    safe = git_environment(root, "git status", READING, own, held=True)
    assert git(root, "config", "core.fsmonitor", **{**own, **safe}) == "false\n"
    assert safe["GIT_CONFIG_KEY_1"] == "core.fsmonitor"


def test_only_git_is_told_and_only_where_it_must_be(root: Path) -> None:
    for text, profile in (("ls", READING), ("git push", WORKING), ("git commit", Profile("outside"))):
        assert git_environment(root, text, profile, os.environ, held=True) == {}


def test_a_git_call_runs_no_hooks_and_says_which(root: Path) -> None:
    hook = root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {root}/RAN\n")
    hook.chmod(0o755)
    safe = git_environment(root, "git commit", ALONE, os.environ, held=True)
    git(root, "commit", "-qam", "two", **safe)
    assert git(root, "log", "--format=%s").split() == ["two", "one"]
    assert not (root / "RAN").exists()
    assert skipped_hooks(root, "git commit -am x") == "pre-commit"
    assert skipped_hooks(root, "git add x") == ""


def test_a_repository_can_not_send_git_elsewhere(root: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.txt").write_text("other's words\n")
    git(root, "config", "core.worktree", str(tmp_path / "other"))
    safe = git_environment(root, "git diff", READING, os.environ, held=False)
    assert "other's words" not in git(root, "diff", **safe)


def test_secrets_that_git_keeps_are_told_before_they_are_printed(root: Path) -> None:
    calls = {
        words: ResolvedCommand(tuple(words.split()), tuple(words.split()))
        for words in ("git diff", "git show HEAD", "git log -p", "git log --oneline", "git status", "git grep x")
    }
    assert not any(exposed((part,), root) for part in calls.values())
    (root / "sub").mkdir()
    (root / "sub" / ".env").write_text("x")
    git(root, "add", "-f", "sub/.env")
    found = {words: exposed((part,), root) for words, part in calls.items()}
    assert {words for words, secret in found.items() if "git's history has sub/.env" in secret} == {
        *("git diff", "git show HEAD", "git log -p", "git grep x"),
    }
    asked = policy(root, held=True).judge(JudgedCall(SHELL, {"command": "git diff"}, root))
    assert "sub/.env" in getattr(asked, "reason", "")


def test_secrets_that_were_removed_long_ago_are_told_too(root: Path) -> None:
    def told(words: str) -> str:
        return exposed((ResolvedCommand(tuple(words.split()), tuple(words.split())),), root)

    (root / ".env").write_text("x")
    git(root, "add", "-f", ".env")
    git(root, "commit", "-qm", "two")
    git(root, "rm", "-q", "--cached", ".env")
    for words in ("git status -v", "git diff --cached"):
        assert "git's history has .env" in told(words), words
    git(root, "commit", "-qm", "three")
    for words in (
        *("git show HEAD~1", "git log -p", "git log --binary", "git diff HEAD~1", "git grep x HEAD~1", "git status -v"),
        *("git archive HEAD~1", "git cat-file -p 1234", "git stash show -p", "git log -p --full-diff -- a.txt"),
    ):
        assert "git's history has .env" in told(words), words
    for words in ("git diff", "git log --stat", "git show --stat HEAD~1", "git diff --name-only HEAD~1", "git status"):
        assert told(words) == "", words
    asked = policy(root, held=True).judge(JudgedCall(SHELL, {"command": "git show HEAD~1"}, root))
    assert "history has .env" in getattr(asked, "reason", "")
    for command in (
        "git diff HEAD~1 -- a.txt",
        "git log -p -- a.txt b.txt",
        "git grep before",
        "git grep -n x -- a.txt",
    ):
        assert isinstance(policy(root, held=True).judge(JudgedCall(SHELL, {"command": command}, root)), Allow), command


def test_only_what_was_added_to_a_history_is_searched_again(root: Path) -> None:
    history = GitHistory(root)
    assert history.secrets() == ()
    git(root, "checkout", "-qb", "side")
    (root / "id_rsa").write_text("x")
    git(root, "add", "-f", "id_rsa")
    git(root, "commit", "-qm", "two")
    git(root, "checkout", "-qf", "-")
    git(root, "branch", "-qD", "side")
    assert history.secrets() == ("id_rsa",)
    git(root, "commit", "-qam", "three")
    assert history.secrets() == ("id_rsa",)


def test_git_calls_do_not_store_what_stands_in_for_a_secret(root: Path) -> None:
    def call(words: str) -> ResolvedCommand:
        return ResolvedCommand(tuple(words.split()), tuple(words.split()))

    (root / ".env").write_text("x")
    (root / "folder").mkdir()
    (root / "folder" / "id_rsa").write_text("x")
    assert stored_secrets((call("git checkout topic"),), root) == ()
    assert set(stored_secrets((call("git add -A"),), root / "folder")) == {root / ".env", root / "folder" / "id_rsa"}
    (root / ".gitignore").write_text("id_rsa\n")
    git(root, "add", "-f", ".env")
    for words in ("git checkout topic", "git add -A", "git commit -am x", "git reset --hard"):
        assert stored_secrets((call(words),), root) == (root / ".env",), words
    assert stored_secrets((call("make"), call("ls")), root) == ()
    held = policy(root, *lines("allow", "shell(git checkout:*)"), bounds=Bounds(unheld=str, confined=lambda: True))
    asked = held.judge(JudgedCall(SHELL, {"command": "git checkout topic"}, root))
    assert isinstance(asked, Ask)
    assert asked.reason == "Git tracks .env, which holds secrets, so the file is not hidden from this command."
    assert asked.profile.unhidden == (root / ".env",)
    several = held.judge(JudgedCall(SHELL, {"command": "git checkout topic && git checkout other"}, root))
    assert isinstance(several, Ask)
    assert "runs alone" in several.reason
    assert several.reason.endswith("git tracks .env, which holds secrets, so the file is not hidden from this command.")
    alone = policy(root, *lines("allow", "shell(git checkout:*)")).judge(
        JudgedCall(SHELL, {"command": "git checkout topic"}, root)
    )
    assert isinstance(alone, Allow)
