"""The client of the data engine: registers data, runs queries and pages through results.

DuckDB runs in a helper process (``engine_process.main``). Its data is in the session's folder, so datasets and results
survive a crash of the helper and a restart of ba.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from ba_tui.core.errors import BaError, StorageError, off_loop
from ba_tui.core.ports.settings import ALL, KINDS
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
    TrapFinding,
    UsedData,
)
from ba_tui.core.results import Chart, ChartRequest, PictureFormat
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.errors import (
    AnalysisError,
    DataRefused,
    DataUnreadable,
    EngineFailed,
    QueryFailed,
    QueryRefused,
    UnknownTable,
    decoded,
    encoded,
    progress_for,
)
from ba_tui.features.data.analysis.files import DataFiles, MatchedFiles
from ba_tui.processes.scratch import make_scratch, remove_scratch
from ba_tui.processes.values import WorkerCrashed, WorkerEntry, WorkerFailed, WorkerSettings, WorkerTimeout
from ba_tui.resources import exclusive, read_regular, save_whole

if TYPE_CHECKING:
    from ba_tui.features.data.analysis.comparison import Comparison
    from ba_tui.processes.worker import WorkerClient

log = logging.getLogger(__name__)
ENTRY = "ba_tui.features.data.analysis.engine_process.main:main"
DATABASE = "engine.duckdb"
HEAD_ROWS = 50
PAGE_ROWS = 10_000
"""Most rows of one page."""
NO_TYPES: Mapping[str, str] = {}
LARGEST_LIST = 1_000_000
"""Most bytes of the list of muted traps."""
MUTED = "muted_traps.json"
Listener: TypeAlias = Callable[[Progress], None]
Aggregate: TypeAlias = Literal["sum", "avg", "median", "min", "max", "count", "count_distinct"]
ExportFormat: TypeAlias = Literal["csv", "tsv", "json", "jsonl", "parquet", "xlsx"]

_ERRORS: Mapping[str, type[AnalysisError]] = {
    "data_refused": DataRefused,
    "data_unreadable": DataUnreadable,
    "query_refused": QueryRefused,
    "query_failed": QueryFailed,
    "unknown_table": UnknownTable,
}


@frozen
class ColumnTexts:
    """The distinct ``texts`` of one ``column`` of a dataset."""

    dataset: str
    column: str
    texts: tuple[str, ...]


@frozen
class EngineLimits:
    """Limits of queries: ``memory`` in bytes, ``threads``, ``disk`` in bytes for intermediate data, ``rows`` of one
    result, ``seconds`` of one query."""

    memory: int
    threads: int
    disk: int
    rows: int
    seconds: float


@frozen
class EnginePlace:
    """Where the engine works: ``folder`` has its data and is written by no other program; ``worker`` starts the
    confined helper; ``files`` decides which files may be read. A ``temporary`` folder is removed on close."""

    folder: Path
    worker: WorkerSettings
    files: DataFiles
    limits: EngineLimits
    temporary: bool = False

    def make_folder(self) -> None:
        """Create ``folder`` unless it exists; a temporary one only here, as others would take it for abandoned."""
        if self.temporary:
            make_scratch(self.folder)
        else:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)


class MutedTraps:
    """Muted kinds by the absolute path of each file, saved in ``store`` (None: not saved). ``always``: kinds muted for
    all data, or ``all``. All methods but ``marked`` block."""

    def __init__(self, store: Path | None = None, always: Sequence[str] = ()) -> None:
        self._store = store
        self._always = frozenset(KINDS) if ALL in always else frozenset(always)
        self._kept: dict[str, list[str]] | None = None

    def marked(self, findings: Iterable[TrapFinding], paths: Iterable[str]) -> tuple[TrapFinding, ...]:
        """Return the findings of a dataset read from ``paths``, with muted ones marked."""
        kinds = self._kinds(paths)
        return tuple(replace(each, muted=each.trap in kinds) for each in findings)

    def mute(self, trap: str, paths: Iterable[str], *, muted: bool) -> None:
        """Mute or unmute a kind for the data of these files. Raises StorageError."""
        own = tuple(paths)
        if self._store is None:
            self._kept = _changed(self._known(), trap, own, muted=muted)
            return
        try:
            with exclusive(self._store.parent):
                self._kept = _changed(self._read(), trap, own, muted=muted)
                save_whole(self._store, json.dumps(self._kept))
        except OSError as error:
            raise StorageError(f"The list of muted traps can't be saved: {error.strerror}.") from error

    def _kinds(self, paths: Iterable[str]) -> frozenset[str]:
        kept = self._known()
        return self._always | {kind for path in paths for kind in kept.get(path, ())}

    def _known(self) -> dict[str, list[str]]:
        if self._kept is None:
            self._kept = self._read()
        return self._kept

    def _read(self) -> dict[str, list[str]]:
        try:
            data: Any = json.loads(read_regular(self._store, LARGEST_LIST)) if self._store else {}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            log.warning("the list of muted traps can't be read: %s", error)
            return {}
        if not isinstance(data, dict):
            return {}
        known = cast("dict[str, Any]", data)
        lists = {path: cast("list[Any]", kinds) for path, kinds in known.items() if isinstance(kinds, list)}
        return {path: [str(kind) for kind in kinds] for path, kinds in lists.items()}


def _changed(kept: dict[str, list[str]], trap: str, paths: Iterable[str], *, muted: bool) -> dict[str, list[str]]:
    made = dict(kept)
    for path in paths:
        kinds = {*made.pop(path, ()), trap} if muted else set(made.pop(path, ())) - {trap}
        if kinds:
            made[path] = sorted(kinds)
    return made


class _FilesNeeded(AnalysisError):
    """A query names ``files`` that are not registered yet."""

    def __init__(self, files: str) -> None:
        super().__init__("The query names files that are not registered.")
        self.files: list[str] = json.loads(files)


class Analysis:
    """The engine of one session. The helper starts with the first request. Requests may run concurrently; cancelling
    one interrupts its query. All raise ``AnalysisError`` with a one-line message. ``muted`` has the traps that the
    user does not want to see."""

    def __init__(self, place: EnginePlace, muted: MutedTraps | None = None) -> None:
        self._place = place
        self.muted = muted or MutedTraps()
        self._worker: WorkerClient | None = None
        self._starting = asyncio.Lock()

    @property
    def begun(self) -> bool:
        """Whether the session has data. Does not start the helper."""
        return (self._place.folder / DATABASE).exists()

    @property
    def limits(self) -> EngineLimits:
        """The limits of queries."""
        return self._place.limits

    # Data

    async def register(
        self, source: str, *others: str, part: str = "", name: str = "", on_progress: Listener | None = None
    ) -> tuple[Dataset, ...]:
        """Read a file, a glob, or ``part`` (a sheet or table) of a file into tables, and return them. ``others`` are
        further files of the same table; ``name`` overrides the table name. Without ``part``, a workbook or database
        gives a dataset for each sheet or table. Unchanged files are not read again; a changed file is read again under
        the same name. Raises DataRefused, DataUnreadable: one line why."""
        matched = [await self._matched(each) for each in (source, *others)]
        paths = [path for each in matched for path in each.paths]
        notes = [note for each in matched for note in each.notes]
        payload = {"source": source, "paths": [str(path) for path in paths], "part": part, "name": name}
        found: tuple[Dataset, ...] = decoded(tuple[Dataset, ...], await self._request("register", payload, on_progress))
        return tuple(replace(each, notes=(*each.notes, *notes)) for each in found) if notes else found

    async def profile(
        self, name: str, *, thorough: bool = False, on_progress: Listener | None = None
    ) -> DatasetProfile:
        """Return the statistics of a dataset, reading its file again if it changed. Cached until then. ``thorough``
        also looks for missing values, outliers, repeated rows and broken references, which takes longer. Raises
        UnknownTable: no dataset has this name."""
        reply = await self._request("profile", {"name": name, "thorough": thorough}, on_progress)
        profile: DatasetProfile = decoded(DatasetProfile, reply)
        return replace(profile, findings=self.muted.marked(profile.findings, _paths(profile.dataset.files)))

    async def catalogue(self) -> Catalogue:
        """Return the datasets and results of the session; empty, without starting the helper, when it has no data."""
        if not self.begun:
            return Catalogue()
        found: Catalogue = decoded(Catalogue, await self._request("catalogue", {"head": HEAD_ROWS}))
        findings = self._marks(found.findings, found.datasets)
        return replace(found, results=tuple(map(self._marked, found.results)), findings=findings)

    def _marked(self, result: QueryResult) -> QueryResult:
        return replace(result, findings=self._marks(result.findings, result.provenance.datasets))

    def _marks(
        self, findings: Iterable[TrapFinding], datasets: Iterable[Dataset | UsedData]
    ) -> tuple[TrapFinding, ...]:
        files = {each.name: _paths(each.files) for each in datasets}
        return tuple(mark for each in findings for mark in self.muted.marked([each], files.get(each.dataset, ())))

    # Queries

    async def statements(self, sql: str) -> tuple[Statement, ...]:
        """Parse SQL without running it. Raises QueryFailed for invalid SQL."""
        return decoded(tuple[Statement, ...], await self._request("statements", {"sql": sql}))

    async def query(
        self,
        sql: str,
        *,
        timeout: float | None = None,
        named: Mapping[str, str] | None = None,
        on_progress: Listener | None = None,
    ) -> QueryResult:
        """Run one read-only statement, and store its rows as the next result R1, R2, … Files named in ``sql`` are
        registered first, unless ``named`` maps them to tables. ``timeout`` in seconds; the default is the limit of the
        settings. Raises QueryRefused: the statement does more than read, or names a file that may not be read.
        QueryFailed: it is wrong, or exceeds the time, rows or memory allowed."""
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
        return self._marked(decoded(QueryResult, reply))

    async def page(
        self, name: str, arrangement: Arrangement | None = None, *, offset: int = 0, limit: int = 100
    ) -> Page:
        """Return rows of a result or dataset. An order or filter is computed once and cached for further pages.
        ``limit`` is at most ``PAGE_ROWS``. Raises UnknownTable, QueryFailed."""
        payload = {"name": name, "arrangement": encoded(arrangement or Arrangement()), "offset": offset}
        return decoded(Page, await self._request("page", {**payload, "limit": min(limit, PAGE_ROWS)}))

    async def column(self, name: str, column: str, arrangement: Arrangement | None = None) -> ColumnProfile:
        """Return the statistics of one column of a result or dataset, of the rows that pass ``arrangement``."""
        payload = {"name": name, "column": column, "arrangement": encoded(arrangement or Arrangement())}
        return decoded(ColumnProfile, await self._request("column", payload))

    async def find(
        self, name: str, ranges: Sequence[tuple[float, float]], *, most: int, timeout: float
    ) -> tuple[FoundRows, ...]:
        """Find numbers within ``ranges`` in a result: at most ``most`` rows for each range and column. Raises
        QueryFailed after ``timeout`` seconds."""
        payload = {"name": name, "ranges": ranges, "most": most}
        try:
            return decoded(tuple[FoundRows, ...], await self._request("find", payload, timeout=timeout))
        except WorkerTimeout as error:
            raise QueryFailed(f"{name} was not searched within {timeout:g} s.", kind="timeout") from error

    async def new_samples(self) -> tuple[ColumnTexts, ...]:
        """Return texts from both ends of each dataset that was read since the last call."""
        found = await self._request("samples", {})
        return tuple(ColumnTexts(dataset, column, tuple(texts)) for dataset, column, texts in found)

    async def texts(self, dataset: str, column: str) -> ColumnTexts:
        """Return the texts of a whole column, up to the size of a reply."""
        payload = {"name": dataset, "column": column}
        return ColumnTexts(dataset, column, tuple(await self._request("texts", payload)))

    # Charts, and tables computed from others

    async def chart(
        self, wanted: ChartRequest, arrangement: Arrangement | None = None, *, on_progress: Listener | None = None
    ) -> Chart:
        """Compute a chart of a result or dataset, of the rows that pass ``arrangement``. Raises UnknownTable: no such
        table. QueryFailed: the chart can't be drawn of these columns."""
        payload = {"chart": asdict(wanted), "arrangement": asdict(arrangement or Arrangement())}
        return decoded(Chart, await self._request("chart", payload, on_progress))

    def picture(self, chart: Chart, format: PictureFormat) -> AbstractAsyncContextManager[Path]:
        """Draw a chart into a temporary file of the session and yield its path; it is removed afterwards."""
        from ba_tui.features.data.analysis.charts import specification  # noqa: PLC0415 - only for pictures

        payload = {"specification": specification(chart), "format": format}
        return self._file("picture", payload, None)

    async def compare(
        self,
        left: str,
        right: str,
        keys: Sequence[str] = (),
        *,
        tolerance: float = 0.0,
        on_progress: Listener | None = None,
    ) -> Comparison:
        """Compare two tables row by row. Without ``keys``, columns that are unique in both are used. Raises
        UnknownTable, and QueryFailed for missing columns or wrong types."""
        from ba_tui.features.data.analysis.comparison import Comparison  # noqa: PLC0415 - few sessions compare tables

        payload = {"left": left, "right": right, "keys": list(keys), "tolerance": tolerance, "head": HEAD_ROWS}
        return decoded(Comparison, await self._request("compare", payload, on_progress))

    async def pivot(
        self,
        name: str,
        rows: Sequence[str],
        columns: Sequence[str] = (),
        values: str = "",
        aggregate: Aggregate = "sum",
    ) -> QueryResult:
        """Store a cross table of ``name`` as the next result, with a row and a column of totals. Raises as
        ``compare``."""
        payload = {"name": name, "rows": list(rows), "columns": list(columns), "values": values}
        return decoded(
            QueryResult, await self._request("pivot", {**payload, "aggregate": aggregate, "head": HEAD_ROWS})
        )

    # Files

    @asynccontextmanager
    async def _file(self, method: str, payload: object, listener: Listener | None) -> AsyncGenerator[Path]:
        """Yield the path of a file that the helper wrote; it is removed afterwards."""
        path = Path(str(await self._request(method, payload, listener)))
        try:
            yield path
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)

    def exported(
        self,
        name: str,
        format: ExportFormat,
        arrangement: Arrangement | None = None,
        *,
        on_progress: Listener | None = None,
    ) -> AbstractAsyncContextManager[Path]:
        """Write a result or dataset to a temporary file of the session and yield its path; it is removed afterwards."""
        payload = {"name": name, "format": format, "arrangement": encoded(arrangement or Arrangement())}
        return self._file("export", payload, on_progress)

    async def adopt(self, file: Path, provenance: Provenance, types: Mapping[str, str] = NO_TYPES) -> QueryResult:
        """Store a Parquet ``file`` from another engine as the next result. ``file`` must be in ``inbox``. ``types``
        maps columns that arrive as text to DuckDB types; a column whose values don't fit stays text."""
        payload = {"file": str(file), "provenance": encoded(provenance), "head": HEAD_ROWS, "types": types}
        return decoded(QueryResult, await self._request("adopt", payload))

    @property
    def inbox(self) -> Path:
        """The folder for ba's own files to ``adopt`` or ``register``; ``make_inbox`` creates it."""
        return self._place.folder / "inbox"

    def make_inbox(self, name: str = "") -> Path:
        """Create ``inbox``, or the folder ``name`` in it, and return its path. Blocks."""
        self._place.make_folder()
        folder = self.inbox / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    @property
    def exports(self) -> Path:
        """The folder in which the helper writes exported files."""
        return self._place.folder / "exports"

    # The helper

    async def close(self) -> None:
        """End the helper. The data is kept; the next request starts the helper again."""
        worker, self._worker = self._worker, None
        if worker:
            await worker.close()
        if self._place.temporary:
            await off_loop(remove_scratch, self._place.folder)

    async def _matched(self, source: str) -> MatchedFiles:
        """Return the files of ``source``. Files in the inbox are ba's own and need no permission."""
        own = Path(source)
        if own.parent == self.inbox:
            return MatchedFiles(source, (own,))
        return await asyncio.to_thread(self._place.files.matched, source)

    async def _register_named(self, files: Sequence[str], listener: Listener | None) -> dict[str, list[str]]:
        """Return the tables of each file that a query names."""
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
        try:
            return await worker.request(method, payload, timeout=timeout, on_progress=progress_for(listener))
        except WorkerFailed as error:
            raise _error(error) from error
        except WorkerCrashed as error:
            hint = "Run it again: datasets and results are kept."
            raise EngineFailed(f"The data engine stopped in the middle of this request ({error}).", hint) from error
        except WorkerTimeout:
            raise
        except (OSError, BaError) as error:
            raise EngineFailed(f"The data engine could not start: {error}", getattr(error, "hint", "")) from error

    async def _running(self) -> WorkerClient:
        async with self._starting:
            if self._worker is None:
                place, limits = self._place, self._place.limits
                await asyncio.to_thread(place.make_folder)
                from ba_tui.processes.worker import WorkerClient  # noqa: PLC0415 - most sessions have no data

                figures = (limits.memory, limits.threads, limits.disk, limits.rows)
                self._worker = WorkerClient(WorkerEntry(ENTRY, (str(place.folder), *map(str, figures))), place.worker)
            return self._worker


def _paths(files: Iterable[Fingerprint]) -> tuple[str, ...]:
    return tuple(each.path for each in files)


def _error(failed: WorkerFailed) -> AnalysisError:
    """Return the exception for a failure of the helper, which sends kind, message and hint."""
    message, _, hint = str(failed).partition("\n")
    kind, _, detail = failed.kind.partition(":")
    if kind == "files_needed":
        return _FilesNeeded(message)
    if kind == "query_failed":
        return QueryFailed(message, hint, detail or "validation_error")
    if kind in _ERRORS:
        return _ERRORS[kind](message, hint)
    return EngineFailed(f"The data engine failed: {message}", hint)
