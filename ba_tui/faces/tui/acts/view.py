"""Commands on the view: panels, inspector, Esc, Ctrl+C, Ctrl+B; and following a session of another process."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.events import Rewound
from ba_tui.core.ports.brain import Inventory
from ba_tui.core.ports.datasets import Datasets
from ba_tui.faces.tui.acts.port import Actions
from ba_tui.faces.tui.session import TWICE
from ba_tui.faces.tui.transcript.records import Record, ToolRow

if TYPE_CHECKING:
    from textual.widget import Widget


BROWSING = "↑ ↓ select · Enter open · Space unfold · Ctrl+Y copy · Ctrl+F search"
BROWSED = 8.0
"""Seconds for which the line is shown."""


def todos(chat: Actions, _: str) -> None:
    chat.main_area.toggle_todos()


def panel(chat: Actions, _: str) -> None:
    if chat.main_area.toggle_side():
        return
    if chat.main_area.has_room:
        chat.activity.hint("The side panel has nothing to show yet.")
    else:
        chat.activity.hint("The side panel needs a wider window. Ctrl+T shows the todos.")


def search_history(chat: Actions, _: str) -> None:
    chat.composer.search_history()


def redraw(chat: Actions, _: str) -> None:
    chat.ba.refresh(layout=True)


def page_up(chat: Actions, _: str) -> None:
    chat.transcript.action_page_up()


def page_down(chat: Actions, _: str) -> None:
    chat.transcript.action_page_down()


def to_start(chat: Actions, _: str) -> None:
    chat.transcript.action_scroll_home()


def to_end(chat: Actions, _: str) -> None:
    chat.transcript.action_scroll_end()


def suspend(chat: Actions, _: str) -> None:
    chat.ba.action_suspend_process()


def say_keys(chat: Actions, focused: Widget) -> None:
    """Dim the sign before the input while another widget has the focus, and explain the keys of the conversation."""
    chat.composer.set_class(not chat.composer.prompt.has_focus, "-elsewhere")
    if focused is chat.transcript:
        chat.activity.hint(BROWSING, BROWSED)
    elif chat.activity.hinting(BROWSING):
        chat.activity.hint("")


async def escape(chat: Actions, _: str) -> None:
    """Close the nearest layer: popup, question, inspector, turn, text in the input; otherwise offer to rewind."""
    composer = chat.composer
    if composer.close_popup():
        return
    asked = chat.ask and chat.ask.waiting
    if chat.ask and asked and not composer.text:
        # The question answers its own Esc; this one was pressed elsewhere.
        chat.ask.focus()
    elif await chat.main_area.close_inspector():
        composer.prompt.focus()
    elif not asked and chat.turns.cancel():
        return
    elif any(line.display for line in composer.query("#proposal")):
        chat.call_command("drop-memory")
    elif not composer.prompt.has_focus:
        composer.prompt.focus()
    elif composer.prompt.text:
        if chat.presses.again("escape"):
            composer.clear()
        else:
            chat.activity.hint("Press Esc again to clear the input (Up restores it).", TWICE)
    elif chat.session.started:
        if chat.presses.again("escape"):
            chat.call_command("rewind")
        else:
            chat.activity.hint("Press Esc again to rewind.", TWICE)


async def stop_or_quit(chat: Actions) -> None:
    """Ctrl+C without a selection: interrupt the turn, or clear the input; a second press within a second quits."""
    prompt = chat.composer.prompt
    if chat.presses.again("ctrl+c"):
        await chat.ba.action_leave()
    elif chat.turns.cancel():
        chat.activity.hint("Interrupted. Ctrl+C again quits.", TWICE)
    elif prompt.text:
        chat.composer.clear()
        chat.activity.hint("Cleared (Up restores). Ctrl+C again quits.", TWICE)
    else:
        chat.activity.hint("Ctrl+C again quits.", TWICE)


async def inspector(chat: Actions, _: str) -> None:
    """Show the newest tool call in full; pressed again, close it."""
    if await chat.main_area.close_inspector():
        chat.composer.prompt.focus()
        return
    here = chat.transcript.current() if chat.transcript.has_focus else None
    calls = (record for record in reversed(chat.transcript.records) if isinstance(record, ToolRow))
    record = here or next(calls, None)
    if record is None:
        raise UsageError("No tool was called yet.")
    await inspect(chat, record)


def open_waiting(chat: Actions) -> bool:
    """Enter on the empty input: let a feature open its news. Returns whether one did."""
    return any(resolve_name(name)(chat, None) for name in chat.parts.openers)


async def inspect(chat: Actions, record: Record) -> None:
    """Show a record in full: beside the conversation if there is room, otherwise on a screen of its own."""
    for name in chat.parts.openers:
        opened: bool | Awaitable[None] = resolve_name(name)(chat, record)
        if not isinstance(opened, bool):
            await opened
        if opened:
            return
    from ba_tui.faces.tui.inspector.model import inspected  # noqa: PLC0415 - not before the first paint
    from ba_tui.faces.tui.inspector.pane import InspectorScreen  # noqa: PLC0415 - see above

    conversation = chat.session.conversation
    has = conversation.inventory if conversation else Inventory()
    value = inspected(record, has.results, has.feature(Datasets))
    if chat.main_area.has_room:
        await chat.main_area.inspect(value)
    else:
        chat.ba.push_screen(InspectorScreen(value))


log = logging.getLogger(__name__)


async def watch(chat: Actions) -> None:
    """Show the events of a session that another process writes, until another session is opened."""
    for name in chat.parts.opened:
        resolve_name(name)(chat)
    _, conversation = chat.session.live
    if not conversation.read_only:
        return
    known = len(await conversation.history())
    try:
        async for event in conversation.follow():
            known -= 1
            if known >= 0:
                continue
            if isinstance(event, Rewound):
                await chat.show_session()
                return
            conversation.transcript.apply(event)
            for pane in (chat.transcript, chat.main_area, chat.status):
                pane.apply(event)
    except StorageError as error:
        log.info("a session is followed no longer: %s", error)


def background(chat: Actions, _: str) -> None:
    if not detach(chat):
        raise UsageError("No command is running.")


def detach(chat: Actions) -> bool:
    """Move the newest command that a call waits for to the background; False when there is none."""
    conversation = chat.session.conversation
    jobs = conversation.inventory.jobs if conversation and chat.turns.running.newest else None
    if jobs is None:
        return False
    for record in reversed(chat.transcript.records):
        if isinstance(record, ToolRow) and record.state == "running" and jobs.detach(record.call_id):
            chat.activity.hint("Moved to the background. /shells lists background commands.")
            return True
    return False
