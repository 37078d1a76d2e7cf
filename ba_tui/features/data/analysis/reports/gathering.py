"""Gathers the results of a session into a report, and stores the data that it needs to run again."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ba_tui import __version__
from ba_tui.core.ports.tables import PYTHON, Catalogue, Dataset, Progress, QueryResult, Row
from ba_tui.core.text.patterns import regex
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.reports.values import (
    MANIFEST,
    Report,
    ReportFigure,
    ReportFile,
    ReportResult,
    ReportSection,
    ReportTable,
    in_sections,
    manifest,
)

RERUN = Path(__file__).with_name("rerun.py")
HEAD = 20
"""Rows of a result that stand in the text of a report."""
MOST_EXPECTED = 1_000_000
"""Rows of a result that a report stores for comparison. What can't be worked out again is stored whole."""
OWN_ENGINE = "DuckDB"
_PLAN = regex(r"(?i)\s*explain\b")


async def gathered(
    analysis: Analysis, title: str, said: Sequence[ReportSection], figures: Sequence[ReportFigure], near: Path
) -> Report:
    """Return what the session has as a report that will lie in the folder ``near``. Raises AnalysisError."""
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
    """The figures whose cells there are, each with its cell as the engine has it."""
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
        # A verdict has the beginning of a long name.
        fitting = [name for name in names if name.startswith(figure.column)]
        if fitting:
            column = figure.column if figure.column in names else fitting[0]
            found.append(replace(figure, column=column, value=rows[key][names.index(column)]))
    return tuple(found)


async def stored(
    analysis: Analysis, report: Report, folder: Path, on_progress: Callable[[Progress], None] | None = None
) -> None:
    """Put into ``folder``, which is new, all that the report needs beside its text. Raises AnalysisError, OSError."""
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
    """Why a result can't be worked out again; empty when it can."""
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
    """Files of ba's own are not there for others: what they held is stored."""
    own = any(Path(each.path).parent == inbox for each in dataset.files)
    reading = "" if own else dataset.reading
    files = tuple(ReportFile(_path(each.path, near), each.size, each.sha256) for each in dataset.files)
    return ReportTable(
        dataset.name, dataset.source, dataset.part, files, reading, "" if reading else f"table_{dataset.name}.parquet"
    )


def _path(path: str, near: Path) -> str:
    """Relative to the report for files below its folder or beside it."""
    relative = os.path.relpath(path, near)
    return path if relative.startswith(f"..{os.sep}..{os.sep}..") else relative
