"""What begins with a sign other than a slash: commands of the person's own, and words to remember."""

from __future__ import annotations

from ba_tui.core.events import TurnEnded
from ba_tui.faces.tui.acts.port import Actions, Room
from ba_tui.faces.tui.commands import SlashCommand

WAYS_OUT = "Esc stops the command · Ctrl+B moves it to the background"
NO_MEMORY = "ba has no memory yet. To send this as a prompt, type a space before the #."
READING = 8.0
"""Seconds for which that stays."""


async def shell(chat: Actions, words: str) -> None:
    """Run a command of the person's own beside whatever runs; a second ``!`` before it keeps it private."""
    private = words.startswith("!")
    await chat.turns.opened.wait()
    turn = chat.session.run(words.removeprefix("!").strip(), private=private)
    chat.turns.running.add(turn)
    chat.transcript.action_scroll_end()
    chat.activity.note(WAYS_OUT)
    async for event in turn:
        if not isinstance(event, TurnEnded):
            chat.transcript.apply(event)
    if not chat.turns.running.newest:
        chat.activity.note("")
    chat.show_facts()


def remember(chat: Actions, words: str) -> None:
    chat.composer.put_back(words if words.startswith("#") else f"# {words}")
    chat.activity.hint(NO_MEMORY, READING)


SHELL = Room(
    {
        SlashCommand("shell", "Run a command yourself; the same as !command", "<command>"): shell,
        SlashCommand("remember", "Keep a note (not there yet)", slash=False): remember,
    }
)
