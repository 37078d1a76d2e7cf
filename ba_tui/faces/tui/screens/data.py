"""The data screen: datasets and results of the session with their columns. Enter opens one as a grid."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.ports.tables import Catalogue, Column, Dataset, Finding, QueryResult
from ba_tui.core.text.wording import count, one_line
from ba_tui.faces.tui.screens.picker import Picker, PickerChoice, app_of

EMPTY = "No data yet. /data FILE opens a CSV, JSON, Parquet, Excel or SQLite file."
SHOWN = 40
"""Columns whose names are shown."""
LONGEST = 300


class DataList(Picker):
    """Results first, the newest on top; then datasets. Typing looks into names, sources, queries and columns."""

    def __init__(self, datasets: Datasets, catalogue: Catalogue) -> None:
        size = f"{count(len(catalogue.datasets), 'dataset')}, {count(len(catalogue.results), 'result')}"
        rows = [_result(each) for each in reversed(catalogue.results)]
        rows += [_dataset(each, catalogue.findings_of(each.name)) for each in catalogue.datasets]
        super().__init__(f"Data: {size}", rows, keys="Enter opens as a grid · type to search · Esc closes")
        self.empty = EMPTY
        self._datasets = datasets

    def choose(self, id: str) -> None:
        from ba_tui.faces.tui.grid.screen import GridScreen  # noqa: PLC0415 - loaded for the first grid

        app_of(self).push_screen(GridScreen(self._datasets, id))


def _result(result: QueryResult) -> PickerChoice:
    sql = one_line(result.provenance.sql, LONGEST)
    cells = (f"{result.handle}  {sql}", _warned(result.findings), *_size(result.rows, result.columns))
    return PickerChoice(result.handle, cells, _names(result.columns), keywords=_all_names(result.columns))


def _dataset(dataset: Dataset, findings: Sequence[Finding]) -> PickerChoice:
    part = f" · {dataset.part}" if dataset.part else ""
    skipped = f" · {count(dataset.rows_skipped, 'bad row')} skipped" if dataset.rows_skipped else ""
    title = f"{dataset.name}  {dataset.source}{part}{skipped}"
    cells = (title, _warned(findings), *_size(dataset.rows, dataset.columns))
    return PickerChoice(dataset.name, cells, _names(dataset.columns), keywords=_all_names(dataset.columns))


def _warned(findings: Sequence[Finding]) -> str:
    told = sum(not each.muted for each in findings)
    return f"! {count(told, 'warning')}" if told else ""


def _size(rows: int, columns: Sequence[Column]) -> tuple[str, str]:
    return count(rows, "row"), count(len(columns), "column")


def _names(columns: Sequence[Column]) -> str:
    more = f", … {len(columns) - SHOWN:,} more" if len(columns) > SHOWN else ""
    return ", ".join(one_line(column.name, 40) for column in columns[:SHOWN]) + more


def _all_names(columns: Sequence[Column]) -> str:
    return " ".join(column.name for column in columns)
