"""The composer: input, queue of prompts, popup, history and draft.

The receiver of ``Sent`` decides whether a prompt is a command, is queued or is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static

from ba_tui.core.errors import BaError
from ba_tui.core.ports.context import Mentions, Suggestion, Weight
from ba_tui.core.text.cells import clip
from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.drafts import DraftStore, PromptHistory, SavedInput
from ba_tui.faces.tui.widgets.completion import (
    Completion,
    CompletionItem,
    CompletionRequest,
    LastWord,
    argument_word,
    last_word,
    paths,
    wanted,
)
from ba_tui.faces.tui.widgets.prompt import PLACEHOLDER, PromptInput, names_something

COMMANDING = frozenset({"command", "argument"})
"""Completions from the table of commands."""
DRAFT_DELAY = 0.7
WEIGH_DELAY = 0.3
SIGNS = {"": "❯", "shell": "shared $", "private": "private $"}
"""The prefix of the input: for a shell command, who reads its output."""
FindCommands = Callable[[str], Sequence[CompletionItem]]


class Composer(Vertical):
    """Sources of completion and the history are set once they are known; until then nothing is offered."""

    @dataclass
    class Sent(Message):
        text: str

    @dataclass
    class Weighed(Message):
        """The weights of the mentions in the prompt; empty without mentions."""

        weights: Sequence[Weight]

    class QueueWanted(Message):
        """Up on empty input while prompts wait: the newest should come back for editing."""

    class Filled(Message):
        """The input has got its first text, or has become empty."""

    class Touched(Message):
        """The user began to type a prompt."""

    def __init__(self) -> None:
        super().__init__(id="composer")
        self.find_commands: FindCommands | None = None
        self.takes_path: Callable[[str], bool] = lambda _: False
        """Returns whether a command, given with its typed argument, takes a path."""
        self.mentions: Callable[[], Mentions | None] = lambda: None
        """Return the candidates for mentions in the open conversation."""
        self.is_choice: Callable[[str], bool] = lambda _: False
        """Whether a text chooses something that is offered: such a text is no prompt, and stays out of the history."""
        self.shell_folder: Callable[[], Path] = Path.cwd
        """Where a command of the user's own would start."""
        self.history: PromptHistory | None = None
        self.drafts: DraftStore | None = None
        self.waiting = False
        """True while prompts wait in the queue."""
        self.prompt = PromptInput()
        self.popup = Completion()
        self._sign = Static(SIGNS[""], id="sign", markup=False)
        self._place: int | None = None
        self._stash = ""
        self._searching = False
        self._wanted: CompletionRequest | None = None
        self._offered: CompletionRequest | None = None
        """What the names in the popup complete."""
        self._dismissed: CompletionRequest | None = None
        self._draft_timer: Timer | None = None
        self.touched = False
        """Whether the user has typed anything yet."""
        self._suggestion = ""
        self._filled = False
        self._heavy = False
        self._weigh_timer: Timer | None = None

    def compose(self) -> ComposeResult:
        yield self.popup
        with Horizontal(id="entry"):
            yield self._sign
            yield self.prompt

    @property
    def text(self) -> str:
        return self.prompt.value

    def begin(self, history: PromptHistory) -> None:
        """Update what depends on the session, which is open now."""
        self.history = history
        self._complete()
        self._weigh_soon()

    def take_over(self, other: Composer) -> None:
        """Take over text, pastes and cursor of ``other``, then append the text that was typed here."""
        self.touched = other.touched
        typed = self.prompt.text
        self.prompt.take_over(other.prompt)
        if typed:
            self.prompt.insert(typed)

    def put_back(self, text: str) -> None:
        """Put a prompt back for editing, above text typed meanwhile."""
        typed = self.prompt.text
        self.prompt.set_value(f"{text}\n{typed}" if typed.strip() else text)
        self.prompt.focus()

    def clear(self) -> None:
        """Empty the input; its text goes to the history."""
        self.remember(self.prompt.value)
        self.prompt.reset()

    def suggest(self, text: str) -> None:
        """Offer ``text`` as the next prompt: Enter on the empty input sends it. Empty offers nothing."""
        self._suggestion = text
        self.prompt.placeholder = f"Enter sends: {text}" if text else PLACEHOLDER

    def say_read_only(self, owner: str) -> None:
        """Say that ``owner`` writes the session, and the way on; empty where it can be written here."""
        words = f"Read-only: open in {owner}. Press Enter to continue in a copy." if owner else PLACEHOLDER
        if words != self.prompt.placeholder and not self._suggestion:
            self.prompt.placeholder = words

    def close_popup(self) -> bool:
        """Hide the popup; return False when none was shown."""
        if not self.popup.display:
            self._searching = False
            return False
        self._dismissed = self._wanted
        self._searching = False
        self._offer(())
        return True

    def search_history(self) -> None:
        """Look for earlier prompts with the words typed so far."""
        self.prompt.focus()
        self._searching = True
        self._complete()

    def _offer(self, candidates: Sequence[CompletionItem]) -> None:
        self._offered = self._wanted
        typed = self._wanted.query if self._wanted else ""
        # A whole name wins over every other that it begins or that is like it.
        self.popup.offer(sorted(candidates, key=lambda each: each.insert.strip('/@" ') != typed))
        self.prompt.choosing = bool(candidates)

    @on(PromptInput.Submitted)
    def _submitted(self, event: PromptInput.Submitted) -> None:
        event.stop()
        self._offer(())
        self._searching = False
        text = event.text
        if self._suggestion and not (text.strip() or self.waiting):
            text = self._suggestion
            if not text.startswith("/"):
                # A second Enter must not send it again.
                self.suggest("")
        if not self.is_choice(text):
            self.remember(text)
        self.post_message(self.Sent(text))

    def remember(self, text: str) -> None:
        """Add ``text`` to the history."""
        self._place = None
        if self.history and self.history.remember(text):
            asyncio.get_running_loop().run_in_executor(None, self.history.append, text)

    def keep(self, prompts: Sequence[str] | None = None) -> None:
        """Save the input and the waiting ``prompts`` in case ba ends; None: the prompts saved last."""
        if self.drafts:
            self.drafts.current = self._unsent(self.drafts, prompts)
            asyncio.get_running_loop().run_in_executor(None, self.drafts.save)

    async def release(self, prompts: Sequence[str] | None = None) -> None:
        """Save for the last time and release the file, so that another process may take it over."""
        if self.drafts:
            self.drafts.current = self._unsent(self.drafts, prompts)
            await asyncio.to_thread(self.drafts.close)

    def _unsent(self, drafts: DraftStore, prompts: Sequence[str] | None) -> SavedInput:
        return SavedInput(self.text, drafts.current.prompts if prompts is None else tuple(prompts))

    @on(PromptInput.Recalled)
    def _recalled(self, event: PromptInput.Recalled) -> None:
        event.stop()
        entries = self.history.entries if self.history else []
        if event.direction < 0 and self._place is None and self.waiting and not self.prompt.text:
            self.post_message(self.QueueWanted())
        elif event.direction < 0:
            place = len(entries) if self._place is None else self._place
            if place == 0:
                return
            if self._place is None:
                self._stash = self.prompt.text
            self._show_entry(place - 1, entries[place - 1])
            self.prompt.move_cursor((0, 0))
        elif self._place is not None:
            place = self._place + 1
            if place < len(entries):
                self._show_entry(place, entries[place])
            else:
                self._show_entry(None, self._stash)

    def _show_entry(self, place: int | None, text: str) -> None:
        self.prompt.set_value(text)
        self._place = place
        self._dismissed, _ = self._request()

    @on(PromptInput.Changed)
    def _changed(self, event: PromptInput.Changed) -> None:
        event.stop()
        before, self._filled = self._filled, bool(self.prompt.text)
        if self._filled and not before:
            self.touched = True
            self.post_message(self.Touched())
        if self._filled != before:
            self.post_message(self.Filled())
        if not self.prompt.text:
            self._place = None
        self._show_mode()
        self._complete()
        if self._draft_timer:
            self._draft_timer.stop()
        self._draft_timer = self.set_timer(DRAFT_DELAY, self.keep)
        self._weigh_soon()

    @property
    def mode(self) -> str:
        """``shell`` or ``private`` while the text is a shell command of the user; else empty."""
        start = self.prompt.text[:2]
        return "private" if start == "!!" else "shell" if start[:1] == "!" else ""

    def _show_mode(self) -> None:
        mode = self.mode
        if mode or self.has_class("-shell") or self.has_class("-private"):
            self.set_class(mode == "shell", "-shell")
            self.set_class(mode == "private", "-private")
            self._sign.update(SIGNS[mode])

    def _weigh_soon(self) -> None:
        if self._weigh_timer:
            self._weigh_timer.stop()
            self._weigh_timer = None
        if not self.mode and names_something(self.prompt.text):
            self._weigh_timer = self.set_timer(WEIGH_DELAY, self._weigh)
        elif self._heavy:
            self._heavy = False
            self.post_message(self.Weighed(()))

    def _weigh(self) -> None:
        if mentions := self.mentions():
            self.run_worker(partial(self._weighed, mentions, self.prompt.value), group="weigh", exclusive=True)

    async def _weighed(self, mentions: Mentions, text: str) -> None:
        try:
            weights = await mentions.weigh(text)
        except (BaError, OSError):
            return
        if text == self.prompt.value and (weights or self._heavy):
            self._heavy = bool(weights)
            self.post_message(self.Weighed(weights))

    def _complete(self) -> None:
        if self._searching:
            found = self.history.search(self.prompt.text) if self.history else ()
            self._wanted = CompletionRequest("history", self.prompt.text, 0)
            self._offer([CompletionItem(text, " ".join(text.split())[:300]) for text in found])
            return
        self._wanted, word = self._request()
        if self._wanted is None:
            self._dismissed = None
        if self._wanted is None or (self._dismissed and self._dismissed.column == self._wanted.column):
            self._offer(())
        elif self._wanted.kind in COMMANDING:
            self._offer(self.find_commands(self._wanted.query) if self.find_commands else ())
        elif word:
            self.run_worker(partial(self._list_paths, self._wanted, word), group="names", exclusive=True)
        elif mentions := self.mentions():
            self.run_worker(partial(self._list_names, self._wanted, mentions), group="names", exclusive=True)

    def _request(self) -> tuple[CompletionRequest | None, LastWord | None]:
        """Return the completion request at the cursor, and the word if it is an argument of a shell command."""
        before = self.prompt.before_cursor
        if not self.mode:
            asked = wanted(before, self.prompt.cursor_location[0])
            # Blanks in a folder's name may be escaped.
            folder = before.startswith("/") and self.prompt.cursor_location[0] == 0 and self.takes_path(before[1:])
            return _path(argument_word(before)) if folder else (asked, None)
        return _path(last_word(before))

    async def _list_paths(self, asked: CompletionRequest, word: LastWord) -> None:
        found = await asyncio.to_thread(paths, word, self.shell_folder())
        if asked == self._wanted:
            self._offer(found)

    async def _list_names(self, asked: CompletionRequest, mentions: Mentions) -> None:
        try:
            found = await mentions.search(asked.query)
        except (BaError, OSError):
            found = ()
        if asked == self._wanted:
            # A name with hidden characters is not completed: the user could not see the inserted text.
            shown = [each for each in found if paintable(each.text, newlines=False) == each.text]
            self._offer([_candidate(each) for each in shown])

    @on(PromptInput.Choosing)
    def _choosing(self, event: PromptInput.Choosing) -> None:
        event.stop()
        match event.key:
            case "up" | "down" | "ctrl+n":
                self.popup.move(-1 if event.key == "up" else 1)
            case "pageup" | "pagedown":
                self.popup.move(5 if event.key == "pagedown" else -5)
            case "escape":
                self.close_popup()
            case key:
                self._accept(send=key == "enter")

    def _fits(self, choice: CompletionItem, asked: CompletionRequest) -> bool:
        """Return whether ``choice``, which was offered for fewer letters, still completes the typed text."""
        return asked == self._offered or asked.query.casefold() in choice.insert.casefold()

    def _accept(self, *, send: bool) -> None:
        choice, asked = self.popup.choice, self._wanted
        guessed = choice and send and not (choice.sure or self.popup.moved)
        if choice is None or asked is None or guessed or not self._fits(choice, asked):
            # The typed text is not a part of an offered name.
            if send:
                self._offer(())
                self.prompt.submit()
            return
        row, column = self.prompt.cursor_location
        self._dismissed, self._searching = asked, False
        self._offer(())
        if asked.kind == "history":
            self.prompt.set_value(choice.insert)
            return
        self.prompt.replace(choice.insert, (row, asked.column), (row, column))
        self.prompt.move_cursor((row, asked.column + len(choice.insert)))
        if choice.insert.endswith("/"):
            # Continue inside the folder.
            self._dismissed = None
            self._complete()
        elif asked.kind in COMMANDING and send and not choice.insert.endswith(" "):
            self.prompt.submit()


def _path(word: LastWord) -> tuple[CompletionRequest | None, LastWord]:
    return (CompletionRequest("path", word.text, word.column) if word.text else None), word


def _candidate(found: Suggestion) -> CompletionItem:
    return CompletionItem(_mention(found.text), found.label, f"{found.kind:<9}{found.detail[:300]}".rstrip())


def _mention(text: str) -> str:
    if any(character.isspace() for character in text):
        return f'@"{text}"'
    return f"@{text}" if text.endswith("/") else f"@{text} "


SHOWN = 4
LOW = 16
"""Rows of a terminal below which one line has to do."""


class QueueLines(Static):
    def __init__(self) -> None:
        super().__init__(id="queue", markup=False)
        self._waiting: tuple[str, ...] = ()
        self._paused = False
        self.display = False

    def show(self, waiting: Sequence[str], *, paused: bool) -> None:
        if (tuple(waiting), paused) == (self._waiting, self._paused):
            # Drawing it lays the whole screen out.
            return
        self._waiting, self._paused = tuple(waiting), paused
        self.display = bool(waiting)
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        low = self.screen.size.height < LOW
        shown = 1 if low else SHOWN
        more = len(self._waiting) - shown
        width = max(10, self.size.width - (14 if low else 3))
        lines = [
            Content.assemble((f"{index}. ", "$accent"), (_line(text, width), "$text-muted"))
            for index, text in enumerate(self._waiting[:shown], 1)
        ]
        if more > 0 and low:
            lines[0] = Content.assemble(lines[0], (f"  +{more} more", "$text-muted"))
        elif more > 0:
            lines.append(Content.styled(f"… and {more} more", "$text-muted"))
        if self._waiting and not low:
            words = (
                "Paused. Enter sends the next, Up edits the newest."
                if self._paused
                else "Enter sends the next now, Up edits the newest."
            )
            lines.append(Content.styled(words, "$text-muted italic"))
        self.update(Content("\n").join(lines))


def _line(text: str, width: int) -> str:
    words = paintable(" ".join(text[:2_000].split()), newlines=False)
    return clip(words, width)
