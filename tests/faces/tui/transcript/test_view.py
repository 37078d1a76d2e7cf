"""The view in a running app: events in, rows out, keys and mouse."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from textual import on
from textual.app import App, ComposeResult
from textual.geometry import Offset
from textual.message import Message as TextualMessage
from textual.scrollbar import ScrollUp
from textual.selection import Selection

from ba_tui.core.events import (
    Event,
    MessageDone,
    Notice,
    Retrying,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import Message, Text, ToolUse, user
from ba_tui.core.results import CommandText, Diff, Table, ToolResult
from ba_tui.faces.tui.transcript.records import ProseRecord, ToolRow
from ba_tui.faces.tui.transcript.view import TranscriptView

CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
CALL = ToolUse("1", "shell", {"command": "make test"})


class Sample(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.heard: list[TextualMessage] = []

    def compose(self) -> ComposeResult:
        yield TranscriptView()

    def on_mount(self) -> None:
        self.query_one(TranscriptView).focus()

    @on(TranscriptView.Opened)
    @on(TranscriptView.CopyRequested)
    @on(TranscriptView.NewBelow)
    def hear(self, message: TextualMessage) -> None:
        self.heard.append(message)


def rows(view: TranscriptView) -> list[str]:
    return [view.render_line(y).text.rstrip() for y in range(view.size.height)]


def feed(view: TranscriptView, events: Sequence[Event]) -> None:
    for event in events:
        view.apply(event)
    view.flush()


def turns(count: int, start: int = 0) -> list[Event]:
    events: list[Event] = []
    for at in range(start, start + count):
        answer = Message("assistant", (Text(f"Answer *{at}*.\n\n- one\n- two\n"),))
        events += [TurnStarted(user(f"question {at}"), at=0.0), MessageDone(answer), TurnEnded("done", at=1.0)]
    return events


async def test_a_turn_as_it_is_seen() -> None:
    async with Sample().run_test(size=(60, 12)) as pilot:
        view = pilot.app.query_one(TranscriptView)
        view.clock = lambda: 15.0
        result = ToolResult("ok", CommandText("make test", output="ok", exit_code=0), summary="exit 0")
        feed(view, [TurnStarted(user("run [bold]it[/]"), at=0.0), MessageDone(Message("assistant", (CALL,)))])
        feed(view, [ToolStarted(CALL, "make test", at=3.0), ToolProgress("1", "compiling\nlinking")])
        assert rows(view)[:3] == [
            "▎❯ run [bold]it[/]",
            "",
            " ◒ shell       make test                    linking     12s",
        ]
        feed(view, [ToolFinished("1", result, 12.3), TextDelta("All **well**."), TurnEnded("done", at=4.0)])
        assert rows(view)[2:8] == [
            " ✓ shell       make test                     exit 0     12s",
            "   │ ok",
            "",
            "   All well.",
            "",
            "   4.0s · 1 tool call",
        ]


async def test_the_end_of_a_turn_is_shown_at_once_however_much_comes_before() -> None:
    async with Sample().run_test(size=(60, 12)) as pilot:
        view = pilot.app.query_one(TranscriptView)
        view.clock = lambda: 15.0
        feed(view, [TurnStarted(user("go"), at=0.0)])
        await pilot.pause()
        feed(view, [TextDelta("word " * 100_000)])
        for event in (TextDelta("word "), TurnEnded("cancelled", at=4.0)):
            view.apply(event)
        done = asyncio.Event()
        view.call_later(done.set)
        await done.wait()
        assert any("Interrupted" in row for row in rows(view))


async def test_it_stays_at_the_end_only_while_it_is_there() -> None:
    app = Sample()
    async with app.run_test(size=(60, 10)) as pilot:
        view = app.query_one(TranscriptView)
        feed(view, turns(10))
        assert rows(view)[-1] == "   • two"
        await pilot.press("pageup")
        before = rows(view)[:-1]
        feed(view, turns(1, start=10))
        assert rows(view)[:-1] == before
        assert rows(view)[-1].endswith(" 2 new ↓")
        await pilot.press("end")
        assert rows(view)[-1] == "   • two"
        counts = [message.count for message in app.heard if isinstance(message, TranscriptView.NewBelow)]
        assert counts == [2, 0]


async def test_older_history_comes_in_without_a_jump() -> None:
    app = Sample()
    async with app.run_test(size=(60, 10)) as pilot:
        view = app.query_one(TranscriptView)
        view.replay(turns(5, start=95))
        await pilot.press("pageup")
        before = rows(view)
        view.prepend(turns(95))
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert rows(view) == before
        assert len(view.records) == 200
        await pilot.press("home")
        assert rows(view)[0] == "▎❯ question 0"


async def test_a_long_stored_conversation_is_all_there() -> None:
    app = Sample()
    async with app.run_test(size=(60, 10)) as pilot:
        view = app.query_one(TranscriptView)
        view.replay(turns(400))
        assert rows(view)[-1] == "   • two"
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert len(view.records) == 800
        assert rows(view)[-1] == "   • two"


async def test_keys_move_open_copy_and_expand() -> None:
    app = Sample()
    async with app.run_test(size=(60, 50)) as pilot:
        view = app.query_one(TranscriptView)
        output = "\n".join(f"line {at}" for at in range(40))
        feed(view, turns(1))
        feed(
            view,
            [
                ToolStarted(CALL, "make test"),
                ToolFinished("1", ToolResult("", CommandText("make", output=output)), 1.0),
            ],
        )
        feed(view, [Notice("careful", "warning")])
        await pilot.press("up", "up", "space")
        assert "line 39" in "\n".join(rows(view))
        await pilot.press("space", "enter", "up", "ctrl+y")
        await pilot.pause()
        opened, copied = app.heard
        assert isinstance(opened, TranscriptView.Opened)
        assert isinstance(opened.record, ToolRow)
        assert isinstance(copied, TranscriptView.CopyRequested)
        assert copied.text == "Answer *0*.\n\n- one\n- two\n"
        at = next(y for y, row in enumerate(rows(view)) if "Answer" in row)
        assert all(row.startswith("▎") for row in rows(view)[at : at + 4]), "the bar goes along all of the answer"


async def test_every_kind_of_result_has_a_preview() -> None:
    app = Sample()
    results = [
        ToolResult("x", Diff("a.py", "one\ntwo\n", "one\n2\n")),
        ToolResult("x", Table(("name", "count"), (("a", 1), ("b", 22)))),
        ToolResult("plain words"),
    ]
    wanted = ["2 + 2", "name │ count", "plain words"]
    for result, words in zip(results, wanted, strict=True):
        async with app.run_test(size=(60, 20)):
            view = app.query_one(TranscriptView)
            feed(view, [ToolStarted(CALL, "x"), ToolFinished("1", result)])
            assert any(words in row for row in rows(view))
        app = Sample()


async def test_search_finds_what_is_far_above() -> None:
    app = Sample()
    async with app.run_test(size=(70, 12)) as pilot:
        view = app.query_one(TranscriptView)
        feed(view, turns(60))
        await pilot.press("ctrl+f", *"question 7", "enter")
        assert any("question 7" in row for row in rows(view))
        assert "1/1" in rows(view)[-1]
        await pilot.press("escape")
        assert view.search is None
        assert any("question 7" in row for row in rows(view))


async def test_search_steps_through_all_hits() -> None:
    app = Sample()
    async with app.run_test(size=(70, 12)) as pilot:
        view = app.query_one(TranscriptView)
        feed(view, turns(30))
        await pilot.press("ctrl+f", *"question 2")
        assert "11/11" in rows(view)[-1]
        await pilot.press("enter", "enter", "up")
        assert "8/11" in rows(view)[-1]
        await pilot.press("down", "backspace", "backspace")
        assert "Find: question" in rows(view)[-1]
        await pilot.press("ctrl+u", *"two")
        assert rows(view)[-2] == "▎  • two", "the bar covers no hit"
        await pilot.press("ctrl+u", *"nowhere to be found")
        assert "not found" in rows(view)[-1]


async def test_resize() -> None:
    app = Sample()
    async with app.run_test(size=(60, 12)) as pilot:
        view = app.query_one(TranscriptView)
        feed(view, [*turns(3), ToolStarted(CALL, "make test"), ToolFinished("1", ToolResult(""))])
        await pilot.resize_terminal(30, 8)
        await pilot.pause()
        assert all(len(row) <= 30 for row in rows(view))
        assert "✓ shell" in rows(view)[-1]


async def test_consoles_that_have_few_characters_are_sent_plain_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "linux")
    app = Sample()
    async with app.run_test(size=(60, 12)) as pilot:
        view = app.query_one(TranscriptView)
        feed(view, [*turns(3), ToolStarted(CALL, "make test"), ToolFinished("1", ToolResult(""))])
        await pilot.pause()
        assert "+ shell" in rows(view)[-1]
        assert all(row.isascii() for row in rows(view))


async def test_a_countdown_is_gone_when_its_turn_has_ended() -> None:
    app = Sample()
    async with app.run_test(size=(60, 12)) as pilot:
        view = app.query_one(TranscriptView)
        view.clock = lambda: 101.0
        feed(view, [TurnStarted(user("x")), Retrying("The model is overloaded.", 5.0, 1, 3, at=100.0)])
        assert any("Retrying in 4 s" in row for row in rows(view))
        feed(view, [TurnEnded("cancelled")])
        await pilot.pause()
        assert not any("overloaded" in row for row in rows(view))


async def test_a_wait_for_a_rate_limit_is_no_failed_attempt() -> None:
    app = Sample()
    async with app.run_test(size=(60, 12)):
        feed(app.query_one(TranscriptView), [TurnStarted(user("x")), Retrying("mine is limited.", 21.0, 0, 0)])
        assert any("Next request in 2" in row for row in rows(app.query_one(TranscriptView)))


async def test_the_mouse_selects_source_text() -> None:
    app = Sample()
    async with app.run_test(size=(40, 12)) as pilot:
        view = app.query_one(TranscriptView)
        feed(view, [MessageDone(Message("assistant", (Text("Some words that are wrapped at forty cells or so."),)))])
        await pilot.pause()
        await pilot.mouse_down(TranscriptView, offset=Offset(8, 0))
        await pilot.hover(TranscriptView, offset=Offset(8, 1))
        await pilot.mouse_up(TranscriptView, offset=Offset(8, 1))
        await pilot.pause()
        text = app.screen.get_selected_text() or ""
        assert text.startswith("words that are wrapped")
        assert "\n" not in text
        assert view.get_selection(Selection(None, None)) == ("Some words that are wrapped at forty cells or so.", "\n")


async def test_clear_forgets_everything() -> None:
    async with Sample().run_test(size=(40, 8)) as pilot:
        view = pilot.app.query_one(TranscriptView)
        feed(view, turns(9))
        view.clear()
        await pilot.press("up", "down", "shift+up", "shift+down", "pageup", "pagedown", "enter", "ctrl+y", "space")
        await pilot.press("end", "home")
        await pilot.press("ctrl+f", "x", "enter", "down", "escape")
        assert set(rows(view)) == {""}
        feed(view, turns(1))
        assert rows(view)[0] == "▎❯ question 0"
        assert isinstance(view.records[1], ProseRecord)


async def test_a_click_expands_a_row() -> None:
    async with Sample().run_test(size=(40, 12)) as pilot:
        view = pilot.app.query_one(TranscriptView)
        feed(view, [ToolStarted(CALL, "x"), ToolFinished("1", ToolResult("the result"))])
        await pilot.click(TranscriptView, offset=(5, 0))
        assert any("the result" in row for row in rows(view))


async def test_wheel_bar_and_jumps_agree_with_the_rows() -> None:
    app = Sample()
    async with app.run_test(size=(60, 10)) as pilot:
        view = app.query_one(TranscriptView)
        feed(view, turns(200))
        view.scroll_to(y=300, animate=False, immediate=True)
        middle = rows(view)
        view.scroll_to(y=view.scroll_y + 3, animate=False, immediate=True)
        assert rows(view)[:7] == middle[3:]
        view.post_message(ScrollUp())
        await pilot.pause()
        assert rows(view)[5:] == middle[:5]
        view.scroll_to(y=0, animate=False, immediate=True)
        assert rows(view)[0] == "▎❯ question 0"
        view.scroll_to(y=1_000_000, animate=False, immediate=True)
        assert rows(view)[-1] == "   • two"
        assert view.scroll_y == view.max_scroll_y


async def test_a_huge_prompt_shows_its_start_and_copies_whole() -> None:
    app = Sample()
    async with app.run_test(size=(60, 20)) as pilot:
        view = app.query_one(TranscriptView)
        pasted = "".join(f"line {at}\n" for at in range(200_000))
        feed(view, [TurnStarted(user(pasted))])
        assert rows(view)[0] == "▎❯ line 0"
        assert rows(view)[12].startswith("▎  … 199,98")
        await pilot.press("ctrl+y")
        await pilot.pause()
        (copied,) = app.heard
        assert isinstance(copied, TranscriptView.CopyRequested)
        assert copied.text == pasted


def hostile(payload: str) -> list[Event]:
    call = ToolUse("1", payload or "x", {"command": payload})
    shell = ToolResult(payload, CommandText(payload, output=payload), summary=payload)
    return [
        TurnStarted(user(f"see {payload}")),
        ThinkingDelta(payload[: len(payload) // 2]),
        ThinkingDelta(payload[len(payload) // 2 :]),
        TextDelta(f"words {payload[: len(payload) // 2]}"),
        TextDelta(f"{payload[len(payload) // 2 :]} `{payload}`\n\n```{payload}\n{payload}\n```\n| {payload} |\n|--|\n"),
        ToolStarted(call, payload),
        ToolProgress("1", payload),
        ToolFinished("1", shell),
        Notice(payload, "error", payload),
    ]


@pytest.mark.outside
async def test_no_payload_reaches_a_segment(outside_data: Path) -> None:
    app = Sample()
    async with app.run_test(size=(80, 30)) as pilot:
        view = app.query_one(TranscriptView)
        for line in (outside_data / "escape_payloads.jsonl").read_text("utf-8").splitlines():
            payload = bytes.fromhex(json.loads(line)["payload_hex"]).decode()
            view.clear()
            events = hostile(payload)
            feed(view, events[:7])
            for row in rows(view):
                assert not CONTROLS.search(row), line
            feed(view, events[7:])
            view.action_record(-1)
            view.action_record(-1)
            view.action_expand()
            await pilot.pause()
            for row in rows(view):
                assert not CONTROLS.search(row), line
            if payload == "[bold red]x[/bold red] [/]":
                assert any(payload in row for row in rows(view))


async def test_the_keys_begin_where_the_person_reads() -> None:
    async with Sample().run_test(size=(60, 12)) as pilot:
        view = pilot.app.query_one(TranscriptView)
        feed(view, turns(30))
        view.action_scroll_home()
        await pilot.press("up")
        await pilot.pause()
        assert view.scroll_y < 12, "the first key does not lead away from what is read"
        assert any(row.startswith("▎") and "❯" not in row for row in rows(view)), "and shows what the next work on"
