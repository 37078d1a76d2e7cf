"""Patches as other programs and other settings write them: line ends, prefixes, words between the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ba_tui.permissions.paths import Workspace
from ba_tui.tools.editing.patches import planned_patch
from ba_tui.tools.editing.seen_files import SeenFiles
from ba_tui.tools.failures import ToolFailure
from ba_tui.write_ahead import write_ahead

HUNK = "@@ -1,2 +1,2 @@\n one\n-two\n+2\n"


class Folder:
    def __init__(self, root: Path, **files: bytes) -> None:
        self.root = root
        self.seen = SeenFiles()
        for name, data in files.items():
            (root / name).write_bytes(data)
            self.seen.note((root / name).resolve(), data)

    def apply(self, patch: str) -> dict[str, bytes]:
        planned_patch(Workspace(self.root), self.seen, {"patch": patch}).commit(self.seen, write_ahead(self.root))
        return self.files()

    def files(self) -> dict[str, bytes]:
        found = (path for path in self.root.rglob("*") if path.is_file())
        return {path.relative_to(self.root).as_posix(): path.read_bytes() for path in found}


@pytest.mark.parametrize(
    ("patch", "after"),
    [
        ("--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+a\r\n+b\r\n", b"a\r\nb\r\n"),
        ("--- /dev/null\r\n+++ b/n\r\n@@ -0,0 +1,2 @@\r\n+a\r\n+b\r\n", b"a\r\nb\r\n"),
        ("--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+a\r\n+b\n\\ No newline at end of file\n", b"a\r\nb"),
        ("*** Begin Patch\n*** Add File: n\n+a\r\n+b\r\n*** End Patch", b"a\r\nb\r\n"),
        ("*** Begin Patch\r\n*** Add File: n\r\n+a\r\n+b\n*** End Patch", b"a\r\nb\r\n"),
        ("*** Begin Patch\n*** Add File: n\n*** End Patch", b""),
        ("*** Begin Patch\n*** Add File: n\n+\n+a\n+\n*** End Patch", b"\na\n"),
        ("--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+\ufeffa\n", "\ufeffa\n".encode()),
    ],
)
def test_a_new_file_has_the_line_ends_of_its_patch(tmp_path: Path, patch: str, after: bytes) -> None:
    assert Folder(tmp_path).apply(patch) == {"n": after}


@pytest.mark.parametrize(
    ("before", "hunk", "after"),
    [
        (b"", "@@\r\n+a\r\n+b", b"a\r\nb\r\n"),
        (b"", "@@\n+a\n+b", b"a\nb\n"),
        (b"one", "@@\r\n-one\r\n+1\r\n+2\r\n", b"1\r\n2"),
        (b"one\ntwo\n", "@@\r\n one\r\n-two\r\n+2\r\n+3\r\n", b"one\n2\n3\n"),
        (b"one\r\ntwo\n", "@@\n one\n-two\n+2\n+3\n", b"one\r\n2\n3\n"),
        (b"one\rtwo\r", "@@\n one\n-two\n+2\n+3\n", b"one\r2\r3\r"),
        ("cafe\u0301 un\nx\n".encode(), "@@\n caf\u00e9 un\n-x\n+y\n", "cafe\u0301 un\ny\n".encode()),
    ],
)
def test_a_change_has_the_line_ends_of_its_file(tmp_path: Path, before: bytes, hunk: str, after: bytes) -> None:
    folder = Folder(tmp_path, f=before)
    assert folder.apply(f"*** Begin Patch\n*** Update File: f\n{hunk}\n*** End Patch") == {"f": after}


@pytest.mark.parametrize(("old", "new"), [("i/", "w/"), ("c/", "w/"), ("", ""), ("b/", "a/"), ("1/", "2/")])
@pytest.mark.parametrize("headed", [True, False])
def test_the_prefix_of_a_name_is_none_of_its_folders(tmp_path: Path, old: str, new: str, headed: bool) -> None:
    head = f"diff --git {old}f {new}f\nindex 1..2 100644\n" if headed else ""
    folder = Folder(tmp_path, f=b"one\ntwo\n")
    assert folder.apply(f"{head}--- {old}f\n+++ {new}f\n{HUNK}") == {"f": b"one\n2\n"}


def test_a_folder_that_looks_like_a_prefix_stays_one(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert folder.apply("--- /dev/null\n+++ w/n\n@@ -0,0 +1 @@\n+a\n") == {"w/n": b"a\n"}
    added = "diff --git i/n w/n\nnew file mode 100644\n--- /dev/null\n+++ w/n\n@@ -0,0 +1 @@\n+a\n"
    assert folder.apply(added) == {"w/n": b"a\n", "n": b"a\n"}
    with pytest.raises(ToolFailure, match="two files"):
        folder.apply("--- i/f\n+++ w/g\n@@ -1 +1 @@\n-a\n+b\n")


def test_words_of_other_programs_between_files_mean_nothing(tmp_path: Path) -> None:
    folder = Folder(tmp_path, f=b"one\ntwo\n", g=b"one\ntwo\n")
    sections = [
        f"diff -ru a/{name} b/{name}\n--- a/{name}\t2026-01-01\n+++ b/{name}\t2026-01-02\n{HUNK}" for name in "fg"
    ]
    patch = "From 1 Mon Sep 17 00:00:00 2001\nSubject: two\n---\n f | 2 +-\n\n" + "Only in b: x\n".join(sections)
    assert folder.apply(patch + "-- \n2.50.0\n") == {"f": b"one\n2\n", "g": b"one\n2\n"}


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("with space", "a/with space\t"),
        ("caf\u00e9", '"a/caf\\303\\251"'),
        ('q"t', '"a/q\\"t"'),
        ("tab\tx", '"a/tab\\tx"'),
    ],
)
def test_names_as_git_quotes_them(tmp_path: Path, name: str, written: str) -> None:
    (tmp_path / name).write_bytes(b"one\ntwo\n")
    other = written.replace("a/", "b/", 1)
    assert Folder(tmp_path).apply(f"--- {written}\n+++ {other}\n{HUNK}") == {name: b"one\n2\n"}


@pytest.mark.parametrize(
    "patch",
    [
        "diff --git a/f b/f\nindex 1..2 100644\nGIT binary patch\nliteral 5\nMcmZQzWMT#Y01f~L\n",
        "diff --git a/f b/g\nsimilarity index 100%\ncopy from f\ncopy to g\n",
        "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n--- a/f\n+++ b/f\n" + HUNK,
        "diff --cc f\nindex 1,2..3\n--- a/f\n+++ b/f\n@@@ -1,2 -1,2 +1,2 @@@\n  one\n- two\n -two\n++2\n",
        "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\n-zwei\n+2\n",
        "1,2c1\n< one\n< two\n---\n> 2\n",
        "*** f\n--- f\n***************\n*** 1,2 ****\n  one\n! two\n--- 1,2 ----\n  one\n! 2\n",
        "*** Begin Patch\n*** Update File: f\n@@ three\n-one\n+1\n*** End Patch",
        "*** Begin Patch\n*** Update File: f\n*** Move to: \n-one\n+1\n*** End Patch",
        "*** Update File: f\n-one\n+1\n",
    ],
)
def test_what_cannot_be_done_for_certain_changes_nothing(tmp_path: Path, patch: str) -> None:
    folder = Folder(tmp_path, f=b"one\ntwo\nthree\n")
    before = folder.files()
    with pytest.raises(ToolFailure):
        folder.apply(patch)
    assert folder.files() == before
