"""Text fields whose cursor steps over whole characters as people see them, and never stands or deletes inside one."""

from __future__ import annotations

import asyncio

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

from ba_tui.faces.tui.graphemes import (
    cluster_after,
    cluster_before,
    cluster_start,
    known,
    load,
    word_after,
    word_before,
)

NEAR = 40
"""Characters on either side of a line break that are looked at; longer clusters hardly fit into a row."""


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
    """``column``, or the beginning of the cluster that would be broken there. Called for all rows of a line."""
    letter = line[column]
    if letter < "\u0300" or "\u3400" <= letter <= "\u9fff" or (letter.isalpha() and line[column - 1] == " "):
        return column
    first = max(0, column - NEAR)
    return first + cluster_start(line[first : column + NEAR], column - first)


def is_text(key: Key) -> bool:
    """Return whether ``key`` types a character.

    That includes joiners, and the wide and the fixed space: Python, and so Textual, does not count them as printable.
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
        """The cursor's line, its row and its column."""
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
        """The line; under the cursor a whole cluster has its colours, as it would fall apart otherwise."""
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
