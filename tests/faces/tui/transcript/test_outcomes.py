"""What stands below a finished call: what came of it, and where lines of it are missing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from textual.pilot import Pilot

from ba_tui.core.events import Answered, Asked, Event, MessageDone, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from ba_tui.core.messages import Message, Text, ToolUse, user
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import UNREAD, CommandText, Diff, Diffs, Prose, Source, Table, ToolResult, failure
from ba_tui.faces.tui.transcript.records import ProseRecord
from ba_tui.faces.tui.transcript.view import TranscriptView
from tests.faces.tui.transcript.test_view import Sample, feed, rows

NUMBERS = "".join(f"line {at}\n" for at in range(1, 301))
FILE = "".join(f"value_{at} = {at}\n" for at in range(1, 2_001))


def call(result: ToolResult, name: str = "shell", args: Mapping[str, Any] | None = None) -> list[Event]:
    use = ToolUse("1", name, dict(args or {"command": "make"}))
    return [ToolStarted(use, "make"), ToolFinished("1", result, 1.0)]


def printed(output: str, code: int = 0, **more: Any) -> ToolResult:
    return ToolResult(output, CommandText("make", output=output, exit_code=code), summary=f"exit {code}", **more)


async def below(result: ToolResult, width: int = 60) -> list[str]:
    """The lines below the row of a call with ``result``, without their edge."""
    async with Sample().run_test(size=(width, 40)) as pilot:
        view = pilot.app.query_one(TranscriptView)
        feed(view, call(result))
        return lines_below(view)


def lines_below(view: TranscriptView) -> list[str]:
    return [row.split("│", 1)[1].removeprefix(" ") for row in rows(view) if re.match(".? +│", row)]


async def test_a_command_shows_its_last_lines_and_how_many_are_above() -> None:
    assert await below(printed(NUMBERS)) == [
        "… 296 more lines above",
        "line 297",
        "line 298",
        "line 299",
        "line 300",
    ]
    assert await below(printed("one\n\ntwo\n\n\n")) == ["one", "", "two"]
    assert await below(printed("")) == []


async def test_a_piped_test_run_shows_why_it_failed() -> None:
    output = "=" * 90 + "\nFAILED test_sample.py::test_bad - AssertionError: three items\n1 failed, 1 passed in 0.1s\n"
    assert await below(printed(f"{NUMBERS}{output}", 0)) == [
        "… 299 more lines above",
        "line 300",
        f"{'=' * 53}…",
        "FAILED test_sample.py::test_bad - AssertionError: thr…",
        "1 failed, 1 passed in 0.1s",
    ]


async def test_the_reason_at_the_end_is_shown_whole_also_when_it_is_long() -> None:
    reason = (
        "error: failed to push some refs to 'https://git.example/some/where/a-rather-long-name-of-a-repository.git'"
    )
    shown = await below(printed(f"{NUMBERS}{reason}", 1))
    assert "".join(shown).endswith(reason)
    assert len(shown) == 5


async def test_an_endless_line_shows_its_beginning_and_that_it_goes_on() -> None:
    shown = await below(printed("x" * 100_000))
    assert len(shown) == 5
    assert shown[-1].endswith("x…")


async def test_a_line_that_was_written_over_shows_its_last_state() -> None:
    progress = "".join(f"\r{at:>3} %" for at in range(2_000)) + "\rdone  "
    assert await below(printed(f"{progress}\n")) == ["done"]


async def test_the_end_of_json_says_nothing_so_its_beginning_is_shown() -> None:
    shown = await below(printed('{\n  "name": "ba",\n' + '  "x": 1,\n' * 30 + '  "y": 2\n}\n'))
    assert shown[:2] == ["{", '  "name": "ba",']
    assert shown[-1] == "… 30 more lines below"
    log = "".join(f"[12:00:{at:02}] [info] step\n" for at in range(30))
    assert (await below(printed(log)))[-1] == "[12:00:29] [info] step"


async def test_an_edit_shows_the_changed_lines_with_their_numbers() -> None:
    after = FILE.replace("value_1200 = 1200\n", "value_1200 = 12\nvalue_new = 0\n")
    assert await below(ToolResult("done", Diff("a.py", FILE, after), summary="+2 -1")) == [
        "1200 - value_1200 = 1200",
        "1200 + value_1200 = 12",
        "1201 + value_new = 0",
    ]


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ("a\n", "a\na\n", ["2 + a"]),
        ("a\nb\n", "b\n", ["1 - a"]),
        ("a", "a\n", ["1 - a", "1 + a"]),
        (None, "x\n\ty\n", ["1 + x", "2 +     y"]),
        ("x\n", "", ["1 - x"]),
        ("same\n", "same\n", ["No line changed."]),
        (None, "", ["No line changed."]),
    ],
)
async def test_small_changes(before: str | None, after: str, wanted: list[str]) -> None:
    assert await below(ToolResult("done", Diff("a.py", before, after))) == wanted


async def test_a_new_file_shows_how_it_begins() -> None:
    shown = await below(ToolResult("done", Diff("a.py", None, FILE)))
    assert shown[:2] == ["1 + value_1 = 1", "2 + value_2 = 2"]
    assert shown[-1] == "… 1,996 more lines below"


async def test_far_apart_changes_of_a_long_file_show_the_first_and_count_no_moved_line() -> None:
    after = FILE.replace("value_3 = 3\n", "value_3 = 3\nnew = 1\n").replace("value_1990 = 1990\n", "")
    assert await below(ToolResult("done", Diff("a.py", FILE, after))) == ["4 + new = 1", "… at least 1 more line below"]


async def test_a_changed_line_without_end_is_cut_and_marked() -> None:
    shown = await below(ToolResult("done", Diff("a.min.js", "x" * 1_000_000, "y" * 1_000_000)))
    assert len(shown) == 5
    assert shown[0].startswith("1 - xxx")
    assert shown[3].endswith("x…")
    assert shown[-1] == "… 1 more line below"


async def test_a_change_of_several_files_names_each() -> None:
    diffs = Diffs((Diff("a.py", "1\n2\n3\n", "x\ny\nz\n"), Diff("b.py", "1\n", "2\n"), Diff("c.py", None, "3\n")))
    assert await below(ToolResult("done", diffs)) == [
        "a.py",
        "1 - 1",
        "2 - 2",
        "… 4 more lines below",
        "… 2 more files below",
    ]


async def test_what_only_reads_says_enough_in_its_row() -> None:
    assert await below(ToolResult("1: a", Source("a.py", "a\n" * 50), summary="50 lines")) == []
    assert await below(ToolResult("a.py:1:x", Prose("a.py:1:x"), summary="1 line", kind="hits")) == []
    assert await below(ToolResult("6 * 7 = 42", summary="= 42")) == []


async def test_a_tool_of_the_persons_own_shows_what_it_returned() -> None:
    assert await below(ToolResult("The order is late.\nBy two days.")) == ["The order is late.", "By two days."]
    rates = Table(("currency", "rate"), tuple((f"C{at}", at * 1.5) for at in range(30)))
    assert await below(ToolResult("[…]", rates, kind="json")) == [
        "currency │ rate",
        "─────────┼─────",
        "C0       │  0.0",
        "C1       │  1.5",
        "… 28 more rows below",
    ]


async def test_the_first_rows_of_a_query_say_how_many_more_there_are() -> None:
    first = Table(("region", "sum"), (("North", "17.50"), (None, "3.00")), handle="R1", total=1_000)
    assert await below(ToolResult("R1", first, kind="table")) == [
        "region │   sum",
        "───────┼──────",
        "North  │ 17.50",
        "       │  3.00",
        "… 998 more rows below",
    ]


async def test_a_wide_table_of_a_tool_counts_rows_and_columns_that_are_missing() -> None:
    wide = Table(tuple(f"column {at}" for at in range(20)), (("some words",) * 20,) * 9)
    shown = await below(ToolResult("[…]", wide))
    assert shown[-1] == "… 7 more rows below, 16 more columns on the right"
    assert len(shown) == 5


async def test_a_failure_says_why_below_its_row() -> None:
    message = "The text was not found in app.py. The nearest is in line 12, which has another indentation."
    shown = await below(failure("not_found", message, hint="Read the file again."))
    assert " ".join(shown) == message
    timeout = failure(
        "timeout", "The command ran longer than 5 s and was ended.", display=CommandText("x", output=NUMBERS)
    )
    shown = await below(timeout)
    assert shown[0] == "… 297 more lines above"
    assert shown[-2:] == ["line 300", "The command ran longer than 5 s and was ended."]


async def test_a_denied_call_says_who_denied_it_and_why() -> None:
    denied = failure("permission_denied", "Plan mode changes nothing.")
    assert await below(denied) == ["Plan mode changes nothing."]
    async with Sample().run_test(size=(60, 12)) as pilot:
        view = pilot.app.query_one(TranscriptView)
        use = ToolUse("1", "shell", {"command": "make"})
        asked = Asked("a", Question("permission", "Run it?", call_id="1"))
        feed(view, [ToolStarted(use, "make"), asked, Answered("a", Reply("deny"))])
        feed(view, [ToolFinished("1", failure("permission_denied", "The user did not allow this call."))])
        assert "denied by you" in rows(view)[0]
        assert lines_below(view) == []


async def unfolded(pilot: Pilot[None], view: TranscriptView) -> list[str]:
    await pilot.press("up", "space")
    return lines_below(view)


async def test_space_unfolds_the_command_and_more_of_its_output() -> None:
    async with Sample().run_test(size=(60, 50)) as pilot:
        view = pilot.app.query_one(TranscriptView)
        feed(view, call(printed(NUMBERS)))
        shown = await unfolded(pilot, view)
        assert shown[0] == "… 271 more lines above: Enter opens all", "a short command stands whole in the row"
        assert shown[-1] == "line 300"
        await pilot.press("space")
        assert len(lines_below(view)) == 5


async def test_an_unfolded_edit_shows_the_lines_around_it() -> None:
    async with Sample().run_test(size=(60, 50)) as pilot:
        view = pilot.app.query_one(TranscriptView)
        after = FILE.replace("value_9 = 9", "value_9 = 0").replace("value_50 = 50", "value_50 = 0")
        feed(view, call(ToolResult("done", Diff("a.py", FILE, after))))
        assert (await unfolded(pilot, view))[:7] == [
            " 7   value_7 = 7",
            " 8   value_8 = 8",
            " 9 - value_9 = 9",
            " 9 + value_9 = 0",
            "10   value_10 = 10",
            "11   value_11 = 11",
            "     36 unchanged lines",
        ]


async def test_a_click_anywhere_on_a_folded_call_unfolds_it_and_on_its_marker_opens_it() -> None:
    app = Sample()
    async with app.run_test(size=(60, 50)) as pilot:
        view = app.query_one(TranscriptView)
        feed(view, call(printed(NUMBERS)))
        await pilot.click(TranscriptView, offset=(8, 3))
        assert len(lines_below(view)) > 5
        assert not app.heard
        marker = next(at for at, row in enumerate(rows(view)) if "more lines above" in row)
        await pilot.click(TranscriptView, offset=(8, marker))
        assert [type(message) for message in app.heard] == [TranscriptView.Opened]


async def test_the_call_that_is_unfolded_comes_into_view() -> None:
    async with Sample().run_test(size=(60, 12)) as pilot:
        view = pilot.app.query_one(TranscriptView)
        words = MessageDone(Message("assistant", (Text("\n\n".join("word" for _ in range(20))),)))
        feed(view, [words, *call(printed("\n".join(f"line {at}" for at in range(8))))])
        await unfolded(pilot, view)
        assert rows(view)[-1].endswith("line 7")
        assert len(lines_below(view)) > 5


async def test_lines_that_are_nowhere_in_the_conversation_are_counted_too() -> None:
    text = "".join(f"line {at}\n" for at in range(50)) + "[… 99,900 lines, 1,234,567 characters left out …]\n"
    text += "".join(f"line {at}\n" for at in range(99_950, 100_000))
    display = CommandText("make", output=text, exit_code=0, lines=100_000)
    assert await below(ToolResult(text, display, summary="exit 0", meta={UNREAD: 99_000})) == [
        "… 99,996 more lines above",
        "line 99996",
        "line 99997",
        "line 99998",
        "line 99999",
        "The model did not read 99,000 lines in the middle.",
    ]
    hits = ToolResult("a.py:1", Prose("a.py:1"), summary="9,000 lines", kind="hits", meta={UNREAD: 7_000})
    assert await below(hits) == ["The model did not read 7,000 lines in the middle."]
    assert await below(ToolResult("12 lines", summary="12 lines", meta={UNREAD: 0})) == ["The model read a summary."]


WIDE = f"|{'|'.join(f'column {at}' for at in range(9))}|\n|{'--|' * 9}\n|{'some words|' * 9}\n"


async def test_space_opens_a_table_in_sight_that_is_too_wide_and_enter_the_answer() -> None:
    app = Sample()
    async with app.run_test(size=(60, 20)) as pilot:
        view = app.query_one(TranscriptView)
        answers = [MessageDone(Message("assistant", (Text(f"Words.\n\n{WIDE}\nMore."),)))]
        feed(view, [TurnStarted(user("go"), at=0.0), *answers, TurnEnded("done", at=60.0)])
        assert "more columns on the right" in "\n".join(rows(view))
        await pilot.press("up", "space")
        marker = next(at for at, row in enumerate(rows(view)) if "more columns" in row)
        await pilot.click(TranscriptView, offset=(8, marker))
        await pilot.pause()
        tables = [
            message.record.table
            for message in app.heard
            if isinstance(message, TranscriptView.Opened) and isinstance(message.record, ProseRecord)
        ]
        assert [len(table.columns) for table in tables if table] == [9, 9]
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(opened := app.heard[-1], TranscriptView.Opened)
        assert isinstance(opened.record, ProseRecord)
        assert opened.record.table is None, "the answer itself"
        heard = len(app.heard)
        await pilot.resize_terminal(140, 20)
        await pilot.pause()
        await pilot.press("space")
        await pilot.pause()
        assert len(app.heard) == heard, "the table has room"


async def test_a_stored_session_shows_the_same() -> None:
    events: list[Event] = [TurnStarted(user("go"), at=0.0), *call(printed(NUMBERS)), TurnEnded("done", at=1.0)]
    shown: list[list[str]] = []
    for replayed in (False, True):
        async with Sample().run_test(size=(60, 20)) as pilot:
            view = pilot.app.query_one(TranscriptView)
            if replayed:
                view.replay(events)
            else:
                feed(view, events)
            shown.append(rows(view))
    assert shown[0] == shown[1]
    assert any("296 more lines above" in row for row in shown[0])
