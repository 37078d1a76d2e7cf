"""Commands about what is seen and typed: help, panels, inspector, Esc, Ctrl+C."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.brain import Inventory
from ba_tui.core.ports.datasets import Datasets
from ba_tui.faces.tui.acts.port import Actions, PaneActions, Room
from ba_tui.faces.tui.commands import SlashCommand
from ba_tui.faces.tui.transcript.records import MemoryNote, ProseRecord, Record, ToolRow
from ba_tui.faces.tui.turns import TWICE

if TYPE_CHECKING:
    from textual.widget import Widget


BROWSING = "↑ ↓ select · Enter open · Space unfold · Ctrl+Y copy · Ctrl+F search"
BROWSED = 8.0
"""Seconds for which the line stays."""


def show_help(chat: Actions, _: str) -> None:
    from ba_tui.faces.tui.screens.help import HelpScreen  # noqa: PLC0415 - most runs never show it

    chat.ba.push_screen(
        HelpScreen(
            chat.commands,
            {"In the input": chat.composer.prompt, "In the conversation": chat.transcript},
        )
    )


def notices(chat: Actions, _: str) -> None:
    from ba_tui.faces.tui.screens.notices import NoticeList  # noqa: PLC0415 - most runs never show it

    chat.ba.push_screen(NoticeList(chat.notices.kept))


def todos(chat: PaneActions, _: str) -> None:
    chat.main_area.toggle_todos()


def panel(chat: PaneActions, _: str) -> None:
    if chat.main_area.toggle_side():
        return
    if chat.main_area.has_room:
        chat.activity.hint("The side panel has nothing to show yet.")
    else:
        chat.activity.hint("The side panel needs a wider window. Ctrl+T shows the todos.")


def search_history(chat: PaneActions, _: str) -> None:
    chat.composer.search_history()


def redraw(chat: Actions, _: str) -> None:
    chat.ba.refresh(layout=True)


def page_up(chat: PaneActions, _: str) -> None:
    chat.transcript.action_page_up()


def page_down(chat: PaneActions, _: str) -> None:
    chat.transcript.action_page_down()


def to_start(chat: PaneActions, _: str) -> None:
    chat.transcript.action_scroll_home()


def to_end(chat: PaneActions, _: str) -> None:
    chat.transcript.action_scroll_end()


def suspend(chat: Actions, _: str) -> None:
    chat.ba.action_suspend_process()


def say_keys(chat: PaneActions, focused: Widget) -> None:
    """The sign before the input is dim while keys go elsewhere; that they go to the conversation a line says, and what
    they do there."""
    chat.composer.set_class(not chat.composer.prompt.has_focus, "-elsewhere")
    if focused is chat.transcript:
        chat.activity.hint(BROWSING, BROWSED)
    elif chat.activity.hinting(BROWSING):
        chat.activity.hint("")


async def escape(chat: Actions, _: str) -> None:
    """The nearest layer goes: popup, question, inspector, turn, what stands in the input; else back to a prompt."""
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
    """Ctrl+C with nothing selected: interrupt, else clear; twice within a second leaves."""
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
    """The newest call that the transcript holds, in full; pressed again, it goes."""
    if await chat.main_area.close_inspector():
        chat.composer.prompt.focus()
        return
    here = chat.transcript.current() if chat.transcript.has_focus else None
    calls = (record for record in reversed(chat.transcript.records) if isinstance(record, ToolRow))
    record = here or next(calls, None)
    if record is None:
        raise UsageError("No tool was called yet.")
    await inspect(chat, record)


async def inspect(chat: Actions, record: Record) -> None:
    """Beside the conversation when there is room, else over all of it."""
    if isinstance(record, ProseRecord) and record.grounded and record.figure is not None:
        from ba_tui.faces.tui.acts.figures import open_figure  # noqa: PLC0415 - only for figures

        await open_figure(chat, record.grounded, record.figure)
        return
    if isinstance(record, ToolRow) and record.agents:
        from ba_tui.faces.tui.acts.agents import open_agents  # noqa: PLC0415 - only for agents

        open_agents(chat, record.agents)
        return
    note = record if isinstance(record, MemoryNote) else record.changed if isinstance(record, ToolRow) else None
    if note and note.memories:
        from ba_tui.faces.tui.acts.memory import open_note  # noqa: PLC0415 - only for memories

        open_note(chat, note)
        return
    from ba_tui.faces.tui.inspected import inspected  # noqa: PLC0415 - not before the first paint
    from ba_tui.faces.tui.inspector.pane import InspectorScreen  # noqa: PLC0415 - see above

    conversation = chat.session.conversation
    has = conversation.inventory if conversation else Inventory()
    value = inspected(record, has.results, has.feature(Datasets))
    if chat.main_area.has_room:
        await chat.main_area.inspect(value)
    else:
        chat.ba.push_screen(InspectorScreen(value))


HELP = Room({SlashCommand("help", "Keys and commands", keys="f1"): show_help})
PANELS = Room(
    {
        SlashCommand("todos", "Show or hide todos and plan steps", keys="ctrl+t"): todos,
        SlashCommand("panel", "Show or hide the side panel", keys="f3"): panel,
        SlashCommand(
            "inspector", "Open the newest tool result in full", aliases=("details",), keys="ctrl+o"
        ): inspector,
        SlashCommand("notices", "Read notices again"): notices,
        SlashCommand("history", "Search earlier prompts", keys="ctrl+r"): search_history,
    }
)
SCREEN = Room(
    {
        SlashCommand("redraw", "Draw the screen again", keys="ctrl+l"): redraw,
        SlashCommand(
            "interrupt", "Close or interrupt; twice: clear the input, or rewind", keys="escape", slash=False
        ): escape,
        SlashCommand("earlier", "Scroll the conversation up", keys="pageup", slash=False): page_up,
        SlashCommand("later", "Scroll the conversation down", keys="pagedown", slash=False): page_down,
        SlashCommand("start", "Go to the first line of the conversation", keys="ctrl+home", slash=False): to_start,
        SlashCommand("end", "Go to the newest line of the conversation", keys="ctrl+end", slash=False): to_end,
        SlashCommand("suspend", "Suspend ba", keys="ctrl+z", slash=False): suspend,
    }
)
