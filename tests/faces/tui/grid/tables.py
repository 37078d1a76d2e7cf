"""Tables in memory that answer as the engine does, for tests of what a person sees of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.datasets import ExportedFile, NeedsConfirmation, OutputFormat, PythonSession, SourceInfo
from ba_tui.core.ports.tables import (
    Arrangement,
    Catalogue,
    Cell,
    Column,
    ColumnProfile,
    Dataset,
    FoundRows,
    Page,
    Progress,
    Provenance,
    QueryResult,
    Row,
    RowFilter,
    TopValue,
    TrapFinding,
)
from ba_tui.core.results import Chart, ChartRequest, ChartSeries

COLUMNS = (Column("id", "BIGINT"), Column("region", "VARCHAR"), Column("amount", "DOUBLE"))
REGIONS = ("north", "south", "east")


def sales(rows: int) -> list[Row]:
    return [(number + 1, REGIONS[number % 3], None if number % 10 == 9 else number * 1.5) for number in range(rows)]


@dataclass
class Warehouse:
    """One source with a table; ``names``: once they were listed, it can't be reached any more."""

    names: tuple[str, ...] | None = None

    def listed(self) -> tuple[SourceInfo, ...]:
        return (SourceInfo("warehouse", "PostgreSQL", self.names),)

    async def tables(self, source: str) -> tuple[str, ...]:
        if source != "warehouse" or self.names is not None:
            raise UsageError("warehouse: It can't be reached: refused", "Check sources in your settings.")
        self.names = ("orders",)
        return self.names

    async def preview(self, source: str, table: str) -> str:
        assert (source, table) == ("warehouse", "orders")
        return "R1"


@dataclass
class Written:
    """What was written; ``there``: files that exist already."""

    files: list[tuple[str, str, Arrangement]] = field(default_factory=list)
    there: set[str] = field(default_factory=set)

    async def table(self, name: str, path: str, arrangement: Arrangement, *, confirmed: bool = False) -> ExportedFile:
        if path in self.there and not confirmed:
            raise NeedsConfirmation(f"{path} exists already.")
        self.files.append((name, path, arrangement))
        return ExportedFile(path, 2_500)

    async def chart(self, chart: Chart, path: str, *, confirmed: bool = False) -> ExportedFile:
        return await self.table(chart.title, path, Arrangement(), confirmed=confirmed)

    async def report(
        self,
        path: str,
        *,
        title: str,
        confirmed: bool = False,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> ExportedFile:
        return await self.table(title, path, Arrangement(), confirmed=confirmed)


@dataclass
class Tables:
    """``gate``: arranged pages wait for it."""

    rows: list[Row] = field(default_factory=lambda: sales(1_000))
    columns: tuple[Column, ...] = COLUMNS
    asked: list[tuple[Arrangement, int, int]] = field(default_factory=list)
    charts: list[tuple[ChartRequest, Arrangement]] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    unmasked: list[str] = field(default_factory=list)
    gate: asyncio.Event | None = None
    traps: tuple[TrapFinding, ...] = ()
    queries: list[str] = field(default_factory=list)
    begun = True
    python: PythonSession | None = None
    sources: Warehouse = field(default_factory=Warehouse)
    exports: Written = field(default_factory=Written)

    async def find(
        self, name: str, ranges: Sequence[tuple[float, float]], *, most: int, timeout: float
    ) -> tuple[FoundRows, ...]:
        raise NotImplementedError

    async def catalogue(self) -> Catalogue:
        dataset = Dataset("sales", "sales.csv", "", "csv", len(self.rows), self.columns, (), rows_skipped=2)
        result = QueryResult("R1", self.columns, len(self.rows), (), Provenance("SELECT *\nFROM sales"))
        return Catalogue((dataset,), (result,), self.traps)

    async def unmask(self, column: str) -> None:
        self.unmasked.append(column)

    async def register(
        self, source: str, *, part: str = "", on_progress: Callable[[Progress], None] | None = None
    ) -> tuple[Dataset, ...]:
        if source != "sales.csv":
            raise UsageError(f"No file matches {source}.")
        return (await self.catalogue()).datasets

    async def register_output(self, text: str, format: OutputFormat, ref: str | None = None) -> Dataset:
        self.outputs.append(text)
        return (await self.catalogue()).datasets[0]

    async def findings(self, name: str) -> tuple[TrapFinding, ...]:
        return self.traps

    async def mute(self, finding: TrapFinding, *, muted: bool) -> None:
        self.traps = tuple(replace(each, muted=muted) if each == finding else each for each in self.traps)

    async def query(self, sql: str) -> QueryResult:
        self.queries.append(sql)
        return (await self.catalogue()).results[0]

    async def page(
        self, name: str, arrangement: Arrangement | None = None, *, offset: int = 0, limit: int = 100
    ) -> Page:
        wanted = arrangement or Arrangement()
        self.asked.append((wanted, offset, limit))
        if self.gate and wanted != Arrangement():
            await self.gate.wait()
        numbers = self._arranged(wanted)
        shown = numbers[offset : offset + limit]
        return Page(self.columns, tuple(self.rows[each] for each in shown), tuple(shown), offset, len(numbers))

    async def column(self, name: str, column: str, arrangement: Arrangement | None = None) -> ColumnProfile:
        place = self._place(column)
        values = [self.rows[each][place] for each in self._arranged(arrangement or Arrangement())]
        top = (TopValue(values[0], values.count(values[0])),)
        return ColumnProfile(self.columns[place], values.count(None), len(set(values)), top=top)

    async def chart(self, wanted: ChartRequest, arrangement: Arrangement | None = None) -> Chart:
        self.charts.append((wanted, arrangement or Arrangement()))
        if wanted.kind == "pie":
            raise UsageError("A pie of 9 slices can't be read.", "Use kind=bar.")
        request = replace(wanted, kind=wanted.kind or "bar", x=wanted.x or "region", y=wanted.y or ("amount",))
        bars = ChartSeries(request.y[0], (0, 1, 2), (30.0, 20.0, 10.0))
        return Chart(request, "category", request.x, f"sum of {request.y[0]}", (bars,), REGIONS, rows=len(self.rows))

    def _place(self, column: str) -> int:
        return [each.name for each in self.columns].index(column)

    def _arranged(self, wanted: Arrangement) -> list[int]:
        numbers = [at for at in range(len(self.rows)) if all(self._passes(each, at) for each in wanted.filters)]
        numbers = [at for at in numbers if not wanted.search or wanted.search in str(self.rows[at])]
        for order in reversed(wanted.order):
            place = self._place(order.column)
            numbers.sort(key=lambda at, place=place: _key(self.rows[at][place]), reverse=order.descending)
        return numbers

    def _passes(self, given: RowFilter, at: int) -> bool:
        value = self.rows[at][self._place(given.column)]
        match given.operator:
            case "is null":
                return value is None
            case "=":
                return str(value) == str(given.value)
            case ">":
                return isinstance(value, int | float) and value > float(str(given.value))
            case "contains":
                return str(given.value) in str(value)
            case _:
                raise UsageError(f"The filter does not fit its column: {given.operator}.")


def _key(value: Cell) -> tuple[bool, float, str]:
    number = float(value) if isinstance(value, int | float) else 0.0
    return value is None, number, str(value)
