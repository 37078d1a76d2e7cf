"""The outermost guard: levels, files for what is long, one shape for failures, and nothing raised passes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_tui.core.errors import ErrorInfo, StopTurn, StorageError, UsageError
from ba_tui.core.events import ToolFinished, event_from_json, event_to_json
from ba_tui.core.results import UNREAD, CommandText, Diff, Kind, OutputLevel, Prose, Source, Table, ToolResult, failure
from ba_tui.core.tool import Call, Tool, ToolFacts
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.sessions.artifacts import Artifacts
from ba_tui.tools.formats import ROOM
from ba_tui.tools.guards.output import BULKY_DISPLAY, OutputDelivery, output

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}
LONG = "".join(f"line {number}\n" for number in range(20_000))


def call() -> Call:
    return Call("call-1", Branch(Turn(), Transcript()))


def tool(
    result: Callable[[], object], *, level: OutputLevel = "standard", bulky: bool = True, seen: list[Any] | None = None
) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        if seen is not None:
            seen.append(args)
        return cast("ToolResult", result())

    return Tool("probe", "", SCHEMA, run, facts=ToolFacts(level=level, bulky=bulky))


@pytest.fixture
def shelf(tmp_path: Path) -> Artifacts:
    return Artifacts(tmp_path / "session" / "data")


async def given_back(result: ToolResult, delivery: OutputDelivery, **args: Any) -> ToolResult:
    return await output(tool(lambda: result), delivery).run({"path": "a", **args}, call())


async def test_the_level_is_chosen_by_call_then_window_then_tool(shelf: Artifacts) -> None:
    window = 0.5
    delivery = OutputDelivery(shelf, lambda: window)
    text = "x\n" * 20_000
    levels: list[tuple[str | None, float, OutputLevel, bool, int]] = [
        (None, 0.5, "standard", True, ROOM["standard"]),
        (None, 0.71, "standard", True, 400),
        (None, 0.71, "full", True, 400),
        (None, 0.71, "standard", False, ROOM["standard"]),
        (None, 0.5, "brief", False, 400),
        (None, 0.5, "full", True, len(text)),
        ("full", 0.9, "brief", True, len(text)),
        ("standard", 0.9, "brief", True, ROOM["standard"]),
        ("brief", 0.1, "full", True, 400),
    ]
    for asked, window, level, bulky, room in levels:
        args = {"path": "a"} if asked is None else {"path": "a", "output_level": asked}
        probe = output(tool(lambda: ToolResult(text), level=level, bulky=bulky), delivery)
        told = (await probe.run(args, call())).text
        assert room - 300 <= len(told) <= room or room == 400, (asked, window, level)
        assert len(told) <= room, (asked, window, level)


async def test_the_choice_is_offered_and_taken_away_again(shelf: Artifacts) -> None:
    seen: list[Any] = []
    bulky = output(tool(lambda: ToolResult("fine"), seen=seen), OutputDelivery(shelf))
    assert bulky.input_schema["properties"]["output_level"]["enum"] == ["brief", "standard", "full"]
    assert SCHEMA["properties"].keys() == {"path"}
    await bulky.run({"path": "a", "output_level": "full"}, call())
    assert seen == [{"path": "a"}]
    refused = await bulky.run({"path": "a", "output_level": "loud"}, call())
    assert refused.error
    assert refused.error.kind == "invalid_parameters"
    assert "expected one of brief, standard, full, got 'loud'" in refused.text
    plain = output(tool(lambda: ToolResult("fine"), bulky=False, seen=seen), OutputDelivery(shelf))
    assert plain.input_schema is SCHEMA
    await plain.run({"path": "a", "output_level": "full"}, call())
    assert seen[1:] == [{"path": "a", "output_level": "full"}]


async def test_a_tool_with_a_level_of_its_own_keeps_it() -> None:
    schema = {"type": "object", "properties": {"output_level": {"type": "integer"}}}
    seen: list[Any] = []

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        seen.append(args)
        return ToolResult("fine")

    guarded = output(Tool("probe", "", schema, run, facts=ToolFacts(bulky=True)))
    assert (await guarded.run({"output_level": 3}, call())).text == "fine"
    assert seen == [{"output_level": 3}]


async def test_a_tool_may_bring_its_own_way_to_shorten(shelf: Artifacts) -> None:
    def own(text: str, level: OutputLevel, room: int) -> str:
        return f"{level}: {len(text)} of at most {room}"

    def broken(text: str, level: OutputLevel, room: int) -> str:
        raise KeyError(text[:9])

    def endless(text: str, level: OutputLevel, room: int) -> str:
        return text * 2

    probe = tool(lambda: ToolResult(LONG))
    for level in ("brief", "standard", "full"):
        args = {"path": "a", "output_level": level}
        told = await output(replace(probe, shorten=own), OutputDelivery()).run(args, call())
        assert told.text == f"{level}: {len(LONG)} of at most {ROOM[level]}"
        kept = await output(replace(probe, shorten=own), OutputDelivery(shelf)).run(args, call())
        assert f"whole: read_artifact {kept.artifact}" in kept.text
        for wrong in (broken, endless):
            told = await output(replace(probe, shorten=wrong), OutputDelivery()).run(args, call())
            assert not told.is_error
            assert len(told.text) <= max(ROOM[level], 300)
    assert (await output(replace(tool(lambda: ToolResult("x")), shorten=own)).run({"path": "a"}, call())).text == "x"


async def test_what_is_cut_is_stored_and_says_where(shelf: Artifacts) -> None:
    result = await given_back(ToolResult(LONG, summary="20,000 lines"), OutputDelivery(shelf))
    assert result.artifact
    assert f"read_artifact {result.artifact}" in result.text
    assert len(result.text) <= ROOM["standard"]
    assert result.text.startswith("line 0\n")
    assert result.text.endswith("line 19999\n")
    assert shelf.path(result.artifact).read_text() == LONG
    assert result.summary == "20,000 lines"
    short = await given_back(ToolResult("short"), OutputDelivery(shelf))
    assert (short.text, short.artifact) == ("short", None)


async def test_full_is_whole_or_a_summary_with_the_way_to_it(shelf: Artifacts) -> None:
    fits = "x" * ROOM["full"]
    assert (await given_back(ToolResult(fits), OutputDelivery(shelf), output_level="full")).text == fits
    items = json.dumps([{"id": number} for number in range(20_000)])
    result = await given_back(ToolResult(items, kind="json"), OutputDelivery(shelf), output_level="full")
    assert "an array of 20,000 items; keys: id; ranges: id 0 to 19999" in result.text
    assert f"read_artifact {result.artifact}" in result.text
    assert len(result.text) < 600


async def test_brief_gives_key_facts(shelf: Artifacts) -> None:
    listing = "".join(f"file{number}.py\n" for number in range(300))
    result = await given_back(ToolResult(listing, kind="listing"), OutputDelivery(shelf), output_level="brief")
    assert result.text == f"Found 300 entries; first: file0.py\n[whole: read_artifact {result.artifact}]"


async def test_a_result_that_was_streamed_keeps_its_file(shelf: Artifacts, tmp_path: Path) -> None:
    with shelf.open("call-1", "probe") as spill:
        spill.write(LONG.encode())
        ref = spill.finish().ref
    for level in ("brief", "standard", "full"):
        result = await given_back(ToolResult(LONG[:40_000], artifact=ref), OutputDelivery(shelf), output_level=level)
        assert result.artifact == ref
        assert result.text.count(ref) == 1
    assert (await given_back(ToolResult("head", artifact=ref), OutputDelivery(shelf))).text.endswith(
        f"[whole: read_artifact {ref}]"
    )
    assert len(list((tmp_path / "session" / "data").iterdir())) == 2
    odd = await given_back(ToolResult("x", artifact="../../etc/passwd"), OutputDelivery(shelf))
    assert odd.artifact is None


@pytest.mark.parametrize(
    "display",
    [CommandText("make", "", LONG * 2, 0), Prose(LONG * 2), Source("a.py", LONG * 2, 5)],
    ids=lambda display: display.type,
)
async def test_a_bulky_display_is_shown_in_part_and_paged_from_the_file(shelf: Artifacts, display: Any) -> None:
    result = await given_back(ToolResult("done", display), OutputDelivery(shelf))
    assert result.artifact
    assert shelf.path(result.artifact).read_text() == LONG * 2
    assert f"read_artifact {result.artifact}" in result.text
    shown = result.display
    assert type(shown) is type(display)
    text = shown.output if isinstance(shown, CommandText) else shown.text  # pyright: ignore[reportAttributeAccessIssue, reportOptionalMemberAccess]
    assert len(text) <= BULKY_DISPLAY // 2
    assert text.startswith("line 0\n")
    assert text.endswith("\n")
    line = event_to_json(ToolFinished("c", result))
    assert len(line) < BULKY_DISPLAY
    assert event_from_json(line) == ToolFinished("c", result, at=cast("ToolFinished", event_from_json(line)).at)


async def test_other_displays_stay_as_they_are(shelf: Artifacts) -> None:
    for display in (Diff("a", LONG, LONG), Table(("a",), ((1,),)), CommandText("make", "", "x" * BULKY_DISPLAY, 0)):
        result = await given_back(ToolResult("done", display), OutputDelivery(shelf))
        assert result.display == display
        assert result.artifact is None


async def test_the_longer_of_text_and_display_is_kept(shelf: Artifacts) -> None:
    result = await given_back(ToolResult(LONG, Prose(LONG * 2)), OutputDelivery(shelf))
    assert result.artifact
    assert shelf.about(result.artifact).size == len(LONG) * 2
    result = await given_back(ToolResult(LONG, Prose("a few words")), OutputDelivery(shelf))
    assert result.artifact
    assert shelf.about(result.artifact).size == len(LONG)
    assert result.display == Prose("a few words")


async def test_without_a_place_for_files_the_result_is_still_bounded(tmp_path: Path) -> None:
    result = await given_back(ToolResult(LONG, Prose(LONG)), OutputDelivery())
    assert result.artifact is None
    assert len(result.text) <= ROOM["standard"]
    assert "left out …]" in result.text
    assert result.display == Prose(LONG), "people see the whole"
    (tmp_path / "data").write_text("a file in the way")
    result = await given_back(ToolResult(LONG, Prose(LONG)), OutputDelivery(Artifacts(tmp_path / "data")))
    assert "left out; The result can't be kept in a file: " in result.text
    assert result.display == Prose(LONG)
    assert not result.is_error


async def test_it_is_told_how_many_lines_the_model_was_not_given(shelf: Artifacts) -> None:
    result = await given_back(ToolResult(LONG, CommandText("make", output=LONG, exit_code=0)), OutputDelivery(shelf))
    assert isinstance(result.display, CommandText)
    assert result.display.lines == 20_000
    given = [line for line in result.text.split("\n") if line.startswith("line ")]
    assert result.meta[UNREAD] == 20_000 - len(given)
    rows = await given_back(ToolResult(LONG, kind="listing"), OutputDelivery(shelf))
    assert rows.meta[UNREAD] == 20_000 - sum(line.startswith("line ") for line in rows.text.split("\n"))
    brief = await given_back(ToolResult(LONG), OutputDelivery(shelf), output_level="brief")
    assert brief.meta[UNREAD] == 0
    assert UNREAD not in (await given_back(ToolResult("short"), OutputDelivery(shelf))).meta


async def test_megabytes_are_given_in_part(shelf: Artifacts) -> None:
    text = "\x1b[31mred\x1b[0m line\r\n" * 200_000
    for kind in ("text", "json", "table", "listing", "hits"):
        for level in ("brief", "standard", "full"):
            result = await given_back(ToolResult(text, kind=kind), OutputDelivery(shelf), output_level=level)
            assert result.artifact
            assert len(result.text) <= ROOM["standard"]
            assert "\x1b" not in result.text
            assert shelf.about(result.artifact).size == len(text)


async def test_failures_have_one_shape(shelf: Artifacts) -> None:
    result = failure("not_found", "No such thing.", hint="Look elsewhere.")
    assert (await given_back(result, OutputDelivery(shelf))).text == (
        "Operation failed.\nError Type: not_found\nError Message: No such thing.\nTool Call ID: call-1\n"
        "Suggestion: Look elsewhere."
    )
    coded = ToolResult(
        result.text, is_error=True, error=ErrorInfo("not_found", "No such thing.", "Look elsewhere.", "ENOENT")
    )
    assert (
        "Error Type: not_found\nError Code: ENOENT\nError Message:"
        in (await given_back(coded, OutputDelivery(shelf))).text
    )
    own = await given_back(ToolResult("it broke", is_error=True), OutputDelivery(shelf))
    assert own.text.startswith("Operation failed.\nError Type: execution_error\nError Message: it broke\nTool Call ID:")
    assert own.error
    assert own.error.kind == "execution_error"
    noted = await given_back(
        ToolResult(f"A note.\n{result.text}", is_error=True, error=result.error), OutputDelivery(shelf)
    )
    assert noted.text.startswith("A note.\nOperation failed.\n")
    assert "Tool Call ID: call-1\n" in noted.text


async def test_a_long_failure_keeps_what_to_do_and_goes_to_a_file(shelf: Artifacts) -> None:
    told = failure("timeout", "It took 2 s.")
    result = ToolResult(f"{told.text}\nOutput so far (partial):\n{LONG}", is_error=True, error=told.error)
    for level in ("brief", "standard", "full"):
        given = await given_back(result, OutputDelivery(shelf), output_level=level)
        assert given.is_error
        assert "Suggestion: Try again" in given.text
        assert f"read_artifact {given.artifact}" in given.text
        assert len(given.text) <= ROOM[level] + (600 if level == "brief" else 0)


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


class Own(BaseException):
    pass


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (ValueError("wrong"), "internal_error"),
        (SystemExit(3), "internal_error"),
        (KeyboardInterrupt(), "internal_error"),
        (Own(), "internal_error"),
        (Unprintable(), "internal_error"),
        (asyncio.CancelledError(), "internal_error"),
        (StorageError("full", "Free some space."), "permission_denied"),
        (UsageError("no"), "permission_denied"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_nothing_raised_passes(raised: BaseException, kind: str) -> None:
    def fail() -> object:
        raise raised

    result = await output(tool(fail)).run({"path": "a"}, call())
    assert result.is_error
    assert result.error
    assert result.error.kind == kind
    assert "Traceback" not in result.text


async def test_the_end_of_a_turn_and_being_cancelled_pass() -> None:
    def stop() -> object:
        raise StopTurn("enough")

    with pytest.raises(StopTurn):
        await output(tool(stop)).run({"path": "a"}, call())
    started = asyncio.Event()

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        started.set()
        await asyncio.Event().wait()
        return ToolResult("never")

    task = asyncio.create_task(output(Tool("probe", "", SCHEMA, run)).run({}, call()))  # type: ignore[arg-type]
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("made", [None, "text", 3, {"a": 1}, ToolResult, [ToolResult("x")]])
async def test_nonsense_is_no_result(made: object) -> None:
    result = await output(tool(lambda: made)).run({"path": "a"}, call())
    assert result.error
    assert result.error.kind == "internal_error"


ODD = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.binary(max_size=20)
    | st.lists(st.text(max_size=9), max_size=3)
)


@given(
    st.fixed_dictionaries(
        {"text": st.text() | ODD},
        optional={
            "display": st.builds(Prose, st.text()) | st.builds(CommandText, st.text(), st.text(), st.text()) | ODD,
            "summary": st.text() | ODD,
            "kind": st.sampled_from(["text", "json", "odd"]) | ODD,
            "artifact": st.text() | ODD,
            "error": st.builds(ErrorInfo, st.text(), st.text()) | ODD,
            "is_error": st.booleans(),
            "meta": st.dictionaries(st.text(), st.text() | st.floats()),
        },
    ),
    st.sampled_from(["brief", "standard", "full"]),
)
async def test_any_result_becomes_one_that_can_be_kept(
    tmp_path_factory: pytest.TempPathFactory, fields: dict[str, Any], level: str
) -> None:
    delivery = OutputDelivery(Artifacts(tmp_path_factory.mktemp("odd") / "data"))
    result = await given_back(ToolResult(**fields), delivery, output_level=level)
    line = event_to_json(ToolFinished("c", result))
    kept = event_from_json(line)
    assert isinstance(kept, ToolFinished)
    assert kept.result.text == result.text
    assert not any(ord(character) < 32 and character not in "\n\t" for character in result.text)


@settings(max_examples=40, deadline=None)
@given(
    st.text("ab\n\x1b[3m\r", max_size=300),
    st.integers(1, 400),
    st.sampled_from(["text", "json", "table", "listing", "hits"]),
)
async def test_any_text_comes_within_its_room(
    tmp_path_factory: pytest.TempPathFactory, text: str, times: int, kind: Kind
) -> None:
    delivery = OutputDelivery(Artifacts(tmp_path_factory.mktemp("any") / "data"))
    for level in ("brief", "standard", "full"):
        result = await given_back(ToolResult(text * times, kind=kind), delivery, output_level=level)
        assert len(result.text) <= ROOM[level] + (200 if level == "brief" else 0)
