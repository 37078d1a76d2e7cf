"""User input: route typed text to the input, paste, run the user's own commands, save and restore unsent prompts."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Protocol, runtime_checkable

from textual.events import Key, Paste
from textual.screen import Screen

from ba_tui.core.calls import OwnShell
from ba_tui.core.errors import BaError
from ba_tui.core.events import Notice, TurnEnded
from ba_tui.core.text.wording import count
from ba_tui.core.turn import Turn
from ba_tui.faces.tui.acts.port import Actions, mentions
from ba_tui.faces.tui.clipboard import Ask, picture
from ba_tui.faces.tui.drafts import DraftStore, LeftBehind, PromptHistory, SavedInput
from ba_tui.faces.tui.widgets.prompt import takes_pictures
from ba_tui.faces.tui.widgets.text_fields import is_text
from ba_tui.resources import places

READING = 8.0
"""Seconds for which a hint is shown."""


@runtime_checkable
class Searchable(Protocol):
    """A pane with its own search. ``searching``: whether typed keys go to the search."""

    @property
    def searching(self) -> bool: ...

    def action_search(self) -> None: ...


def lead_to_input(chat: Actions, screen: Screen[None], event: Key | Paste) -> bool:
    """Give the input the focus before it gets ``event``, when that is text and the focused widget takes none.

    Called before the event is on its way: whatever is typed behind it follows it in order. Returns True when the event
    is already on its way and must not be delivered.
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
    """Save drafts that are written before a session is open, under the shell's folder, as the session's folder is
    unknown."""
    with suppress(FileNotFoundError):
        # The shell's folder may have been deleted.
        chat.composer.drafts = DraftStore(places().state, chat.session.cwd)


def return_early(chat: Actions, text: str) -> None:
    """Put back ``text``, which was sent before ba asked about the folder; the user may send it again."""
    chat.composer.put_back(text)
    chat.activity.hint("Not sent: you typed this before ba asked about the folder. Enter sends it.", READING)


async def begin(chat: Actions) -> tuple[DraftStore, LeftBehind]:
    """Load the prompt history; return the store of drafts of the open session, and earlier drafts."""
    history = PromptHistory(places().state)
    await asyncio.to_thread(history.load)
    left = await _drafts_of(chat, history)
    chat.composer.shell_folder = partial(_shell_folder, chat)
    chat.composer.begin(history)
    return left


def _shell_folder(chat: Actions) -> Path:
    """Return the working directory of the user's next shell command."""
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
        # If the sessions can't be listed, the draft is left where it is.
        return known is None or id in known

    return drafts, await asyncio.to_thread(drafts.take_over, begun, history.shelve)


async def follow_session(chat: Actions) -> None:
    """Save drafts with the session that is open now. Drafts of another session stay with it; a new session takes over
    the text in the input."""
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
    """Put the saved draft back into the input, or into the history if the input has text, and queue the saved prompts.

    ``drafts`` saves both from now on.
    """
    saved = left.own
    if left.texts and not chat.session.started and chat.session.start.resume == "last":
        # There is no session to continue, so this is where the user left off.
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
    """Clear ``early`` once ``drafts`` has saved the same."""
    if drafts.save() and early:
        early.current = SavedInput()
        early.close()


QUERY_WAY_OUT = "Esc stops the query"
WAYS_OUT = "Esc stops the command · Ctrl+B moves it to the background"


async def shell(chat: Actions, words: str) -> None:
    """Run the user's shell command, also during a turn; a second ``!`` before it hides it from the model."""
    private = words.startswith("!")
    if not await _opened(chat, f"!{words}"):
        return
    command = words.removeprefix("!").strip()
    await _followed(chat, lambda own: own.run(command, private=private), WAYS_OUT)


async def sql(chat: Actions, words: str) -> None:
    """Query the session's data, also during a turn; the model reads the result with the next message."""
    if await _opened(chat, f"/sql {words}"):
        await _followed(chat, lambda own: own.query(words), QUERY_WAY_OUT)


async def _opened(chat: Actions, text: str) -> bool:
    """Wait until the session is open. Returns False if ba asked about the folder meanwhile; ``text`` is then in the
    input."""
    early = not chat.turns.ready
    await chat.turns.opened.wait()
    if early and chat.turns.questioned:
        return_early(chat, text)
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


PASTE_HINT_SECONDS = 8.0
"""Seconds for which the reason why nothing was pasted is shown."""


async def paste(chat: Actions, text: str, ask: Ask | None) -> None:
    """Put the clipboard's picture into the input, or else ``text``, which was copied in ba. ``ask`` the terminal."""
    prompt = chat.composer.prompt
    if takes_pictures(prompt.text) and (source := mentions(chat)):
        try:
            prompt.insert_picture(await source.keep(await picture(sys.platform, os.environ, ask)))
            return
        except BaError as error:
            if not text:
                chat.activity.hint(error.with_hint, PASTE_HINT_SECONDS)
    if text:
        await prompt.insert_paste(text)
