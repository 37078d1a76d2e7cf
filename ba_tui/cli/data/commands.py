"""``ba data``: profiles and queries of data files without a model. The engine is the one of the chat."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ba_tui.cli.config import Cwd, folder_of, print_line, say
from ba_tui.cli.data.check import check
from ba_tui.cli.data.opened import OK, OpenData, opened_data, told_error
from ba_tui.core.errors import UsageError
from ba_tui.core.text.wording import one_line

if TYPE_CHECKING:
    from ba_tui.analysis.engine import Analysis
    from ba_tui.core.ports.tables import QueryResult

LONGEST = 600
ROWS = 100
BINARY = frozenset({"parquet", "xlsx"})
PRINTED = frozenset({"table", "markdown"})
Format = Literal["table", "markdown", "csv", "tsv", "json", "jsonl", "parquet", "xlsx"]

app = typer.Typer(no_args_is_help=True)
app.command()(check)
Part = Annotated[str, typer.Option(metavar="NAME", help="Read only this sheet or table of each file.")]


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
    from ba_tui.analysis.card import card  # noqa: PLC0415 - --help must not wait for it
    from ba_tui.analysis.errors import AnalysisError  # noqa: PLC0415

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
                codes.append(told_error(error))
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
    format: Annotated[
        Format | None, typer.Option("--format", "-f", help="What is printed; else by the ending of --output, or table.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it to a file.")] = None,
    rows: Annotated[int, typer.Option(min=0, help="Rows of a table or of Markdown; 0 prints all.")] = ROWS,
    cwd: Cwd = None,
) -> int:
    """Query data files with SQL (DuckDB). A file is the table of its name: sales.csv is sales, stdin is stdin.

    \b
    Exit codes:
      0 ok · 1 the query or an option is wrong · 2 a file can't be read
      3 a limit was reached: time, rows or memory
      4 it does more than read, or a file may not be read · 130 interrupted
    """
    from ba_tui.analysis.errors import AnalysisError  # noqa: PLC0415 - --help must not wait for it

    wanted = _format("json" if json_ else format, output)
    with opened_data(folder_of(cwd), files or ()) as data:
        try:
            for file in data.files:
                data.run(data.engine.register(file, part=part, on_progress=data.line.show))
            result = data.run(data.engine.query(sql, on_progress=data.line.show))
            data.line.clear()
            return _delivered(data, result, wanted, output, rows)
        except AnalysisError as error:
            return told_error(error)


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


def _delivered(data: OpenData, result: QueryResult, format: Format, output: Path | None, rows: int) -> int:
    """Print or write the rows."""
    from ba_tui.cli.data.rows import markdown_lines, table_lines  # noqa: PLC0415 - see query

    for note in result.notes:
        say(note)
    for each in result.told:
        say(f"careful: {one_line(each.message, LONGEST)} ({each.trap})")
    if format not in PRINTED:
        return _export(data, result.handle, format, output)
    shown = data.run(_head(data.engine, result, rows or result.rows))
    lines = "\n".join((table_lines if format == "table" else markdown_lines)(result.columns, shown))
    if output:
        output.write_text(f"{lines}\n", "utf-8")
    else:
        print_line(lines)
    if len(shown) < result.rows:
        say(f"{result.rows:,} rows; the first {len(shown):,} are shown. --rows 0 prints all of them.")
    return OK


async def _head(engine: Analysis, result: QueryResult, wanted: int) -> list[tuple[Any, ...]]:
    from ba_tui.analysis.engine import PAGE_ROWS  # noqa: PLC0415 - see query

    shown: list[tuple[Any, ...]] = list(result.head[:wanted])
    while len(shown) < min(wanted, result.rows):
        limit = min(PAGE_ROWS, wanted - len(shown))
        shown += (await engine.page(result.handle, offset=len(shown), limit=limit)).rows
    return shown


def _export(data: OpenData, handle: str, format: Any, output: Path | None) -> int:
    export = data.engine.exported(handle, format, on_progress=data.line.show)
    with data.run(export.__aenter__()).open("rb") as source:
        if output:
            with output.open("wb") as target:
                shutil.copyfileobj(source, target)
        else:
            sys.stdout.flush()
            shutil.copyfileobj(source, sys.stdout.buffer)
    return OK
