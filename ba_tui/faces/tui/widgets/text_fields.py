"""Text fields whose cursor moves and deletes by user-perceived characters (extended grapheme clusters), such as a
family emoji or a flag; and the boundaries of these.

The ``regex`` package finds boundaries; it is loaded for the first text that is not ASCII.
"""

from __future__ import annotations

import asyncio
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text
from textual.document._document import DocumentBase, EditResult, Location
from textual.document._document_navigator import DocumentNavigator
from textual.document._edit import Edit
from textual.document._wrapped_document import WrappedDocument
from textual.events import Key, MouseEvent
from textual.strip import Strip
from textual.widgets import Input, TextArea
from textual.widgets.input import Selection

if TYPE_CHECKING:
    from regex import Pattern

REACH = 1_000
"""Characters examined on either side, so that the cost does not depend on the length of the line."""
CLUSTER = r"\X"
_loaded = threading.Event()


@lru_cache(8)
def _pattern(source: str) -> Pattern[str]:
    import regex  # noqa: PLC0415 - 30 ms, only for text that needs it

    return regex.compile(source)


def load() -> None:
    """Make the rest quick; meant for a thread."""
    _pattern(CLUSTER)
    _loaded.set()


def known(text: str) -> bool:
    """Return whether the clusters of ``text`` can be found without loading ``regex``."""
    return text.isascii() or _loaded.is_set()


def cluster_before(text: str, column: int) -> int:
    """Return where the cluster that ends at ``column`` begins, or the one that ``column`` is in; 0 at the start."""
    boundaries = _boundaries(text, column)
    return boundaries[max(0, bisect_left(boundaries, column) - 1)]


def cluster_start(text: str, column: int) -> int:
    """Return ``column``, or the beginning of the cluster that it is in."""
    boundaries = _boundaries(text, column)
    return boundaries[max(0, bisect_right(boundaries, column) - 1)]


def cluster_after(text: str, column: int) -> int:
    """Return where the cluster at ``column`` ends; the length of ``text`` at its end."""
    boundaries = _boundaries(text, column)
    return boundaries[min(len(boundaries) - 1, bisect_right(boundaries, column))]


def without_last(text: str) -> str:
    """Return ``text`` without its last cluster, as Backspace leaves it."""
    return text[: cluster_before(text, len(text))]


def word_before(text: str, column: int) -> int:
    """Return where the word, or the run of signs, before ``column`` begins; letters keep their marks."""
    starts = [found.start() for found in _pattern(r"\w+|[^\w\s]+").finditer(text, 0, column)]
    return cluster_start(text, starts[-1]) if starts else 0


def word_after(text: str, column: int, *, signs: bool = True) -> int:
    """Return where the word after ``column`` ends. With ``signs``, a run of signs is a word, too."""
    found = _pattern(r"\w+|[^\w\s]+" if signs else r"\w+").search(text, column)
    return cluster_after(text, found.end() - 1) if found else len(text)


def _boundaries(text: str, column: int) -> Sequence[int]:
    """Return the boundaries of clusters around ``column``."""
    if text.isascii():
        return range(len(text) + 1)
    first = max(0, column - REACH)
    part = text[first : column + REACH]
    return [*(first + found.start() for found in _pattern(CLUSTER).finditer(part)), first + len(part)]


NEAR = 40
"""Characters examined on either side of a line break."""


class ClusterWrapped(WrappedDocument):
    """Lines that are not broken inside a cluster."""

    def wrap(self, width: int, tab_width: int | None = None) -> None:
        super().wrap(width, tab_width)
        self._mend(0, self.document.line_count)

    def wrap_range(self, start: Location, old_end: Location, new_end: Location) -> None:
        super().wrap_range(start, old_end, new_end)
        self._mend(min(start, new_end)[0], max(start, new_end)[0] + 1)

    def get_target_document_column(self, line_index: int, x_offset: int, y_offset: int) -> int:
        sections = self.get_sections(line_index)
        section = sections[y_offset]
        if section.isascii() or "\t" in section:
            return super().get_target_document_column(line_index, x_offset, y_offset)
        column = width = 0
        while column < len(section):
            end = cluster_after(section, column)
            width += cell_len(section[column:end])
            if width > x_offset:
                break
            column = end
        if y_offset not in {-1, len(sections) - 1}:
            # The place behind the last cluster is on the next row.
            column = min(column, cluster_before(section, len(section)))
        return sum(map(len, sections[:y_offset])) + column

    def _mend(self, first: int, end: int) -> None:
        for row in range(first, min(end, self.document.line_count)):
            line, offsets = self.document.get_line(row), self._wrap_offsets[row]
            if offsets and not line.isascii() and known(line):
                offsets[:] = [_break(line, each) for each in offsets]


def _break(line: str, column: int) -> int:
    """Return ``column``, or the beginning of the cluster that would be split there. Called for all rows of a line."""
    letter = line[column]
    if letter < "\u0300" or "\u3400" <= letter <= "\u9fff" or (letter.isalpha() and line[column - 1] == " "):
        return column
    first = max(0, column - NEAR)
    return first + cluster_start(line[first : column + NEAR], column - first)


def is_text(key: Key) -> bool:
    """Return whether ``key`` types a character, including joiners and wide or fixed spaces, which Textual does not
    report as printable.
    """
    return bool(key.character) and (key.is_printable or key.character > "\x9f")


class ClusterArea(TextArea):
    """A text area that moves, selects and deletes by clusters."""

    async def _on_key(self, event: Key) -> None:
        if is_text(event) and not event.is_printable:
            event.stop()
            event.prevent_default()
            self._replace_via_keyboard(event.character or "", *self.selection)
        else:
            await super()._on_key(event)

    def _set_document(self, text: str, language: str | None) -> None:
        super()._set_document(text, language)
        document: DocumentBase = self.document
        self.wrapped_document = ClusterWrapped(document, tab_width=self.indent_width)
        self.navigator = DocumentNavigator(self.wrapped_document)
        self._rewrap_and_refresh_virtual_size()

        self._learn(text)

    def on_mount(self) -> None:
        self._learn(self.text)

    def edit(self, edit: Edit) -> EditResult:
        self._learn(edit.text)
        return super().edit(edit)

    def _learn(self, text: str) -> None:
        """Load what tells clusters, for the first text that needs it; until then it is painted by characters."""
        if self.is_mounted and not known(text):
            self.run_worker(self._load, group="clusters", exclusive=True, exit_on_error=False)

    async def _load(self) -> None:
        await asyncio.to_thread(load)
        self._rewrap_and_refresh_virtual_size()
        self.refresh()

    def move_cursor(
        self, location: Location, select: bool = False, center: bool = False, record_width: bool = True
    ) -> None:
        row, column = location
        if 0 <= row < self.document.line_count:
            location = row, cluster_start(self.document.get_line(row), column)
        super().move_cursor(location, select, center, record_width)

    def get_target_document_location(self, event: MouseEvent) -> Location:
        row, column = super().get_target_document_location(event)
        return row, cluster_start(self.document.get_line(row), column)

    @property
    def _here(self) -> tuple[str, int, int]:
        """Return the line, the row and the column of the cursor."""
        row, column = self.cursor_location
        return self.document.get_line(row), row, column

    def get_cursor_left_location(self) -> Location:
        line, row, column = self._here
        return (row, cluster_before(line, column)) if column else super().get_cursor_left_location()

    def get_cursor_right_location(self) -> Location:
        line, row, column = self._here
        return (row, cluster_after(line, column)) if column < len(line) else super().get_cursor_right_location()

    def get_cursor_word_left_location(self) -> Location:
        line, row, column = self._here
        if line.isascii() or not column:
            return super().get_cursor_word_left_location()
        return row, word_before(line, column)

    def get_cursor_word_right_location(self) -> Location:
        line, row, column = self._here
        if line.isascii() or column == len(line):
            return super().get_cursor_word_right_location()
        return row, word_after(line, column)

    def action_delete_word_right(self) -> None:
        line, row, column = self._here
        if line.isascii() or column == len(line) or not self.selection.is_empty:
            super().action_delete_word_right()
        else:
            self._delete_via_keyboard((row, column), (row, word_after(line, column, signs=False)))

    def get_line(self, line_index: int) -> Text:
        """Return the line; under the cursor a whole cluster has its colours, as it would fall apart otherwise."""
        line = super().get_line(line_index)
        row, column = self.cursor_location
        style = self._theme.cursor_style
        if line_index == row and style and self._draw_cursor and known(line.plain):
            line.stylize(style, column, cluster_after(line.plain, column))
        return line

    def _render_line(self, y: int) -> Strip:
        return super()._render_line(y).simplify()


class ClusterInput(Input):
    """A line of text that moves, selects and deletes by clusters."""

    async def _on_key(self, event: Key) -> None:
        if is_text(event) and not event.is_printable:
            event.stop()
            event.prevent_default()
            self.replace(event.character or "", *sorted(self.selection))

    def _move(self, column: int, *, select: bool) -> None:
        if select:
            self.selection = Selection(self.selection.start, column)
        else:
            self.cursor_position = column

    def action_cursor_left(self, select: bool = False) -> None:
        if select or self.selection.is_empty:
            self._move(cluster_before(self.value, self.cursor_position), select=select)
        else:
            super().action_cursor_left()

    def action_cursor_right(self, select: bool = False) -> None:
        if select or (self.selection.is_empty and not self.cursor_at_end):
            self._move(cluster_after(self.value, self.cursor_position), select=select)
        else:
            super().action_cursor_right()

    def action_cursor_left_word(self, select: bool = False) -> None:
        if self.password or self.value.isascii():
            super().action_cursor_left_word(select)
        else:
            self._move(word_before(self.value, self.cursor_position), select=select)

    def action_cursor_right_word(self, select: bool = False) -> None:
        if self.password or self.value.isascii():
            super().action_cursor_right_word(select)
        else:
            self._move(word_after(self.value, self.cursor_position), select=select)

    def action_delete_left(self) -> None:
        self._delete(cluster_before(self.value, self.cursor_position))

    def action_delete_right(self) -> None:
        self._delete(cluster_after(self.value, self.cursor_position))

    def action_delete_left_word(self) -> None:
        if self.password or self.value.isascii():
            super().action_delete_left_word()
        else:
            self._delete(word_before(self.value, self.cursor_position))

    def action_delete_right_word(self) -> None:
        if self.password or self.value.isascii():
            super().action_delete_right_word()
        else:
            self._delete(word_after(self.value, self.cursor_position))

    def _delete(self, to: int) -> None:
        if self.selection.is_empty:
            self.delete(to, self.cursor_position)
        else:
            self.delete_selection()

    @property
    def _value(self) -> Text:
        line = super()._value
        if self._cursor_visible and not line.plain.isascii():
            style = self.get_component_rich_style("input--cursor")
            line.stylize(style, self.cursor_position, cluster_after(line.plain, self.cursor_position))
        return line

    def render_line(self, y: int) -> Strip:
        return super().render_line(y).simplify()


RECENT = 0.5
"""Seconds in which a question ignores answers after it appeared, and in which two letters are one word."""


class TypeAhead:
    """Letters that were pressed too soon to answer: an impatient answer, or the beginning of a word."""

    def __init__(self) -> None:
        self._letters: list[Key] = []
        self._last = 0.0

    def word(self, key: Key, *, answers: bool, held: bool, now: float) -> list[Key] | None:
        """Return the letters before ``key`` when it makes a word with them; None when ``key`` is for the question.

        One letter, however often, makes no word when it ``answers``. ``held``: the question has just appeared.
        """
        before = self._letters if now - self._last < RECENT else []
        if key.character == " " and not before:
            return None
        if not answers or (before and before[-1].character != key.character):
            self._letters = []
            return before
        self._letters = [*before, key] if held else []
        self._last = now
        return None
