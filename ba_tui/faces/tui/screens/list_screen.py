"""The one list of the app: rows that the user filters by typing, chooses from, and acts on with keys.

A short list of fixed rows is a value, ``ListScreen(title, rows)``. A browser is a subclass: it reads its rows in
``read`` or ``load``, opens one in ``choose``, and has its other actions as ``BINDINGS``, from which the line of keys is
made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import ClassVar, Generic, TypeVar

from rich.cells import cell_len, set_cell_size
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from ba_tui.core.errors import BaError
from ba_tui.core.text.cells import fit_words
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.values import frozen
from ba_tui.faces.tui.screens.sheet import Sheet, spelled
from ba_tui.faces.tui.widgets.text_fields import ClusterInput

T = TypeVar("T")
RELOAD = Binding("r", "reload", "refresh")
"""For lists in which letters are keys."""
HEADING = "\0"
"""First character of the ids of options that can't be chosen."""


@frozen
class ListRow(Generic[T]):
    """One row. ``value`` is the object that it shows; its ``id`` is unique in the list.

    ``cells`` are aligned columns: the first one gets the remaining width. ``below`` is a second, muted line.
    ``keywords`` are searched but not shown. Consecutive rows of one ``group`` are shown under a heading.
    """

    id: str
    cells: tuple[str, ...]
    below: str = ""
    current: bool = False
    keywords: str = ""
    value: T | None = None
    group: str = ""

    @property
    def searched(self) -> str:
        return " ".join((*self.cells, self.below, self.keywords)).casefold()


@frozen
class ListContent(Generic[T]):
    """The rows that were read, with the title of the list and the text in place of rows if there are none."""

    rows: Sequence[ListRow[T]]
    title: str = ""
    empty: str = ""


class ListScreen(Sheet[str], Generic[T]):
    """Dismissed with the id of the chosen row, or None. Without ``rows`` they are read as soon as the list is shown."""

    FILTERED: ClassVar[bool] = True
    """Whether typed letters filter the rows; else letters are keys."""
    DETAIL: ClassVar[bool] = False
    """Whether ``detail`` of the row at the cursor is shown below the rows."""
    MOST: ClassVar[int] = 1_000_000
    """Rows that are shown at a time."""
    PAUSE: ClassVar[float] = 0.15
    """Seconds without a key until ``search`` is called."""
    ENTER: ClassVar[str] = "choose"
    """What Enter does, for the line of keys."""
    LEAVE: ClassVar[str] = "close"
    """What Esc does, for the line of keys."""
    EMPTY: ClassVar[str] = "Nothing to choose from."
    READING: ClassVar[str] = "Looking …"
    """Shown until rows are read."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "step(-1)", "Up", show=False, priority=True),
        Binding("down", "step(1)", "Down", show=False, priority=True),
        Binding("pageup", "step(-8)", "Page up", show=False, priority=True),
        Binding("pagedown", "step(8)", "Page down", show=False, priority=True),
        Binding("j", "step(1)", "Down", show=False),
        Binding("k", "step(-1)", "Up", show=False),
        Binding("q", "close", "Close", show=False),
    ]

    def __init__(self, title: str, rows: Sequence[ListRow[T]] | None = None, *, lead: str = "") -> None:
        super().__init__(title)
        self.rows: Sequence[ListRow[T]] = rows or ()
        self.empty = self.READING if rows is None else self.EMPTY
        self.message = ""
        """Shown in place of the keys until the cursor moves or the words change."""
        self._reads = rows is None
        self._lead = lead
        self._asked = ""
        self._more: list[str] = []
        self._search_due = self._searching = False

    def body(self) -> ComposeResult:
        lead = Static(paintable(self._lead), classes="lead", markup=False)
        lead.display = bool(self._lead)
        yield lead
        field = ClusterInput(placeholder="Type to search", compact=True, select_on_focus=False)
        field.cursor_blink = False
        field.display = self.FILTERED
        yield field
        options = OptionList(compact=True, markup=False)
        options.can_focus = not self.FILTERED
        yield options
        if self.DETAIL:
            yield Static(classes="detail", markup=False)

    @on(events.Mount)
    def _mounted(self) -> None:
        self.query_one(Input if self.FILTERED else OptionList).focus()
        if self._reads:
            self.action_reload()

    @on(events.Resize)
    def _resized(self) -> None:
        self.call_after_refresh(self.refill)

    # For subclasses

    def read(self) -> ListContent[T]:
        """Read the rows; called in a thread. May raise BaError."""
        raise NotImplementedError

    async def load(self) -> None:
        """Read the rows and ``show`` them. May raise BaError."""
        self.show(await asyncio.to_thread(self.read))

    async def search(self) -> None:
        """Look for the words where reading takes time; see ``search_soon``. May raise BaError."""

    def matching(self) -> Sequence[ListRow[T]]:
        """Return the rows that match the words, in the order in which they are shown."""
        words = self.words.casefold().split()
        return [row for row in self.rows if all(word in row.searched for word in words)]

    def choose(self, row: ListRow[T]) -> None:
        """Open ``row``, or dismiss the list with it."""
        self.dismiss(row.id)

    def detail(self, row: ListRow[T]) -> str:
        """Return the text below the rows."""
        return row.below

    def moved(self, row: ListRow[T]) -> None:
        """Follow the cursor, which is now at ``row``."""

    def group_heading(self, group: str) -> Content:
        """Return the heading of a group of rows."""
        return Content.styled(paintable(group, newlines=False), "bold")

    def footer(self) -> list[str]:
        """Return the keys with their actions."""
        bindings = [each for each in type(self).BINDINGS if isinstance(each, Binding) and each.show]
        keys = [f"{each.key_display or spelled(each.key.split(',')[0])} {each.description}" for each in bindings]
        return [*([f"Enter {self.ENTER}"] if self.ENTER else []), *keys, f"Esc {self.LEAVE}"]

    # The rows

    @property
    def words(self) -> str:
        """The words that are typed."""
        return self.query_one(Input).value

    @property
    def highlighted(self) -> str | None:
        """The id of the row at the cursor."""
        option = self.query_one(OptionList).highlighted_option
        return option.id if option and option.id and not option.id.startswith(HEADING) else None

    @property
    def row(self) -> ListRow[T] | None:
        """The row at the cursor."""
        return self._row_of(self.highlighted)

    @property
    def item(self) -> T | None:
        """The value of the row at the cursor."""
        return self.row.value if self.row else None

    def _row_of(self, id: str | None) -> ListRow[T] | None:
        """Return the row with ``id``."""
        return next((row for row in self.rows if row.id == id), None)

    def show(self, listing: ListContent[T]) -> None:
        """Show the rows of ``listing``."""
        self.rows = listing.rows
        self.empty = listing.empty or self.EMPTY
        if listing.title:
            self.entitle(listing.title)
        self.refill()

    def refill(self) -> None:
        """Show the rows that match, with the cursor at the same row as before."""
        options, before = self.query_one(OptionList), self.highlighted
        matching = self.matching()
        shown = matching[: self.MOST]
        found = self.options(shown, max(20, options.size.width - 4))
        empty = "Nothing matches." if self.rows and not shown else self.empty
        options.clear_options()
        options.add_options(found or [Option(empty, HEADING, disabled=True)])
        places = {option.id: place for place, option in enumerate(found) if not option.disabled}
        current = next((row.id for row in shown if row.current), None)
        first = next(iter(places.values()), None)
        options.highlighted = places.get(before, places.get(current, first))
        cut = len(matching) > self.MOST
        self._more = [f"{self.MOST} of {len(matching):,} shown: type to find others"] if cut else []
        self._show_keys()
        self._show_detail()

    def options(self, rows: Sequence[ListRow[T]], width: int) -> list[Option]:
        """Return ``rows`` and the headings of their groups in ``width`` cells."""
        found: list[Option] = []
        group = ""
        for row, painted in zip(rows, painted_rows(rows, width), strict=True):
            if row.group != group:
                group = row.group
                found.append(Option(self.group_heading(group), f"{HEADING}{group}", disabled=True))
            found.append(Option(painted, row.id))
        return found

    def action_reload(self) -> None:
        """Read the rows again."""
        self.run_worker(partial(self._attempt, self.load), group="load", exclusive=True, exit_on_error=False)

    def search_soon(self) -> None:
        """Call ``search`` once the words have not changed for ``PAUSE``; one search at a time."""
        self._search_due = True
        if not self._searching:
            self._searching = True
            self.run_worker(partial(self._attempt, self._search), group="search", exit_on_error=False)

    async def _search(self) -> None:
        try:
            while self._search_due:
                await asyncio.sleep(self.PAUSE)
                self._search_due = False
                await self.search()
        finally:
            self._searching = False

    # Messages and the line of keys

    def say(self, text: str, style: str = "") -> None:
        """Show a message in place of the keys until the cursor moves or the words change."""
        self.message = text
        if text:
            super().say(text, style)
        else:
            self._show_keys()

    def _show_keys(self) -> None:
        """Show the keys, unless there is a message."""
        place = self.query_one(".keys", Static)
        if not self.message:
            width = 0 if self.has_class("-low") else place.size.width
            self.keys = _in_lines([*self._more, *self.footer()], width)
            place.update(self.keys)

    def _show_detail(self) -> None:
        if self.DETAIL:
            row = self.row
            self.query_one(".detail", Static).update(paintable(self.detail(row)) if row else "")

    def _settle(self) -> None:
        """End the message and the question of ``confirmed``."""
        self._asked = ""
        if self.message:
            self.say("")

    def lead(self, text: Content | str) -> None:
        """Show ``text`` above the rows."""
        place = self.query_one(".lead", Static)
        place.display = bool(text)
        place.update(paintable(text) if isinstance(text, str) else text)

    # Actions

    def perform(self, work: Callable[[], Awaitable[object]], done: str = "") -> None:
        """Await ``work`` and read the rows again; then show the text that ``work`` returned, else ``done``.

        A BaError is shown in their place.
        """
        self.run_worker(partial(self._perform, work, done), group="work", exit_on_error=False)

    async def _perform(self, work: Callable[[], Awaitable[object]], done: str) -> None:
        async def run() -> None:
            result = await work()
            await self.load()
            self.say(result if isinstance(result, str) else done)

        await self._attempt(run)

    async def _attempt(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except BaError as error:
            self.say(error.with_hint)

    def confirmed(self, id: str, question: str) -> bool:
        """Return whether a key was pressed twice at the row with ``id``; the first time, ask ``question``."""
        again, self._asked = self._asked == id, "" if self._asked == id else id
        if not again:
            self.say(question)
        return again

    @on(Input.Changed)
    def _filter(self, event: Input.Changed) -> None:
        event.stop()
        self._settle()
        self.refill()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if row := self.row:
            self.choose(row)

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if row := self._row_of(event.option_id):
            self.choose(row)

    @on(OptionList.OptionHighlighted)
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        if row := self._row_of(event.option_id):
            self._show_keys()
            self._show_detail()
            self.moved(row)

    def action_step(self, by: int) -> None:
        """Move the cursor over headings. A single step goes around the ends of the list; a page stops there."""
        options = self.query_one(OptionList)
        rows = [index for index, option in enumerate(options.options) if not option.disabled]
        if options.highlighted in rows:
            target = rows.index(options.highlighted) + by
            last = len(rows) - 1
            options.highlighted = rows[target % (last + 1) if abs(by) == 1 else max(0, min(last, target))]
            if options.highlighted == rows[0]:
                # The heading above the first row is shown with it.
                options.scroll_home(animate=False)
        self._settle()


class ChoiceList(ListScreen[str]):
    """A few fixed choices without a filter; ``lead`` explains them."""

    FILTERED: ClassVar[bool] = False
    LEAVE: ClassVar[str] = "cancel"


def _in_lines(items: Sequence[str], width: int) -> str:
    """Return ``items`` in as few lines of ``width`` cells as their total length needs, with equally many in each."""
    whole = " · ".join(items)
    lines = -(-cell_len(whole) // width) if width > 0 else 1
    each = -(-len(items) // lines)
    return "\n".join(" · ".join(items[start : start + each]) for start in range(0, len(items), each))


def painted_rows(rows: Sequence[ListRow[T]], width: int) -> list[Content]:
    """Paint rows with aligned columns; the last columns are left out when there is too little room."""
    if not rows:
        return []
    cells = [[paintable(cell, newlines=False) for cell in row.cells] for row in rows]
    columns = max(map(len, cells))
    widths = [max((cell_len(row[index]) for row in cells if index < len(row)), default=0) for index in range(columns)]
    shown = columns
    while shown > 1 and width - sum(widths[1:shown]) - 2 * (shown - 1) < min(widths[0] + 2, 24):
        shown -= 1
    first = max(8, width - sum(widths[1:shown]) - 2 * (shown - 1))
    painted: list[Content] = []
    for row, texts in zip(rows, cells, strict=True):
        mark = "● " if row.current else "  "
        # A row of one column has the whole width.
        room = width if len(texts) == 1 else first
        head = (mark + fit_words(texts[0], max(8, room - 2)), "bold" if row.current else "")
        rest = [
            ("  " + set_cell_size(cell, widths[index]), "$text-muted") for index, cell in enumerate(texts[1:shown], 1)
        ]
        lines = [Content.assemble(head, *rest)]
        if row.below:
            below = paintable(row.below, newlines=False)
            lines.append(Content.styled("  " + fit_words(below, width - 2).rstrip(), "$text-muted"))
        painted.append(Content("\n").join(lines))
    return painted
