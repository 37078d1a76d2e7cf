"""Reports of a session: gathered, stored with their data, and written as scripts, notebooks and documents."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from ba_tui import __version__
from ba_tui.core.errors import UsageError, written_by_newer
from ba_tui.core.ports.tables import PYTHON, Catalogue, Cell, Column, Dataset, Progress, QueryResult, Row
from ba_tui.core.results import Chart
from ba_tui.core.text.figures import AnswerNotes, noted, notes_in_markdown, notes_in_text
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count, one_line
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.errors import decoded
from ba_tui.plotting.drawing import text_of

FORMAT = 1
"""Version of the format; ba reads this one and earlier ones."""
MANIFEST = "report.json"


@frozen
class ReportFile:
    """A source file. ``path`` is relative to the report when that is shorter; ``size`` is in bytes."""

    path: str
    size: int
    sha256: str


@frozen
class ReportTable:
    """A dataset. ``reading`` is the query that reads its ``files`` (see ``Dataset``); when empty, ``stored`` is the
    Parquet file in the report with the rows."""

    name: str
    source: str
    part: str
    files: tuple[ReportFile, ...]
    reading: str = ""
    stored: str = ""


@frozen
class ReportResult:
    """R1, R2, … ``expected`` is the Parquet file in the report with the rows. ``kept`` is why it can't be computed
    again; empty when it can. ``called`` pairs names of tables in the query with their real names; ``reads`` are
    earlier results that it uses."""

    handle: str
    sql: str
    columns: tuple[Column, ...]
    rows: int
    head: tuple[Row, ...]
    expected: str
    kept: str = ""
    tables: tuple[str, ...] = ()
    called: tuple[tuple[str, str], ...] = ()
    reads: tuple[str, ...] = ()
    started: float = 0.0
    seconds: float = 0.0
    engine: str = ""


@frozen
class ReportFigure:
    """A figure of an answer as written there (``text``), and the cell of a result with its value. ``row`` counts from
    0."""

    text: str
    handle: str
    column: str
    row: int
    value: Cell


@frozen
class ReportSection:
    """A prompt with its answer in Markdown. ``at`` is in seconds since the epoch; ``results`` and ``charts`` were made
    for it."""

    prompt: str
    answer: AnswerNotes
    at: float
    results: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()


@frozen
class Report:
    """A report. ``made`` is in seconds since the epoch; ``version`` is ba's, ``engine`` the engine's."""

    title: str
    made: float
    version: str
    engine: str
    sections: tuple[ReportSection, ...] = ()
    tables: tuple[ReportTable, ...] = ()
    results: tuple[ReportResult, ...] = ()
    figures: tuple[ReportFigure, ...] = ()
    format: int = FORMAT

    def result(self, handle: str) -> ReportResult:
        return next(each for each in self.results if each.handle == handle)

    @property
    def handles(self) -> frozenset[str]:
        """The names of all results."""
        return frozenset(each.handle for each in self.results)


def in_sections(sections: Sequence[ReportSection], results: Sequence[ReportResult]) -> tuple[ReportSection, ...]:
    """Return the sections with the results started in each; the first also has earlier ones. A report without sections
    gets one for its results."""
    sections = sections or (ReportSection("", AnswerNotes(""), 0.0),)
    ends = [*(each.at for each in sections[1:]), float("inf")]
    starts = [float("-inf"), *(each.at for each in sections[1:])]
    return tuple(
        replace(section, results=tuple(each.handle for each in results if start <= each.started < end))
        for section, start, end in zip(sections, starts, ends, strict=True)
    )


def manifest(report: Report) -> str:
    """Return the report as JSON, without charts, which only repeat the results."""
    sections = tuple(replace(each, charts=()) for each in report.sections)
    return json.dumps(asdict(replace(report, sections=sections)), indent=1, ensure_ascii=False)


def report_of(text: str) -> Report:
    """Return the report in a manifest. Raises UsageError: the text is no manifest, or from a later version of ba."""
    try:
        value: Any = json.loads(text)
        if not isinstance(value, dict) or "results" not in value:
            raise ValueError("it has no results")
        report: Report = decoded(Report, cast("object", value))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise UsageError(f"{MANIFEST} can't be read as a report: {error}.", "Export the report again.") from error
    if report.format > FORMAT:
        raise UsageError(written_by_newer("The report", report.format, FORMAT), "Update ba.")
    return report


RERUN = Path(__file__).with_name("rerun.py")
HEAD = 20
"""Rows of a result in the text of a report."""
MOST_EXPECTED = 1_000_000
"""Most rows of a result stored for comparison. Results that can't be computed again are stored completely."""
OWN_ENGINE = "DuckDB"
_PLAN = regex(r"(?i)\s*explain\b")


async def gather_report(
    analysis: Analysis, title: str, said: Sequence[ReportSection], figures: Sequence[ReportFigure], near: Path
) -> Report:
    """Return the report of the session, to be placed in the folder ``near``. Raises AnalysisError."""
    catalogue = await analysis.catalogue()
    results = _results(catalogue)
    needed = {name for each in results if not each.kept for name in each.tables}
    tables = tuple(_table(each, near, analysis.inbox) for each in catalogue.datasets if each.name in needed)
    engine = next((each.engine for each in results if each.engine.startswith(OWN_ENGINE)), "")
    cited = await _cited(analysis, figures, catalogue.results)
    return Report(title, time.time(), __version__, engine, in_sections(said, results), tables, results, cited)


async def _cited(
    analysis: Analysis, figures: Sequence[ReportFigure], results: Sequence[QueryResult]
) -> tuple[ReportFigure, ...]:
    """Return the figures whose cells still exist, with the cells as in the engine."""
    known = {each.handle: each for each in results}
    rows: dict[tuple[str, int], Row] = {}
    found: list[ReportFigure] = []
    for figure in figures:
        result, key = known.get(figure.handle), (figure.handle, figure.row)
        if result is None or not 0 <= figure.row < result.rows:
            continue
        if key not in rows:
            short = result.head[figure.row : figure.row + 1]
            rows[key] = (short or (await analysis.page(figure.handle, offset=figure.row, limit=1)).rows)[0]
        names = [each.name for each in result.columns]
        # A verdict shortens long names.
        fitting = [name for name in names if name.startswith(figure.column)]
        if fitting:
            column = figure.column if figure.column in names else fitting[0]
            found.append(replace(figure, column=column, value=rows[key][names.index(column)]))
    return tuple(found)


async def store_data(
    analysis: Analysis, report: Report, folder: Path, on_progress: Callable[[Progress], None] | None = None
) -> None:
    """Write the data of the report into the new ``folder``. Raises AnalysisError, OSError."""
    for table in report.tables:
        if table.stored:
            await _exported(analysis, table.name, folder / table.stored)
    for number, result in enumerate(report.results):
        if result.expected:
            if on_progress:
                on_progress(Progress(f"storing {result.handle}", number / len(report.results)))
            await _exported(analysis, result.handle, folder / result.expected)
    await asyncio.to_thread(_written, folder, manifest(report))


def _written(folder: Path, text: str) -> None:
    (folder / MANIFEST).write_text(text, encoding="utf-8", errors="replace")
    shutil.copyfile(RERUN, folder / RERUN.name)


async def _exported(analysis: Analysis, name: str, target: Path) -> None:
    async with analysis.exported(name, "parquet") as file:
        await asyncio.to_thread(shutil.copyfile, file, target)


def _results(catalogue: Catalogue) -> tuple[ReportResult, ...]:
    datasets = {each.name: each for each in catalogue.datasets}
    return tuple(_result(each, datasets) for each in catalogue.results)


def _result(result: QueryResult, datasets: dict[str, Dataset]) -> ReportResult:
    origin = result.provenance
    kept = _kept(result, datasets)
    return ReportResult(
        result.handle,
        origin.sql,
        result.columns,
        result.rows,
        result.head[:HEAD],
        f"{result.handle}.parquet" if kept or result.rows <= MOST_EXPECTED else "",
        kept,
        tuple(each.name for each in origin.datasets),
        tuple((called, each.name) for each in origin.datasets for called in each.called),
        origin.results,
        origin.started,
        origin.seconds,
        origin.engine,
    )


def _kept(result: QueryResult, datasets: dict[str, Dataset]) -> str:
    """Return why a result can't be computed again; empty when it can."""
    origin = result.provenance
    if origin.source == PYTHON:
        return "Python made it"
    if origin.source:
        return f"it came from the source {origin.source}"
    if not origin.engine.startswith(OWN_ENGINE):
        return f"{origin.engine or 'another program'} made it"
    if _PLAN.match(origin.sql):
        return "it is the plan of a query"
    for used in origin.datasets:
        now = datasets.get(used.name)
        if now is None:
            return f"the session no longer has {used.name}"
        if [each.sha256 for each in now.files] != [each.sha256 for each in used.files]:
            return f"{used.name} has changed since"
    return ""


def _table(dataset: Dataset, near: Path, inbox: Path) -> ReportTable:
    """Return the table for the report; rows from ba's own files are stored, because these files don't exist
    elsewhere."""
    own = any(Path(each.path).parent == inbox for each in dataset.files)
    reading = "" if own else dataset.reading
    files = tuple(ReportFile(_path(each.path, near), each.size, each.sha256) for each in dataset.files)
    return ReportTable(
        dataset.name, dataset.source, dataset.part, files, reading, "" if reading else f"table_{dataset.name}.parquet"
    )


def _path(path: str, near: Path) -> str:
    """Return a path relative to the report for files in or next to its folder."""
    relative = os.path.relpath(path, near)
    return path if relative.startswith(f"..{os.sep}..{os.sep}..") else relative


CELL_CHARS = 80
HASH_CHARS = 12


def markdown(report: Report) -> str:
    """Return the report as Markdown."""
    return "\n".join(_document(report)).rstrip() + "\n"


def appendix(report: Report) -> str:
    """Return the results and their sources as Markdown; empty when there are none."""
    return "\n".join(_appendix(report)).rstrip()


def _document(report: Report) -> Iterator[str]:
    yield heading(report)
    for section in report.sections:
        yield ""
        yield from prompt_lines(section.prompt)
        for chart in section.charts:
            yield ""
            yield from chart_lines(chart)
        if section.answer.text:
            yield ""
            yield from noted(section.answer, report.handles)
        yield origin(section)
    yield ""
    yield from _appendix(report)


def heading(report: Report) -> str:
    """Return the title, the version of ba and the date."""
    title = one_line(report.title, 200) or "Report"
    return f"# {title}\n\n*Made by ba {report.version} on {day(report.made)}.*"


def origin(section: ReportSection) -> str:
    """Return the line that names the results of a section; empty when it has none."""
    named = ", ".join(f"[{handle}](#{handle.lower()})" for handle in section.results)
    return f"\n*From {named}.*" if named else ""


def chart_lines(chart: Chart) -> Sequence[str]:
    """Return a chart as a block of text."""
    return fenced(text_of(chart), "")


def prompt_lines(prompt: str) -> list[str]:
    """Return a prompt as a quote."""
    return [f"> {line}".rstrip() for line in prompt.strip().splitlines()]


def _appendix(report: Report) -> Iterator[str]:
    if not report.results:
        return
    yield "## Results"
    for result in report.results:
        yield from _result_lines(result)
    yield "\n## Sources\n"
    for table in report.tables:
        yield _source(table)


def _result_lines(result: ReportResult) -> Iterator[str]:
    yield f"\n### {result.handle}\n"
    shown = len(result.head)
    first = f", the first {shown:,} here" if shown < result.rows else ""
    facts = [f"{count(result.rows, 'row')}{first}", f"{result.seconds:.2f} s", result.engine, day(result.started)]
    yield " · ".join(filter(None, facts)) + "\n"
    yield from fenced(result.sql, "sql")
    if result.kept:
        yield f"\nNot worked out again by an export: {result.kept}."
    if result.columns:
        yield ""
        yield _row([column.name for column in result.columns])
        yield _row(["---:" if column.numeric else "---" for column in result.columns])
        yield from (_row([_cell(value) for value in row]) for row in result.head)


def _source(table: ReportTable) -> str:
    part = f" ({one_line(table.part, 100)})" if table.part else ""
    files = ", ".join(f"{count(file.size, 'byte')}, SHA-256 {file.sha256[:HASH_CHARS]}…" for file in table.files[:3])
    more = f" and {len(table.files) - 3:,} more files" if len(table.files) > 3 else ""
    return f"- `{table.name}`: {one_line(table.source, 200)}{part}; {files}{more}"


def fenced(text: str, language: str) -> Sequence[str]:
    """Return text as a fenced code block."""
    fence = "```"
    while fence in text:
        fence += "`"
    return [f"{fence}{language}", text, fence]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: Cell) -> str:
    if value is None:
        return "NULL"
    return one_line(str(value), CELL_CHARS).replace("\\", "\\\\").replace("|", "\\|")


def day(at: float) -> str:
    """Return a date and time in UTC; empty for none."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC") if at else ""


# Scripts and notebooks run the queries with ``rerun``, which is in the report's data folder.

_CONTROL = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127), " ")


def script(report: Report, folder: str, name: str) -> str:
    """Return the report as a Python script ``name``; its data are in ``folder`` next to it."""
    lines = [
        *_comment(report.title),
        "#",
        *_comment(_about(report)),
        "#",
        "#     pip install duckdb",
        f"#     python {one_line(name, 200)}                         the same numbers, or what differs, by name",
        f"#     python {one_line(name, 200)} --data TABLE=FILE       the same questions to another file",
        "",
        "import sys",
        "from pathlib import Path",
        "",
        f"FOLDER = Path(__file__).resolve().parent / {folder!r}",
        "sys.path.insert(0, str(FOLDER))",
        "",
        "from rerun import Rerun, options  # noqa: E402",
        "",
        "report = Rerun(FOLDER, options())",
        "",
        *_tables(report),
    ]
    for section in report.sections:
        lines += ["", "", *_comment(section.prompt), ""]
        for handle in section.results:
            result = report.result(handle)
            lines += [*_remark(result), f"print({_call(result)})", "print()"]
        for chart in section.charts:
            lines += [*_comment(text_of(chart)), "#"]
        lines += _comment("\n".join([section.answer.marked(r"[\1]"), *notes_in_text(section.answer)]))
    return "\n".join([*lines, "", "sys.exit(report.check())", ""])


def notebook(report: Report, folder: str) -> str:
    """Return the report as a notebook (nbformat 4.5); its data are in ``folder`` next to it."""
    cells = [
        _markdown(f"# {one_line(report.title, 200)}\n\n{_about(report)}"),
        _code(
            "import sys\nfrom pathlib import Path\n\n"
            f"FOLDER = Path({folder!r}).resolve()\nsys.path.insert(0, str(FOLDER))\n\n"
            "from rerun import Rerun\n\nreport = Rerun(FOLDER)\n" + "\n".join(_tables(report))
        ),
    ]
    for section in report.sections:
        cells += _section_cells(report, section)
    cells.append(_code("report.check()"))
    numbered = [{**cell, "id": f"cell-{number}"} for number, cell in enumerate(cells)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    value = {"cells": numbered, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _section_cells(report: Report, section: ReportSection) -> Iterator[dict[str, Any]]:
    yield _markdown("\n".join(prompt_lines(section.prompt)))
    for handle in section.results:
        result = report.result(handle)
        yield _code("\n".join([*_remark(result), _call(result)]))
    for chart in section.charts:
        yield _markdown("\n".join(chart_lines(chart)))
    if section.answer.text:
        # Jupyter has no footnotes.
        notes = notes_in_markdown(section.answer, (), "{}. ")
        yield _markdown("\n".join([section.answer.marked(r"<sup>\1</sup>"), *notes]))


def _about(report: Report) -> str:
    return (
        f"Made by ba {report.version} on {day(report.made)} with {report.engine or 'no data engine'}. It works the "
        "results out again, without a model."
    )


def _tables(report: Report) -> list[str]:
    return [f"report.table({table.name!r})" for table in report.tables]


def _remark(result: ReportResult) -> list[str]:
    return _comment(f"Not worked out again: {one_line(result.kept, 200)}.") if result.kept else []


def _call(result: ReportResult) -> str:
    """Return the expression that computes a result."""
    if result.kept:
        return f"report.stored({result.handle!r})"
    return f"report.query({result.handle!r}, {_literal(result.sql)})"


def _literal(sql: str) -> str:
    """Return SQL as a Python string, split into lines where that does not change it."""
    plain = all(character.isprintable() or character == "\n" for character in sql)
    lines = "\n" in sql and plain and '"""' not in sql and "\\" not in sql and not sql.endswith('"')
    return f'"""{sql}"""' if lines else repr(sql)


def _comment(text: str) -> list[str]:
    """Return text as comments. Every kind of line break ends a comment, so each line gets its own sign."""
    return [f"# {line.translate(_CONTROL)}".rstrip() for line in text.splitlines()]


def _markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _code(text: str) -> dict[str, Any]:
    lines = text.splitlines(keepends=True)
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": lines}
