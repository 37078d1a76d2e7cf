"""What the database knows of itself: datasets with their profiles, and results with their provenance, as JSON."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import duckdb

from ba_tui.analysis.engine_process.cells import listed, row_of
from ba_tui.analysis.engine_process.database import quoted
from ba_tui.analysis.wire import decoded
from ba_tui.core.ports.tables import Column, Dataset, DatasetProfile, Provenance, QueryResult, Row
from ba_tui.core.values import frozen

SCHEMA = "ba"
_TABLES = (
    f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}",
    f"CREATE TABLE IF NOT EXISTS {SCHEMA}.datasets "
    "(number INTEGER, name VARCHAR, paths JSON, value JSON, profile JSON)",
    f"CREATE TABLE IF NOT EXISTS {SCHEMA}.results (number INTEGER, value JSON)",
)


@frozen
class StoredDataset:
    """A dataset as it is kept. ``paths`` are its files as they were asked for; ``number`` is its place in the order."""

    number: int
    paths: tuple[str, ...]
    dataset: Dataset
    profile: DatasetProfile | None = None


@frozen
class StoredResult:
    """``columns`` and ``rows`` do not change; the first rows are read when somebody asks."""

    number: int
    columns: tuple[Column, ...]
    rows: int
    provenance: Provenance
    notes: tuple[str, ...] = ()

    @property
    def handle(self) -> str:
        return f"R{self.number}"


class Store:
    """Everything in memory, written through. Thread-safe."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        for statement in _TABLES:
            cursor.execute(statement)
        self._lock = threading.Lock()
        self._reserved: set[int] = set()
        rows = cursor.execute(f"SELECT number, paths, value, profile FROM {SCHEMA}.datasets ORDER BY number").fetchall()
        kept = [
            StoredDataset(number, tuple(json.loads(paths)), decoded(Dataset, json.loads(value)), _profile(profile))
            for number, paths, value, profile in rows
        ]
        self._datasets = {each.dataset.name: each for each in kept}
        found = cursor.execute(f"SELECT value FROM {SCHEMA}.results ORDER BY number").fetchall()
        results = [decoded(StoredResult, json.loads(value)) for (value,) in found]
        self._results: dict[str, StoredResult] = {each.handle: each for each in results}

    @property
    def datasets(self) -> tuple[StoredDataset, ...]:
        return tuple(self._datasets.values())

    @property
    def results(self) -> tuple[StoredResult, ...]:
        return tuple(self._results.values())

    def names(self) -> Mapping[str, str]:
        """Every table, by its name in lower case."""
        return {name.lower(): name for name in (*self._datasets, *self._results)}

    def dataset(self, name: str) -> StoredDataset | None:
        return self._datasets.get(self.names().get(name.lower(), ""))

    def result(self, name: str) -> StoredResult | None:
        return self._results.get(self.names().get(name.lower(), ""))

    def columns(self, name: str) -> tuple[Column, ...]:
        stored = self.dataset(name)
        if stored:
            return stored.dataset.columns
        result = self.result(name)
        return result.columns if result else ()

    def standing(self) -> frozenset[str]:
        """The files that queries read where they lie."""
        return frozenset(path for each in self.datasets if each.dataset.format == "parquet" for path in each.paths)

    def next_number(self) -> int:
        """The place of the next dataset."""
        return max((each.number for each in self.datasets), default=0) + 1

    @contextmanager
    def handle(self) -> Generator[int]:
        """The number of the next result, which nobody else gets meanwhile."""
        with self._lock:
            taken = {*self._reserved, *(each.number for each in self._results.values())}
            number = max(taken, default=0) + 1
            self._reserved.add(number)
        try:
            yield number
        finally:
            with self._lock:
                self._reserved.discard(number)

    def write_dataset(self, cursor: duckdb.DuckDBPyConnection, stored: StoredDataset) -> None:
        """Within the transaction of ``cursor``; ``noted`` comes after it."""
        cursor.execute(f"DELETE FROM {SCHEMA}.datasets WHERE name = ?", [stored.dataset.name])
        profile = json.dumps(asdict(stored.profile)) if stored.profile else None
        cursor.execute(
            f"INSERT INTO {SCHEMA}.datasets VALUES (?, ?, ?, ?, ?)",
            [stored.number, stored.dataset.name, json.dumps(stored.paths), json.dumps(asdict(stored.dataset)), profile],
        )

    def noted(self, stored: StoredDataset) -> None:
        self._datasets[stored.dataset.name] = stored

    def write_result(self, cursor: duckdb.DuckDBPyConnection, stored: StoredResult) -> None:
        """Within the transaction of ``cursor``; ``kept`` comes after it."""
        cursor.execute(f"INSERT INTO {SCHEMA}.results VALUES (?, ?)", [stored.number, json.dumps(asdict(stored))])

    def kept(self, stored: StoredResult) -> None:
        self._results[stored.handle] = stored


def _profile(text: str | None) -> DatasetProfile | None:
    return decoded(DatasetProfile, json.loads(text)) if text else None


def result_of(cursor: duckdb.DuckDBPyConnection, stored: StoredResult, head: int) -> QueryResult:
    """The result with its first rows."""
    rows = first_rows(cursor, quoted(stored.handle), stored.columns, head)
    return QueryResult(stored.handle, stored.columns, stored.rows, rows, stored.provenance, stored.notes)


def first_rows(
    cursor: duckdb.DuckDBPyConnection, table: str, columns: tuple[Column, ...], limit: int
) -> tuple[Row, ...]:
    rows: list[Any] = cursor.execute(f"SELECT {listed(columns)} FROM {table} LIMIT {limit}").fetchall()
    return tuple(row_of(row) for row in rows)
