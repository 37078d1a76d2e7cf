"""Writes over what nobody read, and words that stand for what was left out."""

from __future__ import annotations

import pytest

from ba_tui.core.events import event_from_json, event_to_json
from ba_tui.core.questions import Reply
from ba_tui.core.transcript import Transcript
from ba_tui.tools.editing.seen_files import SeenFiles
from tests.tools.conftest import Harness


@pytest.mark.parametrize("edited", [5, 59])
async def test_lines_that_nobody_read_do_not_go_unasked(harness: Harness, edited: int) -> None:
    harness.write("a.txt", "".join(f"line {number}\n" for number in range(100)))
    kept = "".join(f"line {number}\n" for number in range(70))
    harness.answer = lambda question: Reply("deny")
    await harness.run("read_file", path="a.txt", limit=60)
    assert (await harness.run("write_file", path="a.txt", content=kept)).is_error
    assert harness.asked[0].reason == "30 lines of a.txt would go that were never read"
    # What an edit knows of the file is no more than before.
    edit = {"old_string": f"line {edited}\n", "new_string": "5\n5b\n"}
    assert not (await harness.run("edit_file", path="a.txt", **edit)).is_error
    assert (await harness.run("write_file", path="a.txt", content=kept)).is_error
    assert len(harness.asked) == 2
    await harness.run("read_file", path="a.txt", offset=62)
    assert not (await harness.run("write_file", path="a.txt", content=kept)).is_error
    assert len(harness.asked) == 2, "all of it was read by then"


@pytest.mark.parametrize(
    "line",
    [
        "# ... existing code ...",
        "// rest of the methods unchanged",
        "(rest of the file)...",
        "<!-- rest of the page stays the same -->",
    ],
)
async def test_words_that_stand_for_what_was_left_out_are_not_written(harness: Harness, line: str) -> None:
    file = harness.write("a.txt", "one\ntwo\nthree\n")
    await harness.run("read_file", path="a.txt")
    patch = f"*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n+{line}\n*** End Patch"
    for name, args in (
        ("write_file", {"path": "a.txt", "content": f"one\n{line}\n"}),
        ("write_file", {"path": "new.txt", "content": f"one\n{line}\n"}),
        ("edit_file", {"path": "a.txt", "old_string": "two", "new_string": f"2\n{line}"}),
        ("apply_patch", {"patch": patch}),
    ):
        assert "is a placeholder for omitted text" in (await harness.run(name, **args)).text
    assert file.read_text() == "one\ntwo\nthree\n"
    assert not (harness.root / "new.txt").exists()


async def test_words_about_the_rest_that_stand_in_the_file_may_stay(harness: Harness) -> None:
    harness.write("a.md", "# ... existing code ...\nThe rest of the file is unchanged.\n")
    await harness.run("read_file", path="a.md")
    text = "# ... existing code ...\nThe rest of the file is unchanged here.\n"
    assert not (await harness.run("write_file", path="a.md", content=text)).is_error


async def test_what_was_read_is_known_in_a_later_run_of_ba(harness: Harness) -> None:
    harness.write("whole.txt", "one\n")
    harness.write("part.txt", "".join(f"line {number}\n" for number in range(100)))
    harness.write("changed.txt", "one\n")
    harness.write("unread.txt", "one\n")
    await harness.run("read_file", path="whole.txt")
    await harness.run("read_file", path="part.txt", limit=60)
    await harness.run("read_file", path="changed.txt")
    harness.write("changed.txt", "two\n")
    events = [event_from_json(event_to_json(event)) for event in harness.events]
    known = Transcript(events=events).seen
    harness.equip(known=SeenFiles(known.get))
    edited = [await harness.run("edit_file", path="whole.txt", old_string="one", new_string="1")]
    edited += [await harness.run("edit_file", path="whole.txt", old_string="1", new_string="2")]
    assert [result.is_error for result in edited] == [False, False]
    for name, why in (("changed.txt", "has changed since it was read"), ("unread.txt", "has not been read yet")):
        assert why in (await harness.run("edit_file", path=name, old_string="o", new_string="0")).text
    harness.answer = lambda question: Reply("deny")
    assert (await harness.run("write_file", path="part.txt", content="new\n")).is_error
    assert harness.asked[-1].reason == "40 lines of part.txt would go that were never read"


async def test_what_was_forgotten_is_not_remembered_from_an_earlier_run(harness: Harness) -> None:
    path = harness.write("a.txt", "one\n")
    seen = SeenFiles()
    seen.note(path, b"one\n")
    kept = {each.path: each for each in seen.take()}
    again = SeenFiles(kept.get)
    assert path in again
    again.forget(path)
    assert path not in again
    kept |= {each.path: each for each in again.take()}
    assert path not in SeenFiles(kept.get)
