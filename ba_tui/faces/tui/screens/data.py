"""The data screen: datasets and results of the session with their columns. Enter opens one as a grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from ba_tui.core.errors import BaError
from ba_tui.core.ports.datasets import Datasets, SourceInfo
from ba_tui.core.ports.tables import Catalogue, Column, Dataset, QueryResult
from ba_tui.core.text.wording import count, one_line, with_hint
from ba_tui.faces.tui.screens.picker import Picker, PickerChoice, app_of

EMPTY = "No data yet. /data FILE opens a CSV, JSON, Parquet, Excel or SQLite file."
SHOWN = 40
"""Columns whose names are shown."""
LONGEST = 300
SOURCE = "source:"
KEYS = "Enter opens as a grid · type to search · Esc closes"


class DataList(Picker):
    """Results first, the newest on top; then datasets, then sources with the tables that they have. Typing looks into
    names, sources, queries and columns. A source is asked for its tables when it is chosen, not before."""

    def __init__(self, datasets: Datasets, catalogue: Catalogue) -> None:
        size = f"{count(len(catalogue.datasets), 'dataset')}, {count(len(catalogue.results), 'result')}"
        self._rows = [*map(_result, reversed(catalogue.results)), *map(_dataset, catalogue.datasets)]
        super().__init__(f"Data: {size}", (), keys=KEYS)
        self.empty = EMPTY
        self._datasets = datasets
        self._list_sources()

    def choose(self, id: str) -> None:
        if not id.startswith(SOURCE):
            self._show(id)
            return
        source, _, table = id.removeprefix(SOURCE).partition(".")
        self.say(f"Asking {source} …")
        self.run_worker(partial(self._looked, source, table), exclusive=True)

    def _show(self, name: str) -> None:
        from ba_tui.faces.tui.grid.screen import GridScreen  # noqa: PLC0415 - loaded for the first grid

        app_of(self).push_screen(GridScreen(self._datasets, name))

    async def _looked(self, source: str, table: str) -> None:
        """List the tables of a source, or show the first rows of one."""
        try:
            if table:
                self._show(await self._datasets.preview(source, table))
            else:
                await self._datasets.source_tables(source)
                self._list_sources()
                self.refill()
        except BaError as error:
            self.say(with_hint(str(error), error.hint))
        else:
            self.say(KEYS)

    def _list_sources(self) -> None:
        sources = (row for source in self._datasets.sources() for row in _source(source))
        self.choices = [*self._rows, *sources]


def _source(source: SourceInfo) -> Iterator[PickerChoice]:
    below = "Enter lists its tables" if source.tables is None else count(len(source.tables), "table")
    yield PickerChoice(f"{SOURCE}{source.name}", (f"@{source.name}  {source.engine}", "source"), below)
    for table in source.tables or ():
        yield PickerChoice(f"{SOURCE}{source.name}.{table}", (f"@{source.name}.{table}", "source"))


def _result(result: QueryResult) -> PickerChoice:
    sql = one_line(result.provenance.sql, LONGEST)
    cells = (f"{result.handle}  {sql}", *_size(result.rows, result.columns))
    return PickerChoice(result.handle, cells, _names(result.columns), keywords=_all_names(result.columns))


def _dataset(dataset: Dataset) -> PickerChoice:
    part = f" · {dataset.part}" if dataset.part else ""
    skipped = f" · {count(dataset.rows_skipped, 'bad row')} skipped" if dataset.rows_skipped else ""
    title = f"{dataset.name}  {dataset.source}{part}{skipped}"
    cells = (title, *_size(dataset.rows, dataset.columns))
    return PickerChoice(dataset.name, cells, _names(dataset.columns), keywords=_all_names(dataset.columns))


def _size(rows: int, columns: Sequence[Column]) -> tuple[str, str]:
    return count(rows, "row"), count(len(columns), "column")


def _names(columns: Sequence[Column]) -> str:
    more = f", … {len(columns) - SHOWN:,} more" if len(columns) > SHOWN else ""
    return ", ".join(one_line(column.name, 40) for column in columns[:SHOWN]) + more


def _all_names(columns: Sequence[Column]) -> str:
    return " ".join(column.name for column in columns)
