"""Tables as evidence: columns of values with their places in the text, labels and dates of rows, rows that are totals.

``grids``, ``literals`` and ``observations`` split a text into cells.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.figures.moments import listed
from ba_tui.features.figures.observed.columns import (
    Column,
    Read,
    column_of,
    moment_in,
    moment_of,
    names_time,
    read_cell,
    words_of,
)
from ba_tui.features.figures.observed.grids import BLANK, Grid, GridCell
from ba_tui.features.figures.units import PERCENT, FigureUnit, unit_at

_TYPES = listed(
    "varchar int64 int32 int16 int8 uint64 double float float64 bigint integer hugeint int128 decimal "
    "date timestamp boolean bool str object text i64 f64 i32 u32 real int interval blob time uuid"
)
_TYPE = regex(r"(?:decimal|varchar|numeric)\(.*\)$|timestamp.*$|<\w{2,6}>$")
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
MOST_SUMMED = 100
"""Most rows of a table in which rows that sum up others are found by their values."""
_VALUE_HEADERS = listed("value values wert werte valeur valor 值 数值 値 result")
_KEY_HEADERS = listed(
    "metric metrics statistic stat measure key name field property attribute kennzahl metrik 指标 項目 item variable"
)


@frozen
class Table:
    """What one part of an observation holds. ``labels`` are the texts of each row, ``moments`` its date
    (``2013-05``) or nothing, ``totals`` the rows that sum up others, ``loose`` whether rows have nothing in common
    but their text, ``label_words`` the words of the heads of label columns, ``width`` the number of all columns,
    ``numbers`` the places of its rows in a result that came as values, ``scale`` by what its values are multiplied, as
    a head or a caption says; ``lines``: its rows are lines of prose or of a log, whose words are no labels."""

    call: str
    columns: tuple[Column, ...]
    labels: tuple[tuple[str, ...], ...]
    moments: tuple[str, ...]
    totals: frozenset[int] = frozenset()
    loose: bool = False
    label_words: tuple[str, ...] = ()
    width: int = 0
    numbers: tuple[int, ...] = ()
    scale: float = 1.0
    lines: bool = False

    def turned(self, columns: Sequence[int]) -> Table:
        """Return some columns of the table with its rows as columns."""
        held = [self.columns[at] for at in columns]
        rows = [
            column_of(
                " ".join(self.labels[row]) or self.moments[row],
                [_read(column, row) if column.values[row] == column.values[row] else None for column in held],
            )
            for row in range(self.rows)
        ]
        labels = tuple((column.name,) for column in held)
        moments = tuple(moment_in(column.name) for column in held)
        return Table(self.call, tuple(rows), labels, moments, scale=self.scale)

    def moved(self, place: Callable[[int], int]) -> Table:
        """Return the table with other places of its cells in the text."""
        columns = (
            replace(
                column,
                starts=array(
                    "L", [place(start) if end else 0 for start, end in zip(column.starts, column.ends, strict=True)]
                ),
                ends=array("L", [place(end) if end else 0 for end in column.ends]),
            )
            for column in self.columns
        )
        return replace(self, columns=tuple(columns))

    def alike(self) -> list[list[int]]:
        """Return the columns in groups that may measure the same, by unit and size; only groups of several."""
        groups: dict[FigureUnit | None, list[tuple[float, int]]] = {}
        for at, column in enumerate(self.columns):
            if not column.time and not column.key:
                size = max((abs(value) for value in column.values if value == value), default=0.0)
                money = column.unit is not None and column.unit.family == "money" and column.unit.factor == 1
                groups.setdefault(None if money else column.unit, []).append((size, at))
        found: list[list[int]] = []
        for sized in groups.values():
            left = sorted(sized, reverse=True)
            while left:
                near = [at for size, at in left if left[0][0] <= 1000 * (size or 1.0)]
                left = left[len(near) :]
                if len(near) > 1:
                    found.append(sorted(near))
        return found

    @property
    def rows(self) -> int:
        """How many rows there are, totals included."""
        return len(self.labels)


class _Cells:
    """The cells of one column while its kind is found."""

    def __init__(self, name: str, cells: Sequence[GridCell], reads: Sequence[Read | None]) -> None:
        self.name = name.strip(" \t\"'`*")
        self.reads = reads
        self.texts = [cell[0] for cell in cells]

    @property
    def numbers(self) -> int:
        return sum(read is not None for read in self.reads)


MOST_HEADS = 6
"""Rows of column names at the top of a grid."""
_SCALES = (
    (regex(r"(?i)\b(?:thousands?|tausend|tsd\.?|milliers|miles|000s)\b|k€|['’‘$€£¥]000\b"), 1e3),
    (regex(r"(?i)\b(?:millions?|mio|millionen|millones|mm)\b|百万|[$€£¥]m\b"), 1e6),
    (regex(r"(?i)\b(?:billions?|mrd|milliarden|milliards|bn)\b|十亿"), 1e9),
    (regex(r"万元|万人|\(万\)|in 万"), 1e4),
    (regex(r"亿元|\(亿\)|in 亿"), 1e8),
)


def scale_in(text: str) -> float:
    """Return the scale that a head, a label or a caption names, such as ``(in thousands)``; 1 when it names none."""
    return next((factor for pattern, factor in _SCALES if pattern.search(text)), 1.0)


def build(call: str, grid: Grid, offset: int = 0) -> list[Table]:
    """Return the tables of a grid: one, or one of its amounts and one of its percentages; none without numbers.

    ``offset`` is added to all places."""
    typed = {at for at, row in enumerate(grid.rows[:3]) if at and _is_types(row)}
    rows = [row for at, row in enumerate(grid.rows) if at not in typed and any(cell[0] for cell in row)]
    rows = _without_signs(rows)
    width = max((len(row) for row in rows), default=0)
    rows = [(*row, *[BLANK] * (width - len(row))) for row in rows]
    reads = [[read_cell(cell) for cell in row] for row in rows]
    heads = _heads(rows, reads, grid.head - sum(at < grid.head for at in typed))
    body = _body(rows[heads:], reads[heads:])
    named = [cell[0] for row in rows[:heads] for cell in row if cell[0]]
    scale = scale_in(" ".join((grid.caption[-200:], *named, *(row.section for row in body))))
    names = _names(rows[:heads], width)
    tables: list[Table] = []
    for percent in (False, True):
        part = [row for row in body if _is_percent(row.reads) is percent]
        if any(read for row in part for read in row.reads) and (table := _table(call, names, part, offset)):
            tables.append(as_record(replace(table, scale=scale), names))
    return tables


@frozen
class _BodyRow:
    """A row of data, the numbers that its cells are, and the heading above it."""

    cells: Sequence[GridCell]
    reads: Sequence[Read | None]
    section: str


def _table(call: str, names: Sequence[str], rows: Sequence[_BodyRow], offset: int) -> Table | None:
    columns = [
        _Cells(name, [row.cells[at] for row in rows], [row.reads[at] for row in rows]) for at, name in enumerate(names)
    ]
    columns = [column for at, column in enumerate(columns) if not (at == 0 and len(names) > 1 and _is_index(column))]
    made, labels, moments = _kinds(columns, len(rows), offset)
    if not made:
        return None
    texts = tuple((*label, row.section) if row.section else label for label, row in zip(labels, rows, strict=True))
    words = tuple(word for column in columns if column.numbers * 2 < len(rows) for word in words_of(column.name))
    totals = {at for at, label in enumerate(texts) if label and is_total(label[0])} | _sums(
        [each.values for each in made]
    )
    return Table(call, tuple(made), texts, tuple(moments), frozenset(totals), False, words, len(names))


def _is_percent(reads: Sequence[Read | None]) -> bool:
    """Return whether all numbers of a row are percentages: these are never reckoned together with amounts."""
    held = [read for read in reads if read]
    return len(reads) > 1 and 2 * sum(read.unit is PERCENT for read in held) > len(held)


def _sums(columns: Sequence[Sequence[float]]) -> set[int]:
    """Return the rows that are the sums of at least two rows right above them, in every column of several."""
    if len(columns) < 2 or not 2 < len(columns[0]) <= MOST_SUMMED:
        return set()
    found: set[int] = set()
    for row in range(2, len(columns[0])):
        held = [column for column in columns if column[row] == column[row]]
        sums = [0.0] * len(held)
        if len(held) < 2 or not all(column[row] for column in held):
            continue
        for first in reversed(range(row)):
            if first in found:
                break
            sums = [
                so_far + (column[first] if column[first] == column[first] else 0.0)
                for so_far, column in zip(sums, held, strict=True)
            ]
            if row - first > 1 and all(
                math.isclose(so_far, column[row], rel_tol=1e-9, abs_tol=1e-6)
                for so_far, column in zip(sums, held, strict=True)
            ):
                found.add(row)
                break
    return found


def is_total(label: str) -> bool:
    """Return whether a row label names the sum of other rows."""
    word = label.strip(" *:").lower()
    return word in _TOTALS or word.split(" ")[0].rstrip(":") in _SUM_WORDS


_SUM_WORDS = listed("total totals gesamt summe subtotal zwischensumme insgesamt 合计 总计 小计")
_SIGNS_ONLY = frozenset(["$", "€", "£", "¥", "%", ")", ")%", "₹", "-", "–"])


def _without_signs(rows: Sequence[Sequence[GridCell]]) -> list[tuple[GridCell, ...]]:
    """Join columns that hold only signs, such as ``$`` or ``%``, to the numbers beside them."""
    width = max((len(row) for row in rows), default=0)
    kept: list[int] = []
    behind: dict[int, int] = {}
    for at in range(width):
        texts = [row[at][0] for row in rows if at < len(row) and row[at][0]]
        only = bool(texts) and all(text in _SIGNS_ONLY for text in texts)
        if only and at and texts[0] in {"%", ")", ")%"}:
            behind[at] = kept[-1] if kept else at
        elif not only or not at:
            kept.append(at)
    if len(kept) == width:
        return [tuple(row) for row in rows]
    joined: list[tuple[GridCell, ...]] = []
    for row in rows:
        cells = {at: row[at] for at in kept if at < len(row)}
        for at, to in behind.items():
            if at < len(row) and row[at][0] and to in cells and cells[to][0]:
                text, start, end = cells[to]
                cells[to] = (text + row[at][0], start, end)
        joined.append(tuple(cells[at] for at in kept if at in cells))
    return joined


def _heads(rows: Sequence[Sequence[GridCell]], reads: Sequence[Sequence[Read | None]], known: int) -> int:
    """Return how many rows at the top name the columns; ``known`` is what the form of the grid says."""
    count = known
    while count < min(len(rows) - 1, MOST_HEADS) and _is_head(rows, reads, count, known):
        count += 1
    return count


def _is_head(rows: Sequence[Sequence[GridCell]], reads: Sequence[Sequence[Read | None]], at: int, known: int) -> bool:
    """Return whether the row ``at`` names columns: without numbers but years, above columns of other numbers."""
    row = rows[at]
    numbers = [place for place, read in enumerate(reads[at]) if read]
    if any(not _like_year(reads[at][place]) for place in numbers):
        return False
    below = [
        place
        for place in range(len(row))
        if any(each[place] and not _like_year(each[place]) for each in reads[at + 1 :])
    ]
    if numbers:
        # Under marked names a row with a label holds data, unless the names are over several columns.
        named = bool(row[0][0]) and known > 0 and all(rows[known - 1][place][0] for place in numbers)
        return (
            set(numbers) <= set(below) and (len(numbers) > 1 or 0 not in numbers) and not (named and 0 not in numbers)
        )
    if not any(cell[0] for cell in row[1:]):
        return at == 0 and len(rows) > 2
    return at < max(1, known) or _names_more(row, rows[:at], below)


def _names_more(row: Sequence[GridCell], heads: Sequence[Sequence[GridCell]], below: Sequence[int]) -> bool:
    """Return whether a row without numbers goes on naming the columns rather than being a heading within the data: it
    names a column that has no name yet, or says in what the columns count."""
    filled = [at for at in below if row[at][0]]
    if any(not any(head[at][0] for head in heads) for at in filled):
        return True
    cells = [cell[0] for cell in row[1:] if cell[0]]
    return (
        bool(cells)
        and all(len(cell) <= 8 or cell.startswith("(") for cell in cells)
        and (len(cells) > 1 or cells[0][0] == "(")
    )


def _like_year(read: Read | None) -> bool:
    return (
        read is not None
        and read.unit is None
        and read.value == int(read.value)
        and 1900 <= read.value <= 2100
        and read.end - read.start in (4, 0)
    )


def _names(heads: Sequence[Sequence[GridCell]], width: int) -> list[str]:
    """Return the names of the columns. With several rows of names, one is over the empty cells beside it."""
    parts: list[list[str]] = [[] for _ in range(width)]
    for row in heads:
        texts = [cell[0] for cell in row]
        filled = [at for at, text in enumerate(texts) if text]
        for at in range(width):
            text = texts[at]
            if text.startswith("(") and scale_in(text) != 1:
                continue
            if not text and len(heads) > 1 and at and filled:
                left = [place for place in filled if 0 < place < at]
                right = [place for place in filled if place > at]
                text = texts[left[-1]] if left else texts[right[0]] if right else ""
            if text and text not in parts[at]:
                parts[at].append(text)
    return [" ".join(part) for part in parts]


def _body(rows: Sequence[Sequence[GridCell]], reads: Sequence[Sequence[Read | None]]) -> list[_BodyRow]:
    """Return the rows of data; rows of one text are headings of those below them."""
    found: list[_BodyRow] = []
    section = ""
    wide = max((sum(bool(cell[0]) for cell in row) for row in rows), default=0)
    for row, read in zip(rows, reads, strict=True):
        texts = [cell[0] for cell in row if cell[0]]
        if len(texts) == 1 and not any(read) and wide > 1:
            section = texts[0].rstrip(": ")
            continue
        label = row[0][0]
        within = not is_total(label) or (section and section.lower() in label.lower())
        found.append(_BodyRow(row, read, section if within else ""))
    return found


def _is_types(row: Sequence[GridCell]) -> bool:
    names = [cell[0].lower() for cell in row]
    return any(names) and all(name in _TYPES or not name or bool(_TYPE.match(name)) for name in names)


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


def _shared_unit(column: _Cells) -> FigureUnit | None:
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
