"""A file that was committed once can't be read from what git stores, except by git itself."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ba_tui.core.effects import READING, WORKING, Profile
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.permissions.sandbox.git_folders import stores
from ba_tui.permissions.sandbox.workspace_scan import FileReach
from ba_tui.permissions.verdicts import Allow, Ask, Bounds, JudgedCall
from tests.permissions.masking.test_masks import FOUND, Shop
from tests.permissions.test_git_safety import git
from tests.permissions.toolset import SHELL, policy

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.skipif(FOUND.mechanism is None, reason="bubblewrap does not work here"),
]
TOKEN = "hunter2-hunter2-hunter2"
HELD = Bounds(unheld=str, confined=lambda: True)
INFLATE = (
    "import os, sys, zlib\n"
    "for folder, _, names in os.walk(sys.argv[1], followlinks=True):\n"
    "    for name in names:\n"
    "        data = open(os.path.join(folder, name), 'rb').read()\n"
    "        for at in range(0, min(len(data), 4000)):\n"
    "            try: print(zlib.decompressobj().decompress(data[at:])[:400])\n"
    "            except zlib.error: pass\n"
)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    root = tmp_path / "work"
    root.mkdir()
    committed(root)
    made = Shop(root, tmp_path / "cache")
    yield made
    made.sandbox.close()


def committed(root: Path) -> str:
    """A repository that stores ``.env`` and has it no more; the path of its object."""
    git(root, "init", "-q", "-b", "main")
    (root / ".env").write_text(f"TOKEN={TOKEN}\n")
    (root / "a.txt").write_text("plain words\n")
    git(root, "add", "-f", ".env", "a.txt")
    git(root, "commit", "-qm", "one")
    number = git(root, "rev-parse", "HEAD:.env").strip()
    git(root, "rm", "-q", ".env")
    git(root, "commit", "-qm", "two")
    return f"objects/{number[:2]}/{number[2:]}"


def inflated(shop: Shop, folder: str, profile: Profile = READING) -> str:
    script = shop.root / "inflate.py"
    script.write_text(INFLATE)
    return shop.run(f"{sys.executable} inflate.py {folder}; find {folder} -type f -exec cat {{}} +", profile)


def test_no_program_reads_an_object_but_git(shop: Shop) -> None:
    number = git(shop.root, "rev-parse", "HEAD~1:.env").strip()
    loose = f".git/objects/{number[:2]}/{number[2:]}"
    unzip = f"(printf '\\x1f\\x8b\\x08\\0\\0\\0\\0\\0'; cat {loose}) | gzip -dc 2>/dev/null"
    assert TOKEN in shop.run(unzip, WORKING)
    assert TOKEN in inflated(shop, ".git", WORKING)
    assert TOKEN not in shop.run(unzip)
    assert TOKEN not in inflated(shop, ".git")
    git(shop.root, "gc", "-q", "--aggressive", "--prune=now")
    assert TOKEN in inflated(shop, ".git/objects", WORKING)
    assert TOKEN not in inflated(shop, ".git")
    assert "plain words" in shop.run("git show HEAD:a.txt", Profile("reading", history="alone"))


def test_stores_elsewhere_are_hidden_too(shop: Shop, tmp_path: Path) -> None:
    root = shop.root
    bare, away, borrower = root / "bare.git", tmp_path / "away", root / "borrower"
    git(root, "clone", "-q", "--bare", str(root), str(bare))
    away.mkdir()
    committed(away)
    git(away, "worktree", "add", "-q", str(root / "tree"))
    git(root, "clone", "-q", "--shared", str(away), str(borrower))
    moved = tmp_path / "moved"
    git(root, "clone", "-q", f"--separate-git-dir={moved}", str(away), str(root / "apart"))
    shop.sandbox = Sandbox(FileReach((root,), readable=(away, moved)), look=lambda: FOUND)
    for folder in (bare, away / ".git", borrower / ".git", moved, root / ".git"):
        assert TOKEN not in inflated(shop, str(folder)), folder
    for folder in (bare, away / ".git", moved):
        assert TOKEN in inflated(shop, str(folder), Profile("reading", history="beside")), folder


def test_what_a_rebase_and_other_systems_keep_is_hidden_too(shop: Shop) -> None:
    for name in (".git/rebase-apply", ".git/lfs/objects", ".svn/pristine/ab", ".hg/store/data"):
        (shop.root / name).mkdir(parents=True)
        (shop.root / name / "0001").write_text(f"+TOKEN={TOKEN}\n")
    read = "cat .git/rebase-apply/* .git/lfs/objects/* .svn/pristine/ab/* .hg/store/data/* 2>/dev/null"
    assert shop.run(read, WORKING).count(TOKEN) == 4
    assert TOKEN not in shop.run(read)


def test_a_circle_of_borrowed_stores_and_odd_files_end(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    objects = tmp_path / ".git" / "objects"
    (objects / "info" / "alternates").write_text(f"{objects}\n# none\n../objects\n/missing\n\n")
    (tmp_path / "link").write_text("gitdir: .git\n")
    (tmp_path / "other").write_text("no link\n")
    assert objects in list(stores([tmp_path / ".git"], [tmp_path / "link", tmp_path / "other", tmp_path / "none"]))


@pytest.mark.parametrize(
    ("command", "history"),
    [
        ("git log --oneline | head -3", "alone"),
        ("git status", "alone"),
        ("git log | grep -c x", "alone"),
        ("(cd sub && git log --oneline) | head -3", "alone"),
        ("git log | grep -f a.txt", "beside"),
        ("git diff HEAD -- a.txt | diff - a.txt", "beside"),
        ("ls src", ""),
        ("rev a.txt", ""),
        ("git ls-files | xargs wc -l", ""),
        ("cat .git/HEAD | rev", ""),
    ],
)
def test_readers_see_the_history_only_where_no_other_program_opens_it(shop: Shop, command: str, history: str) -> None:
    (shop.root / "sub").mkdir()
    judged = policy(shop.root, bounds=HELD).judge(JudgedCall(SHELL, {"command": command}, shop.root))
    assert isinstance(judged, Allow), judged
    assert (judged.profile.name, judged.profile.history) == ("reading", history)


@pytest.mark.parametrize(
    "command",
    [
        "git log --oneline | cat - .git/objects/ab/cd",
        "git status | grep -ra x .git",
        "git log | xargs cat",
        "git log | grep -r x .",
        "git log | cat - bare.git/objects/ab/cd",
    ],
)
def test_a_command_that_may_open_a_store_beside_git_asks(shop: Shop, command: str) -> None:
    git(shop.root, "clone", "-q", "--bare", str(shop.root), "bare.git")
    judged = policy(shop.root, bounds=HELD).judge(JudgedCall(SHELL, {"command": command}, shop.root))
    assert isinstance(judged, Ask), judged


def test_a_list_runs_one_by_one_each_with_its_own_view(shop: Shop) -> None:
    judged = policy(shop.root, bounds=HELD).judge(
        JudgedCall(SHELL, {"command": "git status && grep -rn x . && git log --oneline"}, shop.root)
    )
    assert isinstance(judged, Allow)
    assert [step.profile.history for step in judged.steps] == ["alone", "", "alone"]
