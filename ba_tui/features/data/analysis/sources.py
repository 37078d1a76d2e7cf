"""The client of sources: databases and engines elsewhere. Each has a helper process of its own, which is the only one
with the network; what a query returns lands as a result beside the local ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ba_tui.core.errors import BaError
from ba_tui.core.ports.tables import (
    Column,
    ColumnProfile,
    Dataset,
    DatasetProfile,
    Progress,
    Provenance,
    QueryResult,
    Share,
    UsedData,
)
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine import Analysis, Listener
from ba_tui.features.data.analysis.errors import (
    AnalysisError,
    EngineFailed,
    QueryFailed,
    QueryRefused,
    SourceFailed,
    UnknownTable,
)
from ba_tui.features.data.analysis.wire import decoded
from ba_tui.processes.worker_values import WorkerCrashed, WorkerEntry, WorkerFailed, WorkerSettings, WorkerTimeout

if TYPE_CHECKING:
    from ba_tui.processes.worker import Worker

ENTRY = "ba_tui.features.data.analysis.source_process.main:main"
AROUND_SECONDS = 30.0
"""Time beside that of the query: to connect, and to send the rows."""
LOOK_SECONDS = 60.0
"""Time to load a driver, connect and look."""
UNKNOWN_ROWS = -1
NAMES: Mapping[str, str] = {
    "postgres": "PostgreSQL", "postgresql": "PostgreSQL", "sqlite": "SQLite", "sc": "Spark", "mysql": "MySQL",
    "clickhouse": "ClickHouse", "trino": "Trino", "bigquery": "BigQuery", "snowflake": "Snowflake",
    "databricks": "Databricks",
}  # fmt: skip


@frozen
class Address:
    """``url`` with its secrets, which are listed, so that no message shows one."""

    url: str = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


@frozen
class SourcePlace:
    """One source: ``address`` reads its secrets when the helper needs them (blocks, may raise BaError); ``worker``
    starts the helper, confined. ``scheme`` names the engine."""

    name: str
    scheme: str
    address: Callable[[], Address]
    worker: WorkerSettings
    writable: bool = False
    share: Share = "schema"
    ask_cost: float = 0.0

    @property
    def engine(self) -> str:
        """The engine's name for people."""
        return NAMES.get(self.scheme, self.scheme)


@frozen
class QueryCost:
    """What ``engine`` expects of a query: its ``cost`` in a unit of its own, and ``rows``."""

    engine: str
    cost: float
    rows: float


class Sources:
    """The sources of one session, by name. A helper starts with the first request to its source. Requests raise an
    ``AnalysisError``, whose words are one line for people and never hold a secret."""

    def __init__(self, places: Sequence[SourcePlace], analysis: Analysis) -> None:
        self.places = {place.name: place for place in places}
        self._analysis = analysis
        self._workers: dict[str, Worker] = {}
        self._tables: dict[str, tuple[str, ...]] = {}

    def place(self, name: str) -> SourcePlace:
        """Return the source ``name``. Raises UnknownTable when there is none."""
        if name not in self.places:
            from ba_tui.features.data.analysis.nearest import nearest_names  # noqa: PLC0415 - for a wrong name

            hint = nearest_names(name, self.places, "Sources") if self.places else "Name one in your settings: sources."
            raise UnknownTable(f"There is no source {name}.", hint)
        return self.places[name]

    def known_tables(self, name: str) -> tuple[str, ...] | None:
        """The tables as they were listed last; None before that."""
        return self._tables.get(name)

    async def check(self, name: str) -> str:
        """Connect; returns the engine's name and version."""
        return str(await self._request(self.place(name), "check", {}, timeout=LOOK_SECONDS))

    async def tables(self, name: str) -> tuple[str, ...]:
        """Return the tables that queries can read."""
        reply = await self._request(self.place(name), "tables", {}, timeout=LOOK_SECONDS)
        found = self._tables[name] = tuple(map(str, reply["tables"]))
        return found

    async def profile(self, name: str, table: str) -> DatasetProfile:
        """Return the columns of a table, with as many of their figures as the source shares."""
        place = self.place(name)
        seconds = self._analysis.limits.seconds
        given = {"table": table, "share": place.share, "seconds": seconds}
        reply = await self._request(place, "describe", given, timeout=seconds + AROUND_SECONDS)
        columns = tuple(Column(each, str(kind)) for each, kind in reply["columns"].items())
        figures: Sequence[Mapping[str, Any]] = reply["figures"] or [{} for _ in columns]
        rows = int(figures[0].get("rows", UNKNOWN_ROWS)) if figures else UNKNOWN_ROWS
        dataset = Dataset(f"{name}.{table}", f"source {name} ({reply['engine']})", "", "source", rows, columns, ())
        pairs = zip(columns, figures, strict=True)
        return DatasetProfile(dataset, tuple(_column(column, each) for column, each in pairs))

    async def cost(self, name: str, sql: str) -> QueryCost | None:
        """Return what the engine expects of a query; None where it makes no estimate."""
        reply = await self._request(self.place(name), "cost", {"sql": sql}, timeout=LOOK_SECONDS)
        return decoded(QueryCost, reply) if reply else None

    async def query(
        self, name: str, sql: str, *, write: bool = False, on_progress: Listener | None = None
    ) -> QueryResult:
        """Run one statement on a source, and keep its rows as the next result.

        ``write``: it changes data, and the person allowed it. Raises as ``Analysis.query``.
        """
        place, limits = self.place(name), self._analysis.limits
        statement, started = sql.strip().rstrip(";").rstrip(), time.time()
        folder = self._analysis.inbox / name
        await asyncio.to_thread(folder.mkdir, mode=0o700, parents=True, exist_ok=True)
        file = folder / f"{time.monotonic_ns()}.parquet"
        given = {
            "sql": statement, "file": str(file), "most": limits.rows, "seconds": limits.seconds, "write": write,
        }  # fmt: skip
        try:
            reply = await self._request(place, "query", given, on_progress, timeout=limits.seconds + AROUND_SECONDS)
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
        given: Mapping[str, object],
        listener: Listener | None = None,
        *,
        timeout: float,
    ) -> Any:
        address = await asyncio.to_thread(place.address)
        payload = {"url": address.url, "secrets": address.secrets, **given}
        worker = await self._worker(place)

        def heard(value: object) -> None:
            if listener:
                listener(decoded(Progress, value))

        try:
            return await worker.request(method, payload, timeout=timeout, on_progress=heard)
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

    async def _worker(self, place: SourcePlace) -> Worker:
        if place.name not in self._workers:
            from ba_tui.processes.worker import Worker  # noqa: PLC0415 - most sessions have no source

            await asyncio.to_thread(place.worker.folder.mkdir, mode=0o700, parents=True, exist_ok=True)
            self._workers[place.name] = Worker(WorkerEntry(ENTRY), place.worker)
        return self._workers[place.name]


def _column(column: Column, figures: Mapping[str, Any]) -> ColumnProfile:
    from ba_tui.features.data.analysis.personal import personal_kind  # noqa: PLC0415 - not before the first profile

    sample = tuple(figures.get("sample", ()))
    return ColumnProfile(
        column, figures.get("nulls", 0), figures.get("distinct", 0), figures.get("minimum"), figures.get("maximum"),
        sample=sample, personal=personal_kind(_for_names(column), sample),
    )  # fmt: skip


def _for_names(column: Column) -> Column:
    """``column`` with the type by which personal columns are recognized."""
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
