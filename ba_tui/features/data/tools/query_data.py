"""The tools ``query_data`` (SQL on the session's data), ``data_quality``, ``analyse_data`` and ``chart``, and what the
model reads of a result. The engine runs the query and refuses statements that do more than read."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from ba_tui.context.mentions import dataset_kind
from ba_tui.core.errors import UsageError
from ba_tui.core.ports.settings import Share
from ba_tui.core.ports.tables import Cell, Column, DatasetProfile, Progress, QueryResult, Row, TrapFinding
from ba_tui.core.results import Chart, ChartRequest, Display, PictureFormat, Prose, Source, Table, ToolResult
from ba_tui.core.text.wording import byte_size, clipped, correction, count, one_line
from ba_tui.core.tool import Call, Concern, OutputLevel, Tool
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.calendars import calendar_query
from ba_tui.features.data.analysis.card import card
from ba_tui.features.data.analysis.charts import description
from ba_tui.features.data.analysis.comparison import Comparison, comparison_lines
from ba_tui.features.data.analysis.engine import Analysis, Listener
from ba_tui.features.data.analysis.errors import AnalysisError, UnknownTable
from ba_tui.features.data.analysis.files import DataFiles
from ba_tui.features.data.analysis.forecast import ForecastRequest, forecast
from ba_tui.features.data.analysis.metric_queries import MetricFinding, differences, expanded_query, offer
from ba_tui.features.data.analysis.metrics import Metrics
from ba_tui.features.data.tools.data_access import ColumnMasks
from ba_tui.features.data.tools.exports import ExportRules, copy_to, picture_format, write_copy
from ba_tui.features.data.tools.sources import SourceQueries
from ba_tui.permissions.paths import Workspace, is_secret
from ba_tui.processes.values import WorkerSettings
from ba_tui.tools.definitions import Definition
from ba_tui.tools.editing.disk import place_file
from ba_tui.tools.failures import ToolFailure

QUERY = "query_data"
CELL_CHARS = 500
COLUMN_CHARS = 3_000
"""Most characters of the list of columns and types."""
PROOF_CHARS = 700
"""Most characters of a proof; longer ones are left out, as a part would be useless."""
STEP = 0.1
"""Progress between two reported lines."""
READS = "Only statements that read can run: SELECT, WITH, FROM, DESCRIBE, SHOW, SUMMARIZE, EXPLAIN."
REST = "[… more: query this result with LIMIT and OFFSET]"


@frozen
class QueryContext:
    """Dependencies of queries: the ``files`` that may be read, ``concern`` which returns why the user must approve
    reading the files of a query, the ``sources``, the ``masking`` of personal values, the rules of ``exports``, and the
    agreed ``metrics`` that queries use by name."""

    analysis: Analysis
    files: DataFiles
    concern: Concern
    sources: SourceQueries
    masking: ColumnMasks
    exports: ExportRules
    metrics: Metrics

    async def expanded(self, args: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return ``args`` with metric names replaced by their definitions. Raises AnalysisError for an unknown name."""
        return {**args, "sql": (await expanded_query(args["sql"], self.metrics)).sql}

    async def run(self, args: Mapping[str, Any], on_progress: Listener) -> tuple[QueryResult, str]:
        """Run an expanded statement; return its result and a line about a written file."""
        if args.get("source"):
            return await self.sources.run(args, on_progress), ""
        if copy := copy_to(args["sql"]):
            rows, file = copy
            await asyncio.to_thread(self.exports.new_file, file)
            result = await self.analysis.query(rows, on_progress=on_progress)
            return result, await write_copy(self.analysis, self.exports, file, result.handle)
        return await self.analysis.query(args["sql"], on_progress=on_progress), ""

    async def check(self, args: Mapping[str, Any]) -> None:
        """Raise BaError for a statement that can't run, so that the user is not asked about it."""
        if args.get("source"):
            await self.sources.writes(args)
            return
        if copy := copy_to(args["sql"]):
            await asyncio.to_thread(self.exports.new_file, copy[1])
        for statement in await self.analysis.statements(copy[0] if copy else args["sql"]):
            if statement.kind == "other":
                hint = statement.instead or READS
                raise ToolFailure("permission_denied", f"This statement is not run: {statement.why}.", hint)
            for file in statement.files:
                await asyncio.to_thread(self.files.matched, file)


def query_data_tool(definition: Definition, context: QueryContext) -> Tool:
    """Return the tool without guards."""
    sources, metrics = context.sources, context.metrics

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        query = await context.expanded(args)
        result, written = await context.run(query, reporter(call.report))
        found = await asyncio.to_thread(lambda: differences(query["sql"], metrics.usable()))
        remarks = (f"{each.title}. {each.why}{f' Compare: {each.proof}' if each.proof else ''}" for each in found)
        masked = await context.masking.masked(result)
        return ToolResult(
            "\n".join(filter(None, [written, result_text(replace(masked, notes=(*masked.notes, *remarks)))])),
            result_table(result),
            summary=_summary(result, found),
            kind="table",
            meta={"result": result.handle},
        )

    async def preview(args: Mapping[str, Any]) -> Source:
        """Return the SQL to show in a permission question."""
        await context.check(await context.expanded(args))
        return Source("query.sql", args["sql"])

    async def concern(args: Mapping[str, Any]) -> str:
        try:
            query = await context.expanded(args)
        except AnalysisError:
            # The statement can't run; the call's result will say so.
            return ""
        return await (sources.concern(query) if args.get("source") else context.concern(query))

    own = replace(definition, facts=replace(definition.facts, dialect_of=sources.dialect))
    return own.tool(run, preview=preview, concern=concern, so_far=no_reports)


def described_query(definition: Definition, queries: SourceQueries, metrics: Metrics) -> Definition:
    """Return ``definition`` with the configured sources and the usable metric definitions, if there are any."""
    described = _with_sources(definition, queries)
    usable = metrics.usable()
    return replace(described, description=f"{described.description}{offer(usable)}") if usable else described


def target(args: Mapping[str, Any]) -> str:
    """Return the statement as the user would type it, after the name of its source."""
    where = f"@{args['source']} " if args.get("source") else ""
    return f"{where}{args.get('sql', '')}"


def _with_sources(definition: Definition, queries: SourceQueries) -> Definition:
    schema = definition.input_schema
    places = queries.sources.places.values()
    if not places:
        return definition
    named = ", ".join(f"{place.name} ({place.engine})" for place in places)
    more = (
        f"Sources: {named}. With source, the statement runs there, in its SQL dialect; SHOW TABLES and DESCRIBE work "
    )
    more += "everywhere. Filter and aggregate there; the result is a local handle that joins with other data."
    about = {"type": "string", "enum": [place.name for place in places], "description": "Where it runs, if not here"}
    properties: Mapping[str, Any] = schema["properties"]
    return replace(
        definition,
        description=f"{definition.description.rstrip()} {more}\n",
        input_schema={**schema, "properties": {**properties, "source": about}},
    )


def _summary(result: QueryResult, found: Sequence[MetricFinding]) -> str:
    warned = [count(len(result.told), "warning")] if result.told else []
    return " · ".join([result.handle, count(result.rows, "row"), *warned, *(each.title for each in found)])


def no_reports(reports: str) -> str:
    """Return nothing: the progress of an interrupted query is of no use to a model."""
    del reports
    return ""


def result_text(result: QueryResult) -> str:
    """Return what a model reads: handle, size, notes, columns with types, then the first rows as CSV."""
    shown = len(result.head)
    first = "" if shown == result.rows else f"; the first {shown:,} follow"
    size = f"{count(result.rows, 'row')}, {count(len(result.columns), 'column')}"
    made = result.provenance
    where = f" on {made.source} ({made.engine})" if made.source else ""
    title = f"{result.handle}: {size}, {made.seconds:.2f} s{where}{first}."
    use = f"Later queries can read it as the table {result.handle}."
    notes = [f"Note: {one_line(note, CELL_CHARS)}" for note in result.notes]
    notes += [f"Careful ({each.trap}): {one_line(each.message, CELL_CHARS)} {_proof(each)}" for each in result.told]
    return "\n".join([f"{title} {use}", *notes, *rows_text(result.columns, result.head)])


def result_table(result: QueryResult) -> Table:
    """Return the first rows of a result as a display."""
    warnings = tuple(one_line(each.message, CELL_CHARS) for each in result.told)
    names = tuple(column.name for column in result.columns)
    return Table(names, result.head, handle=result.handle, total=result.rows, warnings=warnings)


def _proof(finding: TrapFinding) -> str:
    proof = one_line(finding.proof, PROOF_CHARS + 1)
    return f"Proof: {proof}" if len(proof) <= PROOF_CHARS else ""


def shortened(text: str, level: OutputLevel, room: int) -> str:
    """Return as many whole rows as fit, with a note on how to read the others."""
    del level
    left = room - len(REST) - 1
    kept: list[str] = []
    for line in text.splitlines():
        left -= len(line) + 1
        if left < 0:
            break
        kept.append(line)
    return "\n".join([*(kept or [text[: max(0, room - len(REST) - 1)]]), REST])


def reporter(report: Callable[[str], None]) -> Callable[[Progress], None]:
    """Return a progress listener that reports a line for each step and each ``STEP`` of it."""
    last: tuple[str, int] = ("", -1)

    def listener(progress: Progress) -> None:
        nonlocal last
        tenth = -1 if progress.share is None else int(progress.share / STEP)
        if (progress.doing, tenth) != last:
            last = (progress.doing, tenth)
            share = f" · {progress.share:.0%}" if progress.share is not None else ""
            report(f"{progress.doing}{share}\n")

    return listener


def rows_text(columns: Sequence[Column], rows: Iterable[Row]) -> Sequence[str]:
    """Return a line with columns and types, then the rows as CSV."""
    types = ", ".join(f"{one_line(each.name, 80)} {each.type}" for each in columns)
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(column.name for column in columns)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return [clipped(f"Columns: {types}", COLUMN_CHARS), *lines.getvalue().splitlines()]


def _cell(value: Cell) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return one_line(value, CELL_CHARS) if isinstance(value, str) else str(value)


QUALITY = "data_quality"
LINE = 1_000


def data_quality_tool(definition: Definition, analysis: Analysis, concern: Concern) -> Tool:
    """Return the tool ``data_quality``. ``concern`` returns why the user must approve reading the files of a query."""

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        profiles = await thorough_profiles(analysis, args.get("tables") or (), reporter(call.report))
        found = [each for profile in profiles for each in profile.told]
        rows = tuple((each.dataset, each.trap, each.message, each.proof) for each in found)
        said = f"{count(len(profiles), 'table')} · {count(len(found), 'finding')}"
        return ToolResult(
            quality_text(profiles),
            Table(("table", "kind", "finding", "proof"), rows),
            summary=said,
            kind="table",
        )

    async def asked(args: Mapping[str, Any]) -> str:
        files = [name for name in args.get("tables") or () if dataset_kind(name)]
        sql = " UNION ALL ".join("FROM '" + each.replace("'", "''") + "'" for each in files)
        return await concern({"sql": sql}) if sql else ""

    return definition.tool(run, concern=asked, so_far=no_reports)


async def thorough_profiles(analysis: Analysis, names: Sequence[str], listener: Listener) -> list[DatasetProfile]:
    """Return the thorough profiles of the named tables and files, or of all tables. All files are read first, so that
    references between them are found."""
    known = {each.name.lower(): each.name for each in (await analysis.catalogue()).datasets}
    tables: list[str] = [] if names else list(known.values())
    for name in names:
        if name.lower() in known:
            tables.append(known[name.lower()])
        else:
            tables += [each.name for each in await analysis.register(name, on_progress=listener)]
    return [await analysis.profile(name, thorough=True, on_progress=listener) for name in dict.fromkeys(tables)]


def quality_text(profiles: Sequence[DatasetProfile]) -> str:
    """Return one line for each table, then one for each finding with its proof."""
    lines: list[str] = []
    for profile in profiles:
        findings = profile.told
        size = count(profile.dataset.rows, "row")
        said = count(len(findings), "finding") if findings else "nothing was found wrong"
        lines.append(f"{profile.dataset.name}: {size}, {said}.")
        lines += [
            f"- {each.trap}: {one_line(each.message, LINE)} Proof: {one_line(each.proof, LINE)}" for each in findings
        ]
        lines += [one_line(note, LINE) for note in profile.notes]
    return "\n".join(lines) or "There are no tables. Name a file."


# One tool for all operations: its schema takes a third fewer tokens than five (540 and 760), and small models choose
# between fewer tools.

ANALYSE = "analyse_data"
NEEDS: Mapping[str, Sequence[str]] = {
    "profile": ("table",),
    "compare": ("table", "other"),
    "pivot": ("table", "rows"),
    "forecast": ("table", "date", "values", "periods"),
    "calendar": ("start", "end"),
}
"""Required arguments of each operation."""
TAKES: Mapping[str, Sequence[str]] = {
    "profile": (),
    "compare": ("keys", "tolerance"),
    "pivot": ("columns", "values", "aggregate"),
    "forecast": ("step", "aggregate"),
    "calendar": ("country", "fiscal_start"),
}


def analyse_data_tool(definition: Definition, each: DataOperations, concern: Concern) -> Tool:
    """Return the tool. ``concern`` returns why the user must approve reading the files that a call names."""
    operations: Mapping[str, Callable[[Mapping[str, Any], Listener], Awaitable[ToolResult]]] = {
        "profile": each.profile,
        "compare": each.compare,
        "pivot": each.pivot,
        "forecast": each.forecast,
        "calendar": each.calendar,
    }

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        arguments = operation_arguments(args)
        return await operations[args["operation"]](arguments, reporter(call.report))

    async def asked(args: Mapping[str, Any]) -> str:
        named = (args.get("table"), args.get("other"))
        names = [name.partition("#")[0] for name in named if name and _is_file(name)]
        # ``concern`` parses SQL for file names.
        quoted = (name.replace("'", "''") for name in names)
        return await concern({"sql": " UNION ALL ".join(f"FROM '{name}'" for name in quoted)}) if names else ""

    return definition.tool(run, concern=asked, so_far=no_reports)


def operation_arguments(args: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of the operation. Raises ToolFailure: one is missing, or the operation does not take it."""
    operation: str = args["operation"]
    arguments = {name: value for name, value in args.items() if name != "operation" and value not in ("", [], None)}
    needed, taken = NEEDS[operation], (*NEEDS[operation], *TAKES[operation])
    if missing := [name for name in needed if name not in arguments]:
        raise ToolFailure(
            "validation_error", f"{operation} needs {' and '.join(missing)}.", f"It takes {', '.join(taken)}."
        )
    if wrong := next((name for name in arguments if name not in taken), ""):
        hint = correction(wrong, taken, f"It takes {', '.join(taken)}.")
        raise ToolFailure("validation_error", f"{operation} does not take {wrong}.", hint)
    return arguments


@frozen
class DataOperations:
    """The operations of the tool on the ``engine``. ``worker``: settings of the helper for forecasts; ``share``: of
    values in profiles; ``fiscal_start``: the month in which a fiscal year starts."""

    engine: Analysis
    worker: WorkerSettings
    share: Share
    fiscal_start: int

    async def profile(self, arguments: Mapping[str, Any], listener: Listener) -> ToolResult:
        table = await self._table(arguments["table"], listener)
        profile = await self.engine.profile(table, on_progress=listener)
        size = f"{count(profile.dataset.rows, 'row')}, {count(len(profile.columns), 'column')}"
        return ToolResult(card(profile, self.share), summary=f"{table} · {size}", kind="table")

    async def compare(self, arguments: Mapping[str, Any], listener: Listener) -> ToolResult:
        left, right = [await self._table(arguments[name], listener) for name in ("table", "other")]
        found = await self.engine.compare(
            left, right, arguments.get("keys", ()), tolerance=arguments.get("tolerance", 0.0), on_progress=listener
        )
        return compared_result(found)

    async def pivot(self, arguments: Mapping[str, Any], listener: Listener) -> ToolResult:
        table = await self._table(arguments["table"], listener)
        columns, values = arguments.get("columns", ()), arguments.get("values", "")
        aggregate = arguments.get("aggregate", "sum" if values else "count")
        return _of(await self.engine.pivot(table, arguments["rows"], columns, values, aggregate))

    async def forecast(self, arguments: Mapping[str, Any], listener: Listener) -> ToolResult:
        table = await self._table(arguments["table"], listener)
        date, values, periods = (arguments[name] for name in ("date", "values", "periods"))
        step, aggregate = arguments.get("step"), arguments.get("aggregate", "sum")
        request = ForecastRequest(table, date, values, periods, step, aggregate)
        made = await forecast(self.engine, self.worker, request, listener)
        handle = made.result.handle
        lines = [
            made.line,
            *made.notes,
            f"{handle} is the past with the forecast behind it, {made.series.handle} the past alone. The forecast:",
            *rows_text(made.ahead.columns, made.ahead.rows),
        ]
        return _of(made.result, "\n".join(lines), f"{count(len(made.ahead.rows), made.step)} ahead")

    async def calendar(self, arguments: Mapping[str, Any], listener: Listener) -> ToolResult:
        start, end, country = arguments["start"], arguments["end"], arguments.get("country", "")
        fiscal = arguments.get("fiscal_start", self.fiscal_start)
        sql = await asyncio.to_thread(calendar_query, start, end, country, fiscal)
        return _of(await self.engine.query(sql, on_progress=listener))

    async def _table(self, name: str, listener: Listener) -> str:
        """Return the name of the table, registering a file first."""
        if not _is_file(name):
            return name
        source, _, part = name.partition("#")
        names = [each.name for each in await self.engine.register(source, part=part, on_progress=listener)]
        if len(names) > 1:
            raise ToolFailure(
                "validation_error", f"{source} holds several tables.", f"Name one of them: {', '.join(names[:12])}."
            )
        return names[0]


def compared_result(found: Comparison) -> ToolResult:
    """Return the result of a comparison for the model and the user."""
    lines = list(comparison_lines(found))
    result = found.result
    if result is None:
        return ToolResult("\n".join(lines), summary="no difference" if found.equal else "equal rows", kind="table")
    lines.append(f"The rows that differ are the table {result.handle}.")
    changed = f"{found.changed:,} changed, {found.only_left + found.only_right:,} in one table only"
    return _of(result, "\n".join(lines), changed)


def _of(result: QueryResult, text: str = "", size: str = "") -> ToolResult:
    """Return a result of the engine. By default, ``text`` has its first rows and ``size`` is their number."""
    summary = f"{result.handle} · {size or count(result.rows, 'row')}"
    meta = {"result": result.handle}
    return ToolResult(text or result_text(result), result_table(result), summary=summary, kind="table", meta=meta)


def _is_file(name: str) -> bool:
    return bool(dataset_kind(name.partition("#")[0]))


CHART = "chart"
SAVE = "save"


def chart_tool(definition: Definition, analysis: Analysis, workspace: Workspace, asks: Callable[[str], str]) -> Tool:
    """Return the tool ``chart``: it shows the user a chart and describes it to the model. ``asks`` returns why the user
    must approve reading a file as data; empty when no approval is needed."""
    saved: set[str] = set()

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        wanted = chart_request(args)
        try:
            chart = await analysis.chart(wanted, on_progress=reporter(call.report))
        except UnknownTable:
            if not dataset_kind(wanted.data):
                raise
            (dataset, *_) = await analysis.register(wanted.data, on_progress=reporter(call.report))
            named = chart_request({**args, "data": dataset.name})
            chart = await analysis.chart(named, on_progress=reporter(call.report))
        text = f"{description(chart)}\nThe user sees the chart."
        if path := args.get(SAVE):
            shown, size = await _save(chart, path)
            saved.add(shown)
            text = f"{text}\nSaved as {shown} ({byte_size(size)})."
        return ToolResult(text, chart, summary=f"{chart.kind} · {one_line(chart.title, 60)}")

    async def _save(chart: Chart, path: str) -> tuple[str, int]:
        target = await asyncio.to_thread(workspace.resolve, path)
        shown = workspace.shown(target)
        if is_secret(target):
            raise ToolFailure("permission_denied", f"{shown} is a file for secrets.", "Choose another name.")
        async with analysis.picture(chart, _format(path)) as file:
            return shown, await asyncio.to_thread(place_file, file, target, overwrite=True, shown=shown)

    async def preview(args: Mapping[str, Any]) -> Display | None:
        """Return what would be saved. Raises BaError for an unknown picture format."""
        if path := args.get(SAVE):
            _format(path)
            return Prose(f"Save a chart of {one_line(str(args['data']), 80)} as {one_line(path, 200)}.")
        return None

    async def concern(args: Mapping[str, Any]) -> str:
        return await asyncio.to_thread(_concern, args)

    def _concern(args: Mapping[str, Any]) -> str:
        """Return why to ask: a rule about a data file, or a picture that another program made would be replaced."""
        reasons = [asks(args["data"])] if dataset_kind(args["data"]) else []
        if path := args.get(SAVE):
            target = workspace.resolve(path)
            if target.exists() and workspace.shown(target) not in saved:
                reasons.append(f"{workspace.shown(target)} exists and would be replaced")
        return "; ".join(filter(None, reasons))

    return definition.tool(run, preview=preview, concern=concern)


def _format(path: str) -> PictureFormat:
    try:
        return picture_format(path)
    except UsageError as error:
        raise ToolFailure("validation_error", str(error), error.hint) from error


def chart_request(args: Mapping[str, Any]) -> ChartRequest:
    """Return the chart request of a call's arguments; ``y`` may be a single name."""
    known = {each.name for each in fields(ChartRequest)}
    arguments = {name: value for name, value in args.items() if name in known and value is not None}
    y = arguments.pop("y", ())
    return ChartRequest(**arguments, y=(y,) if isinstance(y, str) else tuple(y))
