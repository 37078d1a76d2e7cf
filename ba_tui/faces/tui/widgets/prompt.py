"""The text area of the prompt: newline and readline keys, pasted text and pictures as tokens, bursts of keys.

Popup and history belong to the composer.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal
from urllib.parse import unquote

from textual import events
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.document._document import EditResult, Location
from textual.message import Message
from textual.timer import Timer

from ba_tui.core.messages import clean_text
from ba_tui.core.text.patterns import regex
from ba_tui.faces.tui.widgets.text_fields import ClusterArea

MANY_LINES = 10
MANY_CHARACTERS = 1_000
TOKEN = regex(r"\[(?:Pasted #(\d+) (?:\+\d+ lines|\d+ characters)|Image (\d+))\]")
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
LONGEST_PATH = 1_000
_ESCAPED = regex(r"\\(.)")
_CONTROLS = dict.fromkeys((*range(9), 11, 12, *range(14, 32), *range(127, 160)))
_ESCAPES = regex(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def cleaned(text: str) -> str:
    """Return ``text`` as it may be in the prompt: no escape sequences or control characters, ``\\n`` line ends."""
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    text = clean_text(text).replace("\r\n", "\n").replace("\r", "\n")
    return text if text.isprintable() else text.translate(_CONTROLS)


def names_something(text: str) -> bool:
    """Return whether ``text`` may mention something: by an ``@``, a picture's chip, or the path of a picture."""
    return "@" in text or "[Image " in text or ("/" in text and any(kind in text.lower() for kind in PICTURES))


def takes_pictures(text: str) -> bool:
    """Return whether a prompt that begins with ``text`` may hold a picture: no command does."""
    return not text.startswith(("/", "!"))


def dropped_picture(text: str) -> str:
    """Return the absolute path if ``text`` is a picture dropped on the terminal; else empty."""
    text = text.strip()
    if len(text) > LONGEST_PATH or "\n" in text:
        return ""
    if text.startswith("file://"):
        path = unquote(text.removeprefix("file://"))
    elif text[:1] in {"'", '"'} and text.endswith(text[0]):
        path = text[1:-1]
    else:
        path = text if " " in _ESCAPED.sub("", text) else _ESCAPED.sub(r"\1", text)
    return path if path.startswith("/") and path.lower().endswith(PICTURES) else ""


class Pastes:
    """The folded pastes and the pictures of one prompt, by number."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}
        self._count = 0
        self._pictures: dict[int, str] = {}

    def fold(self, text: str) -> str:
        """Return the token that replaces ``text``, or the text itself if it is short."""
        lines = text.count("\n") + (not text.endswith("\n"))
        if lines <= MANY_LINES and len(text) <= MANY_CHARACTERS:
            return text
        self._count += 1
        self._texts[self._count] = text
        size = f"+{lines} lines" if lines > 1 else f"{len(text)} characters"
        return f"[Pasted #{self._count} {size}]"

    def picture(self, name: str) -> str:
        """Return the token for a mention of the picture ``name``."""
        number = len(self._pictures) + 1
        self._pictures[number] = f'@"{name}"' if any(map(str.isspace, name)) else f"@{name}"
        return f"[Image {number}]"

    def unfold(self, text: str) -> str:
        """Return ``text`` with each token replaced by its text."""
        if not (self._texts or self._pictures) or "[" not in text:
            return text
        return TOKEN.sub(lambda token: self._stands_for(token) or token[0], text)

    def _stands_for(self, token: re.Match[str]) -> str:
        """Return the text of a token; empty for an unknown one."""
        return self._texts.get(int(token[1]), "") if token[1] else self._pictures.get(int(token[2]), "")

    def spans(self, line: str) -> list[tuple[int, int]]:
        """Return the ranges of tokens in ``line``."""
        if not (self._texts or self._pictures):
            return []
        return [token.span() for token in TOKEN.finditer(line) if self._stands_for(token)]

    def clear(self) -> None:
        self._texts.clear()
        self._pictures.clear()
        self._count = 0


PLACEHOLDER = "Ask, or describe a task. / for commands, @ for files, ? for help"
NEWLINES = frozenset({"shift+enter", "ctrl+j", "alt+enter", "ctrl+enter"})
CHOOSING = frozenset({"up", "down", "ctrl+n", "tab", "enter", "escape", "pageup", "pagedown"})
REST = 5.0
"""Seconds without a key until the cursor stops blinking."""
BURST_GAP = 0.001
"""Keys closer than this come from a machine: a paste in a terminal that does not mark pastes."""
BURST_LENGTH = 3
BURST_END = 0.03
LARGE = 100_000


class PromptInput(ClusterArea, inherit_bindings=False):
    """A text area in which Enter sends the text."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "cursor_left", "Left", show=False),
        Binding("ctrl+b", "background_or_left", "Running command to the background, else left", show=False),
        Binding("right,ctrl+f", "cursor_right", "Right", show=False),
        Binding("ctrl+left,alt+b,alt+left", "cursor_word_left", "Word left", show=False),
        Binding("ctrl+right,alt+f,alt+right", "cursor_word_right", "Word right", show=False),
        Binding("home,ctrl+a", "cursor_line_start", "Start of line", show=False),
        Binding("end,ctrl+e", "cursor_line_end", "End of line", show=False),
        Binding("shift+left", "cursor_left(True)", "Select left", show=False),
        Binding("shift+right", "cursor_right(True)", "Select right", show=False),
        Binding("shift+up", "cursor_up(True)", "Select up", show=False),
        Binding("shift+down", "cursor_down(True)", "Select down", show=False),
        Binding("shift+home", "cursor_line_start(True)", "Select to start of line", show=False),
        Binding("shift+end", "cursor_line_end(True)", "Select to end of line", show=False),
        Binding("ctrl+shift+left", "cursor_word_left(True)", "Select word left", show=False),
        Binding("ctrl+shift+right", "cursor_word_right(True)", "Select word right", show=False),
        Binding("f7", "select_all", "Select all", show=False),
        Binding("backspace,ctrl+h", "delete_left", "Delete left", show=False),
        Binding("delete", "delete_right", "Delete right", show=False),
        Binding("ctrl+w,ctrl+backspace,alt+backspace", "delete_word_left", "Delete word left", show=False),
        Binding("alt+d,alt+delete", "delete_word_right", "Delete word right", show=False),
        Binding("ctrl+u,super+backspace", "delete_to_start_of_line", "Delete to start of line", show=False),
        Binding("ctrl+k", "delete_to_end_of_line_or_delete_line", "Delete to end of line", show=False),
        Binding("ctrl+x,super+x", "cut", "Cut", show=False),
        Binding("ctrl+v,alt+v", "paste", "Paste a picture or text", show=False),
        Binding("ctrl+underscore,super+z", "undo", "Undo", show=False),
        Binding("alt+underscore,super+y", "redo", "Redo", show=False),
        Binding("f4", "unfold", "Unfold pastes", show=False),
    ]

    @dataclass
    class Submitted(Message):
        """Enter; ``text`` with every paste unfolded, possibly empty."""

        text: str

    @dataclass
    class Choosing(Message):
        """A key for the popup."""

        key: str

    @dataclass
    class Recalled(Message):
        """Up on the first line, or down on the last."""

        direction: Literal[-1, 1]

    class PasteWanted(Message):
        """Request to paste from the clipboard: its picture, else the text that was copied in ba."""

    class HelpWanted(Message):
        """``?`` on empty input."""

    @dataclass
    class Remarked(Message):
        """``words`` are for the user, for a moment."""

        words: str

    def __init__(self) -> None:
        super().__init__(
            soft_wrap=True,
            tab_behavior="focus",
            highlight_cursor_line=False,
            compact=True,
            placeholder=PLACEHOLDER,
        )
        self.match_cursor_bracket = False
        self.pastes = Pastes()
        self.choosing = False
        """True while the popup is open: keys that move in it or close it are posted."""
        self.still = False
        """True stops the blinking for good (tests, reduced motion)."""
        self.to_background: Callable[[], bool] | None = None
        """Moves the running command to the background; returns False if there is none."""
        self.turn = asyncio.Lock()
        """Keys and pastes wait while it is held, except those that the holder gives to ``take``."""
        self._behind = False
        self._rest: Timer | None = None
        self._last_key = 0.0
        self._burst: list[str] = []
        self._burst_start: Location = (0, 0)
        self._burst_end: Timer | None = None
        self._waiting_enter = False

    @property
    def _draw_cursor(self) -> bool:
        # A cursor that blinks while another field has the focus would show two cursors.
        return self.has_focus and not self._behind and super()._draw_cursor

    @property
    def value(self) -> str:
        """The whole prompt with unfolded pastes."""
        return self.pastes.unfold(self.text)

    @property
    def before_cursor(self) -> str:
        row, column = self.cursor_location
        return self.document.get_line(row)[:column]

    def set_value(self, text: str) -> None:
        """Replace the text, undoable, with the cursor at the end. A long text is folded like a paste."""
        if len(text) > LARGE:
            text = self.pastes.fold(self.pastes.unfold(text))
        self.replace(text, (0, 0), self.document.end)
        self.move_cursor(self.document.end)

    def reset(self) -> None:
        """Clear the text, its pastes and the undo history."""
        self.load_text("")
        self.pastes.clear()

    def take_over(self, other: PromptInput) -> None:
        """Take over the state of ``other``, also within a burst of keys."""
        self.pastes = other.pastes
        self.load_text(other.text)
        self.move_cursor(other.cursor_location)
        other.end_burst_in(None)
        self._last_key, self._waiting_enter = other._last_key, other._waiting_enter
        self._burst, self._burst_start = other._burst, other._burst_start
        if len(self._burst) > BURST_LENGTH:
            self.end_burst_in(BURST_END)

    async def take(self, event: events.Key | events.Paste) -> None:
        """Do what a key or a paste does that came before the input had the focus."""
        if isinstance(event, events.Paste):
            await self._take_paste(event)
        else:
            await self._take_key(event)

    async def _on_key(self, event: events.Key) -> None:
        async with self.turn:
            await self._take_key(event)

    async def _on_paste(self, event: events.Paste) -> None:
        async with self.turn:
            await self._take_paste(event)

    async def _take_key(self, event: events.Key) -> None:
        gap, self._last_key = event.time - self._last_key, event.time
        self._track_burst(event, gap)
        key = event.key
        handled = True
        if self.choosing and key in CHOOSING:
            self.post_message(self.Choosing(key))
        elif key in NEWLINES or (key == "enter" and self._ends_with_backslash()):
            self._newline()
        elif key == "enter":
            self._enter()
        elif key in {"up", "down"}:
            self._vertical(key)
        elif key == "question_mark" and not self.text:
            self.post_message(self.HelpWanted())
        elif bound := self._bindings.key_to_bindings.get(key):
            # Immediately: a binding would run after letters that arrive together with it, and remove them.
            handled = await self.app.run_action(bound[0].action, self)  # pyright: ignore[reportUnknownMemberType] - App is generic
        else:
            handled = False
        if handled:
            event.stop()
            event.prevent_default()
            self._restart_blink()
        else:
            await super()._on_key(event)

    def _ends_with_backslash(self) -> bool:
        before = self.before_cursor
        return before.endswith("\\") and not before.endswith("\\\\")

    def _newline(self) -> None:
        if self._ends_with_backslash():
            row, column = self.cursor_location
            self._replace_via_keyboard("\n", (row, column - 1), (row, column))
        else:
            self._replace_via_keyboard("\n", *self.selection)

    def _vertical(self, key: str) -> None:
        if key == "up" and self.cursor_at_first_line:
            self.post_message(self.Recalled(-1))
        elif key == "down" and self.cursor_at_last_line:
            self.post_message(self.Recalled(1))
        elif key == "up":
            self.action_cursor_up()
        else:
            self.action_cursor_down()

    def stand_behind(self, behind: bool) -> None:
        """Whether a dialog, which may have its own cursor, covers it."""
        self._behind = behind
        self.notify_style_update()
        self.refresh()

    def submit(self) -> None:
        """Send the text and clear the input immediately, so that the next key begins the next prompt."""
        text = self.value
        self.reset()
        self.post_message(self.Submitted(text))

    # Bursts: many keys at machine speed are a paste. An Enter within one is a line end unless nothing follows it.

    def _track_burst(self, event: events.Key, gap: float) -> None:
        if gap > BURST_GAP:
            self._close_burst()
            self._burst_start = self.cursor_location
        elif self._waiting_enter:
            self._waiting_enter = False
            self._newline()
        self._burst.append(event.character or event.key)
        self.end_burst_in(BURST_END if len(self._burst) > BURST_LENGTH else None)

    def end_burst_in(self, seconds: float | None) -> None:
        """End a burst of keys after this delay, unless a key follows; None: not before the next key."""
        if self._burst_end:
            self._burst_end.stop()
            self._burst_end = None
        if seconds is not None:
            self._burst_end = self.set_timer(seconds, self._end_behind_keys)

    def _end_behind_keys(self) -> None:
        """Close the burst behind the keys that came before this moment: on a busy machine they may still wait in the
        app's queue, then in this one, and each of them begins the wait again."""
        ended = self._burst_end

        def close() -> None:
            if self._burst_end is ended:
                self._close_burst()

        self.app.call_later(self.call_later, close)  # pyright: ignore[reportUnknownMemberType] - App is generic

    def _enter(self) -> None:
        if len(self._burst) > BURST_LENGTH:
            self._waiting_enter = True
        else:
            self.submit()

    def _close_burst(self) -> None:
        burst, self._burst = self._burst, []
        waiting, self._waiting_enter = self._waiting_enter, False
        lines = sum(key in {"\r", "\n"} for key in burst)
        if waiting and lines <= 1:
            self.submit()
        elif waiting:
            self._newline()
        if len(burst) > BURST_LENGTH and self._burst_start <= self.cursor_location:
            text = self.get_text_range(self._burst_start, self.cursor_location)
            token = self.pastes.fold(text)
            if token is not text:
                self._replace_via_keyboard(token, self._burst_start, self.cursor_location)

    async def _take_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        if event.text:
            await self.insert_paste(event.text)
        else:
            # So terminals paste a clipboard without text: it may hold a picture.
            self.action_paste()

    def insert_picture(self, name: str) -> None:
        """Put a chip for the picture ``name``, a path that can be mentioned, at the cursor."""
        self._replace_via_keyboard(f"{self.pastes.picture(name)} ", *self.selection)
        self._restart_blink()

    async def insert_paste(self, text: str) -> None:
        """Insert foreign text at the cursor: cleaned, and folded when it is long. A picture becomes a mention."""
        picture = dropped_picture(text) if takes_pictures(self.text) else ""
        if picture and await asyncio.to_thread(os.path.isfile, picture):
            self.insert_picture(picture)
            return
        text = await asyncio.to_thread(cleaned, text) if len(text) > LARGE else cleaned(text)
        if text:
            self._replace_via_keyboard(self.pastes.fold(text), *self.selection)
            self._restart_blink()

    def action_background_or_left(self) -> None:
        if not (self.to_background and self.to_background()):
            self.action_cursor_left()

    def action_paste(self) -> None:
        self.post_message(self.PasteWanted())

    def action_unfold(self) -> None:
        """Show folded pastes in full, as far as that stays workable. Without any, the key is another's."""
        unfolded = self.value
        if unfolded == self.text:
            raise SkipAction
        if len(unfolded) > LARGE:
            words = f"{len(unfolded):,} characters are too many to edit here. They are sent in full."
            self.post_message(self.Remarked(words))
            return
        self.set_value(unfolded)

    def _whole(self, location: Location, *, forward: bool) -> Location:
        """Return ``location`` moved out of a paste token, and to the end of the text if it is below it."""
        row, column = location = min(location, self.document.end)
        for start, end in self.pastes.spans(self.document.get_line(row)):
            if start < column < end:
                return row, (end if forward else start)
        return location

    def _delete_via_keyboard(self, start: Location, end: Location) -> EditResult | None:
        start, end = sorted((start, end))
        return super()._delete_via_keyboard(self._whole(start, forward=False), self._whole(end, forward=True))

    def _replace_via_keyboard(self, insert: str, start: Location, end: Location) -> EditResult | None:
        start, end = sorted((start, end))
        start = self._whole(start, forward=start == end)
        return super()._replace_via_keyboard(insert, start, self._whole(end, forward=True))

    def _restart_blink(self) -> None:
        if self._rest:
            self._rest.stop()
            self._rest = None
        if self.still or not self.cursor_blink:
            self._pause_blink(visible=True)
            return
        super()._restart_blink()
        if self.is_mounted:
            self._rest = self.set_timer(REST, self._pause_blink)
