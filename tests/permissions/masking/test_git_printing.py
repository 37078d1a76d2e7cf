"""Which git calls ask because they may print a file with secrets that was committed once, and which need not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ba_tui.permissions.verdicts import Allow, Ask, Bounds, JudgedCall
from tests.permissions.test_git_safety import git
from tests.permissions.toolset import SHELL, policy

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
HELD = Bounds(unheld=str, confined=lambda: True)

PRINTING = (
    "log -p", "log --patch-with-stat", "log --patch-with-raw", "log -u", "log -U1", "log --pat",
    "log --stat --patch", "log --cc", "log -c", "log -L1,2:.env", "log -p --full-diff -- a.txt",
    "log -p --full-d -- a.txt", "log -G. -p", "log -p --follow -- a.txt", "log -p -- '*'", "log -p -- ':(top)'",
    "log -p -- sub", "log --remerge-diff", "show HEAD~1", "show --stat HEAD~1:.env", "show HEAD~1:.env",
    "show -s HEAD~1:.env", "show --stat BLOB", "show --stat leak", "show --all --stat", "show --stat :.env",
    "show HEAD~1:./.env", "whatchanged -p", "show -p", "format-patch --stdout -2", "format-patch -2",
    "fast-export --all", "cat-file --batch", "cat-file -p BLOB", "cat-file blob BLOB", "archive HEAD~1",
    "archive HEAD~1 | tar xO", "bundle create - --all", "stash show -p", "bundle create x --all", "diff HEAD~1",
    "diff HEAD~1 HEAD", "blame HEAD~1 -- .env", "grep -e . HEAD~1", "grep . HEAD~1",
    "range-diff HEAD~2..HEAD~1 HEAD~1..HEAD", "difftool HEAD~1", "checkout -p HEAD~1", "add -p", "add --pat",
    "stash -p", "commit --dry-run -v", "commit --verb", "status -v", "status --verbo", "merge-tree HEAD HEAD~1",
    "rebase --show-current-patch", "am --show", "fsck --lost-found", "fsck --lost", "unpack-file BLOB",
    "rerere diff", "for-each-ref --format='%(raw)'", "tag --format='%(raw)' -l", "branch --format '%(raw)'",
    "notes show", "x-unknown", "diff-tree -p HEAD~1", "diff-index -p HEAD~1", "submodule foreach 'git log -p'",
    "bisect view", "send-email -1", "interpret-trailers x", "cat-file --textconv HEAD~1:.env", "--no-pager log -p",
    "-C . log -p", "log -p --reverse", "difftool -y -x cat HEAD~1", "request-pull HEAD~1 . -p",
    "diff --cached HEAD~1", "log -S x --pickaxe-all -p", "-C sub log -p",
)  # fmt: skip
QUIET = (
    "log", "log --oneline -5", "log --stat", "log --graph --all --decorate", "log -n 3 --format=%h",
    "log --name-only", "show --stat HEAD~1", "show --name-only HEAD", "show HEAD:a.txt", "show HEAD~1:sub/b.txt",
    "show -s --format=%ci", "status", "status -sb", "diff", "diff --stat HEAD~1", "diff --name-only HEAD~1 HEAD",
    "diff HEAD~1 -- a.txt", "log -p -- a.txt", "log -p -3 -- sub/b.txt", "blame -- a.txt", "blame -L1,2 -- a.txt",
    "grep -n before", "grep -n x -- a.txt", "ls-files", "ls-tree -r HEAD~1", "branch -a", "tag", "remote -v",
    "rev-parse HEAD", "reflog", "stash list", "stash", "add -A", "commit -m x", "commit -am x", "checkout -b y",
    "switch main", "merge x", "rebase main", "reset --hard HEAD~1", "cherry-pick HEAD", "rm a.txt", "mv a.txt b",
    "clean -nd", "gc", "fsck", "cat-file -t HEAD", "cat-file -s HEAD", "cat-file --batch-check",
    "describe --always", "shortlog -s", "rev-list HEAD", "worktree list", "bundle verify x", "archive --list",
    "bisect start", "for-each-ref", "show-branch", "count-objects -v", "stash show --stat", "reflog show --oneline",
    "cherry main", "diff-tree --stat HEAD",
)  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("work")
    git(root, "init", "-q", "-b", "main")
    (root / "sub").mkdir()
    for name in ("a.txt", "sub/b.txt"):
        (root / name).write_text("before\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    (root / ".env").write_text("TOKEN=hunter2hunter2\n")
    git(root, "add", "-f", ".env")
    git(root, "commit", "-qm", "two")
    git(root, "tag", "leak", git(root, "rev-parse", "HEAD:.env").strip())
    git(root, "rm", "-q", ".env")
    git(root, "commit", "-qm", "three")
    (root / "*").write_text("a file that git takes for a pattern\n")
    return root


def asked(root: Path, words: str, mode: str) -> str:
    blob = git(root, "rev-parse", "HEAD~1:.env").strip()
    command = f"git {words.replace('BLOB', blob)}"
    verdict = policy(root, mode="auto" if mode == "auto" else "default", bounds=HELD).judge(
        JudgedCall(SHELL, {"command": command}, root)
    )
    return "" if isinstance(verdict, Allow) else getattr(verdict, "reason", "denied")


@pytest.mark.parametrize("words", PRINTING)
def test_in_mode_auto_a_call_that_may_print_a_committed_secret_asks(root: Path, words: str) -> None:
    assert asked(root, words, "auto"), words


@pytest.mark.parametrize("words", QUIET)
def test_in_mode_auto_a_call_that_prints_no_contents_runs(root: Path, words: str) -> None:
    assert asked(root, words, "auto") == "", words


def test_without_secrets_in_the_history_nothing_asks_for_their_sake(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "a.txt").write_text("before\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    for words in (
        "log -p",
        "show HEAD",
        "cat-file -p HEAD",
        "fast-export --all",
        "log --patch-with-stat",
        "stash show -p",
    ):
        assert asked(tmp_path, words, "auto") == "", words


def test_the_repository_that_an_option_names_is_the_one_that_is_searched(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    inner = tmp_path / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / ".env").write_text("x")
    git(inner, "add", "-f", ".env")
    git(inner, "commit", "-qm", "one")
    for words in ("-C inner log -p", "--git-dir=inner/.git log -p", "--git-dir inner/.git show HEAD:.env"):
        assert asked(tmp_path, words, "auto"), words
    verdict = policy(tmp_path, mode="auto", bounds=HELD).judge(
        JudgedCall(SHELL, {"command": "GIT_DIR=inner/.git git log -p"}, tmp_path)
    )
    assert isinstance(verdict, Ask)
