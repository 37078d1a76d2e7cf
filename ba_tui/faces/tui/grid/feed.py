"""The rows of one table in one arrangement, asked of the engine page by page."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.ports.tables import Arrangement, Column, Row
from ba_tui.faces.tui.grid.window import RowWindow, page_rows


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
