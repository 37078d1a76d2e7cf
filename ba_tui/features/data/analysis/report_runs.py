"""Runs an exported report again, with its own files or others, and finds what changed.

The report is untrusted: its queries run in the engine with the usual rules, and its script is never run.
"""

from __future__ import annotations

import asyncio
import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.tables import Arrangement, Cell, Column, Progress, Provenance, Row, RowFilter
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine import PAGE_ROWS, Analysis
from ba_tui.features.data.analysis.errors import AnalysisError
from ba_tui.features.data.analysis.report import (
    MANIFEST,
    Report,
    ReportFigure,
    ReportResult,
    ReportTable,
    report_of,
)

# Changes between the results of a report and those of another run.

CLOSE = 1e-9
"""Relative tolerance for floating-point sums."""
Key: TypeAlias = tuple[Cell, ...]


@frozen
class ReportRows:
    """The rows of one result."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


@frozen
class ChangedCell:
    """A changed cell. ``row`` is its key, as "region=North", or its number when no columns identify rows."""

    row: str
    column: str
    before: Cell
    after: Cell

    @property
    def words(self) -> str:
        """The change in one line, with the relative change for numbers."""
        return f"{self.row}: {self.column} {shown(self.before)} → {shown(self.after)}{self._share}"

    @property
    def _share(self) -> str:
        before, after = _number(self.before), _number(self.after)
        if before is None or after is None or not before:
            return ""
        return f" ({(after - before) / abs(before):+.1%})"


@frozen
class Changes:
    """Differences of two results. ``columns`` describes changed columns; ``added`` and ``removed`` are rows by key."""

    columns: str = ""
    cells: tuple[ChangedCell, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.columns or self.cells or self.added or self.removed)


def changes(before: ReportRows, after: ReportRows) -> Changes:
    """Compare two results. Rows are matched by their text, date and boolean columns if these are unique in both
    results, else by number."""
    old, new = [each.name for each in before.columns], [each.name for each in after.columns]
    if old != new:
        gone, come = [name for name in old if name not in new], [name for name in new if name not in old]
        parts = (f"without {', '.join(gone)}" if gone else "", f"with {', '.join(come)}" if come else "")
        return Changes(columns=" and ".join(filter(None, parts)) or "in another order")
    keys = [place for place, column in enumerate(before.columns) if not column.numeric]
    was, now = _keyed(before, keys), _keyed(after, keys)
    if was is None or now is None:
        keys = []
        was, now = _numbered(before), _numbered(after)
    return Changes(
        cells=tuple(_cells(before.columns, keys, was, now)),
        added=tuple(_named(before.columns, keys, key) for key in now if key not in was),
        removed=tuple(_named(before.columns, keys, key) for key in was if key not in now),
    )


def counterpart(before: ReportRows, after: ReportRows, row: int) -> Row | None:
    """Return the row of ``after`` that matches this row of ``before``, as in ``changes``."""
    if [each.name for each in before.columns] != [each.name for each in after.columns] or row >= len(before.rows):
        return None
    keys = [place for place, column in enumerate(before.columns) if not column.numeric]
    if (now := _keyed(after, keys)) is None or _keyed(before, keys) is None:
        return after.rows[row] if row < len(after.rows) else None
    return now.get(tuple(before.rows[row][place] for place in keys))


def _keyed(rows: ReportRows, keys: Sequence[int]) -> dict[Key, Row] | None:
    """Return rows by key; None when a key repeats."""
    found = {tuple(row[place] for place in keys): row for row in rows.rows} if keys else {}
    return found if len(found) == len(rows.rows) else None


def _numbered(rows: ReportRows) -> dict[Key, Row]:
    return {(number,): row for number, row in enumerate(rows.rows, 1)}


def _cells(
    columns: Sequence[Column], keys: Sequence[int], was: Mapping[Key, Row], now: Mapping[Key, Row]
) -> Iterator[ChangedCell]:
    for key, row in was.items():
        other = now.get(key)
        if other is None:
            continue
        for place, column in enumerate(columns):
            if not same(row[place], other[place]):
                yield ChangedCell(_named(columns, keys, key), column.name, row[place], other[place])


def _named(columns: Sequence[Column], keys: Sequence[int], key: Key) -> str:
    if not keys:
        return f"row {key[0]:,}"
    return ", ".join(f"{columns[place].name}={shown(value)}" for place, value in zip(keys, key, strict=True))


def same(was: Cell, value: Cell) -> bool:
    """Return whether two cells are equal, or floating-point numbers that differ in the last digits. A decimal, which is
    text, equals the same integer."""
    if isinstance(was, bool) != isinstance(value, bool):
        return False
    if was == value or (was is not None and value is not None and str(was) == str(value)):
        return True
    if not isinstance(was, float) and not isinstance(value, float):
        return False
    first, second = _number(was), _number(value)
    if first is None or second is None:
        return False
    return math.isclose(first, second, rel_tol=CLOSE) or (math.isnan(first) and math.isnan(second))


def shown(value: Cell) -> str:
    """Return a cell as text, numbers with thousands separators."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int | float) else value


def _number(value: Cell) -> float | None:
    """Return a number; decimals are text in JSON."""
    if value is None or isinstance(value, bool):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


MOST_LISTED = 20


def summary(found: Changes) -> list[str]:
    """Return the changes in lines, the first ``MOST_LISTED`` cells in full."""
    lines = [f"columns {found.columns}"] if found.columns else []
    lines += [cell.words for cell in found.cells[:MOST_LISTED]]
    if len(found.cells) > MOST_LISTED:
        lines.append(f"and {count(len(found.cells) - MOST_LISTED, 'further value')}")
    for what, names in (("new", found.added), ("gone", found.removed)):
        if names:
            more = f" and {len(names) - MOST_LISTED:,} more" if len(names) > MOST_LISTED else ""
            lines.append(f"{what}: {'; '.join(names[:MOST_LISTED])}{more}")
    return lines


LONGEST = 200_000_000
"""Largest manifest in bytes."""
PLACE = "SELECT 'not worked out' AS result"


@frozen
class ResultChange:
    """The comparison of a result. ``failed`` is why it could not be computed; ``changes`` is None when it has too many
    rows to compare one by one."""

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
    """A figure of an answer, and its cell ``now``. ``gone`` is why no cell has it any more."""

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
    """Return the report of ``path``, a script, notebook or data folder, and its data folder. Raises UsageError: there
    is no report."""
    places = (path / MANIFEST, path) if path.is_dir() or path.name == MANIFEST else ()
    file = next((each for each in places if each.is_file()), path.with_name(f"{path.stem}-data") / MANIFEST)
    try:
        if file.stat().st_size > LONGEST:
            raise UsageError(f"{file} is larger than {LONGEST // 1_000_000} MB.", "It is no report of ba's.")
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        hint = "Name a script or notebook that ba exported; its data folder must be next to it."
        raise UsageError(f"{file} can't be read: {error.strerror or error}.", hint) from error
    return report_of(text), file.parent


def given_files(report: Report, given: Mapping[str, str]) -> dict[str, str]:
    """Return the files by table. The name "" means the only table, or the one named like the file. Raises UsageError:
    the table is ambiguous."""
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
    """Runs a report again with ``analysis``, an empty engine; ``folder`` has the report's data."""

    def __init__(
        self, analysis: Analysis, report: Report, folder: Path, on_progress: Callable[[Progress], None] | None = None
    ) -> None:
        self._analysis = analysis
        self._report = report
        self._folder = folder
        self._listener = on_progress
        self._failed: dict[str, str] = {}
        self._rows: dict[str, tuple[ReportRows, ReportRows]] = {}

    async def run(self, data: Mapping[str, str]) -> ReportRun:
        """Return what changed; ``data`` replaces files of tables. Raises AnalysisError when a file can't be read."""
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
        """Skip result numbers that the report does not use, so that the next result gets this one."""
        while len((await self._analysis.catalogue()).results) + 1 < int(handle.removeprefix("R")):
            await self._analysis.query(PLACE)

    async def _worked_out(self, result: ReportResult) -> int:
        """Compute the result and return its rows."""
        if broken := next((each for each in result.reads if each in self._failed), ""):
            raise AnalysisError(f"it reads {broken}, which could not be worked out")
        if result.kept:
            copy = await asyncio.to_thread(self._analysis.make_inbox) / f"{result.handle}.parquet"
            await asyncio.to_thread(shutil.copyfile, self._inside(result.expected), copy)
            return (await self._analysis.adopt(copy, Provenance(result.sql, engine=result.engine))).rows
        found = await self._analysis.query(result.sql, named=dict(result.called), on_progress=self._listener)
        return found.rows

    async def _all(self, name: str) -> ReportRows:
        page = await self._analysis.page(name, limit=PAGE_ROWS)
        return ReportRows(page.columns, page.rows)

    async def _before(self, result: ReportResult) -> str:
        """Return the table with the previous rows of a result."""
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

    async def _found(self, figure: ReportFigure, result: ReportResult) -> tuple[ReportRows, ReportRows]:
        """Return the row of a figure in a long result: before and now."""
        if not result.expected:
            page = await self._analysis.page(figure.handle, offset=figure.row, limit=1)
            return ReportRows(page.columns, page.rows), ReportRows(page.columns, page.rows)
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
        return ReportRows(old.columns, old.rows), ReportRows(new.columns, new.rows)

    def _inside(self, name: str) -> Path:
        """Return a file of the report's folder; other paths are refused."""
        if Path(name).name != name:
            raise UsageError(f"The report names a file outside of its folder: {name}.", "Export the report again.")
        return self._folder / name
