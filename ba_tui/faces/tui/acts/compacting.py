"""The command that compresses the conversation, and takes that back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ba_tui.core import compacting
from ba_tui.core.errors import UsageError

if TYPE_CHECKING:
    from ba_tui.faces.tui.screens.chat import ChatScreen

UNDO = "undo"


async def compact(chat: ChatScreen, argument: str) -> None:
    """``undo``, or what to pay attention to."""
    _, conversation = chat.session.live
    if not chat.session.started:
        raise UsageError("There is nothing to compress yet.")
    if argument == UNDO:
        chat.turns.watch(compacting.undo_compact(conversation))
    else:
        chat.turns.watch(compacting.compact(conversation, argument))
    chat.activity.doing("Taking the compression back" if argument == UNDO else "Compressing the conversation")
