"""Patches of both forms: all files or none, only where every hunk has one place, every other byte as it was."""

from __future__ import annotations

import difflib
import json
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_tui.core.errors import BaError
from ba_tui.core.results import Diff, Diffs
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.verdicts import JudgedCall
from ba_tui.tools.definitions import Definition
from ba_tui.tools.editing.patches import PatchChange, apply_patch_tool, patched_paths, planned_patch
from ba_tui.tools.editing.seen_files import SeenFiles
from ba_tui.tools.failures import ToolFailure
from ba_tui.write_ahead import write_ahead
from tests.permissions.toolset import policy, verdict
from tests.tools.conftest import Harness

GIT = """diff --git a/src/old.py b/src/new.py
similarity index 90%
rename from src/old.py
rename to src/new.py
index 1..2 100644
--- a/src/old.py
+++ b/src/new.py
@@ -1,3 +1,3 @@ def heading():
 one
-two
+2
 three
diff --git a/added.txt b/added.txt
new file mode 100644
--- /dev/null
+++ b/added.txt
@@ -0,0 +1 @@
+new
\\ No newline at end of file
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
"""


class Folder:
    """A folder with files, and what is known of them."""

    def __init__(self, root: Path, files: Mapping[str, bytes], *, read: bool = False) -> None:
        self.workspace = Workspace(root)
        self.seen = SeenFiles()
        for name, data in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            if read:
                self.seen.note(self.workspace.resolve(name), data)

    def plan(self, patch: str) -> PatchChange:
        return planned_patch(self.workspace, self.seen, {"patch": patch})

    def apply(self, patch: str) -> str:
        return self.plan(patch).commit(self.seen, write_ahead(self.workspace.root)).text

    def refused(self, patch: str) -> str:
        before = self.files()
        with pytest.raises(BaError) as caught:
            self.apply(patch)
        assert self.files() == before
        return str(caught.value)

    def files(self) -> dict[str, bytes]:
        root = self.workspace.root
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def envelope(*parts: str) -> str:
    return "\n".join(["*** Begin Patch", *parts, "*** End Patch"])


def updated(tmp_path: Path, before: str, hunk: str) -> str:
    folder = Folder(tmp_path, {"f": before.encode()}, read=True)
    folder.apply(envelope("*** Update File: f", hunk))
    return folder.files()["f"].decode()


def test_a_diff_of_git_moves_adds_and_deletes(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"src/old.py": b"one\ntwo\nthree\n", "gone.txt": b"bye\n"})
    (tmp_path / "src/old.py").chmod(0o750)
    told = folder.apply(GIT)
    assert folder.files() == {"src/new.py": b"one\n2\nthree\n", "added.txt": b"new"}
    assert stat.S_IMODE((tmp_path / "src/new.py").stat().st_mode) == 0o750
    assert told.splitlines() == [
        "Moved src/old.py to src/new.py (+1 -1 lines).",
        "Created added.txt (+1 -0 lines).",
        "Deleted gone.txt (+0 -1 lines).",
    ]


async def test_the_tool_shows_every_file(harness: Harness) -> None:
    harness.tools["apply_patch"] = tool = apply_patch_tool(
        harness.definitions["apply_patch"], harness.workspace, SeenFiles(), write_ahead(harness.workspace.root)
    )
    harness.write("a.txt", "one\n")
    patch = envelope("*** Update File: a.txt", "-one", "+1", "*** Add File: new/b.txt", "+b", "+c")
    assert tool.preview is not None
    shown = await tool.preview({"patch": patch})
    result = await harness.run("apply_patch", patch=patch)
    assert result.display == shown == Diffs((Diff("a.txt", "one\n", "1\n"), Diff("new/b.txt", None, "b\nc\n")))
    assert result.summary == "2 files +3 -1"
    assert tool.target({"patch": patch}) == "a.txt, new/b.txt"
    assert (harness.root / "new/b.txt").read_text() == "b\nc\n"


def test_the_policy_is_told_every_path() -> None:
    assert patched_paths({"patch": GIT}) == ("src/old.py", "src/new.py", "added.txt", "gone.txt")
    moved = envelope("*** Update File: a", "*** Move to: ../.env", "-x", "+y")
    assert patched_paths({"patch": f"```diff\n{moved}\n```"}) == ("a", "../.env")
    assert patched_paths({"patch": "nonsense"}) == patched_paths({"patch": 3}) == patched_paths({}) == ()


@pytest.mark.parametrize("secret", [".env", "src/../.env", "sub/.ssh/id_rsa", "plain.txt"])
@pytest.mark.parametrize(
    "form",
    [
        "*** Begin Patch\n*** Update File: a\n-x\n+y\n*** Add File: {0}\n+z\n*** End Patch",
        "*** Begin Patch\n*** Update File: a\n*** Move to: {0}\n*** End Patch",
        " *** Begin Patch\n *** Delete File: {0} \n*** End Patch\r\n",
        "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-x\n+y\n",
        "diff --git a/a b/{0}\nrename from a\nrename to {0}\n",
        'diff --git a/a b/a\ndeleted file mode 100644\n--- "a/{0}"\t2026\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n',
        "```\napply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: {0}\n*** End Patch\nEOF\n```",
    ],
)
@pytest.mark.parametrize("mode", ["default", "accept-edits"])
def test_a_secret_file_in_a_patch_denies_all_of_it(
    definitions: Mapping[str, Definition], tmp_path: Path, form: str, secret: str, mode: Any
) -> None:
    rules = policy(tmp_path, mode=mode)
    (tmp_path / ".env").write_text("KEY=1")
    (tmp_path / "plain.txt").symlink_to(".env")
    tool = apply_patch_tool(definitions["apply_patch"], rules.workspace, SeenFiles(), write_ahead(tmp_path))
    args = {"patch": form.format(secret)}
    assert verdict(rules.judge(JudgedCall(tool, args, tmp_path))) == "deny"
    assert verdict(rules.judge(JudgedCall(tool, {"patch": form.format("b")}, tmp_path))) != "deny"


@pytest.mark.parametrize(
    ("before", "hunk", "after"),
    [
        ("a\nb\na\nb\n", "@@ a\n@@ a\n-b\n+c", "a\nb\na\nc\n"),
        ("class A:\n  x\nclass B:\n  x\n", "@@ class B\n-  x\n+  y", "class A:\n  x\nclass B:\n  y\n"),
        ("def f():\n  x\n", "@@ def f():\n def f():\n-  x\n+  y", "def f():\n  y\n"),
        ("a\nb\n", "@@ a\n+new", "a\nnew\nb\n"),
        ("x\nx\n", "@@\n-x\n+y\n*** End of File", "x\ny\n"),
        ("a\nb", "@@\n a\n-b\n+c", "a\nc"),
        ("a\nb", "@@\n+c", "a\nb\nc"),
        ("a\n\nb\n", "@@\n a\n\n-b\n+c\n", "a\n\nc\n"),
        ("name = “1”\n", '@@\n-name = "1"\n+name = 2', "name = 2\n"),
        ("a  \nb\n", "@@\n a\n-b\n+c", "a  \nc\n"),
        ("if a:\n\tfirst()\n", "@@\n-first()\n+second()", "if a:\n\tsecond()\n"),
        ("b\na\na\nc\n", "@@ -2,2 +2,2 @@\n-a\n+x\n", "b\nx\na\nc\n"),
    ],
)
def test_where_hunks_belong(tmp_path: Path, before: str, hunk: str, after: str) -> None:
    assert updated(tmp_path, before, hunk) == after


@pytest.mark.parametrize(
    ("before", "hunk", "said"),
    [
        ("x\nx\n", "@@\n-x\n+y", "fits in 2 places:\n1\tx\n2\tx"),
        ("def f():\n  x\ndef f():\n  x\n", "@@ def f():\n-  x\n+  y", "fits in 2 places"),
        ("alpha beta\n", "@@\n-alpha betas\n+y", "Nearest lines:\n1\talpha beta"),
        ("a\n", "@@ def nowhere\n-a\n+b", "behind 'def nowhere'"),
        ("a\nb\nc\n", "@@\n-c\n+3\n@@\n-a\n+1", "within the previous hunk"),
        ("  }\n", "@@\n-\t}\n+x", "does not fit"),
        ("one\n    two\n", "@@\n-one\n-two\n+1", "other indentation"),
        ("a\n", "@@\n-a\n+a", "nothing would change"),
        ("a\n", "@@ -9,0 +10,1 @@\n+b", "no line of context"),
        ("a\n", "@@", "the hunk has no lines"),
        ("a\n", "@@\n-a\nb", "line of a hunk begins with"),
        ("a\n", "", "has no hunk"),
    ],
)
def test_uncertain_hunks_are_refused(tmp_path: Path, before: str, hunk: str, said: str) -> None:
    folder = Folder(tmp_path, {"f": before.encode()}, read=True)
    assert said in folder.refused(envelope("*** Update File: f", hunk))


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ("", "empty"),
        ("some words", "names no file"),
        ("*** Begin Patch\n*** Update File: f\n-x\n+y\n", "cut off"),
        (envelope("*** Add File: n", "text"), "begins with +"),
        (envelope("*** Delete File: f", "-x"), "nothing may follow"),
        (envelope("*** Update File: f", "*** Move to: f"), "move to itself"),
        ("@@ -1 +1 @@\n-x\n+y\n", "without the lines ---"),
        ("--- a/f\n+++ b/g\n@@ -1 +1 @@\n-x\n+y\n", "two files"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\nother words\n", "line of a hunk"),
        ("--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", "holds more than"),
        ("diff --git a/f b/f\nold mode 100644\nnew mode 100755\n", "mode"),
        ("diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+f\n", "mode 100644"),
        ("diff --git a/i b/i\nBinary files a/i and b/i differ\n", "binary files"),
        ("--- a/f\n+++ b/f\n@@@ -1 -1 +1 @@@\n-x\n+y\n", "merge"),
        (envelope("*** Update File: nul\0", "-x", "+y"), "paths can't have"),
        (envelope("*** Update File: picture", "-x", "+y"), "not text"),
    ],
)
def test_what_is_no_patch_is_refused(tmp_path: Path, patch: str, said: str) -> None:
    folder = Folder(tmp_path, {"f": b"x\nrest\n", "picture": b"\x89PNG\r\n"}, read=True)
    assert said in folder.refused(patch)


def test_wrong_counts_and_wrappings_do_not_matter(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"f": b"a\nb\nc\n", "g": b"-- x\ny\n"})
    folder.apply("```diff\n--- f\n+++ f\n@@ -1,9 +1,2 @@\n a\n-b\n+B\n\n--- g\n+++ g\n@@ ... @@\n--- x\n y\n```\n")
    assert folder.files() == {"f": b"a\nB\nc\n", "g": b"y\n"}


def test_markers_may_be_padded_and_context_may_look_like_one(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"f": b"a\n*** Delete File: f\nb\n"})
    folder.apply(
        "  *** Begin Patch \n *** Add File: n\n+*** End Patch\n  *** Update File: f\n a\n *** Delete File: f\n-b\n+B\n"
        "*** End Patch  \n"
    )
    assert folder.files() == {"n": b"*** End Patch\n", "f": b"a\n*** Delete File: f\nB\n"}


def test_many_hunks_of_a_long_file(tmp_path: Path) -> None:
    before = "".join(f"line {number}\n\n" for number in range(50_000))
    hunks = [f"@@\n \n-line {number}\n+LINE {number}" for number in range(100, 40_000, 200)]
    folder = Folder(tmp_path, {"f": before.encode()})
    assert "+200 -200" in folder.apply(envelope("*** Update File: f", *hunks))


def test_what_was_not_read_is_not_replaced_unseen(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"a": b"one\n", "b": b"two  \n"})
    assert "exists already" in folder.refused(envelope("*** Add File: a", "+new"))
    assert "nothing can move there" in folder.refused(envelope("*** Update File: b", "*** Move to: a"))
    assert "has not been read" in folder.refused(envelope("*** Update File: b", "-two", "+2"))
    assert "Changed a" in folder.apply(envelope("*** Update File: a", "-one", "+1"))
    assert folder.workspace.resolve("a") not in folder.seen, "only a part of it was seen"
    folder.seen.note(folder.workspace.resolve("a"), b"1\n")
    assert "Changed a" in folder.apply(envelope("*** Add File: a", "+new"))
    (tmp_path / "a").write_text("new\nand more\n")
    for part in ("*** Delete File: a", "*** Update File: a\n-new\n+x", "*** Update File: a\n*** Move to: z"):
        assert "has changed since it was read" in folder.refused(envelope(part))


def test_files_may_move_up_in_a_row(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"1": b"one\n", "2": b"two\n", "3": b"three\n"})
    moves = [f"diff --git a/{n} b/{n + 1}\nrename from {n}\nrename to {n + 1}\n" for n in (1, 2, 3)]
    folder.apply("".join(moves))
    assert folder.files() == {"2": b"one\n", "3": b"two\n", "4": b"three\n"}
    assert "exists already" in folder.refused(moves[1])


def test_one_file_may_be_patched_twice_and_links_are_not_removed(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"a": b"one\n"})
    parts = ("*** Update File: a\n-one\n+two", "*** Update File: a\n*** Move to: b\n-two\n+three")
    folder.apply(envelope(*parts, "*** Add File: c", "+x", "*** Delete File: c"))
    assert folder.files() == {"b": b"three\n"}
    (tmp_path / "link").symlink_to("b")
    assert "symbolic link" in folder.refused(envelope("*** Delete File: link"))


@pytest.mark.parametrize("spoilt", ["b", "gone", "new/deep/d"])
def test_a_failure_while_writing_puts_everything_back(tmp_path: Path, spoilt: str) -> None:
    folder = Folder(tmp_path, {"a": b"a\n", "b": b"b\n", "gone": b"x\n", "last": b"y\n"})
    parts = ("*** Update File: a\n-a\n+A", "*** Add File: fresh/one/c\n+c", "*** Add File: new/deep/d\n+d")
    plan = folder.plan(envelope(*parts, "*** Update File: b\n-b\n+B", "*** Delete File: last", "*** Delete File: gone"))
    (tmp_path / spoilt).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / spoilt).write_bytes(b"someone else's")
    before = folder.files()
    with pytest.raises(ToolFailure, match="No file was changed"):
        plan.commit(folder.seen, write_ahead(tmp_path))
    assert folder.files() == before
    assert not (tmp_path / "fresh").exists()


WORDS = st.sampled_from(["", "a", "b", "  a", "-- x", "++ y", "@@", "*** End Patch", "\\ No newline", "é —", "\ta"])
TEXTS = st.tuples(st.lists(WORDS, max_size=12), st.booleans()).map(
    lambda made: "\n".join(made[0]) + ("\n" if made[0] and (made[1] or made[0][-1] == "") else "")
)


def unified(before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), "a/f", "b/f")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def enveloped(before: str, after: str) -> str:
    old, new = before.splitlines(), after.splitlines()
    rows = ["*** Update File: f"]
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(3):
        rows.append("@@")
        for kind, a, b, c, d in group:
            if kind == "equal":
                rows += [f" {line}" for line in old[a:b]]
            else:
                rows += [*(f"-{line}" for line in old[a:b]), *(f"+{line}" for line in new[c:d])]
    return envelope(*rows)


quiet = settings(deadline=None)


@quiet
@given(TEXTS, TEXTS, st.sampled_from([b"", b"\xef\xbb\xbf"]), st.booleans())
def test_a_unified_diff_makes_what_it_was_made_from(
    tmp_path: Path, before: str, after: str, mark: bytes, windows: bool
) -> None:
    def data(text: str) -> bytes:
        return mark + (text.replace("\n", "\r\n") if windows and "\n" in before else text).encode()

    if before == after:
        return
    folder = Folder(tmp_path, {"f": data(before)})
    folder.apply(unified(before, after))
    assert (tmp_path / "f").read_bytes() == data(after)


@quiet
@given(TEXTS, TEXTS, st.booleans())
def test_an_envelope_makes_what_it_was_made_from_or_nothing(
    tmp_path: Path, before: str, after: str, windows: bool
) -> None:
    if before.endswith("\n") != after.endswith("\n") or not before or before == after:
        return
    end = "\r\n" if windows and "\n" in before else "\n"
    folder = Folder(tmp_path, {"f": before.replace("\n", end).encode()})
    try:
        folder.apply(enveloped(before, after))
    except ToolFailure as error:
        after = before if "places" in str(error) else f"not {after}"
    assert (tmp_path / "f").read_bytes() == after.replace("\n", end).encode()


@quiet
@given(st.text(st.sampled_from("-+@* \n\rabf/\\"), max_size=80))
def test_any_text_is_a_patch_or_a_plain_refusal(tmp_path: Path, text: str) -> None:
    folder = Folder(tmp_path, {"f": b"a\nb\n"})
    for patch in (text, envelope("*** Update File: f", text), f"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n{text}"):
        before = folder.files()
        with suppress(BaError):
            folder.plan(patch)
        assert folder.files() == before


def cases(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.outside
@pytest.mark.parametrize("read", [True, False])
def test_real_patches(outside_data: Path, tmp_path: Path, read: bool) -> None:
    for case in cases(outside_data / "edits_patch.jsonl"):
        before = {name: text.encode() for name, text in case["files_before"].items()}
        folder = Folder(tmp_path / case["id"], before, read=read)
        (tmp_path / case["id"]).mkdir(exist_ok=True)
        unseen = False
        try:
            refused = "" if folder.apply(case["patch"]) else "said nothing"
        except BaError as error:
            refused = str(error)
            # What a patch replaces without showing it must have been read.
            unseen = not read and "exists already" in refused
        if unseen:
            assert folder.files() == before, case["id"]
            continue
        assert bool(refused) == bool(case["expect_error"]), (case["id"], refused)
        assert folder.files() == {name: text.encode() for name, text in case["files_after"].items()}, case["id"]


@pytest.mark.outside
def test_real_envelopes(outside_data: Path, tmp_path: Path) -> None:
    for case in cases(outside_data / "edits_v4a.jsonl"):
        new = case["mode"] == "create"
        folder = Folder(tmp_path / case["id"], {} if new else {"f": case["before"].encode()})
        (tmp_path / case["id"]).mkdir(exist_ok=True)
        patch = envelope(f"*** {'Add' if new else 'Update'} File: f", case["diff"])
        if case["ok"]:
            folder.apply(patch)
            assert folder.files() == {"f": case["after"].encode()}, case["id"]
        else:
            folder.refused(patch)
