"""The data engine of a session with all that uses it: the tool for queries, mentions, and whether there is data."""

from __future__ import annotations

import asyncio
import glob
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from ba_tui.context.session_data import dataset_kind
from ba_tui.core.errors import UsageError
from ba_tui.core.ports.mentions import Suggestion
from ba_tui.core.ports.rooms import MarkedShare
from ba_tui.core.ports.tables import Catalogue, Column, DatasetProfile, Page, Provenance, Share, UsedData
from ba_tui.core.results import ToolResult
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count, one_line
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.card import MOST_CHARS, card
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.errors import AnalysisError
from ba_tui.features.data.analysis.files import DataFiles
from ba_tui.features.data.analysis.metrics.definitions import Metrics
from ba_tui.features.data.analysis.sources import Sources
from ba_tui.features.data.tools.analyse_data import NAME as ANALYSE
from ba_tui.features.data.tools.analyse_data import AnalysisPlace, analyse_data_tool
from ba_tui.features.data.tools.chart import NAME as CHART
from ba_tui.features.data.tools.chart import chart_tool
from ba_tui.features.data.tools.copying import Copying
from ba_tui.features.data.tools.data_engine import DataAccess, DataNearby, engine_place, muted_traps
from ba_tui.features.data.tools.data_quality import NAME as QUALITY
from ba_tui.features.data.tools.data_quality import data_quality_tool
from ba_tui.features.data.tools.masking import Masking
from ba_tui.features.data.tools.query_data import NAME as QUERY
from ba_tui.features.data.tools.query_data import QueryMeans, query_data_tool, rows_text
from ba_tui.features.data.tools.secret_columns import SecretColumns
from ba_tui.features.data.tools.source_places import SourceSetup
from ba_tui.features.data.tools.source_queries import SourceQueries
from ba_tui.permissions.secrets.disguises import KnownSearch
from ba_tui.settings.editing import add_item
from ba_tui.tools.definitions import Definition

# Data in prompts: tables (``R3``), cells (``R3[B2:C9]``), columns (``sales.region``), patterns of files
# (``data/*.csv``), parts of files (``book.xlsx#Sheet1``) and agreed definitions (``revenue``).

HEAD = 50
"""Rows of a result that come with its mention."""
MOST_CELLS = 5_000
LEAST_CHARS = 800
"""Room for the profile of one of many tables."""
SHARES: Mapping[Share, str] = {
    "schema": "names and types",
    "aggregates": "names, types and statistics",
    "sample": "names, types, statistics and some values",
}
SHARED = regex(r"(?m)^Shared of (\S+): ")
"""The line of a profile that says what of the data is shared."""
ELSEWHERE = "Query it with query_data and source."
PROFILE = "This is a profile; the rows were not given. Query them with query_data."
FRESH = 3.0
"""Seconds for which what was offered holds."""
_RESULT = regex(r"(?i)R\d+")
_MENTION = regex(r"([^\W\d]\w*)(?:\[([A-Za-z]{1,3})(\d{1,9})(?::([A-Za-z]{1,3})(\d{1,9}))?\]|\.(.+))?")


@frozen
class CellRange:
    """Columns and rows from 0, the last ones included: ``B2:C9`` begins in the second row of data."""

    columns: tuple[int, int]
    rows: tuple[int, int]


@frozen
class TableName:
    """What a mention names: a table, or one ``column`` or some ``cells`` of it."""

    table: str
    column: str = ""
    cells: CellRange | None = None


def table_name(text: str) -> TableName | None:
    """Return what ``text`` names; None where it can't be the name of data."""
    found = _MENTION.fullmatch(text)
    if found is None:
        return None
    table, left, top, right, bottom, column = found.groups()
    if left is None:
        return TableName(table, column or "")
    columns = sorted((_place(left), _place(right or left)))
    rows = sorted((int(top) - 1, int(bottom or top) - 1))
    return TableName(table, "", CellRange((columns[0], columns[1]), (rows[0], rows[1]))) if rows[0] >= 0 else None


@frozen
class SharedValues:
    """What a mention gives of values: ``share`` for files, without those that ``masking`` hides; each of ``sources``
    has its own. ``secret`` learns the secrets of the data that a mention gives."""

    share: Share
    masking: Masking
    sources: Sources
    secret: SecretColumns


class MentionedTables:
    """context.session_data.MentionedData. ``files`` may be read; ``shared``: what of their values a mention gives;
    ``metrics`` are mentioned by name too."""

    def __init__(self, analysis: Analysis, files: DataFiles, shared: SharedValues, metrics: Metrics) -> None:
        self._analysis = analysis
        self._files = files
        self._sources = shared.sources
        self._masking = shared.masking
        self._secret = shared.secret
        self._share: Share = shared.share
        self._metrics = metrics
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
        """See MentionedData."""
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
            from ba_tui.features.data.analysis.metrics.use import described  # noqa: PLC0415 - few projects have definitions

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
        told = [f"Note: {note}" for note in notes]
        return ToolResult("\n".join([title, *told, *rows_text(columns, rows)]), kind="table")

    async def _origin(self, table: str) -> Provenance:
        """Where the rows of a table come from."""
        results = (await self._analysis.catalogue()).results
        found = next((each.provenance for each in results if each.handle.lower() == table.lower()), None)
        return found or Provenance("", (UsedData(table, table, ()),))

    async def _of_source(self, named: TableName) -> ToolResult:
        """The columns of a source's table, or its tables where none is named."""
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

    # What is offered while a name is typed

    def refresh(self) -> None:
        """Look again which tables there are, in the background, when that is a while ago."""
        idle = self._reading is None or self._reading.done()
        if self._analysis.begun and idle and time.monotonic() - self._since > FRESH:
            self._reading = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        with suppress(AnalysisError):
            self._known = await self._analysis.catalogue()
        self._since = time.monotonic()

    def tables(self) -> Sequence[Suggestion]:
        """Results, the newest first, and datasets."""
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
        """Sources, and their tables once they were listed."""
        for place in self._sources.places.values():
            yield Suggestion("table", place.name, place.name, f"source, {place.engine}")
            for table in self._sources.known_tables(place.name) or ():
                name = f"{place.name}.{table}"
                yield Suggestion("table", name, name, f"table on {place.engine}")

    def metrics(self) -> Sequence[Suggestion]:
        """Agreed definitions. Blocks."""
        return [
            Suggestion("metric", "", each.name, one_line(each.description or each.sql, 60))
            for each in self._metrics.usable()
        ]

    def columns(self) -> Sequence[Suggestion]:
        """Columns of datasets."""
        return [
            Suggestion("column", _written(f"{each.name}.{column.name}"), f"{each.name}.{column.name}", column.type)
            for each in self._known.datasets
            for column in each.columns
        ]


def _source(text: str) -> tuple[str, str]:
    """A path or pattern, and the sheet or table behind its last ``#``."""
    source, sign, part = text.rpartition("#")
    return (source, part) if sign and dataset_kind(source) else (text, "")


def _places(named: TableName, columns: Sequence[Column]) -> Sequence[int]:
    """The columns that a mention means, counted from 0."""
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
    """A spreadsheet's name of a column, counted from 0: A is 0, AA is 26."""
    place = 0
    for letter in letters.upper():
        place = 26 * place + ord(letter) - ord("A") + 1
    return place - 1


def _names(columns: Sequence[Column]) -> str:
    return one_line(", ".join(column.name for column in columns), 60)


def _written(name: str) -> str:
    return f'"{name}"' if " " in name else name


@frozen
class DataTools:
    """``tools`` without their guards, ``query`` among them. The helpers of ``engine`` and ``sources`` start when
    something is asked of them."""

    engine: Analysis
    query: Tool
    tools: tuple[Tool, ...]
    tables: MentionedTables
    nearby: DataNearby
    shares: tuple[MarkedShare, ...]
    sources: Sources
    masking: Masking

    def needed(self) -> tuple[str, ...]:
        """The tools to list now: none before there is data. Blocks."""
        return tuple(tool.name for tool in self.tools) if self.sources.places or self.nearby.found() else ()

    async def close(self) -> None:
        """End the helpers."""
        await self.sources.close()
        await self.engine.close()


def data_tools(
    definitions: Mapping[str, Definition],
    access: DataAccess,
    setup: SourceSetup,
    folder: Path | None,
    search: KnownSearch,
) -> DataTools:
    """Return those of the session in ``folder``; None: of one that keeps nothing. ``search`` learns the secrets of the
    data."""
    files = access.files()
    place = engine_place(folder, setup.settings, files, setup.sandbox)
    engine = Analysis(place, muted_traps(setup.where.state, setup.settings))
    given = setup.settings.analysis
    sources = Sources(setup.places(place), engine)
    masking = Masking(given.unmasked, engine, partial(add_item, setup.where, "analysis.unmasked"))
    copying = Copying(engine, access.exports)
    means = QueryMeans(engine, files, access.concern, SourceQueries(sources), masking, copying, access.metrics)
    secret = SecretColumns(engine.texts, search)
    query = secret.learning(query_data_tool(definitions[QUERY], means))
    chart = chart_tool(definitions[CHART], engine, access.workspace, access.asks)
    analysing = AnalysisPlace(engine, place.worker, given.share, given.fiscal_year_start)
    analyse = analyse_data_tool(definitions[ANALYSE], analysing, access.concern)
    tables = MentionedTables(engine, files, SharedValues(given.share, masking, sources, secret), access.metrics)
    quality = data_quality_tool(definitions[QUALITY], engine, access.concern)
    nearby = DataNearby(access.workspace.root, engine)
    shared = f"profiles give {SHARES[given.share]} (analysis.share)"
    shares = (MarkedShare("Data", SHARED, "", lambda _: shared if engine.begun else ""),)
    tools = (query, *map(secret.learning, (chart, analyse, quality)))
    return DataTools(engine, query, tools, tables, nearby, shares, sources, masking)
