"""``ba report``: runs exported reports again with the same or other files, without a model."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ba_tui.cli.config import Cwd, folder_of, load, print_line, say
from ba_tui.core.errors import UsageError
from ba_tui.core.text.wording import count, with_hint
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.errors import AnalysisError
from ba_tui.features.data.analysis.report import Report
from ba_tui.features.data.analysis.report_runs import (
    FigureChange,
    ReportRun,
    ReportRunner,
    ResultChange,
    found_report,
    given_files,
    shown,
    summary,
)
from ba_tui.features.data.cli_engine import INFRASTRUCTURE, OK, ProgressLine
from ba_tui.features.data.tools.data_access import temporary_place
from ba_tui.resources import places

CHANGED = 6
"""Exit code when a result differs from the report."""

app = typer.Typer(no_args_is_help=True)


@app.callback()
def about() -> None:
    """Run exported reports again."""


@app.command()
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A report: its .py or .ipynb, or its data folder.")],
    data: Annotated[
        list[str] | None,
        typer.Option("--data", metavar="[TABLE=]FILE", help="Read a table from this file instead; repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    cwd: Cwd = None,
) -> int:
    """Run the queries of a report again, with its own or other files, and list what changed.

    \b
    The queries run in ba's data engine; the script itself is not run. Exit codes:
      0 nothing changed · 1 an option is wrong · 2 a file can't be read
      6 something changed · 130 interrupted
    """
    folder = folder_of(cwd)
    report, beside = found_report(folder / file)
    named = given_files(report, _pairs(data or ()))
    try:
        found = _run(folder, report, beside, {name: str(folder / Path(each)) for name, each in named.items()})
    except AnalysisError as error:
        say(with_hint(str(error), error.hint))
        return INFRASTRUCTURE
    if as_json:
        print_line(json.dumps(asdict(found), indent=2, ensure_ascii=False))
    else:
        _print_run(found)
    return CHANGED if found.changed else OK


def _pairs(options: list[str] | tuple[()]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for each in options:
        name, sign, file = each.partition("=")
        if sign and not name.isidentifier():
            name, file = "", each
        key, value = (name, file) if sign and name else ("", each)
        if key in pairs:
            what = f"{key} has two files" if key else f"{pairs[key]} and {value} name no table"
            raise UsageError(f"{what[0].upper()}{what[1:]}.", "Write --data TABLE=FILE for each.")
        pairs[key] = os.path.expanduser(value)  # noqa: PTH111
    return pairs


def _run(folder: Path, report: Report, beside: Path, data: dict[str, str]) -> ReportRun:
    # The user runs the report, so its own files are approved like those of --data.
    files = [(beside.parent / each.path).parent for table in report.tables for each in table.files]
    outside = [beside, *files, *(Path(each).parent for each in data.values())]
    engine = Analysis(temporary_place(load(folder).settings, places(), folder, outside))
    line = ProgressLine()
    with asyncio.Runner() as runner:
        try:
            return runner.run(ReportRunner(engine, report, beside, line.show).run(data))
        finally:
            line.clear()
            runner.run(engine.close())


def _print_run(found: ReportRun) -> None:
    for result in found.results:
        for line in _result_lines(result):
            print_line(line)
    for figure in found.figures:
        if figure.changed:
            print_line(_figure_line(figure))
    results = sum(each.changed for each in found.results)
    figures = sum(each.changed for each in found.figures)
    what = f"{results} of {count(len(found.results), 'result')} changed"
    cited = f", {figures} of {count(len(found.figures), 'figure')} in answers" if found.figures else ""
    say(f"{what}{cited}." if found.changed else f"Nothing changed: {count(len(found.results), 'result')} compared.")


def _result_lines(result: ResultChange) -> list[str]:
    if result.failed:
        return [f"{result.handle}: could not be worked out: {result.failed}"]
    if result.kept:
        return [f"{result.handle}: taken from the report, since {result.kept}"]
    if not result.changed:
        return []
    was = f", was {result.before:,}" if result.before != result.after else ""
    lines = summary(result.changes) if result.changes else ["too many rows to compare one by one"]
    return [f"{result.handle}: {count(result.after, 'row')}{was}", *(f"  {line}" for line in lines)]


def _figure_line(change: FigureChange) -> str:
    figure: Any = change.figure
    now = change.gone or f"is {shown(change.now)} now"
    return f"“{figure.text}” of an answer ({figure.handle}.{figure.column}): {now}"
