"""The rows of a table that are in memory: some pages around what is seen. Fetching them is the view's business."""

from __future__ import annotations

from collections.abc import Sequence

from textual.cache import LRUCache

from ba_tui.core.ports.tables import Column, Page, Row

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
