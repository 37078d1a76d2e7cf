"""The command that compresses the conversation, and takes that back."""

from __future__ import annotations

from ba_tui.core import compacting
from ba_tui.core.errors import UsageError
from ba_tui.faces.tui.acts.port import Room, SessionActions
from ba_tui.faces.tui.commands import SlashCommand

UNDO = "undo"


async def compact(chat: SessionActions, argument: str) -> None:
    """``undo``, or what to pay attention to."""
    _, conversation = chat.session.live
    if not chat.session.started:
        raise UsageError("Nothing to compress yet.")
    if argument == UNDO:
        chat.turns.watch(compacting.undo_compact(conversation))
    else:
        chat.turns.watch(compacting.compact(conversation, argument))
    chat.activity.doing("Undoing the compression" if argument == UNDO else "Compressing the conversation")


COMPACTION = Room(
    {
        SlashCommand(
            "compact", "Compress the conversation, or undo it", "[focus|undo]", ("compress", "summarize")
        ): compact
    }
)
