"""Comparison of two tables: columns, keys, rows in one table only, and values. The differing rows become a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import duckdb

from ba_tui.core.ports.tables import Column, QueryResult
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.comparison import (
    ColumnDifference,
    ComparedTable,
    Comparison,
    DifferingValue,
    TypeDifference,
)
from ba_tui.features.data.analysis.engine_process.database import (
    Database,
    fetch_number,
    quoted,
    row_of,
    shown,
    text,
)
from ba_tui.features.data.analysis.engine_process.grid import GridTable
from ba_tui.features.data.analysis.engine_process.queries import Queries
from ba_tui.features.data.analysis.errors import failed
from ba_tui.processes.serving import WorkerRequest

BATCH = 100
"""Columns compared in one query."""
MOST_SHOWN = 200
"""Most columns whose values are in the result."""
MOST_DIFFERING = 300
"""Most columns that select the rows of the result, those with most differences first."""
MOST_ORDERING = 50
"""Most columns that define the order in which rows of one key are paired."""
MOST_ROWS = 1_000_000
"""Most differing rows in the result."""
MOST_TRIED = 40
"""Most columns tried as a key."""
PAIRED = 6
"""Columns tried in pairs as a key."""
EXAMPLES, WITH_EXAMPLES = 3, 20
KEY_CELL = 200
_LIKELY = regex(r"(?i)(?:^|_|\b)(?:id|key|code|no|nr|number|uuid)$|id$")


@frozen
class Sides:
    """Two tables and their common columns: the name in each table."""

    left: GridTable
    right: GridTable
    shared: tuple[tuple[Column, Column], ...]

    def pairs(self, names: Sequence[str]) -> list[tuple[Column, Column]]:
        by_name = {each[0].name.lower(): each for each in self.shared}
        return [by_name[name.lower()] for name in names]


def sides_of(left: GridTable, right: GridTable) -> Sides:
    """Return the common columns of ``left`` and ``right``, ignoring case."""
    others = {column.name.lower(): column for column in right.columns}
    shared = [(column, others[column.name.lower()]) for column in left.columns if column.name.lower() in others]
    if not shared:
        raise failed(
            f"{left.name} and {right.name} have no column in common.", "Rename columns in a query, and compare results."
        )
    return Sides(left, right, tuple(shared))


def compare_tables(
    request: WorkerRequest,
    database: Database,
    queries: Queries,
    sides: Sides,
    keys: tuple[str, ...],
    *,
    tolerance: float,
    head: int,
) -> Comparison:
    """Compare the tables. Without ``keys``, a key is found; ``tolerance`` is the allowed difference of numbers. Raises
    HandlerFailed: a key column is missing, or no key was found."""
    found = not keys
    with database.shared(request, f"comparing {sides.left.name} with {sides.right.name}") as cursor:
        keys = _found_key(cursor, sides) if found else _given(sides, keys)
        left = _doubted(cursor, sides.left, [pair[0] for pair in sides.pairs(keys)])
        right = _doubted(cursor, sides.right, [pair[1] for pair in sides.pairs(keys)])
        joined = _JoinSql(sides, keys, tolerance, ordered=bool(left.repeated or right.repeated))
        both, only_left, only_right = joined.sizes(cursor)
        counts = joined.differing(cursor)
        changed = joined.changed(cursor, list(counts))
    columns = [ColumnDifference(name, rows) for name, rows in counts.items()]
    result = None
    if only_left or only_right or changed:
        result = queries.run(request, joined.rows([each.column for each in columns]), head, None)
        with database.shared(request) as cursor:
            columns = [joined.with_examples(cursor, each, result) if place < WITH_EXAMPLES else each
                       for place, each in enumerate(columns)]  # fmt: skip
    mine = {name.name.lower() for name, _ in sides.shared}
    return Comparison(
        left,
        right,
        keys,
        found,
        both,
        only_left,
        only_right,
        changed,
        len(sides.shared) - len(keys),
        tolerance,
        tuple(each.name for each in sides.left.columns if each.name.lower() not in mine),
        tuple(each.name for each in sides.right.columns if each.name.lower() not in mine),
        tuple(TypeDifference(a.name, a.type, b.type) for a, b in sides.shared if a.type != b.type),
        tuple(columns),
        result,
    )


def _given(sides: Sides, names: Sequence[str]) -> tuple[str, ...]:
    found: list[str] = []
    for name in names:
        column = sides.left.column(name)
        sides.right.column(name)
        found.append(column.name)
    return tuple(dict.fromkeys(found))


def _found_key(cursor: duckdb.DuckDBPyConnection, sides: Sides) -> tuple[str, ...]:
    """Return the column, or else pair of columns, that is unique and not NULL in both tables."""
    likely = [pair for pair in sides.shared if all(each.kind not in {"float", "other"} for each in pair)]
    likely.sort(key=lambda pair: not _LIKELY.search(pair[0].name))
    likely = likely[:MOST_TRIED]
    rows = (sides.left.rows, sides.right.rows)
    if not any(rows):
        return (sides.shared[0][0].name,)
    distinct: list[tuple[int, int]] = [(0, 0)] * len(likely)
    for place, pair in enumerate(likely):
        counted = tuple(
            fetch_number(cursor, f"SELECT count(DISTINCT {quoted(column.name)}) FROM {quoted(table.name)}")
            for table, column in zip((sides.left, sides.right), pair, strict=True)
        )
        if counted == rows:
            return (pair[0].name,)
        distinct[place] = (counted[0], counted[1])
    fullest = sorted(range(len(likely)), key=lambda place: -sum(distinct[place]))[:PAIRED]
    for first, second in combinations(sorted(fullest), 2):
        pairs = (likely[first], likely[second])
        counted = tuple(
            fetch_number(
                cursor,
                f"SELECT count(*) FROM (SELECT DISTINCT {_names(columns)} FROM {quoted(table.name)} WHERE "
                f"{' AND '.join(f'{quoted(column.name)} IS NOT NULL' for column in columns)})",
            )
            for table, columns in zip((sides.left, sides.right), zip(*pairs, strict=True), strict=True)
        )
        if counted == rows:
            return (pairs[0][0].name, pairs[1][0].name)
    hint = f"Name the columns that identify a row. Both have {', '.join(pair[0].name for pair in sides.shared[:12])}."
    raise failed(f"No column or pair of columns is unique in both {sides.left.name} and {sides.right.name}.", hint)


def _doubted(cursor: duckdb.DuckDBPyConnection, table: GridTable, keys: Sequence[Column]) -> ComparedTable:
    empty = " OR ".join(f"{quoted(column.name)} IS NULL" for column in keys)
    nulls = fetch_number(cursor, f"SELECT count(*) FROM {quoted(table.name)} WHERE {empty}")
    distinct = fetch_number(cursor, f"SELECT count(*) FROM (SELECT DISTINCT {_names(keys)} FROM {quoted(table.name)})")
    return ComparedTable(table.name, table.rows, nulls, table.rows - distinct)


class _JoinSql:
    """SQL that joins both tables."""

    def __init__(self, sides: Sides, keys: tuple[str, ...], tolerance: float, *, ordered: bool) -> None:
        self._keys = sides.pairs(keys)
        own = {name.lower() for name in keys}
        self._compared = [pair for pair in sides.shared if pair[0].name.lower() not in own]
        self._names = (sides.left.name, sides.right.name)
        self._tolerance = tolerance
        self._ordered = ordered

    def _from(self, pairs: Sequence[tuple[Column, Column]]) -> str:
        """Return the join, with the columns of ``pairs``."""
        on = [f"{_as_key(a, b, 'a')} IS NOT DISTINCT FROM {_as_key(a, b, 'b')}" for a, b in self._keys]
        on += ['a."~n" = b."~n"'] if self._ordered else []
        left, right = (self._source(side, pairs) for side in (0, 1))
        return f"{left} AS a FULL JOIN {right} AS b ON {' AND '.join(on)}"

    def _source(self, side: int, pairs: Sequence[tuple[Column, Column]]) -> str:
        name, columns = quoted(self._names[side]), [*self._keys, *pairs]
        number = ', true AS "~here"'
        if self._ordered:
            order = _names([pair[side] for pair in self._compared[:MOST_ORDERING]]) or "1"
            keys = _names([pair[side] for pair in self._keys])
            number += f', row_number() OVER (PARTITION BY {keys} ORDER BY {order}) AS "~n"'
        return f"(SELECT {_names([pair[side] for pair in columns])}{number} FROM {name})"

    def sizes(self, cursor: duckdb.DuckDBPyConnection) -> tuple[int, int, int]:
        """Return the numbers of pairs, of rows only in the left table, and of rows only in the right one."""
        query = (
            'SELECT count(*) FILTER (a."~here" AND b."~here"), count(*) FILTER (b."~here" IS NULL), '
            f'count(*) FILTER (a."~here" IS NULL) FROM {self._from(())}'
        )
        both, left, right = cursor.execute(query).fetchone() or (0, 0, 0)
        return both, left, right

    def changed(self, cursor: duckdb.DuckDBPyConnection, columns: Sequence[str]) -> int:
        """Return the number of pairs that differ in a column. Columns are compared in groups: wide joins take much
        memory."""
        pairs = [pair for pair in self._compared if pair[0].name in frozenset(columns)]
        groups = [pairs[start : start + BATCH] for start in range(0, len(pairs), BATCH)]
        pair = ", ".join([*(_key(a, b) for a, b in self._keys), *(['a."~n"'] if self._ordered else [])])
        queries = [
            f'SELECT hash({pair}) FROM {self._from(group)} WHERE a."~here" AND b."~here" AND ({self._any(group)})'
            for group in groups
        ]
        if len(queries) < 2:
            return fetch_number(cursor, f"SELECT count(*) FROM ({queries[0]})") if queries else 0
        cursor.execute("CREATE OR REPLACE TEMP TABLE changed (pair UBIGINT)")
        for query in queries:
            cursor.execute(f"INSERT INTO changed {query}")
        return fetch_number(cursor, "SELECT count(DISTINCT pair) FROM changed")

    def differing(self, cursor: duckdb.DuckDBPyConnection) -> Mapping[str, int]:
        """Return the columns with differing values, most differences first."""
        counts: dict[str, int] = {}
        for start in range(0, len(self._compared), BATCH):
            part = self._compared[start : start + BATCH]
            counted = ", ".join(f"count(*) FILTER ({self._differs(a, b)})" for a, b in part)
            query = f'SELECT {counted} FROM {self._from(part)} WHERE a."~here" AND b."~here"'
            row = cursor.execute(query).fetchone() or ()
            counts |= {pair[0].name: int(rows) for pair, rows in zip(part, row, strict=True) if rows}
        return dict(sorted(counts.items(), key=lambda each: -each[1]))

    def rows(self, columns: Sequence[str]) -> str:
        """Return the query for the differing rows: kind, keys, and the values of ``columns`` in both tables."""
        left, right = self._names
        named = frozenset(columns[:MOST_SHOWN])
        # Rows of one table only show their values even when no pair differs.
        chosen = [pair for pair in self._compared if pair[0].name in named] or self._compared[:MOST_SHOWN]
        differing = [pair for pair in self._compared if pair[0].name in frozenset(columns[:MOST_DIFFERING])]
        difference = f'CASE WHEN b."~here" IS NULL THEN {text(f"only in {left}")} WHEN a."~here" IS NULL THEN '
        difference += f"{text(f'only in {right}')} ELSE 'changed' END AS difference"
        keys = [f"{_key(a, b)} AS {quoted(a.name)}" for a, b in self._keys]
        names = self._value_names()
        values = [
            f"{side}.{quoted(column.name)} AS {quoted(names[column.name, side])}"
            for a, b in chosen
            for side, column in (("a", a), ("b", b))
        ]
        order = ", ".join(_key(a, b) for a, b in self._keys)
        joined = self._from(list(dict.fromkeys([*chosen, *differing])))
        return (
            f'SELECT {", ".join([difference, *keys, *values])} FROM {joined} WHERE a."~here" IS NULL OR '
            f'b."~here" IS NULL OR {self._any(differing)} ORDER BY {order} LIMIT {MOST_ROWS}'
        )

    def with_examples(
        self, cursor: duckdb.DuckDBPyConnection, found: ColumnDifference, result: QueryResult
    ) -> ColumnDifference:
        pair = next(each for each in self._compared if each[0].name == found.column)
        names = self._value_names()
        places = {column.name: column for column in result.columns}
        mine, other = (places.get(names[column.name, side]) for column, side in zip(pair, "ab", strict=True))
        if mine is None or other is None:
            return found
        keys = [places[a.name] for a, _ in self._keys]
        cells = ", ".join(shown(quoted(each.name), each, KEY_CELL) for each in (*keys, mine, other))
        differs = self._differs(mine, other, ("", ""))
        query = (
            f"SELECT {cells} FROM {quoted(result.handle)} WHERE difference = 'changed' AND {differs} LIMIT {EXAMPLES}"
        )
        rows: list[Any] = cursor.execute(query).fetchall()
        examples = [row_of(row, KEY_CELL) for row in rows]
        return ColumnDifference(
            found.column, found.rows, tuple(DifferingValue(row[:-2], row[-2], row[-1]) for row in examples)
        )

    def _value_names(self) -> Mapping[tuple[str, str], str]:
        """Return the names of value columns in the result: by table, or by letter when both tables have one name."""
        left, right = self._names if self._names[0].lower() != self._names[1].lower() else ("a", "b")
        return {
            (pair[side].name, "ab"[side]): f"{pair[side].name} ({(left, right)[side]})"
            for pair in self._compared
            for side in (0, 1)
        }

    def _any(self, pairs: Sequence[tuple[Column, Column]]) -> str:
        each = [self._differs(a, b) for a, b in pairs]
        # In groups: a condition of thousands of parts exceeds the parser's depth.
        groups = [" OR ".join(each[start : start + BATCH]) for start in range(0, len(each), BATCH)]
        return " OR ".join(f"({group})" for group in groups) or "false"

    def _differs(self, a: Column, b: Column, sides: tuple[str, str] = ("a.", "b.")) -> str:
        """Return the condition that two values differ; NULL equals NULL."""
        left, right = f"{sides[0]}{quoted(a.name)}", f"{sides[1]}{quoted(b.name)}"
        if a.numeric and b.numeric:
            apart = f"{left} IS DISTINCT FROM {right}"
            near = f"abs(CAST({left} AS DOUBLE) - CAST({right} AS DOUBLE)) <= {self._tolerance!r}"
            return f"({apart} AND NOT coalesce({near}, false))" if self._tolerance else f"({apart})"
        if a.type == b.type and a.kind != "other":
            return f"({left} IS DISTINCT FROM {right})"
        if {a.kind, b.kind} == {"date", "timestamp"}:
            return f"(CAST({left} AS TIMESTAMP) IS DISTINCT FROM CAST({right} AS TIMESTAMP))"
        if "text" in {a.kind, b.kind} and (a.numeric or b.numeric):
            # Text that is no number differs from every number and from NULL.
            words = left if a.kind == "text" else right
            numbers = f"TRY_CAST({left} AS DOUBLE) IS DISTINCT FROM TRY_CAST({right} AS DOUBLE)"
            return f"({numbers} OR ({words} IS NOT NULL AND TRY_CAST({words} AS DOUBLE) IS NULL))"
        return f"(CAST({left} AS VARCHAR) IS DISTINCT FROM CAST({right} AS VARCHAR))"


def _key(a: Column, b: Column) -> str:
    return f"coalesce({_as_key(a, b, 'a')}, {_as_key(a, b, 'b')})"


def _as_key(a: Column, b: Column, side: str) -> str:
    """Return a key column, as text when the types of both tables don't compare."""
    column = f"{side}.{quoted(a.name if side == 'a' else b.name)}"
    return column if a.kind == b.kind or (a.numeric and b.numeric) else f"CAST({column} AS VARCHAR)"


def _names(columns: Sequence[Column]) -> str:
    return ", ".join(quoted(column.name) for column in columns)
