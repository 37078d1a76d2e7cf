"""What changed between the results of a report and those of another run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from ba_tui.core.ports.tables import Cell, Column, Row
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen

CLOSE = 1e-9
"""Part of a value by which sums of floating-point numbers may differ."""
Key: TypeAlias = tuple[Cell, ...]


@frozen
class Rows:
    """Rows of one result."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


@frozen
class ChangedCell:
    """``row`` names the row by its key, as "region=North", or by its number where no columns tell rows apart."""

    row: str
    column: str
    before: Cell
    after: Cell

    @property
    def words(self) -> str:
        """The change in one line, with its share for numbers."""
        return f"{self.row}: {self.column} {shown(self.before)} → {shown(self.after)}{self._share}"

    @property
    def _share(self) -> str:
        before, after = _number(self.before), _number(self.after)
        if before is None or after is None or not before:
            return ""
        return f" ({(after - before) / abs(before):+.1%})"


@frozen
class Changes:
    """``columns`` says what became of columns in words; ``added`` and ``removed`` name rows."""

    columns: str = ""
    cells: tuple[ChangedCell, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.columns or self.cells or self.added or self.removed)


def changes(before: Rows, after: Rows) -> Changes:
    """Compare two results. Rows belong together that agree in their text, date and truth columns, where these tell all
    rows apart on both sides; else rows of the same number."""
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


def counterpart(before: Rows, after: Rows, row: int) -> Row | None:
    """Return the row of ``after`` that belongs to this one of ``before``, as in ``changes``."""
    if [each.name for each in before.columns] != [each.name for each in after.columns] or row >= len(before.rows):
        return None
    keys = [place for place, column in enumerate(before.columns) if not column.numeric]
    if (now := _keyed(after, keys)) is None or _keyed(before, keys) is None:
        return after.rows[row] if row < len(after.rows) else None
    return now.get(tuple(before.rows[row][place] for place in keys))


def _keyed(rows: Rows, keys: Sequence[int]) -> dict[Key, Row] | None:
    """Rows by their key; None where two have the same."""
    found = {tuple(row[place] for place in keys): row for row in rows.rows} if keys else {}
    return found if len(found) == len(rows.rows) else None


def _numbered(rows: Rows) -> dict[Key, Row]:
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
    """Whether two cells are equal, or floating-point numbers that differ in their last digits. A decimal, which comes
    as text, equals the same whole number."""
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
    """A cell in words: numbers with thousands separators."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int | float) else value


def _number(value: Cell) -> float | None:
    """Decimals come as text."""
    if value is None or isinstance(value, bool):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def summary(found: Changes, *, most: int = 20) -> list[str]:
    """The changes in lines, the first ``most`` cells in full."""
    lines = [f"columns {found.columns}"] if found.columns else []
    lines += [cell.words for cell in found.cells[:most]]
    if len(found.cells) > most:
        lines.append(f"and {count(len(found.cells) - most, 'further value')}")
    for what, names in (("new", found.added), ("gone", found.removed)):
        if names:
            more = f" and {len(names) - most:,} more" if len(names) > most else ""
            lines.append(f"{what}: {'; '.join(names[:most])}{more}")
    return lines
