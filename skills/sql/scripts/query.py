"""One SELECT over a SQLite or DuckDB file, or over CSV files, that can change nothing.

In: {"path": "shop.db", "sql": "SELECT …"} or {"tables": {"sales": "sales.csv"}, "sql": "SELECT …"}; also rows (200),
seconds (20), output (a CSV file to write all rows to), overwrite. CSV tables are SQLite in memory.
"""

from __future__ import annotations

import csv
import re
import sys
from contextlib import AbstractContextManager
from typing import Any

from databases import Database, from_files, opened
from workspace import Args, Refused, option, run, shown, source, target

READS = re.compile(r"(--[^\n]*(\n|$)|/\*.*?\*/|\s)*(select|with|values|explain|describe|summarize|from)\b", re.I | re.S)
MOST_ROWS, MOST_CELL, MOST_WRITTEN = 1000, 2000, 1_000_000


def query(args: Args) -> Args:
    sql = option(args, "sql", str, "").strip().rstrip(";").strip()
    if not sql:
        raise Refused('"sql" is missing')
    if not READS.match(sql):
        raise Refused(
            "only SELECT (also WITH, VALUES, EXPLAIN) is run here: for changes write a script and show it first"
        )
    most = min(max(option(args, "rows", int, 200), 1), MOST_ROWS)
    output = target(args) if "output" in args else None
    with place(args) as database:
        names, found, more = database.rows(sql, MOST_WRITTEN if output else most)
        if output:
            with output.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows([names, *found])
        rows = [[told(value) for value in row] for row in found[:most]]
        said: Args = {"engine": database.engine, "notes": database.notes, "columns": names, "rows": rows}
    if output:
        said["written"] = {"path": shown(output), "rows": len(found), "all_of_them": not more}
    return said | {"given": len(rows), "more": more or len(found) > most}


def place(args: Args) -> AbstractContextManager[Database]:
    seconds = option(args, "seconds", int, 20)
    files = option(args, "tables", dict, {})
    if bool(files) == ("path" in args):
        raise Refused('give either "path" (a database file) or "tables" (a name and a CSV file for each)')
    return (
        from_files({str(name): source(files, name) for name in files}, seconds)
        if files
        else opened(source(args), seconds)
    )


def told(value: Any) -> Any:
    """A cell as JSON can hold it."""
    if isinstance(value, bytes | bytearray | memoryview):
        return f"({len(value)} bytes)"
    if isinstance(value, str):
        return value if len(value) <= MOST_CELL else f"{value[:MOST_CELL]}… ({len(value)} characters)"
    if isinstance(value, float) and (value != value or value in {float("inf"), float("-inf")}):
        return str(value)
    return value if isinstance(value, int | float | None) else str(value)


if __name__ == "__main__":
    sys.exit(run(query, "path tables sql rows seconds output overwrite"))
