"""The catalogue in the database: datasets with their profiles in a table of their own, results with their provenance as
comments on their tables; both as JSON."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import duckdb

from ba_tui.core.ports.tables import Column, Dataset, DatasetProfile, Finding, Provenance, QueryResult, Row
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.cells import listed, rows_of
from ba_tui.features.data.analysis.engine_process.database import quoted, text
from ba_tui.features.data.analysis.wire import decoded, encoded

SCHEMA = "ba"
_TABLES = (
    f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}",
    f"CREATE TABLE IF NOT EXISTS {SCHEMA}.datasets "
    "(number INTEGER, name VARCHAR, paths JSON, value JSON, profile JSON)",
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
    """``columns`` and ``rows`` do not change; the first rows are read at each request."""

    number: int
    columns: tuple[Column, ...]
    rows: int
    provenance: Provenance
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

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
        self._heads: dict[tuple[str, int], tuple[Row, ...]] = {}
        rows = cursor.execute(f"SELECT number, paths, value, profile FROM {SCHEMA}.datasets ORDER BY number").fetchall()
        kept = [
            StoredDataset(number, tuple(json.loads(paths)), decoded(Dataset, json.loads(value)), _profile(profile))
            for number, paths, value, profile in rows
        ]
        self._datasets = {each.dataset.name: each for each in kept}
        found = cursor.execute("SELECT comment FROM duckdb_tables() WHERE comment IS NOT NULL").fetchall()
        results: list[StoredResult] = [decoded(StoredResult, json.loads(comment)) for (comment,) in found]
        self._results = {each.handle: each for each in sorted(results, key=lambda each: each.number)}

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

    @contextmanager
    def handle(self) -> Generator[int]:
        """Reserve the number of the next result."""
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
        profile = json.dumps(encoded(stored.profile)) if stored.profile else None
        cursor.execute(
            f"INSERT INTO {SCHEMA}.datasets VALUES (?, ?, ?, ?, ?)",
            [
                stored.number,
                stored.dataset.name,
                json.dumps(stored.paths),
                json.dumps(encoded(stored.dataset)),
                profile,
            ],
        )

    def noted(self, stored: StoredDataset) -> None:
        self._datasets[stored.dataset.name] = stored

    def write_result(self, cursor: duckdb.DuckDBPyConnection, stored: StoredResult) -> None:
        """Within the transaction of ``cursor``; ``kept`` comes after it. A comment costs less than a row elsewhere."""
        cursor.execute(f"COMMENT ON TABLE {quoted(stored.handle)} IS {text(json.dumps(encoded(stored)))}")

    def kept(self, stored: StoredResult) -> None:
        self._results[stored.handle] = stored

    def shown(self, cursor: duckdb.DuckDBPyConnection, stored: StoredResult, head: int) -> QueryResult:
        """Return the result with its first rows, which are read once."""
        key = (stored.handle, head)
        if key not in self._heads:
            self._heads[key] = first_rows(cursor, quoted(stored.handle), stored.columns, head)
        rows = self._heads[key]
        return QueryResult(
            stored.handle, stored.columns, stored.rows, rows, stored.provenance, stored.notes, stored.findings
        )


def _profile(stored: str | None) -> DatasetProfile | None:
    return decoded(DatasetProfile, json.loads(stored)) if stored else None


def first_rows(
    cursor: duckdb.DuckDBPyConnection, table: str, columns: tuple[Column, ...], limit: int
) -> tuple[Row, ...]:
    rows: list[Any] = cursor.execute(f"SELECT {listed(columns)} FROM {table} LIMIT {limit}").fetchall()
    return rows_of(rows)
