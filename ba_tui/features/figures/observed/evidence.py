"""The newest of what a session has seen: tables of what tools returned, the user's numbers, earlier verdicts.

Adding costs what is added; a look-up costs the figure. Once it is full, the older half is dropped: neither memory nor
the cost of adding grows with the session. What a figure has to do with it is judged in the room weighed.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TypeAlias, TypeVar

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.figures.extract import Extraction, Figure, extract
from ba_tui.features.figures.observed.columns import Column, Read, moment_in, words_of
from ba_tui.features.figures.observed.literals import table_of
from ba_tui.features.figures.observed.observations import parts, tables
from ba_tui.features.figures.observed.series import Fields, Series, by_date, by_label, key_of, searched
from ba_tui.features.figures.observed.tables import Table
from ba_tui.features.figures.units import unit_of_words
from ba_tui.features.figures.verdicts import PERSON, CheckedAnswer, Verdict

# What was worked out for tables of the evidence, kept while used: rows by name, cells by size, columns in order.

MOST = 128
"""Tables, and columns, whose workings are kept."""
MOST_NAMES = 2_000
"""Rows of one table that answers may name."""

Held: TypeAlias = "list[tuple[float, int, int]]"
"""Absolute values with their columns and rows."""
Names: TypeAlias = "Mapping[str, tuple[int, ...]]"
_Key = TypeVar("_Key")
_Made = TypeVar("_Made")


class Kept:
    """What was worked out for tables; the least recently made is dropped."""

    def __init__(self) -> None:
        self.fields: dict[int, Fields] = {}
        self._series: dict[tuple[int, int], Series] = {}
        self._names: dict[int, tuple[Names, Names]] = {}
        self._cells: dict[int, tuple[list[float], Held]] = {}

    def rows(self, number: int, table: Table) -> Fields:
        held = self.fields.get(number)
        if held is None:
            _make_room(self.fields)
            held = self.fields[number] = Fields(table)
        return held

    def column(self, number: int, at: int, table: Table) -> Series:
        held = self._series.get((number, at))
        if held is None:
            _make_room(self._series)
            named, dated = self.names(number, table)
            held = self._series[number, at] = Series(table, at, {**named, **dated})
        return held

    def names(self, number: int, table: Table) -> tuple[Names, Names]:
        held = self._names.get(number)
        if held is None:
            _make_room(self._names)
            held = self._names[number] = by_label(table.labels[:MOST_NAMES]), by_date(table.moments[:MOST_NAMES])
        return held

    def within(self, number: int, table: Table, low: float, high: float) -> Held:
        """The cells whose absolute values lie in a range, smallest first."""
        held = self._cells.get(number)
        if held is None:
            _make_room(self._cells)
            columns = enumerate(table.columns)
            cells = [(abs(value), at, row) for at, column in columns for row, value in enumerate(column.values)]
            cells = sorted(cell for cell in cells if cell[0] == cell[0])
            held = self._cells[number] = [size for size, _, _ in cells], cells
        sizes, cells = held
        first = bisect_left(sizes, low)
        return cells[first : bisect_right(sizes, high, first)]


def _make_room(kept: dict[_Key, _Made]) -> None:
    if len(kept) >= MOST:
        del kept[next(iter(kept))]


LONGEST = 4_000
"""Characters of an input that are read."""
_QUOTED = regex(r"'([^'\n%]{2,40})'|\"([^\"\n%]{2,40})\"")
_SELECT = regex(r"(?is)select\s+(?:distinct\s+)?(.*?)\sfrom\s")
_ALIAS = regex(r"(?i)(?:\bas\s+)?\"?([A-Za-z_]\w*)\"?\s*$")


def topic_of(asked: str) -> frozenset[str]:
    """The names that may tell a result from others: the texts in quotation marks."""
    found = (match[1] or match[2] for match in _QUOTED.finditer(asked[:LONGEST]))
    return frozenset(key for key in map(key_of, found) if key)


def selected(asked: str) -> Sequence[str]:
    """The column names of a query's select list; empty when there is none."""
    found = _SELECT.search(asked[:LONGEST])
    if not found:
        return ()
    names: list[str] = []
    depth, begin, text = 0, 0, found[1] + ","
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            alias = _ALIAS.search(text[begin:at].strip())
            names.append(alias[1] if alias else "")
            begin = at + 1
    return names


def named(table: Table, names: Sequence[str]) -> Table:
    """``table`` with the names of a query's columns where it has none of its own."""
    if len(names) < 2 or any(column.name for column in table.columns):
        return table
    labels = max((len(labels) for labels in table.labels), default=0)
    dated = any(table.moments) and not any(column.time for column in table.columns)
    own = names[labels + dated :]
    if len(own) != len(table.columns):
        return table
    columns = (
        replace(column, name=name, words=words_of(name), unit=column.unit or unit_of_words(words_of(name)))
        for name, column in zip(own, table.columns, strict=True)
    )
    return replace(table, columns=tuple(columns))


_FINE = 50.0
"""Buckets are 2 % wide."""


class Buckets:
    """Maps sizes to numbers of holders, in the order in which they came. 0 is not held."""

    def __init__(self) -> None:
        self._held: dict[int, list[int]] = {}

    def add(self, sizes: Iterable[float], holder: int) -> None:
        """Add the holder of some numbers; NaN and 0 count for nothing."""
        held = self._held
        for size in sizes:
            if size and size == size:
                holders = held.setdefault(math.floor(math.log(abs(size)) * _FINE), [])
                if not holders or holders[-1] != holder:
                    holders.append(holder)

    def within(self, low: float, high: float) -> Sequence[int]:
        """Those that may hold a number of a range of absolute values, each once."""
        if not 0 < low <= high < math.inf:
            return ()
        first, last = math.floor(math.log(low) * _FINE), math.floor(math.log(high) * _FINE)
        if first == last:
            return self._held.get(first, ())
        return list(dict.fromkeys(holder for key in range(first, last + 1) for holder in self._held.get(key, ())))


HUGE = 300
"""Powers of ten from which a number is left out of the index."""


class Said:
    """Grows with what the user says. ``figures`` are the numbers, ``turns`` their turns, ``names`` what else had
    digits, with the reason why it is no figure."""

    def __init__(self) -> None:
        self.figures: list[Figure] = []
        self.turns: list[int] = []
        self.names: dict[str, str] = {}
        self._by_size = Buckets()

    def add(self, text: str, read: Extraction, turn: int) -> None:
        """Add what was read in the words of a turn."""
        self.names.update({text[apart.start : apart.end]: apart.reason for apart in read.apart})
        for figure in read.figures:
            size = abs(float(figure.value)) if figure.value.adjusted() < HUGE else 0.0
            self._by_size.add({size, size * (figure.unit.factor if figure.unit else 1.0)}, len(self.figures))
            self.figures.append(figure)
            self.turns.append(turn)

    def within(self, low: float, high: float) -> Sequence[int]:
        """The numbers that may lie in a range, as written or in the base unit: their places in ``figures``."""
        return self._by_size.within(low, high)


MOST_WEIGHT = 100_000
"""Numbers, labels and names that are held, about 300 bytes each."""
MOST_VERDICTS, MOST_SAID = 4_000, 10_000
"""Verdicts of earlier answers, and numbers of the user."""
MOST_FIELDS, MOST_SINGLE, MOST_SCALARS = 16, 12, 8
"""Columns of a single row, and how many such rows are compared with each other."""
TURNED, MOST_TURNED = 1 << 20, 60
"""Added to the number of a table with its rows as columns; and the most rows of one."""
RECORD = -1
"""The number of the table of all single rows."""


@frozen
class Place:
    """A table of the evidence: what it holds, the names in the call that asked for it, in which turn it came and as
    which table of that turn."""

    table: Table
    topic: frozenset[str]
    turn: int = 0
    order: int = 0


class Evidence:
    """Follows a session. Not safe for use by several threads at once.

    ``places`` are the tables by number, ``said`` are the user's numbers; ``years`` are years that dates have,
    ``like_years`` other numbers that could be taken for one; ``verdicts`` are those of earlier answers on figures that
    came from somewhere, ``earlier`` finds the latest by value and step; ``partly`` names calls not read whole;
    ``dropped``: something was dropped, so that a figure which is in nothing here may still have a source.
    """

    def __init__(self, room: int = MOST_WEIGHT) -> None:
        """``room``: how many numbers, labels and names are held."""
        self._room = room
        self.places: list[Place] = []
        self.said = Said()
        self.years: set[str] = set()
        self.like_years: set[float] = set()
        self.earlier: dict[tuple[Decimal, Decimal], int] = {}
        self.verdicts: list[Verdict] = []
        self.names: dict[str, set[tuple[tuple[str, ...], str]]] = {}
        self.topics: dict[str, list[int]] = {}
        self.by_call: dict[str, list[int]] = {}
        self.partly: list[str] = []
        self.turn = 0
        self.dropped = False
        self._first = 0
        self._begin()

    def _begin(self) -> None:
        """Hold no table."""
        self.places = []
        self.names, self.topics, self.by_call = {}, {}, {}
        self._weight = 0
        self._single: list[int] = []
        self._alone: list[int] = []
        self._record: Place | None = None
        self._turned: dict[int, list[tuple[Table, list[int]]]] = {}
        self._by_size = Buckets()
        self._kept = Kept()

    def add(self, call: str, text: str, asked: str | Mapping[str, object] = "") -> None:
        """Index what ``call`` returned. ``asked`` is its input: names in it tell results apart."""
        read = parts(text)
        if len(read) > 1:
            self.partly.append(call)
        asked = asked if isinstance(asked, str) else " ".join(map(str, asked.values()))
        topic, names = topic_of(asked), selected(asked)
        for offset, part in read:
            for table in tables(call, part, offset):
                self._put(named(table, names), topic)

    def add_table(
        self,
        call: str,
        header: Sequence[str],
        rows: Sequence[Sequence[float | str | None]],
        asked: str | Mapping[str, object] = "",
        numbers: Sequence[int] = (),
    ) -> None:
        """Index a result whose cells are values: they have no places in a text, but columns and rows. ``numbers``: the
        places of these rows in all of it, from 0; by default they are its first ones."""
        records: list[dict[str, Read | str | None]] = []
        for row in rows:
            cells = (Read(float(cell)) if isinstance(cell, int | float) else cell for cell in row)
            records.append(dict(zip(header, cells, strict=False)))
        asked = asked if isinstance(asked, str) else " ".join(map(str, asked.values()))
        if table := table_of(call, records):
            self._put(replace(table, numbers=tuple(numbers or range(len(rows)))), topic_of(asked))

    def add_words(self, text: str) -> None:
        """Index what the user said: numbers and tables in it are given. A new turn begins."""
        self.turn += 1
        self._first = len(self.places)
        read = extract(text)
        if len(self.said.figures) + len(self.said.names) + len(read.figures) > MOST_SAID and self.said.figures:
            self.said, self.dropped = Said(), True
        self.said.add(text, read, self.turn)
        whole = (figure for figure in read.figures if not figure.year and 1000 <= figure.value < 2200)
        self.like_years.update(float(figure.value) for figure in whole)
        self.years.update(moment.key[:4] for moment in read.moments if moment.key[:4].isdigit())
        if "\n" in text:
            for offset, part in parts(text):
                for table in tables(PERSON, part, offset):
                    if not table.loose:
                        self._put(table, frozenset())

    def add_checked(self, checked: CheckedAnswer) -> None:
        """Index an earlier answer: what was sourced or derived there may be repeated."""
        if len(self.verdicts) > MOST_VERDICTS:
            self.verdicts, self.earlier, self.dropped = [], {}, True
        for verdict in checked.verdicts:
            if verdict.label in {"sourced", "derived", "given"}:
                self.earlier[verdict.figure.value, verdict.figure.step] = len(self.verdicts)
                self.verdicts.append(verdict)

    def _put(self, table: Table, topic: frozenset[str]) -> None:
        self._index(Place(table, topic, self.turn, len(self.places) - self._first))
        if self._weight > self._room:
            self._drop()

    def _drop(self) -> None:
        """Drop the older tables, those of the user last, until half of the room is free."""
        newest, left = [*reversed(range(len(self.places)))], self._room // 2
        order = sorted(newest[1:], key=lambda number: self.places[number].table.call != PERSON)
        kept = {newest[0]}
        left -= _weight(self.places[newest[0]])
        for number in order:
            if (weight := _weight(self.places[number])) <= left:
                left -= weight
                kept.add(number)
        places = [self.places[number] for number in sorted(kept)]
        self._begin()
        self.dropped = True
        for place in places:
            self._index(place)
        last = places[-1]
        self._first = len(places) - (last.order + 1 if last.turn == self.turn else 0)
        self.partly = [call for call in dict.fromkeys(self.partly) if call in self.by_call]

    def _index(self, place: Place) -> None:
        number, table, topic = len(self.places), place.table, place.topic
        self.places.append(place)
        self.by_call.setdefault(table.call, []).append(number)
        self._weight += _weight(place)
        for column in table.columns:
            self._count(number, column, table)
        self.years.update(moment[:4] for moment in table.moments if moment[:4].isdigit())
        dates = (moment_in(column.name)[:4] for column in table.columns)
        self.years.update(date for date in dates if date.isdigit())
        for name in topic:
            self._name(name)
            self.topics.setdefault(name, []).append(number)
        for labels in table.labels[:MOST_NAMES]:
            for label in labels:
                self._name(label)
        if table.rows == 1 and len(table.columns) == 1 and not table.columns[0].time:
            self._alone.append(number)
        if table.rows == 1 and len(table.columns) <= MOST_FIELDS and not (table.loose and _is_remark(table)):
            self._single.append(number)
            self._record = None
            self._kept.fields.pop(RECORD, None)

    def _count(self, number: int, column: Column, table: Table) -> None:
        if not column.time and not table.loose:
            self.like_years.update(value for value in column.values if 1000 <= value < 2200 and value.is_integer())
        self._by_size.add(column.values, number)

    def _name(self, label: str) -> None:
        for words, key in searched(label):
            self.names.setdefault(words[0], set()).add((words[1:], key))

    def turned(self, number: int) -> Sequence[int]:
        """The numbers of a table with its rows as columns, one for each group of columns that measure the same."""
        if number not in self._turned:
            table = self.places[number].table
            small = not table.loose and table.rows <= MOST_TURNED
            self._turned[number] = [(table.turned(group), group) for group in table.alike()] if small else []
        return [number + TURNED * (at + 1) for at in range(len(self._turned[number]))]

    def origin(self, number: int, column: int, row: int) -> tuple[int, int, int]:
        """The place of a cell of a table with its rows as columns in the table itself: number, column and row."""
        if number < TURNED:
            return number, column, row
        _, group = self._turned[number % TURNED][number // TURNED - 1]
        return number % TURNED, group[row], column

    @property
    def scalars(self) -> Sequence[tuple[int, float]]:
        """The newest results, or lines of results, that are one number, such as a total: table and value."""
        return [(number, self.places[number].table.columns[0].values[0]) for number in self._alone[-MOST_SCALARS:]]

    def place(self, number: int) -> Place:
        """A table by its number, or the record of all single rows."""
        if number >= TURNED:
            table, _ = self._turned[number % TURNED][number // TURNED - 1]
            return replace(self.places[number % TURNED], table=table)
        record = self.record
        return record if number == RECORD and record is not None else self.places[number]

    @property
    def record(self) -> Place | None:
        """The latest results of a single row as the columns of one, when there are several."""
        if self._record is None and len(self._single) > 1:
            self._record = _record_of([self.places[number] for number in self._single[-MOST_SINGLE:]])
        return self._record

    def rows_named(self, number: int) -> Mapping[str, tuple[int, ...]]:
        """The rows of a table by the names that an answer may call them."""
        return self._kept.names(number, self.place(number).table)[0]

    def rows_dated(self, number: int) -> Mapping[str, tuple[int, ...]]:
        """The rows of a table by the dates that an answer may call them."""
        return self._kept.names(number, self.place(number).table)[1]

    def series(self, number: int, at: int) -> Series:
        """A column as something to reckon with."""
        return self._kept.column(number, at, self.place(number).table)

    def fields(self, number: int) -> Fields:
        """A table by rows."""
        return self._kept.rows(number, self.place(number).table)

    def within(self, number: int, low: float, high: float) -> list[tuple[float, int, int]]:
        """The cells of a table whose absolute value lies in a range: that value, column and row."""
        return self._kept.within(number, self.places[number].table, low, high)

    def holding(self, low: float, high: float) -> Sequence[int]:
        """The tables that may hold a number of a range, each once."""
        return self._by_size.within(low, high)


def _weight(place: Place) -> int:
    """About how much memory a table takes, in numbers."""
    table = place.table
    values = sum(len(column.values) for column in table.columns)
    return values + sum(map(len, table.labels)) + len(place.topic) + 4 * len(table.columns)


def _is_remark(table: Table) -> bool:
    """Whether a loose table is a line about a result, such as how many rows it has, or too much to be a record."""
    first = next(iter(table.columns[0].words), "")
    return len(table.columns) > 4 or first in {"rows", "row", "ms", "more"}


def _record_of(places: Sequence[Place]) -> Place:
    """One row of all columns of ``places``, each named by the call that it comes from."""
    columns: list[Column] = []
    shared = places[0].topic.intersection(*(place.topic for place in places))
    for place in places:
        words = tuple(word for name in sorted(place.topic - shared) for word in name.split())
        alone = len(place.table.columns) == 1
        more = words if alone else ()
        columns += (replace(each, name=place.table.call, words=(*each.words, *more)) for each in place.table.columns)
    return Place(Table("", tuple(columns), ((),), ("",)), frozenset())
