"""``ba data``: profiles and queries of data files without a model. The engine is the one of the chat."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ba_tui.cli.config import Cwd, folder_of, load, print_line, say
from ba_tui.cli.streams import write_output
from ba_tui.core.errors import UsageError
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.features.data.cli.locales import FigureFormat, figure_format
from ba_tui.features.data.cli.metrics import agreed_metrics
from ba_tui.features.data.cli.opened import OK, Locale, OpenedData, export, head, opened_data, told
from ba_tui.features.data.cli.rows import markdown_lines, plainly, table_lines

if TYPE_CHECKING:
    from ba_tui.core.ports.tables import QueryResult

LONGEST = 600
ROWS = 100
BINARY = frozenset({"parquet", "xlsx"})
PRINTED = frozenset({"table", "markdown"})
Format = Literal["table", "markdown", "csv", "tsv", "json", "jsonl", "parquet", "xlsx"]

app = typer.Typer(no_args_is_help=True)
Part = Annotated[str, typer.Option(metavar="NAME", help="Read only this sheet or table of each file.")]


@frozen
class PrintedTable:
    """How a table is printed: most ``rows`` (0 for all), and its ``figures``."""

    rows: int
    figures: FigureFormat


@app.command()
def profile(
    files: Annotated[list[str], typer.Argument(metavar="FILE|-", help="Data files or globs; - reads CSV from stdin.")],
    part: Part = "",
    json_: Annotated[bool, typer.Option("--json", help="As a JSON list with all statistics.")] = False,
    cwd: Cwd = None,
) -> int:
    """Profile data files: rows, columns, types, missing and most frequent values, and what was odd about them.

    \b
    Exit codes:
      0 ok · 1 an option is wrong · 2 a file can't be read
      3 a limit was reached · 4 a file may not be read · 130 interrupted
    """
    from ba_tui.features.data.analysis.card import card  # noqa: PLC0415 - --help must not wait for it
    from ba_tui.features.data.analysis.errors import AnalysisError  # noqa: PLC0415

    codes: list[int] = []
    profiles: list[dict[str, Any]] = []
    with opened_data(folder_of(cwd), files) as data:
        for file in data.files:
            try:
                for dataset in data.run(data.engine.register(file, part=part, on_progress=data.line.show)):
                    found = data.run(data.engine.profile(dataset.name, on_progress=data.line.show))
                    profiles.append(asdict(found))
                    if not json_:
                        names = [column.name for column in dataset.columns]
                        print_line(card(found, most=1_000_000, unmasked=names))
            except AnalysisError as error:
                codes.append(told(error))
    if json_:
        print_line(json.dumps(profiles, indent=2))
    return max(codes, default=OK)


@app.command()
def query(  # noqa: PLR0913 - typer reads one parameter a flag
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One statement that reads.")],
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE|-", help="Data files or globs; - reads CSV from stdin.")
    ] = None,
    part: Part = "",
    source: Annotated[
        str, typer.Option("--source", metavar="NAME", help="Run it on this source of your settings; only reads run.")
    ] = "",
    format: Annotated[
        Format | None, typer.Option("--format", "-f", help="What is printed; else by the ending of --output, or table.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it to a file.")] = None,
    rows: Annotated[int, typer.Option(min=0, help="Rows of a table or of Markdown; 0 prints all.")] = ROWS,
    chart: Annotated[
        str,
        typer.Option(metavar="KIND", help="Draw the result: bar, line, pie …; see ba data chart."),
    ] = "",
    locale: Locale = "",
    cwd: Cwd = None,
) -> int:
    """Query data files with SQL (DuckDB). A file is the table of its name: sales.csv is sales, stdin is stdin.

    \b
    Exit codes:
      0 ok · 1 the query or an option is wrong · 2 a file can't be read
      3 a limit was reached: time, rows or memory
      4 it does more than read, or a file may not be read · 130 interrupted
    """
    from ba_tui.features.data.analysis.errors import AnalysisError  # noqa: PLC0415 - --help must not wait for it
    from ba_tui.features.data.analysis.metrics.check import differences  # noqa: PLC0415
    from ba_tui.features.data.analysis.metrics.use import expanded  # noqa: PLC0415

    if chart:
        return _drawn_query(sql, files or (), chart, output, (folder_of(cwd), part))
    wanted, definitions = _format("json" if json_ else format, output), agreed_metrics(folder_of(cwd))
    printed = PrintedTable(rows, figure_format(locale) if locale else plainly)
    with opened_data(folder_of(cwd), files or ()) as data:
        try:
            for file in data.files:
                data.run(data.engine.register(file, part=part, on_progress=data.line.show))
            agreed = expanded(sql, definitions)
            if source:
                result = data.run(_on_source(data, source, agreed.sql, folder_of(cwd)))
            else:
                result = data.run(data.engine.query(agreed.sql, on_progress=data.line.show))
            data.line.clear()
            for found in differences(agreed.sql, definitions.usable()):
                say(f"{found.title}. {found.why}")
            return _delivered(data, result, wanted, output, printed)
        except AnalysisError as error:
            return told(error)


def _drawn_query(sql: str, files: Sequence[str], kind: str, output: Path | None, place: tuple[Path, str]) -> int:
    """Draw the result of a query, or save it as a picture."""
    from ba_tui.core.displays.charts import ChartRequest  # noqa: PLC0415
    from ba_tui.features.data.analysis.errors import AnalysisError  # noqa: PLC0415 - see query
    from ba_tui.features.data.analysis.metrics.use import expanded  # noqa: PLC0415
    from ba_tui.features.data.cli.drawing import check_kind, check_picture, deliver_chart  # noqa: PLC0415

    folder, part = place
    wanted = check_kind(kind)
    if output:
        check_picture(output)
    with opened_data(folder, files) as data:
        try:
            for file in data.files:
                data.run(data.engine.register(file, part=part, on_progress=data.line.show))
            agreed = expanded(sql, agreed_metrics(folder))
            result = data.run(data.engine.query(agreed.sql, on_progress=data.line.show))
            deliver_chart(data, ChartRequest(result.handle, wanted), data.line.show, output)
        except AnalysisError as error:
            return told(error)
    return OK


async def _on_source(data: OpenedData, source: str, sql: str, folder: Path) -> QueryResult:
    """Run a statement on a source, in a helper that ends with it."""
    from ba_tui.features.data.analysis.errors import QueryRefused  # noqa: PLC0415 - see query
    from ba_tui.features.data.checks import session_sources  # noqa: PLC0415
    from ba_tui.features.data.tools.source_queries import SourceQueries  # noqa: PLC0415

    sources = session_sources(data.engine, data.place, load(folder).settings, folder)
    queries, args = SourceQueries(sources), {"sql": sql, "source": source}
    try:
        if await queries.writes(args):
            raise QueryRefused("Only statements that read run from the command line.", f"In ba: /sql @{source} …")
        return await queries.run(args, data.line.show)
    finally:
        await sources.close()


def _format(given: Format | None, output: Path | None) -> Format:
    """Raises UsageError where the format can't be told, or a terminal can't show it."""
    if given is None and output is not None:
        known: dict[str, Format] = {".md": "markdown", ".txt": "table", ".ndjson": "jsonl"}
        known |= {f".{name}": name for name in ("csv", "tsv", "json", "jsonl", "parquet", "xlsx")}
        if output.suffix.lower() not in known:
            raise UsageError(f"{output.name} does not say which format it is to have.", "Add --format.")
        return known[output.suffix.lower()]
    chosen = given or "table"
    if chosen in BINARY and output is None and sys.stdout.isatty():
        raise UsageError(f"A terminal can't show {chosen}.", f"Add --output result.{chosen}, or send it to a file.")
    return chosen


def _delivered(
    data: OpenedData, result: QueryResult, format: Format, output: Path | None, printed: PrintedTable
) -> int:
    """Print or write the rows."""
    for note in result.notes:
        say(note)
    for each in result.told:
        say(f"careful: {one_line(each.message, LONGEST)} ({each.trap})")
    if format not in PRINTED:
        return export(data, result.handle, format, output)
    shown = data.run(head(data.engine, result, printed.rows or result.rows))
    lines = "\n".join((table_lines if format == "table" else markdown_lines)(result.columns, shown, printed.figures))
    if output:
        write_output(output, [f"{lines}\n"])
    else:
        print_line(lines)
    if len(shown) < result.rows:
        say(f"{result.rows:,} rows; the first {len(shown):,} are shown. --rows 0 prints all of them.")
    return OK
