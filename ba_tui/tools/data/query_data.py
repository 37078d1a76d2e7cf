"""The tool query_data: SQL on the session's data, and what the model reads of a result.

What runs the query, and refuses whatever does more than read, is the engine in the room analysis.
"""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ba_tui.analysis.engine import Analysis
from ba_tui.analysis.files import DataFiles
from ba_tui.core.ports.tables import Cell, Column, Finding, Progress, QueryResult, Row
from ba_tui.core.results import Source, Table, ToolResult
from ba_tui.core.text.wording import clipped, count, one_line
from ba_tui.core.tool import Call, Concern, Effect, OutputLevel, Tool, ToolFacts
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failed import Failed

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


def query_data_tool(definition: Definition, analysis: Analysis, files: DataFiles, concern: Concern) -> Tool:
    """``files`` may be read by a query; ``concern`` says why to ask about the files that one names."""

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        result = await analysis.query(args["sql"], on_progress=reporter(call.report))
        return ToolResult(
            result_text(result),
            result_table(result),
            summary=_summary(result),
            kind="table",
            meta={"result": result.handle},
        )

    async def preview(args: Mapping[str, Any]) -> Source:
        """The SQL, for a question. Raises BaError for what cannot run anyway, so that nobody is asked about it."""
        sql: str = args["sql"]
        for statement in await analysis.statements(sql):
            if statement.kind == "other":
                raise Failed("permission_denied", f"This statement is not run: {statement.why}.", READS)
            for file in statement.files:
                await asyncio.to_thread(files.matched, file)
        return Source("query.sql", sql)

    return Tool(
        NAME,
        definition.description,
        definition.input_schema,
        run,
        Effect.READ,
        # The engine keeps time itself, and a query that ended the helper is not repeated unseen.
        timeout=None,
        idempotent=False,
        facts=ToolFacts(category="data", target="sql", sql="sql", tags=("sql", "csv", "excel", "table"), bulky=True),
        preview=preview,
        shorten=shortened,
        so_far=_nothing,
        concern=concern,
    )


def _summary(result: QueryResult) -> str:
    warned = f" · {count(len(result.told), 'warning')}" if result.told else ""
    return f"{result.handle} · {count(result.rows, 'row')}{warned}"


def _nothing(reports: str) -> str:
    """Progress of an interrupted query says nothing to a model."""
    del reports
    return ""


def result_text(result: QueryResult) -> str:
    """What a model reads: handle, size, notes, columns with types, then the first rows as CSV."""
    shown = len(result.head)
    first = "" if shown == result.rows else f"; the first {shown:,} follow"
    size = f"{count(result.rows, 'row')}, {count(len(result.columns), 'column')}"
    title = f"{result.handle}: {size}, {result.provenance.seconds:.2f} s{first}."
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
