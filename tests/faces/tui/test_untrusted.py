"""No widget paints a control of foreign text, wherever that text comes in; approvals show what can't be seen."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from ba_tui.core.events import Retrying, ToolFinished, ToolInputDelta, ToolStarted, TurnStarted
from ba_tui.core.messages import ToolUse, user
from ba_tui.core.questions import Question
from ba_tui.core.results import Diff, StateChange, Todo, ToolResult
from ba_tui.faces.tui.widgets.ask import AskPanel
from ba_tui.faces.tui.widgets.completion import Completion, CompletionItem
from ba_tui.faces.tui.widgets.composer import QueueLines
from ba_tui.faces.tui.widgets.main_area import TodoList
from ba_tui.faces.tui.widgets.notices import Activity, StatusLine

CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")
TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufff9-\ufffb]")
HIDDEN = re.compile("[\u200b\u2060-\u2064\U000e0000-\U000e0fff]")
PAYLOADS = (
    "\x1b]0;t\x07\x1b[31mred\x1b[0m\x9b2J\x9d52;c;x\x9c\x90q\x9c\x08\x7f\r\x05",
    "a\x1b]8;;http://evil\x1b\\b\x1b_G\x1b\\ [bold]c[/bold] [/]",
    "x\u202ey\u2066z\u200b\u200b\U000e0061\U000e0101\ufff9\u2028",
)


class Everything(App[None]):
    def compose(self) -> ComposeResult:
        yield TodoList()
        yield QueueLines()
        yield Completion()
        yield Activity()
        yield StatusLine()
        yield AskPanel()


def screen(app: Everything) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


def check(text: str, payload: str) -> None:
    for kind in (CONTROLS, TURNING, HIDDEN):
        found = kind.search(text)
        assert found is None, (payload, text[max(0, found.start() - 60) : found.end() + 20] if found else "")


async def show(pilot: Pilot[None], payload: str) -> str:
    """The screens with the payload in every widget but the panel, while the activity shows each of its words."""
    app = pilot.app
    assert isinstance(app, Everything)
    seen: list[str] = []
    changes = StateChange(todos=(Todo(payload, "pending"),))
    app.query_one(TodoList).apply(ToolFinished("c", ToolResult("", changes=changes)))
    app.query_one(QueueLines).show((payload,), paused=False)
    app.query_one(Completion).offer([CompletionItem(payload, payload, payload)])
    app.query_one(StatusLine).show(model=f"x/{payload}")
    activity = app.query_one(Activity)
    for event in (
        TurnStarted(user("x")),
        ToolInputDelta("c", payload, 3),
        ToolStarted(ToolUse("c", payload, {})),
        Retrying(payload, 1, 1, 2),
    ):
        activity.apply(event)
        activity._draw()
        seen.append(str(activity.render()))
    activity.hint(payload)
    await pilot.pause()
    seen.append(screen(app))
    return "\n".join(seen)


async def ask(pilot: Pilot[None], payload: str) -> str:
    """The panel with the payload in every part of a question."""
    app = pilot.app
    assert isinstance(app, Everything)
    panel = app.query_one(AskPanel)
    questions = (
        {"args": {"command": payload, payload: payload}, "tool": "shell"},
        {"args": {"path": payload}, "tool": "edit_file", "preview": Diff(payload, f"old {payload}", f"new {payload}")},
        {"args": {"more": [payload]}, "tool": payload, "warnings": (payload,), "rewritten": payload},
    )
    seen: list[str] = []
    for number, parts in enumerate(questions):
        question = Question("permission", payload, reason=payload, rule=f"shell({payload})", **parts)  # pyright: ignore[reportArgumentType]
        panel.ask(f"{payload}{number}", question, payload)
        await pilot.pause()
        await app.workers.wait_for_complete()
        await pilot.pause()
        seen.append(screen(app))
        panel.withdraw(f"{payload}{number}")
    return "\n".join(seen)


async def over(payloads: Iterable[str]) -> list[tuple[str, str]]:
    app = Everything()
    async with app.run_test(size=(160, 60)) as pilot:
        return [(payload, await show(pilot, payload) + await ask(pilot, payload)) for payload in payloads]


async def test_no_widget_paints_a_control() -> None:
    for payload, text in await over(PAYLOADS):
        check(text, payload)
        if "[bold]" in payload:
            assert "[bold]c[/bold] [/]" in text
        if "\u202e" in payload:
            assert "U+202E" in text
            assert "U+E0061" in text


@pytest.mark.outside
async def test_no_widget_paints_a_control_of_others(outside_data: Path) -> None:
    lines = (outside_data / "escape_payloads.jsonl").read_text("utf-8").splitlines()
    payloads = [bytes.fromhex(json.loads(line)["payload_hex"]).decode() for line in lines]
    # Some swallow what follows them, so not all stand in one text; and marks above letters are cut to a few.
    groups = (" ".join(payloads[start::4]) for start in range(4))
    for payload, text in await over(groups):
        check(text, payload)
