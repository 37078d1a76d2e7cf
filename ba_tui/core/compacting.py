"""Compressing a conversation because the person says so, and taking that back. How it is done is a Condenser's."""

from __future__ import annotations

from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import UsageError
from ba_tui.core.ports.context import Condenser
from ba_tui.core.turn import Branch, Turn


def compact(conversation: Conversation, focus: str = "") -> Turn:
    """Now, with attention to ``focus``. Raises UsageError when a turn is running."""
    condenser = _condenser(conversation)

    async def work(branch: Branch) -> None:
        await conversation.warm()
        await condenser.now(branch, focus)

    return conversation.beside(work)


def undo_compact(conversation: Conversation) -> Turn:
    """Back to what was before the last compression, with what came since. Raises UsageError when a turn is running."""
    condenser = _condenser(conversation)

    async def work(branch: Branch) -> None:
        await conversation.warm()
        await condenser.undo(branch)

    return conversation.beside(work)


def _condenser(conversation: Conversation) -> Condenser:
    if conversation.condenser is None:
        raise UsageError("This conversation can't be compressed.")
    return conversation.condenser
