"""The tool query_data: SQL on the session's data, and what the model reads of a result.

What runs the query, and refuses whatever does more than read, is the engine in the room analysis.
"""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ba_tui.core.ports.tables import Cell, Column, Finding, Progress, QueryResult, Row
from ba_tui.core.results import Source, Table, ToolResult
from ba_tui.core.text.wording import clipped, count, one_line
from ba_tui.core.tool import Call, Concern, Effect, OutputLevel, Tool, ToolFacts
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine import Analysis, Listener
from ba_tui.features.data.analysis.errors import AnalysisError
from ba_tui.features.data.analysis.files import DataFiles
from ba_tui.features.data.analysis.metrics.definitions import Metrics
from ba_tui.features.data.tools.copying import Copying, copy_to
from ba_tui.features.data.tools.masking import Masking
from ba_tui.features.data.tools.source_queries import SourceQueries
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failed import Failed

if TYPE_CHECKING:
    from ba_tui.features.data.analysis.metrics.check import MetricFinding

NAME = "query_data"
CELL_CHARS = 500
COLUMN_CHARS = 3_000
"""The longest list of columns and types."""
PROOF_CHARS = 700
"""The longest proof that is shown to the model; a part of one is of no use."""
STEP = 0.1
"""A share of progress that is worth a line."""
READS = "Only statements that read can run: SELECT, WITH, FROM, DESCRIBE, SHOW, SUMMARIZE, EXPLAIN."
REST = "[… more: query this result with LIMIT and OFFSET]"


@frozen
class QueryMeans:
    """What queries work with: ``files`` may be read by one, ``concern`` says why to ask about the files that one names;
    ``sources`` run those that name one; ``masking`` hides personal values from the model; ``metrics`` are the agreed
    definitions that queries can use by name."""

    analysis: Analysis
    files: DataFiles
    concern: Concern
    sources: SourceQueries
    masking: Masking
    copying: Copying
    metrics: Metrics

    async def expanded(self, args: Mapping[str, Any]) -> Mapping[str, Any]:
        """``args`` with definitions in place of their names. Raises AnalysisError for a name that is unknown."""
        from ba_tui.features.data.analysis.metrics.use import expanded_query  # noqa: PLC0415 - not before the first query

        return {**args, "sql": (await expanded_query(args["sql"], self.metrics)).sql}

    async def run(self, args: Mapping[str, Any], told: Listener) -> tuple[QueryResult, str]:
        """Run an expanded statement; returns its result, and a line about a file that was written."""
        if args.get("source"):
            return await self.sources.run(args, told), ""
        if copy := copy_to(args["sql"]):
            await asyncio.to_thread(self.copying.checked, copy)
            result = await self.analysis.query(copy.query, on_progress=told)
            return result, await self.copying.write(copy, result.handle)
        return await self.analysis.query(args["sql"], on_progress=told), ""

    async def check(self, args: Mapping[str, Any]) -> None:
        """Raises BaError for an expanded statement that can't run: no question is asked about it."""
        if args.get("source"):
            await self.sources.writes(args)
            return
        if copy := copy_to(args["sql"]):
            await asyncio.to_thread(self.copying.checked, copy)
        for statement in await self.analysis.statements(copy.query if copy else args["sql"]):
            if statement.kind == "other":
                hint = statement.instead or READS
                raise Failed("permission_denied", f"This statement is not run: {statement.why}.", hint)
            for file in statement.files:
                await asyncio.to_thread(self.files.matched, file)


def query_data_tool(definition: Definition, means: QueryMeans) -> Tool:
    """The tool without its guards."""
    sources, metrics = means.sources, means.metrics

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        query = await means.expanded(args)
        result, written = await means.run(query, reporter(call.report))
        found = await asyncio.to_thread(_differences, query["sql"], metrics)
        told = (f"{each.title}. {each.why}{f' Compare: {each.proof}' if each.proof else ''}" for each in found)
        masked = await means.masking.masked(result)
        return ToolResult(
            "\n".join(filter(None, [written, result_text(replace(masked, notes=(*masked.notes, *told)))])),
            result_table(result),
            summary=_summary(result, found),
            kind="table",
            meta={"result": result.handle},
        )

    async def preview(args: Mapping[str, Any]) -> Source:
        """The SQL, for a question."""
        await means.check(await means.expanded(args))
        return Source("query.sql", args["sql"])

    async def concern(args: Mapping[str, Any]) -> str:
        try:
            query = await means.expanded(args)
        except AnalysisError:
            # It can't run, which its result says.
            return ""
        return await (sources.concern(query) if args.get("source") else means.concern(query))

    facts = ToolFacts(
        category="data",
        target="sql",
        target_of=_target,
        sql="sql",
        dialect_of=sources.dialect,
        tags=("sql", "csv", "excel", "table", "database"),
        bulky=True,
    )
    description, schema = _with_sources(definition, sources)
    return Tool(
        NAME,
        f"{description}{_offer(metrics)}",
        schema,
        run,
        Effect.READ,
        # The engine keeps time itself, and a query that ended the helper is not repeated unseen.
        timeout=None,
        idempotent=False,
        facts=facts,
        preview=preview,
        shorten=shortened,
        so_far=_nothing,
        concern=concern,
    )


def _offer(metrics: Metrics) -> str:
    """What the description says of the definitions that can be used; empty for none."""
    if not (usable := metrics.usable()):
        return ""
    from ba_tui.features.data.analysis.metrics.use import offer  # noqa: PLC0415 - few projects have definitions

    return offer(usable)


def _differences(sql: str, metrics: Metrics) -> tuple[MetricFinding, ...]:
    from ba_tui.features.data.analysis.metrics.check import differences  # noqa: PLC0415 - not before the first query

    return differences(sql, metrics.usable())


def _target(args: Mapping[str, Any]) -> str:
    """The statement, behind the name of its source as a person types it."""
    where = f"@{args['source']} " if args.get("source") else ""
    return f"{where}{args.get('sql', '')}"


def _with_sources(definition: Definition, queries: SourceQueries) -> tuple[str, Mapping[str, Any]]:
    """Description and schema with the sources of the person, where there are any."""
    schema = definition.input_schema
    places = queries.sources.places.values()
    if not places:
        return definition.description, schema
    named = ", ".join(f"{place.name} ({place.engine})" for place in places)
    more = (
        f"Sources: {named}. With source, the statement runs there, in its SQL dialect; SHOW TABLES and DESCRIBE work "
    )
    more += "everywhere. Filter and aggregate there; the result is a local handle that joins with other data."
    about = {"type": "string", "enum": [place.name for place in places], "description": "Where it runs, if not here"}
    properties: Mapping[str, Any] = schema["properties"]
    return f"{definition.description.rstrip()} {more}\n", {**schema, "properties": {**properties, "source": about}}


def _summary(result: QueryResult, found: Sequence[MetricFinding]) -> str:
    warned = [count(len(result.told), "warning")] if result.told else []
    return " · ".join([result.handle, count(result.rows, "row"), *warned, *(each.title for each in found)])


def _nothing(reports: str) -> str:
    """Progress of an interrupted query says nothing to a model."""
    del reports
    return ""


def result_text(result: QueryResult) -> str:
    """What a model reads: handle, size, notes, columns with types, then the first rows as CSV."""
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
    """The first rows of a result, for people."""
    warnings = tuple(one_line(each.message, CELL_CHARS) for each in result.told)
    names = tuple(column.name for column in result.columns)
    return Table(names, result.head, handle=result.handle, total=result.rows, warnings=warnings)


def _proof(finding: Finding) -> str:
    proof = one_line(finding.proof, PROOF_CHARS + 1)
    return f"Proof: {proof}" if len(proof) <= PROOF_CHARS else ""


def shortened(text: str, level: OutputLevel, room: int) -> str:
    """The first lines that fit: whole rows, with a note of how to read the others."""
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
    """Report what a request does, a line for each step and each tenth of it."""
    last: tuple[str, int] = ("", -1)

    def heard(progress: Progress) -> None:
        nonlocal last
        tenth = -1 if progress.share is None else int(progress.share / STEP)
        if (progress.doing, tenth) != last:
            last = (progress.doing, tenth)
            share = f" · {progress.share:.0%}" if progress.share is not None else ""
            report(f"{progress.doing}{share}\n")

    return heard


def rows_text(columns: Sequence[Column], rows: Iterable[Row]) -> Sequence[str]:
    """A line with the columns and their types, then rows as CSV."""
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
