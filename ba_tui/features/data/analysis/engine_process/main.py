"""The program of the helper: serves the requests of ``engine.Analysis`` with one database."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import duckdb

from ba_tui.core.ports.tables import Arrangement, Catalogue, Column, FoundRows, Provenance
from ba_tui.core.results import ChartRequest
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.charts import compute_chart
from ba_tui.features.data.analysis.engine_process.comparison import compare_tables, sides_of
from ba_tui.features.data.analysis.engine_process.database import (
    Database,
    Limits,
    fetch_number,
    listed,
    of_query,
    quoted,
    row_of,
    said,
    unknown_table,
)
from ba_tui.features.data.analysis.engine_process.datasets import DatasetRegistry
from ba_tui.features.data.analysis.engine_process.grid import (
    FILE_NUMBER,
    Arrangements,
    CrossTable,
    GridTable,
    conditions,
    drop_left,
    export_rows,
    pivot_query,
    sampled,
    texts,
)
from ba_tui.features.data.analysis.engine_process.profiles import profiles_of
from ba_tui.features.data.analysis.engine_process.queries import Queries
from ba_tui.features.data.analysis.engine_process.store import DataStore, StoredDataset
from ba_tui.features.data.analysis.engine_process.traps.datasets import quality_findings
from ba_tui.features.data.analysis.errors import decoded, encoded, failed
from ba_tui.processes.serving import Handler, WorkerChannel, WorkerRequest

AROUND = 0.25
"""Relative distance from a value within which rows are counted."""
MOST_COLUMNS = 40


def found_rows(
    cursor: duckdb.DuckDBPyConnection, table: GridTable, ranges: Sequence[tuple[float, float]], most: int
) -> tuple[FoundRows, ...]:
    """Return, for each numeric column and range, up to ``most`` rows with such a value. One scan counts all."""
    columns = [column for column in table.columns if column.numeric][:MOST_COLUMNS]
    if not columns or table.view:
        return ()
    counted = [part for column in columns for low, high in ranges for part in _counts(column, low, high)]
    row = cursor.execute(f"SELECT {', '.join(counted)} FROM {quoted(table.name)}").fetchone() or ()
    found: list[FoundRows] = []
    places = ((column, at) for column in columns for at in range(len(ranges)))
    for (column, at), held, around in zip(places, row[::2], row[1::2], strict=True):
        if held:
            low, high = ranges[at]
            rows = _rows(cursor, table, column, f"BETWEEN {low!r} AND {high!r}", most) if held <= most else {}
            found.append(FoundRows(at, column.name, int(held), int(around), tuple(rows), tuple(rows.values())))
    return tuple(found)


def _counts(column: Column, low: float, high: float) -> tuple[str, str]:
    name = f"CAST({quoted(column.name)} AS DOUBLE)"
    span = max(abs(low), abs(high)) * AROUND
    near = f"BETWEEN {low - span!r} AND {high + span!r}"
    return f"count(*) FILTER ({name} BETWEEN {low!r} AND {high!r})", f"count(*) FILTER ({name} {near})"


def _rows(
    cursor: duckdb.DuckDBPyConnection, table: GridTable, column: Column, condition: str, most: int
) -> dict[int, Any]:
    query = (
        f"SELECT rowid, {listed(table.columns)} FROM {quoted(table.name)} "
        f"WHERE CAST({quoted(column.name)} AS DOUBLE) {condition} ORDER BY rowid LIMIT {most}"
    )
    return {int(row[0]): row_of(row[1:]) for row in cursor.execute(query).fetchall()}


SCALE = 2
"""Pixels of a PNG for each unit of the drawing."""


def draw_picture(specification: dict[str, Any], target: Path) -> None:
    """Write the chart of a Vega-Lite specification to ``target``, in the format of its ending. Raises HandlerFailed."""
    try:
        import vl_convert  # noqa: PLC0415 - 80 MB, only for pictures
    except ImportError as error:
        raise failed(
            "Pictures of charts need the package vl-convert-python.",
            "Install it in ba's Python environment.",
            "dependency_error",
        ) from error
    try:
        if target.suffix == ".svg":
            target.write_text(vl_convert.vegalite_to_svg(specification, allowed_base_urls=[]), "utf-8")
        else:
            target.write_bytes(vl_convert.vegalite_to_png(specification, scale=SCALE, allowed_base_urls=[]))
    except ValueError as error:
        raise failed(f"The picture can't be drawn: {str(error).strip().splitlines()[0]}") from error


THREADS = 4
"""Concurrent requests: the grid stays responsive while a query runs."""


@frozen
class OpenEngine:
    """The objects shared by the handlers."""

    database: Database
    store: DataStore
    datasets: DatasetRegistry
    queries: Queries
    arrangements: Arrangements

    def table(self, request: WorkerRequest, name: str) -> GridTable:
        """Return a result, or a dataset read again if its file changed."""
        if stored := self.store.dataset(name):
            self.datasets.refreshed(request, [stored.dataset.name])
            stored = self.dataset(name)
            dataset = stored.dataset
            view = dataset.format == "parquet"
            numbered = all(column.name.lower() != FILE_NUMBER for column in dataset.columns)
            file = stored.paths[0] if view and numbered and len(stored.paths) == 1 else ""
            return GridTable(dataset.name, dataset.columns, dataset.rows, view, file)
        if result := self.store.result(name):
            return GridTable(result.handle, result.columns, result.rows)
        raise unknown_table(name, self.store.names().values())

    def dataset(self, name: str) -> StoredDataset:
        stored = self.store.dataset(name)
        if stored is None:
            raise unknown_table(name, (each.dataset.name for each in self.store.datasets))
        return stored


class Handlers:
    """One method for each kind of request. The database opens with the first one, so that an error becomes its
    reply."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder = folder
        self._limits = limits
        self._exports = itertools.count(1)
        self._opening = threading.Lock()
        self._opened: OpenEngine | None = None
        self._sampled: set[tuple[str, float]] = set()

    @property
    def _engine(self) -> OpenEngine:
        with self._opening:
            if self._opened is None:
                self._opened = _opened(self._folder, self._limits)
            return self._opened

    def close(self) -> None:
        """Close the database if a request opened it."""
        if self._opened:
            self._opened.database.close()

    def samples(self, request: WorkerRequest) -> object:
        """Return texts of the datasets read since the last such request."""
        engine = self._engine
        now = {(each.dataset.name, each.dataset.loaded): each.dataset for each in engine.store.datasets}
        new = {key: dataset for key, dataset in now.items() if key not in self._sampled}
        found: list[object] = []
        for key, dataset in new.items():
            with engine.database.shared(request) as cursor:
                found += sampled(cursor, GridTable(dataset.name, dataset.columns, dataset.rows))
            self._sampled.add(key)
        return found

    def texts(self, request: WorkerRequest, name: str, column: str) -> object:
        table = self._engine.table(request, name)
        with self._engine.database.shared(request) as cursor:
            return texts(cursor, table, table.column(column))

    def register(self, request: WorkerRequest, source: str, paths: Sequence[str], name: str, part: str) -> object:
        return self._engine.datasets.register(request, source, [Path(path) for path in paths], name, part)

    def profile(self, request: WorkerRequest, name: str, *, thorough: bool) -> object:
        engine = self._engine
        engine.datasets.refreshed(request, [engine.dataset(name).dataset.name])
        profile = engine.datasets.profile(request, engine.dataset(name))
        if thorough:
            others = [each.dataset for each in engine.store.datasets]
            with engine.database.shared(request, f"checking {profile.dataset.name}") as cursor:
                findings, notes = quality_findings(cursor, request, profile, others)
            profile = replace(profile, findings=(*profile.findings, *findings), notes=(*profile.notes, *notes))
        return profile

    def catalogue(self, request: WorkerRequest, head: int) -> object:
        engine = self._engine
        with engine.database.shared(request) as cursor:
            results = tuple(engine.store.shown(cursor, each, head) for each in engine.store.results)
        kept = engine.store.datasets
        findings = tuple(found for each in kept if each.profile for found in each.profile.findings)
        return Catalogue(tuple(each.dataset for each in kept), results, findings)

    def statements(self, request: WorkerRequest, sql: str) -> object:
        return self._engine.queries.statements(sql)

    def query(self, request: WorkerRequest, sql: str, head: int, named: Any) -> object:
        return self._engine.queries.run(request, sql, head, named)

    def page(self, request: WorkerRequest, name: str, arrangement: object, offset: int, limit: int) -> object:
        table, window = self._engine.table(request, name), (max(0, offset), max(0, limit))
        return self._engine.arrangements.page(request, table, decoded(Arrangement, arrangement), window)

    def column(self, request: WorkerRequest, name: str, column: str, arrangement: object) -> object:
        table = self._engine.table(request, name)
        chosen = quoted(table.column(column).name)
        where, values = conditions(table, decoded(Arrangement, arrangement))
        with self._engine.database.shared(request) as cursor:
            source = f"(SELECT {chosen} FROM {quoted(table.name)}{f' WHERE {where}' if where else ''})"
            if values:
                # Statistics take several queries without parameters.
                cursor.execute(f"CREATE OR REPLACE TEMP TABLE filtered AS FROM {source}", values)
                source = "filtered"
            rows = fetch_number(cursor, f"SELECT count(*) FROM {source}")
            return profiles_of(cursor, source, rows, lambda _: None)[0]

    def find(self, request: WorkerRequest, name: str, ranges: Sequence[tuple[float, float]], most: int) -> object:
        table = self._engine.table(request, name)
        with self._engine.database.shared(request) as cursor:
            return found_rows(cursor, table, ranges, most)

    def export(self, request: WorkerRequest, name: str, format: str, arrangement: object) -> object:
        table = self._engine.table(request, name)
        target = self._folder / "exports" / f"{table.name}-{next(self._exports)}.{format}"
        export_rows(self._engine.database, request, table, decoded(Arrangement, arrangement), target)
        return str(target)

    def chart(self, request: WorkerRequest, chart: object, arrangement: object) -> object:
        wanted: ChartRequest = decoded(ChartRequest, chart)
        table = self._engine.table(request, wanted.data)
        return compute_chart(self._engine.database, request, table, decoded(Arrangement, arrangement), wanted)

    def picture(self, request: WorkerRequest, specification: dict[str, Any], format: str) -> object:
        target = self._folder / "exports" / f"chart-{next(self._exports)}.{format}"
        draw_picture(specification, target)
        return str(target)

    def compare(
        self, request: WorkerRequest, left: str, right: str, keys: Sequence[str], tolerance: float, head: int
    ) -> object:
        engine = self._engine
        sides = sides_of(engine.table(request, left), engine.table(request, right))
        shared = engine.database, engine.queries
        return compare_tables(request, *shared, sides, tuple(keys), tolerance=float(tolerance), head=head)

    def pivot(self, request: WorkerRequest, name: str, head: int, **asked: Any) -> object:
        engine, cross = self._engine, decoded(CrossTable, asked)
        sql = pivot_query(request, engine.database, engine.table(request, name), cross)
        return engine.queries.run(request, sql, head, None)

    def adopt(
        self, request: WorkerRequest, file: str, types: Mapping[str, str], provenance: object, head: int
    ) -> object:
        return self._engine.queries.adopt(request, Path(file), types, decoded(Provenance, provenance), head)


def _opened(folder: Path, limits: Limits) -> OpenEngine:
    """Open the session's database and load its catalogue."""
    try:
        database = Database(folder, limits)
        with database.opening() as cursor:
            drop_left(cursor)
            store = DataStore(cursor)
        database.permit(store.standing())
    except duckdb.Error as error:
        if "Could not set lock" in str(error):
            hint = "Close the other ba in which this session is open, or start a new session."
            raise failed("Another process has the data of this session open.", hint, "resource_error") from error
        hint = "Start a new session; the files of this one stay where they are."
        raise failed(f"The session's data can't be opened: {said(error)}", hint, "resource_error") from error
    arrangements = Arrangements(database)
    datasets = DatasetRegistry(database, store, arrangements.forget)
    return OpenEngine(database, store, datasets, Queries(database, store, datasets), arrangements)


def _in_words(handler: Callable[..., object]) -> Handler:
    """Return ``handler``, called with the fields of the request, with errors of one line each."""

    def run(request: WorkerRequest) -> object:
        try:
            return encoded(handler(request, **cast("dict[str, Any]", request.payload)))
        except duckdb.Error as error:
            raise of_query(error, (), ()) from error
        except MemoryError as error:
            raise failed(
                "The data engine has no memory left.", "Raise analysis.memory_gb.", "resource_error"
            ) from error
        except OSError as error:
            raise failed(f"{error.filename or 'A file'}: {error.strerror}.", kind="resource_error") from error

    return run


def main(channel: WorkerChannel, folder: str, *figures: str) -> None:
    """Serve requests until the client disconnects. ``figures``: memory, threads, disk and rows, as in ``Limits``."""
    handlers = Handlers(Path(folder), Limits(*map(int, figures)))
    names = ("register", "profile", "catalogue", "statements", "query", "page", "column", "find", "export", "adopt")
    names = (*names, "chart", "picture", "compare", "pivot", "samples", "texts")
    channel.serve({name: _in_words(getattr(handlers, name)) for name in names}, THREADS)
