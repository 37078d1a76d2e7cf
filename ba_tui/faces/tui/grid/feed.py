"""Rows of a table, fetched page by page from the engine; cells as text; selections; detection of tables in output."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from itertools import islice
from typing import Literal, TypeAlias

from textual.cache import LRUCache

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.datasets import Datasets, OutputFormat
from ba_tui.core.ports.tables import Arrangement, Cell, Column, Page, Row
from ba_tui.core.text.cells import width_of
from ba_tui.core.text.json_text import read_object
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen

KEPT = 12
"""Pages."""
CELLS = 20_000
"""Cells of a page, about."""
MOST_ROWS = 1_000
"""Rows of a page: some twenty screens, so that paging seldom waits."""


def page_rows(columns: int) -> int:
    """Return rows of a page of a table with so many columns."""
    return max(20, min(MOST_ROWS, CELLS // max(1, columns)))


class RowFeed:
    """Rows of a table in one ``arrangement``, numbered from 0 in it, of which some pages are here. Fetching raises
    BaError."""

    def __init__(self, datasets: Datasets, table: str) -> None:
        self.datasets = datasets
        self.table = table
        self.arrangement = Arrangement()
        self.ready = False
        """Whether there is anything to show."""
        self.total = 0
        """The number of rows in the arrangement."""
        self.columns: Sequence[Column] = ()
        self._size = MOST_ROWS
        """Rows of a page."""
        self._pages: LRUCache[int, Page] = LRUCache(KEPT)

    def row(self, at: int) -> tuple[int, Row] | None:
        """Return the number of a row in the table itself, and its cells; None while they are not here."""
        index, place = divmod(at, self._size)
        page = self._pages.get(index)
        return (page.numbers[place], page.rows[place]) if page and place < len(page.rows) else None

    def lacks(self, first: int, last: int) -> bool:
        """Return whether a page for these rows, or an adjacent one, is missing."""
        return self._missing(first, last) is not None

    def _missing(self, first: int, last: int) -> int | None:
        """Return the offset of a missing page for rows ``first`` to ``last``, else of an adjacent page."""
        if not self.ready:
            return None
        low, high = max(0, first) // self._size, max(0, min(last, self.total - 1)) // self._size
        beside = (each for each in (high + 1, low - 1) if 0 <= each * self._size < self.total)
        needed = (each for each in (*range(low, high + 1), *beside) if each not in self._pages)
        found = next(needed, None)
        return None if found is None else found * self._size

    async def arrange(self, wanted: Arrangement) -> None:
        """Take another arrangement once its first rows are here; until then, and if it fails, the present one stays."""
        count = len(self.columns) or len((await self.datasets.page(self.table, limit=0)).columns)
        size = page_rows(count)
        first = await self.datasets.page(self.table, wanted, limit=size)
        self._size, self.arrangement, self.ready, self._pages = size, wanted, True, LRUCache(KEPT)
        self._keep(first)

    async def fetch(self, first: int, last: int) -> None:
        """Fetch one page that ``lacks`` tells of."""
        offset, pages = self._missing(first, last), self._pages
        if offset is not None:
            page = await self.datasets.page(self.table, self.arrangement, offset=offset, limit=self._size)
            # Meanwhile there may be another arrangement.
            if pages is self._pages:
                self._keep(page)

    def _keep(self, page: Page) -> None:
        """Take a page that begins at a multiple of the size of pages."""
        if page.total != self.total or page.columns != self.columns:
            # The table is another one now: its file changed.
            self._pages.clear()
            self.total, self.columns = page.total, page.columns
        self._pages[page.offset // self._size] = page

    async def rows(self, first: int, count: int) -> Sequence[tuple[int, Row]]:
        """Return rows for copying, with their numbers in the table itself."""
        page = await self.datasets.page(self.table, self.arrangement, offset=first, limit=count)
        return list(zip(page.numbers, page.rows, strict=True))


CopyFormat: TypeAlias = Literal["tsv", "csv", "markdown"]
WIDEST = 40
"""Characters of a cell in the grid."""
NULL = "NULL"


def cell_text(value: Cell, longest: int = 200) -> str:
    """Return a value in one line that can be painted."""
    if isinstance(value, str):
        return value if value.isascii() and value.isprintable() else paintable(value[:longest], newlines=False)
    return plain(value) or NULL


def plain(value: Cell) -> str:
    """Return a value as files have it; NULL is empty."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def cell_width(text: str) -> int:
    """Columns of the terminal that ``text`` takes in the grid, at most ``WIDEST``."""
    return min(WIDEST, width_of(text))


def letters(place: int) -> str:
    """Return what a spreadsheet calls the column at ``place`` (from 0): A, B, … Z, AA."""
    text, place = "", place + 1
    while place:
        place, rest = divmod(place - 1, 26)
        text = chr(ord("A") + rest) + text
    return text


def copied(columns: Sequence[Column], rows: Sequence[Row], format: CopyFormat) -> str:
    """Return rows as text; with the names of the columns, unless it is one cell."""
    if len(columns) == 1 and len(rows) == 1 and format != "markdown":
        return plain(rows[0][0])
    names = [column.name for column in columns]
    if format == "markdown":
        return _markdown(columns, [names, *([plain(value) for value in row] for row in rows)])
    out = io.StringIO()
    if format == "csv":
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([plain(value) for value in row] for row in rows)
        return out.getvalue().removesuffix("\n")
    # Spreadsheets read a line as a row and a tab as the end of a cell, so cells must not contain them.
    lines = [names, *([plain(value) for value in row] for row in rows)]
    return "\n".join("\t".join(" ".join(text.split()) for text in line) for line in lines)


def _markdown(columns: Sequence[Column], lines: Sequence[Sequence[str]]) -> str:
    ruler = ["---:" if column.numeric else "---" for column in columns]
    escaped = [[" ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|") for text in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in (escaped[0], ruler, *escaped[1:]))


MOST_COPIED_ROWS = 10_000
"""Rows that are copied or named at most."""
MOST_RANGES = 20


@frozen
class CellSelection:
    """Rows of the arrangement from ``first`` on, and ``columns`` of the table in order."""

    first: int
    rows: int
    columns: tuple[int, ...]

    @property
    def words(self) -> str:
        """``3 rows × 2 columns``; empty for a single cell."""
        single = self.rows == 1 and len(self.columns) == 1
        return "" if single else f"{count(self.rows, 'row')} × {count(len(self.columns), 'column')}"

    async def text(self, feed: RowFeed, format: CopyFormat) -> tuple[str, str]:
        """Return the cells as text, and a note where that is not all of them."""
        rows = await feed.rows(self.first, min(self.rows, MOST_COPIED_ROWS))
        columns = [feed.columns[index] for index in self.columns]
        note = (
            f"These are the first {MOST_COPIED_ROWS:,} of {self.rows:,} rows." if self.rows > MOST_COPIED_ROWS else ""
        )
        return copied(columns, [self._cells(row) for _, row in rows], format), note

    async def mention(self, feed: RowFeed) -> str:
        """Return ``@R3[B2:C9]``: the cells by their places in the table itself, which no arrangement changes.

        Raises UsageError when they lie in too many places.
        """
        if self.rows > MOST_COPIED_ROWS:
            raise UsageError(
                f"A mention takes at most {MOST_COPIED_ROWS:,} rows.", f"Select fewer, or type @{feed.table}."
            )
        rows = await feed.rows(self.first, self.rows)
        areas = [(one, two) for one in _runs([number for number, _ in rows]) for two in _runs(self.columns)]
        if len(areas) > MOST_RANGES:
            hint = "Undo the sort, or select fewer rows."
            raise UsageError(f"These cells lie in {len(areas):,} separate places of {feed.table}.", hint)
        return " ".join(f"@{feed.table}[{_area(rows, columns)}]" for rows, columns in areas)

    def _cells(self, row: Row) -> tuple[Cell, ...]:
        return tuple(row[index] for index in self.columns)


def _runs(numbers: Sequence[int]) -> Sequence[tuple[int, int]]:
    """Return runs of consecutive numbers as pairs of first and last."""
    runs: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _area(rows: tuple[int, int], columns: tuple[int, int]) -> str:
    first, last = f"{letters(columns[0])}{rows[0] + 1}", f"{letters(columns[1])}{rows[1] + 1}"
    return first if first == last else f"{first}:{last}"


LOOK = 8_000
"""Characters of a text by which its format is detected."""
LINES = 10
SEPARATORS = ",\t;|"


def output_format(text: str) -> OutputFormat | None:
    """Return the format of a text whose first lines have the same columns; None for any other text."""
    whole = len(text) <= LOOK
    lines = [line for line in text[:LOOK].splitlines()[: None if whole else -1] if line.strip()][:LINES]
    if len(lines) < 2:
        return None
    if lines[0].lstrip().startswith("{"):
        return "jsonl" if all(read_object(line) is not None for line in lines) else None
    return "csv" if any(_is_csv(lines, separator) for separator in SEPARATORS) else None


def _is_csv(lines: list[str], separator: str) -> bool:
    """Return whether each line has the same fields, at least two, and the first names all of them, each once."""
    try:
        rows = list(islice(csv.reader(lines, delimiter=separator, strict=True), LINES))
    except csv.Error:
        return False
    head = [name.strip() for name in rows[0]]
    return len(head) > 1 and all(head) and len(set(head)) == len(head) and {len(row) for row in rows} == {len(head)}
