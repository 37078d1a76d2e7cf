"""The rows of one table in one arrangement, asked of the engine page by page."""

from __future__ import annotations

from collections.abc import Sequence

from textual.cache import LRUCache

from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.ports.tables import Arrangement, Column, Page, Row

KEPT = 12
"""Pages."""
CELLS = 20_000
"""Cells of a page, about."""
MOST_ROWS = 1_000
"""Rows of a page: some twenty screens, so that paging seldom waits."""


class RowWindow:
    """Rows in one arrangement, by their place in it. ``first`` is its first page."""

    def __init__(self, first: Page, page_rows: int) -> None:
        self.columns: Sequence[Column] = first.columns
        self.total = first.total
        self.page_rows = page_rows
        self._pages: LRUCache[int, Page] = LRUCache(KEPT)
        self.keep(first)

    def keep(self, page: Page) -> None:
        """Take a page that begins at a multiple of ``page_rows``."""
        if page.total != self.total or page.columns != self.columns:
            # The table is another one now: its file changed.
            self._pages.clear()
            self.total, self.columns = page.total, page.columns
        self._pages[page.offset // self.page_rows] = page

    def row(self, at: int) -> tuple[int, Row] | None:
        """The number of a row in the table itself, and its cells; None while they are not here."""
        index, place = divmod(at, self.page_rows)
        page = self._pages.get(index)
        return (page.numbers[place], page.rows[place]) if page and place < len(page.rows) else None

    def missing(self, first: int, last: int) -> int | None:
        """The offset of a page that rows ``first`` to ``last`` need, else one beside them; None when all are here."""
        low, high = max(0, first) // self.page_rows, max(0, min(last, self.total - 1)) // self.page_rows
        beside = (each for each in (high + 1, low - 1) if 0 <= each * self.page_rows < self.total)
        needed = (each for each in (*range(low, high + 1), *beside) if each not in self._pages)
        found = next(needed, None)
        return None if found is None else found * self.page_rows


def page_rows(columns: int) -> int:
    """Rows of a page of a table with so many columns."""
    return max(20, min(MOST_ROWS, CELLS // max(1, columns)))


class RowFeed:
    """Rows are counted from 0 in the arrangement. What is fetched raises BaError."""

    def __init__(self, datasets: Datasets, table: str) -> None:
        self.datasets = datasets
        self.table = table
        self.arrangement = Arrangement()
        self._window: RowWindow | None = None

    @property
    def ready(self) -> bool:
        """Whether there is anything to show."""
        return self._window is not None

    @property
    def total(self) -> int:
        """Rows of the arrangement."""
        return self._window.total if self._window else 0

    @property
    def columns(self) -> Sequence[Column]:
        return self._window.columns if self._window else ()

    def row(self, at: int) -> tuple[int, Row] | None:
        """The number of a row in the table itself, and its cells; None while they are not here."""
        return self._window.row(at) if self._window else None

    def lacks(self, first: int, last: int) -> bool:
        """Whether a page for these rows, or beside them, is still to be fetched."""
        return self._window is not None and self._window.missing(first, last) is not None

    async def arrange(self, wanted: Arrangement) -> None:
        """Take another arrangement once its first rows are here; until then, and if it fails, the present one stays."""
        count = len(self.columns) or len((await self.datasets.page(self.table, limit=0)).columns)
        size = page_rows(count)
        first = await self.datasets.page(self.table, wanted, limit=size)
        self._window, self.arrangement = RowWindow(first, size), wanted

    async def fetch(self, first: int, last: int) -> None:
        """Fetch one page that ``lacks`` tells of."""
        window = self._window
        offset = window.missing(first, last) if window else None
        if window is None or offset is None:
            return
        page = await self.datasets.page(self.table, self.arrangement, offset=offset, limit=window.page_rows)
        window.keep(page)

    async def rows(self, first: int, count: int) -> Sequence[tuple[int, Row]]:
        """Rows for copying, with their numbers in the table itself."""
        page = await self.datasets.page(self.table, self.arrangement, offset=first, limit=count)
        return list(zip(page.numbers, page.rows, strict=True))
