"""JSON and Python literals in an observation, read with the place of each number, and the tables that they hold."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from ba_tui.core.text.patterns import regex
from ba_tui.features.figures.observed.columns import (
    Column,
    Read,
    column_of,
    moment_of,
    names_time,
    words_of,
)
from ba_tui.features.figures.observed.grids import BLANK, Grid, GridCell, cell_at
from ba_tui.features.figures.observed.tables import Table, build

# A table of records: each maps names of columns to numbers and texts.
#
# ``literals`` finds records in a text.

Value: TypeAlias = "Read | str | None"


def table_of(call: str, records: Sequence[Mapping[str, Value]], offset: int = 0, of: str = "") -> Table | None:
    """The table of some records; None when they hold no number. ``of`` names what they are, as far as that is known.

    A key that begins with ``#`` names no column.
    """
    keys = list(dict.fromkeys(key for record in records for key in record))
    labels: list[list[str]] = [[] for _ in records]
    moments = [""] * len(records)
    columns: list[Column] = []
    heads = list(words_of(of))
    for place, key in enumerate(keys):
        cells = _plain([record.get(key) for record in records])
        name = "" if key.startswith("#") else key
        numbers = [cell if isinstance(cell, Read) else None for cell in cells]
        if any(numbers):
            years = _are_years([number for number in numbers if number], name, first=place == 0)
            columns.append(column_of(name, numbers, offset, time=years))
            if years:
                dated = zip(numbers, moments, strict=True)
                moments = [f"{int(number.value)}" if number else moment for number, moment in dated]
        else:
            heads += words_of(name)
        for row, cell in enumerate(cells):
            if isinstance(cell, str):
                moment = moment_of(cell)
                moments[row] = moments[row] or moment
                if not moment:
                    labels[row].append(cell)
    if not columns:
        return None
    texts = tuple(map(tuple, labels))
    return Table(call, tuple(columns), texts, tuple(moments), label_words=tuple(heads), width=len(keys))


def _plain(cells: Sequence[Value]) -> list[Value]:
    """``cells``; texts that only look like numbers here and there, such as titles and codes, are texts."""
    numbers = [cell for cell in cells if isinstance(cell, Read)]
    if any(isinstance(cell, str) for cell in cells) and all(number.quoted for number in numbers):
        return [cell.quoted if isinstance(cell, Read) else cell for cell in cells]
    return list(cells)


def _are_years(numbers: Sequence[Read], name: str, *, first: bool) -> bool:
    values = [number.value for number in numbers]
    if any(value % 1 for value in values):
        return False
    if names_time(name):
        return all(1000 <= value <= 2200 for value in values)
    rising = len(values) > 2 and all(a < b for a, b in pairwise(values))
    return first and not name and rising and values[0] >= 1900 and values[-1] <= 2100


_TOKEN = regex(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|[{}\[\](),:]|[A-Za-z_][\w.]*")
_PLAIN_NUMBER = regex(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,17})?")
_CONSTANTS = frozenset({"None", "null", "nan", "NaN", "True", "False", "true", "false", "NaT", "Infinity"})
_DEEPEST = 60
LIMIT = 400_000
"""Tokens of one literal that are read."""


Item: TypeAlias = "Read | str | list[Item] | dict[str, Item] | None"


class QuotedText(str):
    """A text in quotation marks that knows its place."""

    start: int = 0


def literal_at(text: str, start: int, end: int) -> tuple[Item, int] | None:
    """The literal that begins at ``start`` and where it ends; None when the text there is not one.

    One that is cut at ``end``, or longer than ``LIMIT``, is read as far as it goes.
    """
    return _Reader(text, start, end).whole()


class _Reader:
    """One pass over the tokens. ``stack`` holds the open containers, each with the name of the call that it is."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text = text
        self.tokens = _TOKEN.finditer(text, start, end)
        self.stack: list[tuple[Any, str]] = []
        self.key: str | None = None
        self.name = ""
        self.stop = start
        self.root: Any = None

    def whole(self) -> tuple[Item, int] | None:
        count = 0
        for count, found in enumerate(self.tokens):
            mark = found[0]
            if self.text[self.stop : found.start()].strip(" \t\r\n") or count > LIMIT:
                break
            self.stop = found.end()
            if mark in "{[(":
                if len(self.stack) >= _DEEPEST:
                    break
                self._open({} if mark == "{" else [])
            elif mark in "}])":
                if self._close():
                    return self.root, self.stop
            elif mark not in ",:":
                self._scalar(found.start(), found.end(), mark)
            if not self.stack:
                break
        return (self.root, self.stop) if self.root and count > 4 else None

    def _open(self, made: Any) -> None:
        if not self.name:
            self._put(made)
        self.stack.append((made, self.name))
        self.name = ""
        self.root = made if self.root is None else self.root

    def _close(self) -> bool:
        if not self.stack:
            return True
        made, name = self.stack.pop()
        self.key = None if not name else self.key
        if name:
            self._put(_called(name, made))
        return not self.stack

    def _put(self, item: Any) -> None:
        if not self.stack:
            return
        holder, _ = self.stack[-1]
        if not isinstance(holder, dict):
            holder.append(item)
        elif self.key is not None:
            holder[self.key] = item
            self.key = None

    def _scalar(self, start: int, end: int, token: str) -> None:
        first = token[0]
        quoted = first in "\"'"
        if self.stack and isinstance(self.stack[-1][0], dict) and self.key is None:
            self.key = token[1:-1] if quoted else token
        elif quoted:
            inner = token[1:-1]
            plain = bool(_PLAIN_NUMBER.fullmatch(inner))
            self._put(Read(float(inner), None, start + 1, end - 1, inner) if plain else _quoted(inner, start + 1))
        elif first.isdigit() or first == "-":
            value = float(token)
            self._put(Read(value, None, start, end) if math.isfinite(value) else None)
        elif token in _CONSTANTS:
            self._put(None)
        else:
            self.name = token


def _quoted(inner: str, start: int) -> QuotedText:
    text = QuotedText(inner)
    text.start = start
    return text


def _called(name: str, items: Any) -> Any:
    """What a call such as ``Decimal('1.5')`` or ``datetime.date(2013, 5, 1)`` stands for."""
    numbers = [int(item.value) for item in items if isinstance(item, Read)]
    if "date" in name.lower() and len(numbers) >= 3:
        return f"{numbers[0]}-{numbers[1]:02}-{numbers[2]:02}"
    return items[0] if items and not isinstance(items[0], list | dict) else None


def tables_of(call: str, item: Item, offset: int) -> Iterator[Table]:
    """The tables that a literal holds: lists of records, lists of lists, records, mappings of either."""
    if isinstance(item, list):
        yield from _of_list(call, item, "", offset)
    elif isinstance(item, dict):
        yield from _of_mapping(call, item, "", offset)


def _of_list(call: str, items: Sequence[Item], name: str, offset: int) -> Iterator[Table]:
    records = [each for each in items if isinstance(each, dict)]
    lists = [each for each in items if isinstance(each, list)]
    if records:
        yield from _table(call, [_flat(record) for record in records], offset, name)
        for record in records:
            for key, value in record.items():
                if isinstance(value, list):
                    yield from _of_list(call, value, key, offset)
    elif any(isinstance(cell, list | dict) for each in lists for cell in each):
        for each in lists:
            yield from _of_list(call, each, name, offset)
    elif lists:
        grid = Grid(tuple(tuple(map(_grid_cell, each)) for each in lists))
        yield from build(call, grid, offset)
    elif any(isinstance(each, Read) for each in items):
        yield from _table(call, [{name or "#0": each} for each in items if isinstance(each, Read)], offset)


def _grid_cell(item: Item) -> GridCell:
    if isinstance(item, Read):
        return (item.quoted or f"{item.value:.17g}", item.start, item.end)
    if not isinstance(item, str):
        return BLANK
    start = getattr(item, "start", 0)
    return cell_at(item, 0, len(item))[0], start, start + len(item) if start else 0


def _of_mapping(call: str, item: Mapping[str, Item], name: str, offset: int) -> Iterator[Table]:
    inner = {key: value for key, value in item.items() if isinstance(value, dict)}
    lists = {key: value for key, value in item.items() if isinstance(value, list)}
    scalars = {key: value for key, value in item.items() if not isinstance(value, dict | list)}
    alike = len(inner) > 1 and len(inner) * 2 > len(item) and _share_keys(list(inner.values()))
    if alike:
        yield from _table(call, [{"": key, **_flat(value)} for key, value in inner.items()], offset, name)
    else:
        for key, value in inner.items():
            yield from _of_mapping(call, value, key, offset)
    plain = not any(isinstance(cell, list | dict) for value in lists.values() for cell in value)
    if len(lists) > 1 and plain and len({len(value) for value in lists.values()}) == 1:
        rows = zip(*lists.values(), strict=True)
        yield from _table(call, [dict(zip(lists, row, strict=True)) for row in rows], offset)
    else:
        for key, value in lists.items():
            yield from _of_list(call, value, key, offset)
    numbers = sum(isinstance(value, Read) for value in scalars.values())
    if numbers > 2 and numbers == len(scalars) and all(map(_is_name, scalars)):
        yield from _table(call, [{"": key, name or "value": value} for key, value in scalars.items()], offset)
    elif numbers:
        yield from _table(call, [scalars], offset)


def _table(call: str, records: Sequence[Mapping[str, Any]], offset: int, of: str = "") -> Iterator[Table]:
    table = table_of(call, records, offset, of)
    if table is not None:
        yield table


def _share_keys(items: Sequence[Mapping[str, Item]]) -> bool:
    return any(all(key in item for item in items) for key in items[0])


def _is_name(key: str) -> bool:
    """Whether a key names a thing or a date rather than a measure."""
    return key[:1].isupper() or key[:1] > "ɐ" or bool(moment_of(key))


def _flat(record: Mapping[str, Item]) -> dict[str, Item]:
    """Nested records as keys with dots."""
    found: dict[str, Item] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            found |= {f"{key}.{inner}": each for inner, each in _flat(value).items()}
        elif not isinstance(value, list):
            found[key] = value
    return found
