"""Works the results of an exported report out again, with its own files or others, and finds what changed.

What the report says is data: its queries run in the engine as everybody's do, and its script is never run.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.tables import Arrangement, Cell, Progress, Provenance, RowFilter
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine import PAGE_ROWS, Analysis
from ba_tui.features.data.analysis.errors import AnalysisError
from ba_tui.features.data.analysis.reports.changes import Changes, Rows, changes, counterpart, same
from ba_tui.features.data.analysis.reports.values import (
    MANIFEST,
    Report,
    ReportFigure,
    ReportResult,
    ReportTable,
    report_of,
)

LONGEST = 200_000_000
"""Bytes of a manifest that are read."""
PLACE = "SELECT 'not worked out' AS result"


@frozen
class ResultChange:
    """What became of a result. ``failed`` says why it could not be worked out. ``changes`` is None where it has too
    many rows to compare one by one."""

    handle: str
    before: int
    after: int = 0
    failed: str = ""
    kept: str = ""
    changes: Changes | None = None

    @property
    def changed(self) -> bool:
        return bool(self.failed or self.changes or self.before != self.after)


@frozen
class FigureChange:
    """A figure of an answer, and its cell ``now``. ``gone`` says why no cell has it any more."""

    figure: ReportFigure
    now: Cell
    changed: bool
    gone: str = ""


@frozen
class ReportRun:
    results: tuple[ResultChange, ...]
    figures: tuple[FigureChange, ...]

    @property
    def changed(self) -> bool:
        return any(each.changed for each in (*self.results, *self.figures))


def found_report(path: Path) -> tuple[Report, Path]:
    """Return the report that ``path`` names, and its folder of data: the script, the notebook or the folder.

    Raises:
        UsageError: there is none.
    """
    places = (path / MANIFEST, path) if path.is_dir() or path.name == MANIFEST else ()
    file = next((each for each in places if each.is_file()), path.with_name(f"{path.stem}-data") / MANIFEST)
    try:
        if file.stat().st_size > LONGEST:
            raise UsageError(f"{file} is larger than {LONGEST // 1_000_000} MB.", "It is no report of ba's.")
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        hint = "Name a script or notebook that ba exported; its folder of data must lie beside it."
        raise UsageError(f"{file} can't be read: {error.strerror or error}.", hint) from error
    return report_of(text), file.parent


def given_files(report: Report, given: Mapping[str, str]) -> dict[str, str]:
    """Return the files by table. A file under the name "" is that of the only table, or of the one of its name.

    Raises:
        UsageError: it is not clear which table is meant.
    """
    names = [table.name for table in report.tables]
    known = f"The report has {', '.join(names) or 'no tables'}."
    found: dict[str, str] = {}
    for name, file in given.items():
        fitting = [each for each in names if each == Path(file).stem] if not name else []
        table = name or (names[0] if len(names) == 1 else fitting[0] if fitting else "")
        if not table:
            raise UsageError(f"Which table is {file} for?", f"Write --data TABLE={file}. {known}")
        if table not in names:
            raise UsageError(f"The report has no table {table}.", known)
        found[table] = file
    return found


class ReportRunner:
    """``analysis`` is an engine that holds nothing yet; ``folder`` has the data of the report."""

    def __init__(
        self, analysis: Analysis, report: Report, folder: Path, on_progress: Callable[[Progress], None] | None = None
    ) -> None:
        self._analysis = analysis
        self._report = report
        self._folder = folder
        self._listener = on_progress
        self._failed: dict[str, str] = {}
        self._rows: dict[str, tuple[Rows, Rows]] = {}

    async def run(self, data: Mapping[str, str]) -> ReportRun:
        """Return what changed; ``data`` has other files for tables. Raises AnalysisError when a file can't be read."""
        for table in self._report.tables:
            await self._register(table, data.get(table.name, ""))
        results = [await self._result(number, result) for number, result in enumerate(self._report.results)]
        known = [figure for figure in self._report.figures if figure.handle in self._report.handles]
        figures = [await self._figure(figure) for figure in known]
        return ReportRun(tuple(results), tuple(figures))

    async def _register(self, table: ReportTable, given: str) -> None:
        if given:
            sources = [given]
        elif table.stored:
            sources = [str(self._inside(table.stored))]
        else:
            sources = [str(self._folder.parent / file.path) for file in table.files]
        part = "" if table.stored and not given else table.part
        found = await self._analysis.register(*sources, part=part, name=table.name, on_progress=self._listener)
        if len(found) != 1:
            parts = ", ".join(each.part for each in found)
            raise UsageError(f"{sources[0]} holds several tables: {parts}.", "Name a file with one of them.")

    async def _result(self, number: int, result: ReportResult) -> ResultChange:
        await self._gap(result.handle)
        if self._listener:
            self._listener(Progress(f"working out {result.handle}", number / len(self._report.results)))
        change = ResultChange(result.handle, result.rows, kept=result.kept)
        try:
            rows = await self._worked_out(result)
        except AnalysisError as error:
            self._failed[result.handle] = str(error)
            await self._analysis.query(PLACE)
            return replace(change, failed=str(error))
        change = replace(change, after=rows)
        if result.kept or not result.expected or max(rows, result.rows) > PAGE_ROWS:
            return change
        before, after = await self._all(await self._before(result)), await self._all(result.handle)
        self._rows[result.handle] = before, after
        return replace(change, changes=changes(before, after))

    async def _gap(self, handle: str) -> None:
        """Take the numbers that the report does not use, so that the next result has this one."""
        while len((await self._analysis.catalogue()).results) + 1 < int(handle.removeprefix("R")):
            await self._analysis.query(PLACE)

    async def _worked_out(self, result: ReportResult) -> int:
        """Make the result; returns its rows."""
        if broken := next((each for each in result.reads if each in self._failed), ""):
            raise AnalysisError(f"it reads {broken}, which could not be worked out")
        if result.kept:
            inbox = self._analysis.inbox
            await asyncio.to_thread(inbox.mkdir, mode=0o700, parents=True, exist_ok=True)
            copy = inbox / f"{result.handle}.parquet"
            await asyncio.to_thread(shutil.copyfile, self._inside(result.expected), copy)
            return (await self._analysis.adopt(copy, Provenance(result.sql, engine=result.engine))).rows
        found = await self._analysis.query(result.sql, named=dict(result.called), on_progress=self._listener)
        return found.rows

    async def _all(self, name: str) -> Rows:
        page = await self._analysis.page(name, limit=PAGE_ROWS)
        return Rows(page.columns, page.rows)

    async def _before(self, result: ReportResult) -> str:
        """The table that has a result as it was."""
        source, name = str(self._inside(result.expected)), f"before_{result.handle.lower()}"
        return (await self._analysis.register(source, name=name))[0].name

    async def _figure(self, figure: ReportFigure) -> FigureChange:
        result = self._report.result(figure.handle)
        if figure.handle in self._failed:
            return FigureChange(figure, None, changed=True, gone=f"{figure.handle} could not be worked out")
        if result.kept:
            return FigureChange(figure, figure.value, changed=False)
        before, after = self._rows.get(figure.handle) or await self._found(figure, result)
        row = counterpart(before, after, figure.row if figure.handle in self._rows else 0)
        place = next((at for at, column in enumerate(after.columns) if column.name == figure.column), None)
        if row is None or place is None:
            return FigureChange(figure, None, changed=True, gone="its row or column is gone")
        return FigureChange(figure, row[place], not same(figure.value, row[place]))

    async def _found(self, figure: ReportFigure, result: ReportResult) -> tuple[Rows, Rows]:
        """The row of a figure in a result that is too long to be read whole: as it was, and as it is."""
        if not result.expected:
            page = await self._analysis.page(figure.handle, offset=figure.row, limit=1)
            return Rows(page.columns, page.rows), Rows(page.columns, page.rows)
        old = await self._analysis.page(await self._before(result), offset=figure.row, limit=1)
        filters = tuple(
            RowFilter(column.name, "is null" if value is None else "=", value)
            for column, value in zip(old.columns, old.rows[0] if old.rows else (), strict=False)
            if not column.numeric
        )
        new = await self._analysis.page(figure.handle, limit=0)
        if [each.name for each in new.columns] == [each.name for each in old.columns]:
            offset = 0 if filters else figure.row
            new = await self._analysis.page(figure.handle, Arrangement(filters=filters), offset=offset, limit=1)
        return Rows(old.columns, old.rows), Rows(new.columns, new.rows)

    def _inside(self, name: str) -> Path:
        """A file of the report's folder: a report names no others."""
        if Path(name).name != name:
            raise UsageError(f"The report names a file outside of its folder: {name}.", "Export the report anew.")
        return self._folder / name
