"""Commands and queries that the person runs themselves."""

from __future__ import annotations

from collections.abc import Callable

from ba_tui.core.events import TurnEnded
from ba_tui.core.own_shell import OwnShell
from ba_tui.core.turn import Turn
from ba_tui.faces.tui.acts import writing
from ba_tui.faces.tui.acts.port import Actions, Room
from ba_tui.faces.tui.commands import SlashCommand

QUERY_WAY_OUT = "Esc stops the query"
WAYS_OUT = "Esc stops the command · Ctrl+B moves it to the background"


async def shell(chat: Actions, words: str) -> None:
    """Run a command of the person's own beside whatever runs; a second ``!`` before it keeps it private."""
    private = words.startswith("!")
    if not await _opened(chat, f"!{words}"):
        return
    command = words.removeprefix("!").strip()
    await _followed(chat, lambda own: own.run(command, private=private), WAYS_OUT)


async def sql(chat: Actions, words: str) -> None:
    """Query the session's data beside whatever runs; the model reads the result with the next message."""
    if await _opened(chat, f"/sql {words}"):
        await _followed(chat, lambda own: own.query(words), QUERY_WAY_OUT)


async def _opened(chat: Actions, text: str) -> bool:
    """Wait for the session. False when ba asked about the folder meanwhile: then ``text`` is in the input again."""
    early = not chat.turns.ready
    await chat.turns.opened.wait()
    if early and chat.turns.questioned:
        writing.return_early(chat, text)
        return False
    return True


async def _followed(chat: Actions, begin: Callable[[OwnShell], Turn], ways_out: str) -> None:
    turn = chat.session.run(begin)
    chat.turns.running.add(turn)
    chat.main_area.leave_start()
    chat.transcript.action_scroll_end()
    chat.activity.note(ways_out)
    async for event in turn:
        if not isinstance(event, TurnEnded):
            chat.transcript.apply(event)
    if not chat.turns.running.newest:
        chat.activity.note("")
    chat.show_facts()


SHELL = Room(
    {
        SlashCommand("shell", "Run a command yourself; the same as !command", "<command>"): shell,
        SlashCommand("sql", "Query data yourself, on files or @SOURCE; the model reads it", "<SELECT …>"): sql,
    }
)
