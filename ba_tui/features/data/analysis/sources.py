"""The client of sources: databases and engines elsewhere. Each source has its own helper process, the only kind with
network access. The rows of a query become a result next to the local ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ba_tui.core.errors import BaError
from ba_tui.core.ports.settings import Share
from ba_tui.core.ports.tables import (
    Column,
    ColumnProfile,
    Dataset,
    DatasetProfile,
    Progress,
    Provenance,
    QueryResult,
    UsedData,
)
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.card import personal_kind
from ba_tui.features.data.analysis.engine import Analysis, Listener
from ba_tui.features.data.analysis.errors import (
    AnalysisError,
    EngineFailed,
    QueryFailed,
    QueryRefused,
    SourceFailed,
    UnknownTable,
    nearest_names,
)
from ba_tui.features.data.analysis.wire import decoded
from ba_tui.processes.values import WorkerCrashed, WorkerEntry, WorkerFailed, WorkerSettings, WorkerTimeout

if TYPE_CHECKING:
    from ba_tui.processes.worker import WorkerClient

ENTRY = "ba_tui.features.data.analysis.source_process.main:main"
AROUND_SECONDS = 30.0
"""Seconds on top of the query's time, to connect and transfer rows."""
LOOK_SECONDS = 60.0
"""Seconds to load a driver, connect and read metadata."""
UNKNOWN_ROWS = -1
NAMES: Mapping[str, str] = {
    "postgres": "PostgreSQL", "postgresql": "PostgreSQL", "sqlite": "SQLite", "sc": "Spark", "mysql": "MySQL",
    "clickhouse": "ClickHouse", "trino": "Trino", "bigquery": "BigQuery", "snowflake": "Snowflake",
    "databricks": "Databricks",
}  # fmt: skip


@frozen
class Address:
    """``url`` with its secrets filled in, and the list of these ``secrets``, which are removed from messages."""

    url: str = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


@frozen
class SourcePlace:
    """One source. ``address`` reads the secrets when the helper needs them (blocks, may raise BaError); ``worker``
    starts the confined helper; ``scheme`` identifies the engine."""

    name: str
    scheme: str
    address: Callable[[], Address]
    worker: WorkerSettings
    writable: bool = False
    share: Share = "schema"
    ask_cost: float = 0.0

    @property
    def engine(self) -> str:
        """The engine's display name."""
        return NAMES.get(self.scheme, self.scheme)


@frozen
class QueryCost:
    """The estimate of ``engine`` for a query: its ``cost`` in the engine's unit, and ``rows``."""

    engine: str
    cost: float
    rows: float


class Sources:
    """The sources of one session, by name. A helper starts with the first request to its source. Requests raise
    ``AnalysisError`` with a one-line message without secrets."""

    def __init__(self, places: Sequence[SourcePlace], analysis: Analysis) -> None:
        self.places = {place.name: place for place in places}
        self._analysis = analysis
        self._workers: dict[str, WorkerClient] = {}
        self._tables: dict[str, tuple[str, ...]] = {}

    def place(self, name: str) -> SourcePlace:
        """Return the source ``name``. Raises UnknownTable when there is none."""
        if name not in self.places:
            hint = nearest_names(name, self.places, "Sources") if self.places else "Name one in your settings: sources."
            raise UnknownTable(f"There is no source {name}.", hint)
        return self.places[name]

    def known_tables(self, name: str) -> tuple[str, ...] | None:
        """Return the tables as last listed; None before that."""
        return self._tables.get(name)

    async def check(self, name: str) -> str:
        """Connect, and return the engine's name and version."""
        return str(await self._request(self.place(name), "check", {}, timeout=LOOK_SECONDS))

    async def tables(self, name: str) -> tuple[str, ...]:
        """Return the tables that queries can read."""
        reply = await self._request(self.place(name), "tables", {}, timeout=LOOK_SECONDS)
        found = self._tables[name] = tuple(map(str, reply["tables"]))
        return found

    async def profile(self, name: str, table: str) -> DatasetProfile:
        """Return the columns of a table, with the statistics that the source's ``share`` allows."""
        place = self.place(name)
        seconds = self._analysis.limits.seconds
        payload = {"table": table, "share": place.share, "seconds": seconds}
        reply = await self._request(place, "describe", payload, timeout=seconds + AROUND_SECONDS)
        columns = tuple(Column(each, str(kind)) for each, kind in reply["columns"].items())
        figures: Sequence[Mapping[str, Any]] = reply["figures"] or [{} for _ in columns]
        rows = int(figures[0].get("rows", UNKNOWN_ROWS)) if figures else UNKNOWN_ROWS
        dataset = Dataset(f"{name}.{table}", f"source {name} ({reply['engine']})", "", "source", rows, columns, ())
        pairs = zip(columns, figures, strict=True)
        return DatasetProfile(dataset, tuple(_column(column, each) for column, each in pairs))

    async def cost(self, name: str, sql: str) -> QueryCost | None:
        """Return the engine's estimate for a query; None when it makes none."""
        reply = await self._request(self.place(name), "cost", {"sql": sql}, timeout=LOOK_SECONDS)
        return decoded(QueryCost, reply) if reply else None

    async def query(
        self, name: str, sql: str, *, write: bool = False, on_progress: Listener | None = None
    ) -> QueryResult:
        """Run one statement on a source, and store its rows as the next result.

        ``write``: the statement changes data, and the user approved it. Raises as ``Analysis.query``.
        """
        place, limits = self.place(name), self._analysis.limits
        statement, started = sql.strip().rstrip(";").rstrip(), time.time()
        folder = await asyncio.to_thread(self._analysis.make_inbox, name)
        file = folder / f"{time.monotonic_ns()}.parquet"
        payload = {
            "sql": statement, "file": str(file), "most": limits.rows, "seconds": limits.seconds, "write": write,
        }  # fmt: skip
        try:
            reply = await self._request(place, "query", payload, on_progress, timeout=limits.seconds + AROUND_SECONDS)
            provenance = Provenance(
                statement, (UsedData(name, place.engine, ()),), (), started, reply["seconds"], reply["rows"],
                str(reply["engine"]), name,
            )  # fmt: skip
            return await self._analysis.adopt(file, provenance, reply["types"])
        finally:
            await asyncio.to_thread(file.unlink, missing_ok=True)

    async def close(self) -> None:
        """End the helpers."""
        workers, self._workers = tuple(self._workers.values()), {}
        for worker in workers:
            await worker.close()

    async def _request(
        self,
        place: SourcePlace,
        method: str,
        payload: Mapping[str, object],
        listener: Listener | None = None,
        *,
        timeout: float,
    ) -> Any:
        address = await asyncio.to_thread(place.address)
        payload = {"url": address.url, "secrets": address.secrets, **payload}
        worker = await self._worker(place)

        def report(value: object) -> None:
            if listener:
                listener(decoded(Progress, value))

        try:
            return await worker.request(method, payload, timeout=timeout, on_progress=report)
        except WorkerFailed as error:
            raise _error(place, error) from None
        except WorkerCrashed as error:
            raise EngineFailed(
                f"The helper of {place.name} stopped in the middle ({error}).", "Run it again."
            ) from None
        except WorkerTimeout:
            raise QueryFailed(
                f"{place.name} did not answer within {timeout:g} s.", "Check that it can be reached.", "timeout"
            ) from None
        except (OSError, BaError) as error:
            raise EngineFailed(
                f"The helper of {place.name} could not start: {error}", getattr(error, "hint", "")
            ) from error

    async def _worker(self, place: SourcePlace) -> WorkerClient:
        if place.name not in self._workers:
            from ba_tui.processes.worker import WorkerClient  # noqa: PLC0415 - most sessions have no source

            await asyncio.to_thread(self._analysis.make_inbox)
            await asyncio.to_thread(place.worker.folder.mkdir, mode=0o700, parents=True, exist_ok=True)
            self._workers[place.name] = WorkerClient(WorkerEntry(ENTRY), place.worker)
        return self._workers[place.name]


def _column(column: Column, figures: Mapping[str, Any]) -> ColumnProfile:
    sample = tuple(figures.get("sample", ()))
    return ColumnProfile(
        column, figures.get("nulls", 0), figures.get("distinct", 0), figures.get("minimum"), figures.get("maximum"),
        sample=sample, personal=personal_kind(_for_names(column), sample),
    )  # fmt: skip


def _for_names(column: Column) -> Column:
    """Return ``column`` with a type that the detection of personal columns knows."""
    return Column(column.name, "VARCHAR") if column.type.startswith("string") else column


def _error(place: SourcePlace, failed: WorkerFailed) -> AnalysisError:
    message, _, hint = str(failed).partition("\n")
    kind, _, detail = failed.kind.partition(":")
    if kind == "query_failed" and detail == "permission_denied":
        return QueryRefused(f"{place.name}: {message}", hint)
    if kind == "query_failed" and detail == "not_found":
        return UnknownTable(message, hint)
    if kind == "query_failed":
        return QueryFailed(message, hint, detail)
    if kind == "source_failed":
        return SourceFailed(f"{place.name}: {message}", hint)
    return EngineFailed(f"{place.name} failed: {message}", hint)
