"""Several edits in one call, and real edits of models: right or refused, never something else."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_tui.core.results import Diff
from ba_tui.core.tool import Call
from ba_tui.permissions.paths import Workspace
from ba_tui.tools.editing.edits import planned_edit
from ba_tui.tools.editing.matching import find_edit
from ba_tui.tools.editing.seen_files import SeenFiles
from ba_tui.tools.failures import ToolFailure
from tests.tools.conftest import Harness


def edit(old: str, new: str, **more: Any) -> dict[str, Any]:
    return {"old_string": old, "new_string": new, **more}


async def test_edits_are_made_in_order_each_on_what_the_one_before_left(harness: Harness) -> None:
    file = harness.write("a.txt", b"one\r\ntwo\r\ntwo\r\n")
    await harness.run("read_file", path="a.txt")
    args = {"path": "a.txt", "edits": [edit("one", "1\n1b"), edit("1b", "x"), edit("two", "2", replace_all=True)]}
    preview = harness.tools["edit_file"].preview
    assert preview is not None
    shown = await preview(args)
    result = await harness.run("edit_file", **args)
    assert file.read_bytes() == b"1\r\nx\r\n2\r\n2\r\n"
    assert result.display == shown == Diff("a.txt", "one\ntwo\ntwo\n", "1\nx\n2\n2\n")
    assert result.summary == "+4 -3"


async def test_one_that_fails_is_named_and_none_is_made(harness: Harness) -> None:
    file = harness.write("a.txt", "one\ntwo\n")
    await harness.run("read_file", path="a.txt")
    result = await harness.run("edit_file", path="a.txt", edits=[edit("one", "1"), edit("three", "3")])
    assert "Edit 2 of 2 fails, so none was made: old_string is not in the file" in result.text
    assert file.read_text() == "one\ntwo\n"


async def test_what_was_tolerated_is_said_of_each(harness: Harness) -> None:
    harness.write("a.py", "if a:\n    first()\n    second()\n")
    await harness.run("read_file", path="a.py")
    result = await harness.run(
        "edit_file", path="a.py", edits=[edit("if a:", "if b:"), edit("second()\n", "third()\n")]
    )
    assert "Note" not in result.text, "both are there as written"
    result = await harness.run("edit_file", path="a.py", edits=[edit("if b:", "if c:"), edit("\tthird()", "\tlast()")])
    assert "edit 2: matched with different white space" in result.text
    assert (harness.root / "a.py").read_text() == "if c:\n    first()\n    last()\n"


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"old_string": "a"},
        {"new_string": "a"},
        {"edits": []},
        {"old_string": "a", "new_string": "b", "edits": [edit("a", "b")]},
    ],
)
async def test_half_or_both_forms_are_refused(harness: Harness, args: dict[str, Any]) -> None:
    harness.write("a.txt", "a\n")
    await harness.run("read_file", path="a.txt")
    result = await harness.run("edit_file", path="a.txt", **args)
    assert result.summary == "bad arguments"
    assert (harness.root / "a.txt").read_text() == "a\n"


@settings(deadline=None)
@given(st.text("ab\n", max_size=30), st.lists(st.tuples(st.text("ab\n", max_size=3), st.text("abc", max_size=3))))
def test_several_edits_are_what_one_after_the_other_is(tmp_path: Path, text: str, pairs: list[tuple[str, str]]) -> None:
    file = tmp_path / "a.txt"
    seen = SeenFiles()

    def plan(**args: Any) -> bytes | None:
        try:
            return planned_edit(Workspace(tmp_path), seen, {"path": "a.txt", **args}).after
        except ToolFailure:
            return None

    def at(data: bytes) -> None:
        file.write_bytes(data)
        seen.note(file.resolve(), data)

    at(text.encode())
    together = plan(edits=[edit(old, new) for old, new in pairs])
    last: bytes | None = text.encode() if pairs else None
    for old, new in pairs:
        last = plan(**edit(old, new)) if last is not None else None
        if last is not None:
            at(last)
    assert together == last


def cases(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.outside
async def test_real_replacements_through_the_tool(outside_data: Path, harness: Harness) -> None:
    for case in cases(outside_data / "edits_str_replace.jsonl"):
        named = case.get("encoding", "utf-8").lower()
        codec = named.split()[0] + ("-sig" if named.startswith("utf-8") and "bom" in named else "")
        file = harness.write(case["id"], case["before"].encode(codec))
        file.chmod(mode := int(case.get("mode", "0644"), 8))
        await harness.run("read_file", path=case["id"])
        args = {name: case[name] for name in ("old_string", "new_string", "replace_all") if name in case}
        result = await harness.run("edit_file", path=case["id"], **args)
        expected = case["before"] if "expect_error" in case else case["after"]
        assert result.is_error == ("expect_error" in case), (case["id"], result.text)
        assert file.read_bytes() == expected.encode(codec), case["id"]
        assert stat.S_IMODE(file.stat().st_mode) == mode


@pytest.mark.outside
async def test_real_replacements_at_the_same_time(outside_data: Path, harness: Harness) -> None:
    wanted = [
        case
        for case in cases(outside_data / "edits_str_replace.jsonl")
        if case["tier"] == "exact" and "expect_error" not in case
    ]
    befores = [f"=== {number}\n{case['before']}\n" for number, case in enumerate(wanted)]
    file = harness.write("all.txt", "".join(befores))
    await harness.run("read_file", path="all.txt")
    calls = [
        {
            "path": "all.txt",
            "old_string": before,
            "new_string": f"=== {number}\n{case['after']}\n",
        }
        for number, (before, case) in enumerate(zip(befores, wanted, strict=True))
    ]
    await asyncio.gather(*(harness.tools["edit_file"].run(args, Call("call", harness.branch)) for args in calls))
    assert file.read_text("utf-8") == "".join(args["new_string"] for args in calls)


def blocks(outside_data: Path) -> list[tuple[str, str]]:
    """What models wanted to be searched and replaced."""
    return [
        (block["search"], block["replace"])
        for case in cases(outside_data / "edits_blocks.jsonl")
        for block in case["expected"] or ()
        if block.get("search", "").strip() and block["search"] != block["replace"]
    ]


def applied(text: str, old: str, new: str) -> str | None:
    try:
        edit = find_edit(text, old, new)
    except ToolFailure:
        return None
    for change in reversed(edit.changes):
        text = text[: change.start] + change.text + text[change.end :]
    return text


@pytest.mark.outside
def test_real_blocks_are_found_where_they_stand(outside_data: Path) -> None:
    for old, new in blocks(outside_data):
        assert applied(f"first line\n{old}last line\n", old, new) == f"first line\n{new}last line\n"
        assert applied(f"{old}\n{old}", old, new) is None, "two places are no place"


@pytest.mark.outside
@pytest.mark.parametrize("indent", ["    ", "\t"])
def test_real_blocks_with_other_indentation_are_right_or_refused(outside_data: Path, indent: str) -> None:
    def shifted(text: str) -> str:
        return "".join(indent + line if line.strip() else "\n" for line in text.splitlines(keepends=True))

    # What begins without indentation and stands in one line is an exact match, and meant literally.
    found = [pair for pair in blocks(outside_data) if pair[0][0] in " \t" or pair[0] not in shifted(pair[0])]
    results = [applied(f"first line\n{shifted(old)}last line\n", old, new) for old, new in found]
    for result, (_, new) in zip(results, found, strict=True):
        assert result in {None, f"first line\n{shifted(new)}last line\n"}
    assert sum(result is not None for result in results) >= 0.95 * len(results)
