"""What the person wrote, beyond the end of ba: prompts of earlier days, the draft, and prompts that wait."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ba_tui.core.events import Notice
from ba_tui.core.wording import count
from ba_tui.faces.tui.history import PromptHistory
from ba_tui.faces.tui.unsent import Left, Unsent
from ba_tui.resources import places

if TYPE_CHECKING:
    from ba_tui.faces.tui.screens.chat import ChatScreen


async def begin(chat: ChatScreen) -> Left:
    """Give the input its history; returns what was left unsent in this folder."""
    state = places().state
    history, unsent = PromptHistory(state), Unsent(state, chat.session.cwd)
    unsent.left = Left(chat.composer.text, tuple(chat.turns.unsent))
    await asyncio.to_thread(history.load)
    left = await asyncio.to_thread(unsent.take_over)
    chat.composer.begin(history, unsent)
    return left


def bring_back(chat: ChatScreen, left: Left) -> None:
    """The draft stands in the input again, or in the history when there is another by now; the prompts wait again."""
    if left.draft.strip() and not chat.composer.text and not chat.session.start.prompt:
        chat.composer.put_back(left.draft)
    else:
        chat.composer.remember(left.draft)
    chat.turns.restore(left.prompts)
    if left.prompts:
        words = f"Not sent before ba ended: {count(len(left.prompts), 'prompt')}."
        chat.tell(Notice(words, hint="Enter sends the next, Up edits the newest."))


async def end(chat: ChatScreen) -> None:
    """Keep what is unsent: nothing changes that any more."""
    if unsent := chat.composer.unsent:
        unsent.left = Left(chat.composer.text, tuple(chat.turns.unsent))
        await asyncio.to_thread(unsent.close)
