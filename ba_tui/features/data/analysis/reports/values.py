"""The values of a report, their JSON form, and their collection from a session."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

from ba_tui import __version__
from ba_tui.core.errors import UsageError, written_by_newer
from ba_tui.core.ports.tables import PYTHON, Catalogue, Cell, Column, Dataset, Progress, QueryResult, Row
from ba_tui.core.results import Chart
from ba_tui.core.text.figures import AnswerNotes
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.wire import decoded

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
    """Return the report in a manifest.

    Raises:
        UsageError: the text is no manifest, or from a later version of ba.
    """
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
