"""The client of the engine: registers data, runs queries and pages through results in a helper process.

DuckDB runs there (``engine_process.main``), never here. What it keeps lies in the folder of the session, so datasets
and results survive a crash of the helper and a restart of ba.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast

from ba_tui.core.errors import BaError, off_loop
from ba_tui.core.ports.tables import (
    Arrangement,
    Catalogue,
    ColumnProfile,
    Dataset,
    DatasetProfile,
    Fingerprint,
    FoundRows,
    Page,
    Progress,
    Provenance,
    QueryResult,
    Statement,
)
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.charts.client import Charts
from ba_tui.features.data.analysis.derived import DerivedTables
from ba_tui.features.data.analysis.errors import (
    AnalysisError,
    DataRefused,
    DataUnreadable,
    EngineFailed,
    QueryFailed,
    QueryRefused,
    UnknownTable,
)
from ba_tui.features.data.analysis.files import DataFiles, Matched
from ba_tui.features.data.analysis.muting import MutedTraps
from ba_tui.features.data.analysis.text_columns import TextColumns
from ba_tui.features.data.analysis.wire import decoded, encoded
from ba_tui.processes.scratch import make_scratch, remove_scratch
from ba_tui.processes.worker_values import (
    WorkerCrashed,
    WorkerEntry,
    WorkerFailed,
    WorkerSettings,
    WorkerTimeout,
)

if TYPE_CHECKING:
    from ba_tui.processes.worker import Worker

ENTRY = "ba_tui.features.data.analysis.engine_process.main:main"
DATABASE = "engine.duckdb"
HEAD_ROWS = 50
PAGE_ROWS = 10_000
"""Most rows of one page."""
NO_TYPES: Mapping[str, str] = {}
Listener: TypeAlias = Callable[[Progress], None]
ExportFormat: TypeAlias = Literal["csv", "tsv", "json", "jsonl", "parquet", "xlsx"]
T = TypeVar("T")

_ERRORS: Mapping[str, type[AnalysisError]] = {
    "data_refused": DataRefused,
    "data_unreadable": DataUnreadable,
    "query_refused": QueryRefused,
    "query_failed": QueryFailed,
    "unknown_table": UnknownTable,
}


@frozen
class EngineLimits:
    """``memory`` in bytes, for queries; ``threads``; ``disk``: bytes of intermediate data on the disk; ``rows``: most
    rows of one result; ``seconds``: longest time of one query."""

    memory: int
    threads: int
    disk: int
    rows: int
    seconds: float


@frozen
class EnginePlace:
    """Where the engine works: ``folder`` keeps its data, and no other program writes there; ``worker`` starts the
    helper, confined; ``files`` finds what may be read. ``temporary``: the folder goes when the engine is closed."""

    folder: Path
    worker: WorkerSettings
    files: DataFiles
    limits: EngineLimits
    temporary: bool = False


class _FilesNeeded(AnalysisError):
    """A query names ``files`` that are not registered yet."""

    def __init__(self, files: str) -> None:
        super().__init__("The query names files that are not registered.")
        self.files: list[str] = json.loads(files)


class Analysis:
    """The engine of one session. The helper starts at the first request. Requests may run side by side; cancelling one
    interrupts its query. Any of them raises an ``AnalysisError``, whose words are one line for people. ``muted``: the
    traps that the person does not want to be told of."""

    def __init__(self, place: EnginePlace, muted: MutedTraps | None = None) -> None:
        self._place = place
        self.muted = muted or MutedTraps()
        self._worker: Worker | None = None
        self._starting = asyncio.Lock()
        self.charts = Charts(self._request)
        self.derived = DerivedTables(self._request, HEAD_ROWS)
        self.texts = TextColumns(self._request)

    @property
    def begun(self) -> bool:
        """Whether the session has data: false means that there is nothing to list. Does not start the helper."""
        return (self._place.folder / DATABASE).exists()

    @property
    def limits(self) -> EngineLimits:
        """What queries may use."""
        return self._place.limits

    # Data

    async def register(
        self, source: str, *others: str, part: str = "", name: str = "", on_progress: Listener | None = None
    ) -> tuple[Dataset, ...]:
        """Read a file, a glob, or ``part`` (a sheet or table) of a file into tables, and return them. Files of the same
        table may follow as ``others``; ``name`` is what a new table is called, where the files' own name is not wanted.

        A workbook or database without ``part`` gives a dataset for each sheet or table. What is registered already and
        did not change is returned as it is; a file that changed is read again under the same name.

        Raises:
            DataRefused, DataUnreadable: one line why.
        """
        matched = [await self._matched(each) for each in (source, *others)]
        paths = [path for each in matched for path in each.paths]
        notes = [note for each in matched for note in each.notes]
        payload = {"source": source, "paths": [str(path) for path in paths], "part": part, "name": name}
        found = _value(tuple[Dataset, ...], await self._request("register", payload, on_progress))
        return tuple(replace(each, notes=(*each.notes, *notes)) for each in found) if notes else found

    async def profile(
        self, name: str, *, thorough: bool = False, on_progress: Listener | None = None
    ) -> DatasetProfile:
        """Return the statistics of a dataset, reading it anew first when its file changed. Cached until then.

        ``thorough``: also looks for missing and far values, repeated rows and keys without their row in another
        dataset, which takes longer.

        Raises:
            UnknownTable: no dataset has this name.
        """
        reply = await self._request("profile", {"name": name, "thorough": thorough}, on_progress)
        profile: DatasetProfile = _value(DatasetProfile, reply)
        return replace(profile, findings=self.muted.marked(profile.findings, _paths(profile.dataset.files)))

    async def catalogue(self) -> Catalogue:
        """Return the datasets and results of the session; nothing, without starting the helper, where none began."""
        if not self.begun:
            return Catalogue()
        found: Catalogue = _value(Catalogue, await self._request("catalogue", {"head": HEAD_ROWS}))
        files = {each.name: _paths(each.files) for each in found.datasets}
        findings = tuple(
            mark for each in found.findings for mark in self.muted.marked([each], files.get(each.dataset, ()))
        )
        return replace(found, results=tuple(map(self._marked, found.results)), findings=findings)

    def _marked(self, result: QueryResult) -> QueryResult:
        files = {each.name: _paths(each.files) for each in result.provenance.datasets}
        findings = tuple(
            mark for each in result.findings for mark in self.muted.marked([each], files.get(each.dataset, ()))
        )
        return replace(result, findings=findings)

    # Queries

    async def statements(self, sql: str) -> tuple[Statement, ...]:
        """Parse a text, running nothing. Raises QueryFailed when it is not SQL."""
        return _value(tuple[Statement, ...], await self._request("statements", {"sql": sql}))

    async def query(
        self,
        sql: str,
        *,
        timeout: float | None = None,
        named: Mapping[str, str] | None = None,
        on_progress: Listener | None = None,
    ) -> QueryResult:
        """Run one statement that only reads, and keep its rows as the next result R1, R2, …

        Files that ``sql`` names are registered first, unless ``named`` says which tables they mean. ``timeout`` in
        seconds; by default the limit of the settings.

        Raises:
            QueryRefused: it does more than read, or names a file that may not be read. QueryFailed: it is wrong, or
            takes too long, too many rows or too much memory.
        """
        known = None if named is None else {file: [table] for file, table in named.items()}
        payload = {"sql": sql, "head": HEAD_ROWS, "named": known}
        limit = min(timeout or self._place.limits.seconds, self._place.limits.seconds)
        try:
            try:
                reply = await self._request("query", payload, on_progress, timeout=limit)
            except _FilesNeeded as needed:
                found = await self._register_named(needed.files, on_progress)
                reply = await self._request("query", {**payload, "named": found}, on_progress, timeout=limit)
        except WorkerTimeout as error:
            hint = "Filter or aggregate earlier, or raise analysis.query_seconds."
            raise QueryFailed(f"The query took longer than {limit:g} s and was stopped.", hint, "timeout") from error
        return self._marked(_value(QueryResult, reply))

    async def page(
        self, name: str, arrangement: Arrangement | None = None, *, offset: int = 0, limit: int = 100
    ) -> Page:
        """Return rows of a result or dataset. An order or filter is worked out once and kept for the next pages.

        ``limit`` is at most ``PAGE_ROWS``. Raises UnknownTable, QueryFailed.
        """
        payload = {
            "name": name,
            "arrangement": encoded(arrangement or Arrangement()),
            "offset": offset,
            "limit": min(limit, PAGE_ROWS),
        }
        return _value(Page, await self._request("page", payload))

    async def column(self, name: str, column: str, arrangement: Arrangement | None = None) -> ColumnProfile:
        """Return the statistics of one column of a result or dataset, of the rows that ``arrangement`` lets through."""
        payload = {"name": name, "column": column, "arrangement": encoded(arrangement or Arrangement())}
        return _value(ColumnProfile, await self._request("column", payload))

    async def find(
        self, name: str, ranges: Sequence[tuple[float, float]], *, most: int, timeout: float
    ) -> tuple[FoundRows, ...]:
        """Return where numbers of ``ranges`` stand in a result: at most ``most`` rows for each range and column.

        Raises QueryFailed after ``timeout`` seconds.
        """
        payload = {"name": name, "ranges": ranges, "most": most}
        try:
            return _value(tuple[FoundRows, ...], await self._request("find", payload, timeout=timeout))
        except WorkerTimeout as error:
            raise QueryFailed(f"{name} was not searched within {timeout:g} s.", kind="timeout") from error

    @asynccontextmanager
    async def exported(
        self,
        name: str,
        format: ExportFormat,
        arrangement: Arrangement | None = None,
        *,
        on_progress: Listener | None = None,
    ) -> AsyncGenerator[Path]:
        """Write a result or dataset to a temporary file of the session and give its path; it is removed afterwards."""
        payload = {"name": name, "format": format, "arrangement": encoded(arrangement or Arrangement())}
        path = Path(str(await self._request("export", payload, on_progress)))
        try:
            yield path
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)

    async def adopt(self, file: Path, provenance: Provenance, types: Mapping[str, str] = NO_TYPES) -> QueryResult:
        """Keep a Parquet ``file``, which another engine filled, as the next result. ``file`` must lie in ``inbox``.

        ``types``: DuckDB types, by column, of those that come as text; one whose values don't fit stays text.
        """
        payload = {"file": str(file), "provenance": encoded(provenance), "head": HEAD_ROWS, "types": types}
        return _value(QueryResult, await self._request("adopt", payload))

    @property
    def inbox(self) -> Path:
        """The folder for files of ba's own, to ``adopt`` or ``register``; whoever writes there makes it first."""
        return self._place.folder / "inbox"

    # The helper

    async def close(self) -> None:
        """End the helper. What it holds stays; the next request starts it again."""
        worker, self._worker = self._worker, None
        if worker:
            await worker.close()
        if self._place.temporary:
            await off_loop(remove_scratch, self._place.folder)

    async def _matched(self, source: str) -> Matched:
        """The files of ``source``. Files in the inbox are ba's own: no rule is checked for them."""
        own = Path(source)
        if own.parent == self.inbox:
            return Matched(source, (own,))
        return await asyncio.to_thread(self._place.files.matched, source)

    async def _register_named(self, files: Sequence[str], listener: Listener | None) -> dict[str, list[str]]:
        """The tables of each file that a query names."""
        named: dict[str, list[str]] = {}
        for file in files:
            try:
                named[file] = [each.name for each in await self.register(file, on_progress=listener)]
            except DataRefused as error:
                raise QueryRefused(str(error), error.hint) from error
        return named

    async def _request(
        self, method: str, payload: object, listener: Listener | None = None, *, timeout: float | None = None
    ) -> Any:
        worker = await self._running()

        def heard(value: object) -> None:
            if listener:
                listener(_value(Progress, value))

        try:
            return await worker.request(method, payload, timeout=timeout, on_progress=heard)
        except WorkerFailed as error:
            raise _error(error) from error
        except WorkerCrashed as error:
            hint = "Run it again: datasets and results are kept."
            raise EngineFailed(f"The data engine stopped in the middle of this request ({error}).", hint) from error
        except WorkerTimeout:
            raise
        except (OSError, BaError) as error:
            raise EngineFailed(f"The data engine could not start: {error}", getattr(error, "hint", "")) from error

    async def _running(self) -> Worker:
        async with self._starting:
            if self._worker is None:
                place, limits = self._place, self._place.limits
                if place.temporary:
                    await asyncio.to_thread(make_scratch, place.folder)
                else:
                    await asyncio.to_thread(place.folder.mkdir, mode=0o700, parents=True, exist_ok=True)
                from ba_tui.processes.worker import Worker  # noqa: PLC0415 - most sessions never ask for data

                figures = (limits.memory, limits.threads, limits.disk, limits.rows)
                self._worker = Worker(WorkerEntry(ENTRY, (str(place.folder), *map(str, figures))), place.worker)
            return self._worker


def _paths(files: Iterable[Fingerprint]) -> tuple[str, ...]:
    return tuple(each.path for each in files)


def _value(kind: type[T] | Any, reply: object) -> T:
    """The value that the helper sent as JSON."""
    return cast("T", decoded(kind, reply))


def _error(failed: WorkerFailed) -> AnalysisError:
    """The helper says kind, message and hint, the last two in lines."""
    message, _, hint = str(failed).partition("\n")
    kind, _, detail = failed.kind.partition(":")
    if kind == "files_needed":
        return _FilesNeeded(message)
    if kind == "query_failed":
        return QueryFailed(message, hint, detail or "validation_error")
    if kind in _ERRORS:
        return _ERRORS[kind](message, hint)
    return EngineFailed(f"The data engine failed: {message}", hint)
