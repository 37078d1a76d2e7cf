"""What the person writes: it goes to the input wherever the focus is, and it outlives ba.

That is prompts of earlier days, the draft, and prompts that wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Protocol, runtime_checkable

from textual.events import Key, Paste
from textual.screen import Screen

from ba_tui.core.errors import BaError
from ba_tui.core.events import Notice
from ba_tui.core.ports.sessions import unsaved
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count, with_hint
from ba_tui.faces.run_result import saved_code
from ba_tui.faces.tui.acts.port import Actions, PaneActions
from ba_tui.faces.tui.drafts import DraftStore, LeftBehind, SavedInput
from ba_tui.faces.tui.history import PromptHistory
from ba_tui.faces.tui.widgets.text_fields import is_text
from ba_tui.resources import places

LEAVING = "leave unsaved"
READING = 8.0
"""Seconds that a hint needs to be read."""


@runtime_checkable
class Searchable(Protocol):
    """A pane with a search of its own; ``searching`` while what is typed goes there."""

    @property
    def searching(self) -> bool: ...

    def action_search(self) -> None: ...


def lead_to_input(chat: PaneActions, screen: Screen[None], event: Key | Paste) -> bool:
    """Give the input the focus before it gets ``event``, when that is text and the focused widget takes none.

    Called before the event is on its way: whatever is typed behind it follows it in order. Returns True when the event
    is on its way by itself and must not be delivered.
    """
    prompt, here = chat.composer.prompt, screen.focused
    if here is prompt:
        return False
    if isinstance(here, Searchable):
        if isinstance(event, Key) and event.key == "ctrl+f":
            here.action_search()
        if here.searching:
            return False
    asked = chat.ask and here and chat.ask in here.ancestors_with_self
    if isinstance(event, Key) and not (is_text(event) if asked else begins_word(event)):
        if chat.ask and asked:
            chat.ask.release()
        return False
    if chat.ask and asked:
        before = chat.ask.word(event)
        if before is None:
            return isinstance(event, Key) and chat.ask.hold_back(event)
        for key in before:
            prompt.post_message(Key(key.key, key.character))
    screen.set_focus(prompt)
    return False


def begins_word(key: Key) -> bool:
    return is_text(key) and not (key.character or "").isspace()


def keep_early(chat: Actions) -> None:
    """Keep what is written before there is a session: under the folder of the shell, as that of the session may
    still be another."""
    with suppress(FileNotFoundError):
        # The folder of the shell may be gone.
        chat.composer.drafts = DraftStore(places().state, chat.session.cwd)


def return_early(chat: Actions, text: str) -> None:
    """Put back ``text``, which was sent before ba asked about the folder; the user may send it again."""
    chat.composer.put_back(text)
    chat.activity.hint("Not sent: you typed this before ba asked about the folder. Enter sends it.", READING)


async def begin(chat: Actions) -> tuple[DraftStore, LeftBehind]:
    """Give the input its history; returns where the open session keeps drafts, and what was left."""
    history = PromptHistory(places().state)
    await asyncio.to_thread(history.load)
    left = await _drafts_of(chat, history)
    chat.composer.shell_folder = partial(_shell_folder, chat)
    chat.composer.begin(history)
    return left


def _shell_folder(chat: Actions) -> Path:
    """Where a command of the person's own would start."""
    conversation = chat.session.conversation
    kept = conversation.shell.folder if conversation else None
    return Path(kept) if kept else chat.session.cwd


async def _drafts_of(chat: Actions, history: PromptHistory) -> tuple[DraftStore, LeftBehind]:
    services, conversation = chat.session.live
    drafts = DraftStore(places().state, conversation.cwd, conversation.id)

    @cache
    def ids() -> frozenset[str] | None:
        try:
            return frozenset(info.id for info in services.library.sessions())
        except BaError:
            return None

    def begun(id: str) -> bool:
        known = ids()
        # What can't be told may be one: its draft stays where it is.
        return known is None or id in known

    return drafts, await asyncio.to_thread(drafts.take_over, begun, history.shelve)


async def follow_session(chat: Actions) -> None:
    """Keep what is unsent with the session that is open now. What was written in another one stays with that; a new
    session takes along what is in the input."""
    _, conversation = chat.session.live
    before, history = chat.composer.drafts, chat.composer.history
    if before is None or history is None or before.session == conversation.id:
        return
    if chat.session.started:
        await chat.composer.release(chat.turns.unsent)
        chat.composer.drafts = None
        chat.composer.prompt.reset()
        chat.turns.forget()
    bring_back(chat, *await _drafts_of(chat, history))


def bring_back(chat: Actions, drafts: DraftStore, left: LeftBehind) -> None:
    """The draft stands in the input again, or in the history when there is another by now; the prompts wait again.

    From now on ``drafts`` keeps them.
    """
    saved = left.own
    if left.texts and not chat.session.started and chat.session.start.resume == "last":
        # There is no session to continue, so this is where the person left off.
        chat.composer.put_back(left.texts[-1])
    elif left.texts:
        words = f"{count(len(left.texts), 'unsent text')} from a session that never began"
        chat.tell(Notice(f"Saved to the history: {words}.", hint="Press Up to get it back."))
    if saved.draft.strip() and not chat.composer.text and not chat.session.start.prompt:
        chat.composer.put_back(saved.draft)
    else:
        chat.composer.remember(saved.draft)
    chat.turns.restore(saved.prompts)
    if saved.prompts:
        chat.tell(Notice(f"Not sent before ba ended: {count(len(saved.prompts), 'prompt')}."))
    early, chat.composer.drafts = chat.composer.drafts, drafts
    drafts.current = SavedInput(chat.composer.text, tuple(chat.turns.unsent))
    asyncio.get_running_loop().run_in_executor(None, _hand_over, early, drafts)


def _hand_over(early: DraftStore | None, drafts: DraftStore) -> None:
    """Let go of what ``early`` keeps once ``drafts`` keeps it too."""
    if drafts.save() and early:
        early.current = SavedInput()
        early.close()


async def may_leave(chat: Actions) -> bool:
    """Whether nothing is lost with the session that is open, or the user has asked to leave a second time."""
    if chat.session.conversation is None:
        return True
    await chat.session.conversation.saving.retry()
    lost = unsaved(chat.session.conversation)
    if lost is None or lost.chosen or chat.presses.said_once(LEAVING):
        return True
    text = f"This session is in memory alone: {lost.folder} can't be written ({lost.why})."
    chat.tell(Notice(text, "error", "/export FILE writes it elsewhere. Quit again to lose it."))
    return False


def code_of(chat: Actions) -> int:
    """The exit code of the app."""
    return saved_code(unsaved(chat.session.conversation))


def losses(chat: Actions) -> Iterator[str]:
    """What could not be saved; words that were not sent are repeated, so that the terminal keeps them."""
    for text in chat.composer.drafts.lost if chat.composer.drafts else ():
        yield f"This text was not sent and can't be saved:\n{paintable(text)}"
    if lost := unsaved(chat.session.conversation):
        yield paintable(with_hint(*lost.at_end), newlines=False)


async def end(chat: Actions) -> None:
    """Keep what is unsent: nothing changes that any more."""
    await chat.composer.release(chat.turns.unsent)
