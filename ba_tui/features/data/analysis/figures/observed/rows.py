"""A table of records: each maps names of columns to numbers and texts.

How records are found in a text stands in literals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from ba_tui.features.data.analysis.figures.observed.columns import (
    Column,
    Read,
    column_of,
    moment_of,
    names_time,
    words_of,
)
from ba_tui.features.data.analysis.figures.observed.tables import Table

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
