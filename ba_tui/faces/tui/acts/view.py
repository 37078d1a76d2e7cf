"""Commands about what is seen and typed: help, panels, inspector, Esc, Ctrl+C, the clipboard."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ba_tui.core.errors import UsageError
from ba_tui.faces.tui.transcript.records import Record, ToolRow
from ba_tui.faces.tui.turns import TWICE

if TYPE_CHECKING:
    from textual.widget import Widget

    from ba_tui.faces.tui.screens.chat import ChatScreen

BROWSING = "↑ ↓ scroll · j k choose · Enter opens · Space unfolds · y copies · Tab back"
BROWSED = 8.0
"""Seconds for which the line stays."""


def show_help(chat: ChatScreen, _: str) -> None:
    from ba_tui.faces.tui.screens.help import HelpScreen  # noqa: PLC0415 - most runs never show it

    chat.ba.push_screen(HelpScreen(chat))


def todos(chat: ChatScreen, _: str) -> None:
    chat.stage.toggle_todos()


def panel(chat: ChatScreen, _: str) -> None:
    if not chat.stage.toggle_side():
        chat.activity.hint("The side panel needs more columns. Ctrl+T shows the todos.")


def search_history(chat: ChatScreen, _: str) -> None:
    chat.composer.search_history()


def redraw(chat: ChatScreen, _: str) -> None:
    chat.ba.refresh(layout=True)


def page_up(chat: ChatScreen, _: str) -> None:
    chat.transcript.action_page_up()


def page_down(chat: ChatScreen, _: str) -> None:
    chat.transcript.action_page_down()


def to_start(chat: ChatScreen, _: str) -> None:
    chat.transcript.action_scroll_home()


def to_end(chat: ChatScreen, _: str) -> None:
    chat.transcript.action_scroll_end()


def suspend(chat: ChatScreen, _: str) -> None:
    chat.ba.action_suspend_process()


def say_keys(chat: ChatScreen, focused: Widget) -> None:
    """The sign before the input is dim while keys go elsewhere; that they go to the conversation a line says, and what
    they do there."""
    chat.composer.set_class(not chat.composer.prompt.has_focus, "-elsewhere")
    if focused is chat.transcript:
        chat.activity.hint(BROWSING, BROWSED)
    elif chat.activity.hinting(BROWSING):
        chat.activity.hint("")


async def escape(chat: ChatScreen, _: str) -> None:
    """The nearest layer goes: popup, question, inspector, turn, what stands in the input; else back to a prompt."""
    composer = chat.composer
    if composer.close_popup():
        return
    if chat.ask and chat.ask.waiting:
        # It answers its own Esc; this one was pressed elsewhere.
        chat.ask.focus()
    elif await chat.stage.close_inspector():
        composer.prompt.focus()
    elif chat.turns.cancel():
        return
    elif not composer.prompt.has_focus:
        composer.prompt.focus()
    elif composer.prompt.text:
        if chat.presses.again("escape"):
            composer.clear()
        else:
            chat.activity.hint("Esc again clears the input; Up brings it back.", TWICE)
    elif chat.session.started:
        if chat.presses.again("escape"):
            chat.call_command("rewind")
        else:
            chat.activity.hint("Esc again goes back to before a prompt.", TWICE)


async def stop_or_quit(chat: ChatScreen) -> None:
    """Ctrl+C with nothing selected: interrupt, else clear; twice within a second leaves."""
    prompt = chat.composer.prompt
    if chat.presses.again("ctrl+c"):
        await chat.ba.action_quit()
    elif chat.turns.cancel():
        chat.activity.hint("Interrupted. Ctrl+C again leaves.", TWICE)
    elif prompt.text:
        chat.composer.clear()
        chat.activity.hint("Cleared; Up brings it back. Ctrl+C again leaves.", TWICE)
    else:
        chat.activity.hint("Ctrl+C again leaves.", TWICE)


def copy_text(chat: ChatScreen, text: str, note: str = "") -> None:
    """To the clipboard; how it went is said where the person looks, ``note`` behind it."""
    chat.run_worker(partial(_copy, chat, text, note), group="clipboard", exit_on_error=False)


async def _copy(chat: ChatScreen, text: str, note: str) -> None:
    from ba_tui.faces.tui.clipboard import copy  # noqa: PLC0415 - not before the first paint

    told = f"{await copy(chat.ba, text)} {note}".rstrip()
    if chat.is_active:
        chat.activity.hint(told)
    else:
        chat.notify(told, markup=False)


async def inspector(chat: ChatScreen, _: str) -> None:
    """The newest call that the transcript holds, in full; pressed again, it goes."""
    if await chat.stage.close_inspector():
        chat.composer.prompt.focus()
        return
    here = chat.transcript.current() if chat.transcript.has_focus else None
    calls = (record for record in reversed(chat.transcript.records) if isinstance(record, ToolRow))
    record = here or next(calls, None)
    if record is None:
        raise UsageError("There is no tool call to open yet.")
    await inspect(chat, record)


async def inspect(chat: ChatScreen, record: Record) -> None:
    """Beside the conversation when there is room, else over all of it."""
    from ba_tui.faces.tui.inspected import inspected  # noqa: PLC0415 - not before the first paint
    from ba_tui.faces.tui.inspector.pane import InspectorScreen  # noqa: PLC0415 - see above

    conversation = chat.session.conversation
    value = inspected(record, conversation.inventory.results if conversation else None)
    if chat.stage.has_room:
        await chat.stage.inspect(value)
    else:
        chat.ba.push_screen(InspectorScreen(value))
