"""A report as values, and how it is kept beside what is exported: as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, cast

from ba_tui.core.displays.charts import Chart
from ba_tui.core.errors import UsageError, written_by_newer
from ba_tui.core.ports.tables import Cell, Column, Row
from ba_tui.core.text.footnotes import AnswerNotes
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.wire import decoded

FORMAT = 1
"""The version of the file; ba reads this one and earlier ones."""
MANIFEST = "report.json"


@frozen
class ReportFile:
    """A file that was read. ``path`` is relative to the report where that is shorter; ``size`` in bytes."""

    path: str
    size: int
    sha256: str


@frozen
class ReportTable:
    """A dataset. ``reading`` is the query that reads its ``files`` (see ``Dataset``); where it is empty, ``stored``
    names the Parquet file of the report that holds the rows."""

    name: str
    source: str
    part: str
    files: tuple[ReportFile, ...]
    reading: str = ""
    stored: str = ""


@frozen
class ReportResult:
    """R1, R2, … ``expected`` names the Parquet file of the report with its rows. ``kept`` says why it can't be worked
    out again; empty when it can. ``called`` pairs other names that the query has for tables with their names; ``reads``
    are earlier results that it is made of."""

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
    """A figure of an answer, as it is written there (``text``), that stands in a cell of a result. ``row`` from 0."""

    text: str
    handle: str
    column: str
    row: int
    value: Cell


@frozen
class ReportSection:
    """A prompt with its answer, in Markdown. ``at`` in seconds since the epoch; ``results`` were made for it, and
    ``charts`` drawn."""

    prompt: str
    answer: AnswerNotes
    at: float
    results: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()


@frozen
class Report:
    """``made`` in seconds since the epoch; ``version`` is ba's, ``engine`` that of the engine."""

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
    """Return the sections with the results that were begun in each; the first has those from before it, too. Without
    any section, one that only has results."""
    sections = sections or (ReportSection("", AnswerNotes(""), 0.0),)
    ends = [*(each.at for each in sections[1:]), float("inf")]
    starts = [float("-inf"), *(each.at for each in sections[1:])]
    return tuple(
        replace(section, results=tuple(each.handle for each in results if start <= each.started < end))
        for section, start, end in zip(sections, starts, ends, strict=True)
    )


def manifest(report: Report) -> str:
    """The report as JSON, without its charts: those only show what the results hold."""
    sections = tuple(replace(each, charts=()) for each in report.sections)
    return json.dumps(asdict(replace(report, sections=sections)), indent=1, ensure_ascii=False)


def report_of(text: str) -> Report:
    """The report in a manifest.

    Raises:
        UsageError: it is no manifest, or one of a later ba.
    """
    try:
        value: Any = json.loads(text)
        if not isinstance(value, dict) or "results" not in value:
            raise ValueError("it has no results")
        report: Report = decoded(Report, cast("object", value))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise UsageError(f"{MANIFEST} can't be read as a report: {error}.", "Export the report anew.") from error
    if report.format > FORMAT:
        raise UsageError(written_by_newer("The report", report.format, FORMAT), "Update ba.")
    return report
