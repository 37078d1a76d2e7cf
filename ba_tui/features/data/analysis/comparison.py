"""The result of comparing two tables, as values and as text."""

from __future__ import annotations

from collections.abc import Iterator

from ba_tui.core.ports.tables import Cell, QueryResult, Row
from ba_tui.core.text.wording import clipped, count, one_line
from ba_tui.core.values import frozen

MOST_NAMES = 20
MOST_COLUMNS = 30
CELL_CHARS = 40


@frozen
class ComparedTable:
    """One side of a comparison. ``null_keys``: rows with NULL in the key; ``repeated``: rows beyond the first of their
    key."""

    name: str
    rows: int
    null_keys: int = 0
    repeated: int = 0


@frozen
class TypeDifference:
    column: str
    left: str
    right: str


@frozen
class DifferingValue:
    """The ``key`` of a row, and its values in both tables."""

    key: Row
    left: Cell
    right: Cell


@frozen
class ColumnDifference:
    """The number of matched ``rows`` whose values in ``column`` differ, with some ``examples``."""

    column: str
    rows: int
    examples: tuple[DifferingValue, ...] = ()


@frozen
class Comparison:
    """``left`` compared with ``right``, rows matched by ``keys``. ``found``: the keys were detected, because the caller
    named none. ``only_left`` and ``only_right`` are numbers of rows, ``both`` of matched pairs, ``changed`` of pairs
    with different values. ``result`` has the differing rows; None when there are none."""

    left: ComparedTable
    right: ComparedTable
    keys: tuple[str, ...]
    found: bool
    both: int
    only_left: int
    only_right: int
    changed: int
    compared: int
    tolerance: float = 0.0
    columns_left: tuple[str, ...] = ()
    columns_right: tuple[str, ...] = ()
    types: tuple[TypeDifference, ...] = ()
    columns: tuple[ColumnDifference, ...] = ()
    result: QueryResult | None = None

    @property
    def equal(self) -> bool:
        """Whether both have the same columns, types and rows."""
        rows = self.only_left or self.only_right or self.changed
        return not (rows or self.columns_left or self.columns_right or self.types)


def comparison_lines(found: Comparison) -> Iterator[str]:
    """Yield a summary of a comparison, sizes first."""
    left, right = found.left, found.right
    yield f"{left.name}: {count(left.rows, 'row')}; {right.name}: {count(right.rows, 'row')}."
    how = "found: unique in both tables" if found.found else "as given"
    yield f"Key: {', '.join(found.keys)} ({how})."
    yield from _doubts(left)
    yield from _doubts(right)
    for name, columns in ((left.name, found.columns_left), (right.name, found.columns_right)):
        if columns:
            yield f"Columns only in {name}: {_listed(columns)}."
    if found.types:
        yield f"Other types: {_listed([f'{each.column} {each.left} → {each.right}' for each in found.types])}."
    if found.equal:
        yield f"No difference: {count(found.both, 'row')} with {count(found.compared, 'column')} compared are equal."
        return
    same = found.both - found.changed
    yield (
        f"Rows: {same:,} equal, {found.changed:,} changed, {found.only_left:,} only in {left.name}, "
        f"{found.only_right:,} only in {right.name}."
    )
    if found.tolerance:
        yield f"Numbers that differ by at most {found.tolerance:g} count as equal."
    for each in found.columns[:MOST_COLUMNS]:
        examples = "; ".join(_example(one) for one in each.examples)
        yield f"- {one_line(each.column, 80)}: {count(each.rows, 'row')}{f', such as {examples}' if examples else ''}"
    if len(found.columns) > MOST_COLUMNS:
        yield f"- and {len(found.columns) - MOST_COLUMNS:,} more columns"


def _doubts(table: ComparedTable) -> Iterator[str]:
    if table.null_keys:
        yield f"{table.name}: {count(table.null_keys, 'row')} with an empty key; NULL is compared as a value."
    if table.repeated:
        yield (
            f"{table.name}: {count(table.repeated, 'row')} with a repeated key; rows of one key are paired in the "
            "order of their other values. Check the key."
        )


def _example(each: DifferingValue) -> str:
    return f"{'/'.join(map(_cell, each.key))}: {_cell(each.left)} → {_cell(each.right)}"


def _cell(value: Cell) -> str:
    return "NULL" if value is None else one_line(str(value), CELL_CHARS)


def _listed(names: tuple[str, ...] | list[str]) -> str:
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return clipped(", ".join(one_line(name, 80) for name in names[:MOST_NAMES]), 1_500) + more
