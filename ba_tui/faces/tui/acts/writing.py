"""What the person wrote, beyond the end of ba: prompts of earlier days, the draft, and prompts that wait."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from ba_tui.core.events import Notice
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.acts.port import Actions
from ba_tui.faces.tui.history import PromptHistory
from ba_tui.faces.tui.unsent import Left, Unsent
from ba_tui.resources import places


def keep_early(chat: Actions) -> None:
    """Keep what is written before there is a session: under the folder of the shell, as that of the session may
    still be another."""
    with suppress(FileNotFoundError):
        # The folder of the shell may be gone.
        chat.composer.unsent = Unsent(places().state, chat.session.cwd)


async def begin(chat: Actions) -> tuple[Unsent, Left]:
    """Give the input its history; returns where the session keeps what is unsent, and what was left in its folder."""
    state = places().state
    history, unsent = PromptHistory(state), Unsent(state, chat.session.cwd)
    await asyncio.to_thread(history.load)
    left = await asyncio.to_thread(unsent.take_over)
    chat.composer.begin(history)
    return unsent, left


def bring_back(chat: Actions, unsent: Unsent, left: Left) -> None:
    """The draft stands in the input again, or in the history when there is another by now; the prompts wait again.

    From now on ``unsent`` keeps them.
    """
    if left.draft.strip() and not chat.composer.text and not chat.session.start.prompt:
        chat.composer.put_back(left.draft)
    else:
        chat.composer.remember(left.draft)
    chat.turns.restore(left.prompts)
    if left.prompts:
        chat.tell(Notice(f"Not sent before ba ended: {count(len(left.prompts), 'prompt')}."))
    early, chat.composer.unsent = chat.composer.unsent, unsent
    unsent.left = Left(chat.composer.text, tuple(chat.turns.unsent))
    asyncio.get_running_loop().run_in_executor(None, _hand_over, early, unsent)


def _hand_over(early: Unsent | None, unsent: Unsent) -> None:
    """Let go of what ``early`` keeps once ``unsent`` keeps it too."""
    if unsent.save() and early:
        early.left = Left()
        early.close()


async def end(chat: Actions) -> None:
    """Keep what is unsent: nothing changes that any more."""
    if unsent := chat.composer.unsent:
        unsent.left = Left(chat.composer.text, tuple(chat.turns.unsent))
        await asyncio.to_thread(unsent.close)
