"""Sources: databases and engines elsewhere. Each has its own confined helper process, the only kind with network
access. The rows of a query become a result next to the local ones.

Also their addresses from the settings, and the rules for statements on them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from ba_tui.core.effects import READING
from ba_tui.core.errors import BaError
from ba_tui.core.ports.datasets import SourceInfo
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
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.card import personal_kind
from ba_tui.features.data.analysis.engine import Analysis, EnginePlace, Listener
from ba_tui.features.data.analysis.errors import (
    AnalysisError,
    EngineFailed,
    QueryFailed,
    QueryRefused,
    SourceFailed,
    UnknownTable,
    decoded,
    nearest_names,
)
from ba_tui.permissions.conditions import StatementKind
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.sandbox.confinement import Sandbox, sandbox_for
from ba_tui.permissions.sql import classify
from ba_tui.processes.values import Confinement, WorkerCrashed, WorkerEntry, WorkerFailed, WorkerSettings, WorkerTimeout
from ba_tui.resources import UserFolders, places
from ba_tui.settings import Settings
from ba_tui.settings.environment import variables
from ba_tui.settings.keys import read_key
from ba_tui.settings.sections.data import REFERENCE, SourceSettings

if TYPE_CHECKING:
    from ba_tui.processes.worker import WorkerClient

ENTRY = "ba_tui.features.data.analysis.source_process.main:main"
AROUND_SECONDS = 30.0
"""Seconds on top of the query's time, to connect and transfer rows."""
LOOK_SECONDS = 60.0
"""Seconds to load a driver, connect and read metadata."""
UNKNOWN_ROWS = -1
PREVIEW_ROWS = 1_000
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
    """The sources of a session by name, core.ports.datasets.DataSources. A helper starts with the first request to its
    source. Requests raise ``AnalysisError`` with a one-line message without secrets."""

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

    def listed(self) -> tuple[SourceInfo, ...]:
        """Return the sources, with their tables as last listed."""
        return tuple(SourceInfo(each.name, each.engine, self._tables.get(each.name)) for each in self.places.values())

    def known_tables(self, name: str) -> tuple[str, ...] | None:
        """Return the tables as last listed; None before that."""
        return self._tables.get(name)

    async def check(self, name: str) -> str:
        """Connect, and return the engine's name and version."""
        return str(await self._request(self.place(name), "check", {}, timeout=LOOK_SECONDS))

    async def tables(self, source: str) -> tuple[str, ...]:
        """Return the tables that queries can read."""
        reply = await self._request(self.place(source), "tables", {}, timeout=LOOK_SECONDS)
        found = self._tables[source] = tuple(map(str, reply["tables"]))
        return found

    async def preview(self, source: str, table: str) -> str:
        """Store the first rows of a table, as ``tables`` names it, as a result, and return its handle."""
        sql = f"SELECT * FROM {table} LIMIT {PREVIEW_ROWS}"  # noqa: S608
        return (await self.query(source, sql)).handle

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
        """Run one statement on a source, and store its rows as the next result. ``write``: the statement changes data,
        and the user approved it. Raises as ``Analysis.query``."""
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


KEYRING = "keyring:"
SQLITE = "sqlite"
SQLITE_FILES = ("", "-wal", "-shm", "-journal")


@frozen
class SourceSetup:
    """What is needed to open the sources of a session. Relative paths of files start at ``root``."""

    settings: Settings
    where: UserFolders
    sandbox: Sandbox
    root: Path

    def places(self, engine: EnginePlace) -> tuple[SourcePlace, ...]:
        """Return each source of the settings; its results go to the inbox of ``engine``. Reads no secret yet."""
        return tuple(self._place(name, source, engine) for name, source in self.settings.sources.items())

    def _place(self, name: str, source: SourceSettings, engine: EnginePlace) -> SourcePlace:
        own = engine.folder / "inbox" / name
        known = variables(self.where) if source.environment else {}
        environment = {**engine.worker.environment, **{key: known[key] for key in source.environment if key in known}}
        file = _file(source.url, self.root)
        worker = WorkerSettings(own, environment, engine.worker.limits, partial(self._confined, source, file, own))
        scheme = source.url.partition(":")[0]
        address = partial(read_address, name, f"{SQLITE}://{file}" if file else source.url, self.where)
        return SourcePlace(name, scheme, address, worker, source.writable, source.share, source.ask_cost)

    def _confined(self, source: SourceSettings, file: Path | None, own: Path) -> Confinement | None:
        """Return the confinement of a helper, which reads only the given files."""
        beside = tuple(Path(f"{file}{ending}") for ending in SQLITE_FILES) if file and not source.writable else ()
        given = tuple(path.expanduser().resolve() for path in source.files)
        # SQLite creates files next to the one that it writes.
        writable = (own, file.parent) if file and source.writable else (own,)
        profile = replace(READING, readable=(*given, *beside), writable=writable, plain=True, network=file is None)
        return self.sandbox.confine(profile, originals=True)


def session_sources(engine: Analysis, place: EnginePlace, settings: Settings, folder: Path) -> Sources:
    """Return the sources of ``settings`` for the ``engine`` of one command. Starts no process."""
    where = places()
    sandbox = sandbox_for(settings, where, Workspace(folder))
    return Sources(SourceSetup(settings, where, sandbox, folder).places(place), engine)


def read_address(name: str, url: str, where: UserFolders) -> Address:
    """Return ``url`` with its references replaced by their quoted values. Blocks. Raises SourceFailed: a reference has
    no value."""
    secrets: list[str] = []
    known = variables(where)

    def value(reference: str) -> str:
        inner = reference[2:-1]
        key = read_key(inner.removeprefix(KEYRING), None, where) if inner.startswith(KEYRING) else None
        found = key.value if key else known.get(inner, "")
        if not found:
            entry = inner.removeprefix(KEYRING)
            what = f"The keyring has no entry {entry}" if KEYRING in inner else f"{inner} is not set"
            cure = f"Set the environment variable {inner} before you start ba."
            cure = f"Save it: keyring set ba {entry}" if inner.startswith(KEYRING) else cure
            raise SourceFailed(f"{name} can't be reached: {what}.", cure)
        secrets.extend((found, quote(found, safe="")))
        return quote(found, safe="")

    made = REFERENCE.sub(lambda match: value(match[0]), url)
    return Address(made, tuple(dict.fromkeys(secrets)))


def _file(url: str, root: Path) -> Path | None:
    """Return the absolute path of an SQLite source; None for other sources."""
    scheme, _, rest = url.partition(":")
    if scheme != SQLITE:
        return None
    return (root / Path(unquote(rest.removeprefix("//"))).expanduser()).resolve()


DIALECTS: Mapping[str, str] = {"postgresql": "postgres", "sc": "spark"}
"""Names of SQL dialects that differ from the scheme of the address."""
LOCAL = "duckdb"
READS: frozenset[StatementKind] = frozenset({"read"})


@frozen
class SourceQueries:
    """Runs the statements of ``query_data`` with a ``source``: reads run, changes need a writable source and approval,
    expensive reads need approval."""

    sources: Sources

    def dialect(self, args: Mapping[str, Any]) -> str:
        """Return the SQL dialect of a call. Accepts any arguments and never raises."""
        place = self.sources.places.get(str(args.get("source") or ""))
        return DIALECTS.get(place.scheme, place.scheme) if place else LOCAL

    async def writes(self, args: Mapping[str, Any]) -> bool:
        """Return whether the statement changes data on a writable source. Raises UnknownTable: no such source.
        QueryRefused: the source is read-only, and the statement does more than read."""
        place = self.sources.place(args["source"])
        why = await asyncio.to_thread(_beyond_reading, args["sql"], self.dialect(args))
        if why and not place.writable:
            hint = f"Only statements that read run there; the user can set sources.{place.name}.writable."
            raise QueryRefused(f"{place.name} is read-only: {why}.", hint)
        return bool(why)

    async def concern(self, args: Mapping[str, Any]) -> str:
        """Return why the user must approve a statement: it changes data or is expensive. Empty for others."""
        try:
            place = self.sources.place(args["source"])
            if await self.writes(args):
                return f"it changes data on {place.name} ({place.engine})"
            cost = await self.sources.cost(place.name, args["sql"]) if place.ask_cost else None
        except QueryFailed as error:
            # A wrong statement fails with a better message when it runs; one of unknown cost must not run unapproved.
            return f"its cost is not known: {error}" if error.kind == "timeout" else ""
        except BaError:
            return ""
        if cost is None or cost.cost <= place.ask_cost:
            return ""
        expected = f"{cost.engine} expects cost {cost.cost:,.0f} and {count(round(cost.rows), 'row')} on {place.name}"
        return f"{expected}, above sources.{place.name}.ask_cost ({place.ask_cost:,.0f})"

    async def run(self, args: Mapping[str, Any], on_progress: Listener) -> QueryResult:
        """Run an approved statement. Raises BaError."""
        write = await self.writes(args)
        return await self.sources.query(args["source"], args["sql"], write=write, on_progress=on_progress)


def _beyond_reading(sql: str, dialect: str) -> str:
    """Return why a statement does more than read; empty when it only reads. Blocks."""
    found = classify(sql, dialect)
    if found.kinds <= READS and not found.network:
        return ""
    if "unknown" in found.kinds:
        return f"this SQL can't be checked: {found.trouble or 'it is unknown'}"
    return "this statement changes data" if found.kinds & {"write", "ddl"} else "it reaches the network"
