"""The data tools of a session, and mentions of data in prompts."""

from __future__ import annotations

import asyncio
import glob
import hashlib
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from ba_tui.context.mentions import dataset_kind
from ba_tui.core.errors import UsageError
from ba_tui.core.ports.context import Suggestion
from ba_tui.core.ports.datasets import OutputFormat, PythonSession
from ba_tui.core.ports.sessions import ReadHistory, nothing_said
from ba_tui.core.ports.settings import Share
from ba_tui.core.ports.tables import (
    Catalogue,
    Column,
    Dataset,
    DatasetProfile,
    Page,
    Provenance,
    TrapFinding,
    UsedData,
)
from ba_tui.core.results import ToolResult
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count, one_line
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.feature import SessionContext
from ba_tui.features.data.analysis.card import MOST_CHARS, card
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.errors import AnalysisError
from ba_tui.features.data.analysis.files import DataFiles
from ba_tui.features.data.analysis.metric_queries import described
from ba_tui.features.data.analysis.metrics import Metrics
from ba_tui.features.data.tools.data_access import (
    ColumnMasks,
    DataAccess,
    SecretColumns,
    agreed_metrics,
    engine_place,
    muted_traps,
)
from ba_tui.features.data.tools.exports import ExportRules, SessionExports
from ba_tui.features.data.tools.python_kernels import KERNEL, Kernels, PythonPlace, SessionPython, kernel_tool
from ba_tui.features.data.tools.query_data import (
    ANALYSE,
    CHART,
    QUALITY,
    QUERY,
    DataOperations,
    QueryContext,
    analyse_data_tool,
    chart_tool,
    data_quality_tool,
    described_query,
    query_data_tool,
    rows_text,
)
from ba_tui.features.data.tools.sources import SourceQueries, Sources, SourceSetup
from ba_tui.ingress import Ingress
from ba_tui.sessions.artifacts import Artifacts
from ba_tui.settings.editing import add_item
from ba_tui.tools.definitions import Definition


class SessionData:
    """Implements core.ports.datasets.Datasets. ``results`` stores what tools printed, ``history`` returns
    events."""

    def __init__(
        self,
        engine: Analysis,
        sources: Sources,
        masking: ColumnMasks,
        rules: ExportRules,
        results: Artifacts,
        history: ReadHistory = nothing_said,
        python: PythonSession | None = None,
    ) -> None:
        self._analysis = engine
        self._results = results
        self.catalogue, self.register, self.query = engine.catalogue, engine.register, engine.query
        self.page, self.column, self.find, self.chart = engine.page, engine.column, engine.find, engine.chart
        self.unmask = masking.allow
        self.sources = sources
        self.exports = SessionExports(engine, rules, history)
        self.python = python

    @property
    def begun(self) -> bool:
        return self._analysis.begun

    async def register_output(self, text: str, format: OutputFormat, ref: str | None = None) -> Dataset:
        file = await asyncio.to_thread(self._kept, text, format, ref)
        return (await self._analysis.register(str(file)))[0]

    async def findings(self, name: str) -> tuple[TrapFinding, ...]:
        return (await self._analysis.catalogue()).findings_of(name)

    async def mute(self, finding: TrapFinding, *, muted: bool) -> None:
        found = await self._analysis.catalogue()
        files = next((each.files for each in found.datasets if each.name == finding.dataset), ())
        paths = [each.path for each in files]
        await asyncio.to_thread(self._analysis.muted.mute, finding.trap, paths, muted=muted)

    def _kept(self, text: str, format: OutputFormat, ref: str | None) -> Path:
        """Return a file in the engine's inbox with the output of a tool."""
        source = self._results.path(ref) if ref else None
        name = ref.rpartition("/")[2] if ref else hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        file = self._analysis.make_inbox() / f"output_{name[:8]}.{format}"
        if not file.exists():
            if source:
                shutil.copyfile(source, file)
            else:
                file.write_text(text, encoding="utf-8", errors="replace")
        return file


# Mentions name tables (``R3``), cells (``R3[B2:C9]``), columns (``sales.region``), file patterns (``data/*.csv``),
# parts of files (``book.xlsx#Sheet1``) and agreed definitions (``revenue``).


HEAD = 50
"""Rows of a result in the text of its mention."""
MOST_CELLS = 5_000
LEAST_CHARS = 800
"""Least characters for the profile of one of several tables."""
SHARES: Mapping[Share, str] = {
    "schema": "names and types",
    "aggregates": "names, types and statistics",
    "sample": "names, types, statistics and some values",
}
ELSEWHERE = "Query it with query_data and source."
PROFILE = "This is a profile; the rows were not given. Query them with query_data."
FRESH = 3.0
"""Seconds before the list of suggestions is refreshed."""
_RESULT = regex(r"(?i)R\d+")
_MENTION = regex(r"([^\W\d]\w*)(?:\[([A-Za-z]{1,3})(\d{1,9})(?::([A-Za-z]{1,3})(\d{1,9}))?\]|\.(.+))?")


@frozen
class CellRange:
    """Columns and rows counted from 0, the last included: ``B2:C9`` starts in the second row of data."""

    columns: tuple[int, int]
    rows: tuple[int, int]


@frozen
class TableName:
    """The table that a mention names, and optionally one ``column`` or a range of ``cells``."""

    table: str
    column: str = ""
    cells: CellRange | None = None


def table_name(text: str) -> TableName | None:
    """Parse the name of data in a mention; None when ``text`` can't be one."""
    found = _MENTION.fullmatch(text)
    if found is None:
        return None
    table, left, top, right, bottom, column = found.groups()
    if left is None:
        return TableName(table, column or "")
    columns = sorted((_place(left), _place(right or left)))
    rows = sorted((int(top) - 1, int(bottom or top) - 1))
    return TableName(table, "", CellRange((columns[0], columns[1]), (rows[0], rows[1]))) if rows[0] >= 0 else None


class MentionedTables:
    """Implements context.ports.MentionedData. ``files`` may be read; ``metrics`` can be mentioned by name. Of files the
    ``share`` is given, without what ``masking`` hides, and of ``sources`` a share each. ``secret`` learns the secrets
    in mentioned data."""

    def __init__(
        self,
        analysis: Analysis,
        files: DataFiles,
        metrics: Metrics,
        masking: ColumnMasks,
        sources: Sources,
        secret: SecretColumns,
        share: Share,
    ) -> None:
        self._analysis, self._files, self._metrics = analysis, files, metrics
        self._masking, self._sources, self._secret = masking, sources, secret
        self._share: Share = share
        self._known = Catalogue()
        self._since = float("-inf")
        self._reading: asyncio.Task[None] | None = None

    async def names(self, text: str) -> bool:
        named = table_name(text)
        if named and named.table in self._sources.places and not named.cells:
            return True
        if await asyncio.to_thread(self._metrics.find, text):
            return True
        if named is None or not self._analysis.begun:
            return False
        try:
            page = await self._analysis.page(named.table, limit=0)
        except AnalysisError:
            return False
        return bool(_places(named, page.columns)) and (named.cells is None or named.cells.rows[0] < page.total)

    def remote(self, text: str) -> bool:
        del text
        return False

    async def names_files(self, text: str) -> bool:
        source, part = _source(text)
        if not dataset_kind(source) or not (part or glob.has_magic(source)):
            return False
        try:
            return bool(await asyncio.to_thread(self._files.matched, source))
        except AnalysisError:
            return False

    async def register(self, text: str) -> ToolResult:
        source, part = _source(text)
        datasets = await self._analysis.register(source, part=part)
        most = max(LEAST_CHARS, MOST_CHARS // len(datasets))
        shown = datasets[: MOST_CHARS // most]
        cards = [self._card(await self._analysis.profile(each.name), most) for each in shown]
        if left := [each.name for each in datasets[len(shown) :]]:
            cards.append(f"Further tables: {one_line(', '.join(left), LEAST_CHARS)}")
        await self._secret.learn()
        return ToolResult("\n".join([*cards, PROFILE]))

    async def read(self, text: str) -> ToolResult:
        if metric := await asyncio.to_thread(self._metrics.find, text):
            if metric.trouble:
                raise UsageError(f"The metric {metric.name} can't be used: {metric.trouble}.", "Correct its file.")
            return ToolResult(described(metric))
        named = table_name(text) or TableName(text)
        if named.table in self._sources.places:
            return await self._of_source(named)
        await self._secret.learn()
        if named.cells or _RESULT.fullmatch(named.table):
            return await self._rows(named)
        return await self._profile(named)

    async def _rows(self, named: TableName) -> ToolResult:
        cells = named.cells
        offset = cells.rows[0] if cells else 0
        wanted = min(cells.rows[1] - offset + 1, MOST_CELLS) if cells else HEAD
        page = await self._analysis.page(named.table, offset=offset, limit=wanted)
        places = _places(named, page.columns)
        columns = [page.columns[place] for place in places]
        rows = [tuple(row[place] for place in places) for row in page.rows[: max(1, MOST_CELLS // max(1, len(places)))]]
        title = f"{count(page.total, 'row')}, {count(len(page.columns), 'column')}; {_extent(page, len(rows))}"
        rows, notes = await self._masking.rows(columns, rows, await self._origin(named.table))
        remarks = [f"Note: {note}" for note in notes]
        return ToolResult("\n".join([title, *remarks, *rows_text(columns, rows)]), kind="table")

    async def _origin(self, table: str) -> Provenance:
        """Return the provenance of a table's rows."""
        results = (await self._analysis.catalogue()).results
        found = next((each.provenance for each in results if each.handle.lower() == table.lower()), None)
        return found or Provenance("", (UsedData(table, table, ()),))

    async def _of_source(self, named: TableName) -> ToolResult:
        """Return the columns of a source's table, or the list of its tables when none is named."""
        place = self._sources.place(named.table)
        if not named.column:
            tables = ", ".join(await self._sources.tables(place.name)) or "none"
            return ToolResult(
                f"Source {place.name} ({place.engine}); tables: {one_line(tables, MOST_CHARS)}\n{ELSEWHERE}"
            )
        profile = await self._sources.profile(place.name, named.column)
        return ToolResult(f"{self._card(profile, MOST_CHARS, place.share)}\n{ELSEWHERE}")

    def _card(self, profile: DatasetProfile, most: int, share: Share | None = None) -> str:
        name, shared = profile.dataset.name, share or self._share
        unmasked = self._masking.columns(name)
        hidden = [each.column.name for each in profile.columns if each.personal]
        masked = [column for column in hidden if column.lower() not in unmasked]
        lines = [f"Shared of {name}: {SHARES[shared]}."]
        if masked and shared != "schema":
            shown = one_line(", ".join(masked), LEAST_CHARS)
            lines[0] += f" Masked, as they look personal: {shown}; /unmask {name}.{masked[0]} shows one."
        return "\n".join([card(profile, shared, most=most - LEAST_CHARS // 2, unmasked=unmasked), *lines])

    async def _profile(self, named: TableName) -> ToolResult:
        profile = await self._analysis.profile(named.table)
        if named.column:
            wanted = named.column.lower()
            columns = (each for each in profile.columns if each.column.name.lower() == wanted)
            profile = replace(profile, columns=tuple(columns))
        return ToolResult(self._card(profile, MOST_CHARS))

    # Suggestions while the user types a name

    def refresh(self) -> None:
        """Refresh the list of tables in the background when it is older than ``FRESH``."""
        idle = self._reading is None or self._reading.done()
        if self._analysis.begun and idle and time.monotonic() - self._since > FRESH:
            self._reading = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        with suppress(AnalysisError):
            self._known = await self._analysis.catalogue()
        self._since = time.monotonic()

    def tables(self) -> Sequence[Suggestion]:
        """Return results, the newest first, then datasets and sources."""
        results = [
            Suggestion("table", each.handle, each.handle, f"{count(each.rows, 'row')}: {_names(each.columns)}")
            for each in reversed(self._known.results)
        ]
        datasets = [
            Suggestion("table", each.name, each.name, f"{count(each.rows, 'row')} of {one_line(each.source, 60)}")
            for each in self._known.datasets
        ]
        return [*results, *datasets, *self._of_sources()]

    def _of_sources(self) -> Iterator[Suggestion]:
        """Yield sources and those of their tables that were listed before."""
        for place in self._sources.places.values():
            yield Suggestion("table", place.name, place.name, f"source, {place.engine}")
            for table in self._sources.known_tables(place.name) or ():
                name = f"{place.name}.{table}"
                yield Suggestion("table", name, name, f"table on {place.engine}")

    def metrics(self) -> Sequence[Suggestion]:
        """Return the usable metric definitions. Blocks."""
        return [
            Suggestion("metric", "", each.name, one_line(each.description or each.sql, 60))
            for each in self._metrics.usable()
        ]

    def columns(self) -> Sequence[Suggestion]:
        """Return the columns of datasets."""
        return [
            Suggestion("column", _written(f"{each.name}.{column.name}"), f"{each.name}.{column.name}", column.type)
            for each in self._known.datasets
            for column in each.columns
        ]


def _source(text: str) -> tuple[str, str]:
    """Split a path or pattern from the sheet or table after its last ``#``."""
    source, sign, part = text.rpartition("#")
    return (source, part) if sign and dataset_kind(source) else (text, "")


def _places(named: TableName, columns: Sequence[Column]) -> Sequence[int]:
    """Return the positions of the mentioned columns, counted from 0."""
    every = range(len(columns))
    if named.cells:
        first, last = named.cells.columns
        return every[first : last + 1]
    if named.column:
        return [place for place in every if columns[place].name.lower() == named.column.lower()]
    return every


def _extent(page: Page, shown: int) -> str:
    return f"rows {page.offset + 1:,} to {page.offset + shown:,} follow" if shown else "there are no rows"


def _place(letters: str) -> int:
    """Convert a spreadsheet's column letters to a position: A is 0, AA is 26."""
    place = 0
    for letter in letters.upper():
        place = 26 * place + ord(letter) - ord("A") + 1
    return place - 1


def _names(columns: Sequence[Column]) -> str:
    return one_line(", ".join(column.name for column in columns), 60)


def _written(name: str) -> str:
    return f'"{name}"' if " " in name else name


class DataSession:
    """The data objects of one session. Helper processes start with the first request."""

    def __init__(self, context: SessionContext) -> None:
        scope, permissions, where = context.scope, context.permissions, context.where
        workspace, settings, judge = permissions.workspace, context.loaded.settings, permissions.policy.judge
        options, definitions = settings.analysis, context.definitions
        exports = ExportRules(workspace, context.builtin["write_file"], judge, context.ahead)
        metrics = agreed_metrics(where, context.offered(Ingress))
        access = DataAccess(workspace, context.builtin["read_file"], judge)

        files = access.files()
        place = engine_place(scope.folder, settings, files, permissions.sandbox)
        self.engine = engine = Analysis(place, muted_traps(where.state, settings))
        setup = SourceSetup(settings, where, permissions.sandbox, workspace.root)
        self.sources = sources = Sources(setup.places(place), engine)
        masking = ColumnMasks(options.unmasked, engine, partial(add_item, where, "analysis.unmasked"))
        self.kernels = Kernels(PythonPlace(permissions, scope.folder, settings, context.shell.inherited()), engine)

        queries = SourceQueries(sources)
        self.query = described_query(definitions[QUERY], queries, metrics)
        """The query tool with the sources and definitions of this session."""
        querying = QueryContext(engine, files, access.concern, queries, masking, exports, metrics)
        operations = DataOperations(engine, place.worker, options.share, options.fiscal_year_start)
        secret = SecretColumns(engine, permissions.sharing.search)
        data = (
            query_data_tool(self.query, querying),
            chart_tool(definitions[CHART], engine, workspace, access.asks),
            analyse_data_tool(definitions[ANALYSE], operations, access.concern),
            data_quality_tool(definitions[QUALITY], engine, access.concern),
        )
        tools = (*map(secret.learning, data), kernel_tool(definitions[KERNEL], self.kernels, scope.modalities))
        self.tools = {tool.name: tool for tool in tools}
        self.tables = MentionedTables(engine, files, metrics, masking, sources, secret, options.share)
        self.datasets = SessionData(
            engine, sources, masking, exports, scope.results, scope.history, SessionPython(self.kernels, exports)
        )
        """The port ``Datasets`` for faces."""
        self.shared = f"profiles give {SHARES[options.share]} (analysis.share)"
        """A line about the values that profiles share with models."""

    async def close(self) -> None:
        """End the helper processes."""
        await self.kernels.close()
        await self.sources.close()
        await self.engine.close()


def data_tool(definition: Definition, session: DataSession) -> Tool:
    """Return the tool of the session that ``definition`` describes."""
    return session.tools[definition.name]
