"""``ba data compare``: how two files differ, as diff tells it of text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ba_tui.cli.config import Cwd, folder_of, print_line, say
from ba_tui.core.errors import UsageError
from ba_tui.features.data.cli.locales import FigureFormat, figure_format
from ba_tui.features.data.cli.opened import OK, Locale, export, head, opened_data, told
from ba_tui.features.data.cli.rows import markdown_lines, plainly, table_lines

if TYPE_CHECKING:
    from ba_tui.features.data.analysis.comparison import Comparison
    from ba_tui.features.data.cli.opened import OpenedData

DIFFERENT = 6
ROWS = 100
CompareFormat = Literal["table", "markdown", "csv", "json"]


def compare(  # noqa: PLR0913 - typer reads one parameter a flag
    left: Annotated[str, typer.Argument(metavar="A", help="A data file; book.xlsx#Sheet1 names a sheet or table.")],
    right: Annotated[str, typer.Argument(metavar="B", help="What it is compared with.")],
    key: Annotated[
        list[str] | None,
        typer.Option("--key", "-k", metavar="COLUMN", help="Column that identifies a row; repeatable."),
    ] = None,
    tolerance: Annotated[float, typer.Option(min=0, help="How far numbers may be apart and still be equal.")] = 0.0,
    format: Annotated[
        CompareFormat, typer.Option("--format", "-f", help="What is printed of the rows that differ.")
    ] = "table",
    json_: Annotated[bool, typer.Option("--json", help="The same as --format json: all that was found.")] = False,
    rows: Annotated[int, typer.Option(min=0, help="Rows of a table or of Markdown; 0 prints all.")] = ROWS,
    locale: Locale = "",
    cwd: Cwd = None,
) -> int:
    """Compare two data files: columns, rows that only one has, and values that differ, matched by key.

    \b
    Exit codes:
      0 no difference · 6 they differ · 1 the key or an option is wrong
      2 a file can't be read · 3 a limit was reached
      4 a file may not be read · 130 interrupted
    """
    from ba_tui.features.data.analysis.comparison import comparison_lines  # noqa: PLC0415 - --help must not wait for it
    from ba_tui.features.data.analysis.errors import AnalysisError  # noqa: PLC0415

    figures = figure_format(locale) if locale else plainly
    with opened_data(folder_of(cwd), [left.partition("#")[0], right.partition("#")[0]]) as data:
        try:
            names = [_table(data, file, name) for file, name in zip(data.files, (left, right), strict=True)]
            work = data.engine.derived.compare(
                names[0], names[1], key or (), tolerance=tolerance, on_progress=data.line.show
            )
            found = data.run(work)
            if json_ or format == "json":
                print_line(json.dumps(_as_json(found), indent=2))
            elif format == "csv":
                _csv(data, found)
            else:
                print_line("\n".join([*_told_apart(names, (left, right)), *comparison_lines(found)]))
                _rows(data, found, format, (rows, figures))
        except AnalysisError as error:
            return told(error)
    return OK if found.equal else DIFFERENT


def _table(data: OpenedData, file: str, given: str) -> str:
    part = given.partition("#")[2]
    found = data.run(data.engine.register(file, part=part, on_progress=data.line.show))
    names = [(each.name, each.part) for each in found]
    if len(names) > 1:
        parts = [part for _, part in names]
        raise UsageError(
            f"{given} holds several tables.", f"Name one: {given}#{parts[0]}. It has {', '.join(parts[:12])}."
        )
    return names[0][0]


def _told_apart(names: Sequence[str], given: Sequence[str]) -> Iterator[str]:
    """Which table is which file, where two files have one name."""
    if len({Path(each.partition("#")[0]).name for each in given}) < len(given):
        yield "; ".join(f"{name} is {each}" for name, each in zip(names, given, strict=True)) + "."


def _as_json(found: Comparison) -> dict[str, Any]:
    result = asdict(found) | {"equal": found.equal}
    if found.result:
        columns = [column.name for column in found.result.columns]
        result["result"] = {
            "rows": found.result.rows,
            "columns": columns,
            "first": [list(row) for row in found.result.head],
        }
    return result


def _csv(data: OpenedData, found: Comparison) -> None:
    """The rows that differ, all of them, and the rest for the person."""
    from ba_tui.features.data.analysis.comparison import comparison_lines  # noqa: PLC0415 - see compare

    for line in comparison_lines(found):
        say(line)
    if found.result:
        export(data, found.result.handle, "csv", None)


def _rows(data: OpenedData, found: Comparison, format: CompareFormat, how: tuple[int, FigureFormat]) -> None:
    rows, figures = how
    if found.result is None:
        return
    shown = data.run(head(data.engine, found.result, rows or found.result.rows))
    lines = (table_lines if format == "table" else markdown_lines)(found.result.columns, shown, figures)
    print_line("\n" + "\n".join(lines))
    if len(shown) < found.result.rows:
        say(f"{found.result.rows:,} rows differ; the first {len(shown):,} are shown. --rows 0 prints all of them.")
