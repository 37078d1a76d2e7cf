"""A table as evidence: columns of values with their places in the text, labels and dates of rows, rows that are totals.

How a text is taken apart into cells stands in grids, literals and loose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.figures.observed.columns import (
    Cell,
    Column,
    Read,
    column_of,
    moment_of,
    names_time,
    read_number,
    words_of,
)
from ba_tui.features.data.analysis.figures.words.lexicon import listed
from ba_tui.features.data.analysis.figures.words.units import Unit, unit_at

_TOTALS = listed(
    "total: totals: total totals sum summe gesamt gesamtsumme insgesamt overall all alle grand subtotal "
    "zwischensumme somme ensemble suma 合计 总计 总和 小计 總計 合計 計 全体"
)
_METRICS = listed(
    "count n rows nulls null missing non_null notnull distinct distinct_values unique mean avg average "
    "median std sd stddev min max sum var variance q1 q3 q25 q50 q75 p50 p90 p95 p99 range iqr skew "
    "kurtosis top freq first last mode total errors warnings passed failed"
)
_METRIC_FORM = regex(r"(?:p|q)?\d{1,2}(?:\.\d+)?%?$")
_VALUE_HEADERS = listed("value values wert werte valeur valor 值 数值 値 result")
_KEY_HEADERS = listed(
    "metric metrics statistic stat measure key name field property attribute kennzahl metrik 指标 項目 item variable"
)


@frozen
class Table:
    """What one part of an observation holds. ``labels`` are the texts of each row, ``moments`` its date
    (``2013-05``) or nothing, ``totals`` the rows that sum up others, ``loose`` whether rows have nothing in common
    but their text, ``label_words`` the words of the heads of label columns, ``width`` the number of all columns,
    ``numbers`` the places of its rows in a result that came as values."""

    call: str
    columns: tuple[Column, ...]
    labels: tuple[tuple[str, ...], ...]
    moments: tuple[str, ...]
    totals: frozenset[int] = frozenset()
    loose: bool = False
    label_words: tuple[str, ...] = ()
    width: int = 0
    numbers: tuple[int, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows there are, totals included."""
        return len(self.labels)


class _Cells:
    """The cells of one column while its kind is found."""

    def __init__(self, name: str) -> None:
        self.name = name.strip(" \t\"'`*")
        self.reads: list[Read | None] = []
        self.texts: list[str] = []

    @property
    def numbers(self) -> int:
        return sum(read is not None for read in self.reads)


def build(call: str, text: str, header: Sequence[str], grid: Sequence[Sequence[Cell]], offset: int = 0) -> Table | None:
    """The table of a grid of cells; None when no cell of it is a number. ``offset`` is added to all places."""
    width = max((len(row) for row in grid), default=0)
    columns = [_Cells(header[at] if at < len(header) else "") for at in range(width)]
    for row in grid:
        for at, column in enumerate(columns):
            start, end = row[at] if at < len(row) else (0, 0)
            column.reads.append(read_number(text, start, end))
            column.texts.append(text[start:end])
    if not any(column.numbers for column in columns):
        return None
    columns = [column for at, column in enumerate(columns) if not (at == 0 and len(columns) > 1 and _is_index(column))]
    made, labels, moments = _kinds(columns, len(grid), offset)
    if not made:
        return None
    heads = tuple(word for column in columns if column.numbers * 2 < len(grid) for word in words_of(column.name))
    totals = frozenset(row for row, cells in enumerate(labels) if cells and cells[0].strip(" *:").lower() in _TOTALS)
    return as_record(Table(call, tuple(made), tuple(labels), tuple(moments), totals, False, heads, width), header)


def _is_index(column: _Cells) -> bool:
    """Whether a first column without a name counts the rows from 0."""
    return not column.name and all(read is not None and read.value == row for row, read in enumerate(column.reads))


def _kinds(columns: Sequence[_Cells], rows: int, offset: int) -> tuple[list[Column], list[tuple[str, ...]], list[str]]:
    made: list[Column] = []
    texts: list[list[str]] = [[] for _ in range(rows)]
    parts: list[dict[str, str]] = [{} for _ in range(rows)]
    for column in columns:
        filled = sum(bool(cell.strip()) for cell in column.texts)
        timed = names_time(column.name)
        if column.numbers * 2 >= max(1, filled):
            years = _are_years(column, named=timed)
            made.append(column_of(column.name, column.reads, offset, time=years or (timed and _small(column))))
            if years or timed:
                _date_rows(column, parts, year=years)
        elif made and (unit := _shared_unit(column)):
            last = made[-1]
            made[-1] = replace(last, unit=last.unit or unit)
            continue
        numeric = column.numbers * 2 >= max(1, filled)
        for row, cell in enumerate(column.texts if column.numbers < filled else ()):
            if cell.strip() and not (numeric and column.reads[row]):
                moment = moment_of(cell)
                if moment:
                    parts[row].setdefault("whole", moment)
                else:
                    texts[row].append(cell.strip(" \t\"'`*\u200b"))
    return made, [tuple(cells) for cells in texts], [_joined(part) for part in parts]


def _shared_unit(column: _Cells) -> Unit | None:
    """The unit that every cell of a column without a name is: the ``s`` of ``655 s``."""
    if column.name or len(set(column.texts)) != 1 or not column.texts[0].isalpha():
        return None
    return unit_at(f"1 {column.texts[0]}", 1).unit


def _are_years(column: _Cells, *, named: bool) -> bool:
    values = [read.value for read in column.reads if read]
    low, high = (1000, 2200) if named else (1900, 2100)
    if not all(low <= value <= high and value == int(value) for value in values):
        return False
    if not named and (column.name or len(values) < 3 or any(a >= b for a, b in pairwise(values))):
        return False
    return all(read.end - read.start == 4 for read in column.reads if read)


def _small(column: _Cells) -> bool:
    return all(read.value == int(read.value) and 0 < read.value <= 53 for read in column.reads if read)


def _date_rows(column: _Cells, parts: list[dict[str, str]], *, year: bool) -> None:
    name = column.name.lower()
    kind = (
        "year"
        if year
        else "Q"
        if name.startswith(("q", "季", "trim"))
        else "month"
        if name.startswith(("m", "月"))
        else ""
    )
    if not kind:
        return
    for row, read in enumerate(column.reads):
        if read:
            parts[row][kind] = f"{int(read.value)}"


def _joined(part: dict[str, str]) -> str:
    """One key of the parts of a row's date: a year beside a quarter or a month."""
    if "whole" in part or not part:
        whole = part.get("whole", "")
        return whole.replace("-", part["year"], 1) if whole.startswith("--") and "year" in part else whole
    year = part.get("year", "-")
    if "Q" in part:
        return f"{year}-Q{part['Q']}"
    return f"{year}-{int(part['month']):02}" if "month" in part else year


def as_record(table: Table, header: Sequence[str]) -> Table:
    """``table`` with its rows as columns when they are different measures of one thing, such as mean and maximum."""
    if len(table.columns) != 1 or table.rows < 2 or any(len(labels) != 1 for labels in table.labels):
        return table
    names = [labels[0].rstrip(":") for labels in table.labels]
    measures = sum(name.lower() in _METRICS or bool(_METRIC_FORM.match(name.lower())) for name in names)
    named = (
        len(header) > 1 and header[-1].strip().lower() in _VALUE_HEADERS and header[0].strip().lower() in _KEY_HEADERS
    )
    if not named and measures * 2 <= len(names):
        return table
    (only,) = table.columns
    columns = tuple(column_of(name, [_read(only, row)]) for row, name in enumerate(names))
    return Table(table.call, columns, ((),), ("",))


def _read(column: Column, row: int) -> Read:
    return Read(column.values[row], column.unit, *column.span(row))


def stacked(tables: Sequence[Table]) -> list[Table]:
    """``tables`` with neighbours that have one column under the same labels made one: records that stand below each
    other."""
    found: list[Table] = []
    first = 0
    while first < len(tables):
        last = first + 1
        while last < len(tables) and _same_form(tables[first], tables[last]):
            last += 1
        found.append(tables[first] if last - first == 1 else _turned(tables[first:last]))
        first = last
    return found


def _same_form(one: Table, other: Table) -> bool:
    if one.rows == 1:
        names = [column.name for column in one.columns]
        return other.rows == 1 and len(names) > 1 and names == [column.name for column in other.columns] and all(names)
    return (
        len(one.columns) == len(other.columns) == 1
        and one.labels == other.labels
        and one.columns[0].name == other.columns[0].name
    )


def _turned(tables: Sequence[Table]) -> Table:
    head = tables[0]
    single = head.rows == 1
    count = len(head.columns) if single else head.rows
    columns: list[Column] = []
    for at in range(count):
        name = head.columns[at].name if single else (head.labels[at] or ("",))[0].rstrip(":")
        cells = [_read(table.columns[at], 0) if single else _read(table.columns[0], at) for table in tables]
        columns.append(column_of(name, cells, time=names_time(name)))
    labels = tuple(table.labels[0] for table in tables) if single else ((),) * len(tables)
    moments = tuple(table.moments[0] for table in tables) if single else ("",) * len(tables)
    return Table(head.call, tuple(columns), labels, moments)
