"""A choice among the changes of a diff, and the call that leads exactly there: judged by the tools that run it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.core.results import Diff
from ba_tui.faces.tui.inspector.diff import can_say, hunks, merged, said
from ba_tui.permissions.paths import Workspace
from ba_tui.tools.editing.edits import planned_edit
from ba_tui.tools.editing.seen_files import SeenFiles

LINES = st.lists(st.sampled_from(["a\n", "b\n", "    a\n", "\n", "  b\n", "c\n"]), max_size=12)


def ran(folder: Path, before: str, args: dict[str, Any]) -> str:
    """What edit_file makes of a file that holds ``before``."""
    path = folder / "a.txt"
    path.write_text(before)
    seen = SeenFiles()
    seen.note(path, path.read_bytes())
    return planned_edit(Workspace(folder), seen, args).new_text


@given(LINES, LINES, st.frozensets(st.integers(0, 6)), st.booleans())
def test_the_edited_call_leads_to_the_chosen_changes(
    tmp_path_factory: pytest.TempPathFactory, old: list[str], new: list[str], chosen: frozenset[int], open_end: bool
) -> None:
    before, after = "".join(old), "".join(new)
    if open_end:
        before, after = before.removesuffix("\n"), after.removesuffix("\n")
    diff = Diff("a.txt", before, after)
    wanted = merged(hunks(diff), chosen)
    args = {"path": "a.txt", "old_string": "x", "new_string": "y"}
    edited = said(args, diff, wanted)
    if edited is None:
        assert wanted == before or not before
        return
    assert ran(tmp_path_factory.mktemp("w"), before, edited) == wanted


def test_all_and_none_of_the_changes_are_the_two_texts() -> None:
    diff = Diff("a.txt", "".join(f"{n}\n" for n in range(30)), "".join(f"{n + (n % 9 == 0)}\n" for n in range(30)))
    of = hunks(diff)
    assert of.count == 4
    assert merged(of, frozenset(range(4))) == diff.after
    assert merged(of, frozenset()) == diff.before
    assert merged(of, frozenset({1})) == "".join(f"{n + (n == 9)}\n" for n in range(30))


def test_a_whole_text_is_said_as_a_whole() -> None:
    diff = Diff("a.txt", "one\ntwo\nsame\nsame\nthree\n", "1\ntwo\nsame\nsame\n3\n")
    args = {"path": "a.txt", "content": diff.after}
    assert can_say(args, diff)
    assert said(args, diff, merged(hunks(diff), frozenset({1}))) == {
        "path": "a.txt",
        "content": "one\ntwo\nsame\nsame\n3\n",
    }


@pytest.mark.parametrize(
    ("args", "diff"),
    [
        ({"patch": "*** Begin Patch"}, Diff("a.txt", "a\n", "b\n")),
        ({"path": "a.ipynb", "old_string": "a", "new_string": "b"}, Diff("a.ipynb", "a\n", "b\n")),
        ({"path": "a.txt", "old_string": "a", "new_string": "b", "cell": 1}, Diff("a.txt", "a\n", "b\n")),
        ({"path": "a.txt", "old_string": "a", "new_string": "b"}, Diff("a.txt", None, "b\n")),
        ({"path": "a.txt", "content": "a\r\nb"}, Diff("a.txt", "a\n", "a\nb")),
        ({"path": "a.txt", "content": "b\n", "copy": "b\n"}, Diff("a.txt", "a\n", "b\n")),
    ],
)
def test_what_a_call_cannot_say_is_not_offered(args: dict[str, Any], diff: Diff) -> None:
    assert not can_say(args, diff)
    assert said(args, diff, "x") is None


def test_several_edits_become_the_one_that_is_left() -> None:
    before = "".join(f"row {n % 3}\n" for n in range(40))
    diff = Diff("a.txt", before, before.replace("row 1", "ROW 1"))
    args = {"path": "a.txt", "edits": [{"old_string": "row 1", "new_string": "ROW 1", "replace_all": True}]}
    of = hunks(diff)
    wanted = merged(of, frozenset({3}))
    edited = said(args, diff, wanted)
    assert edited is not None
    assert set(edited) == {"path", "old_string", "new_string"}
    assert before.count(edited["old_string"]) == 1
    assert before.replace(edited["old_string"], edited["new_string"]) == wanted
