"""What a database file holds: tables, columns, keys, indexes, row counts, and columns that look like references.

In: {"path": "shop.db"}; also tables (only these), count (false skips counting rows). Reads SQLite and DuckDB files,
never writes; DuckDB needs the package duckdb.
"""

from __future__ import annotations

import sys

from databases import Database, opened, quoted
from workspace import Args, Refused, option, run, shown, source


def overview(args: Args) -> Args:
    path = source(args)
    with opened(path) as database:
        known = database.tables()
        wanted = [str(name) for name in option(args, "tables", list, [])]
        if absent := [name for name in wanted if name not in {table for table, _ in known}]:
            raise Refused(f"no table {', '.join(absent)}; there are {', '.join(table for table, _ in known)}")
        count = option(args, "count", bool, True)
        tables = [described(database, *one, count) for one in known if not wanted or one[0] in wanted]
        return {
            "path": shown(path),
            "engine": database.engine,
            "tables": tables,
            "maybe_references": guesses(tables),
            "notes": database.notes,
        }


def described(database: Database, name: str, kind: str, count: bool) -> Args:
    said: Args = {"name": name, "kind": kind}
    if count:
        said["rows"] = database.value(f"SELECT count(*) FROM {quoted(name)}")  # noqa: S608 - quoted
    return said | database.details(name)


def guesses(tables: list[Args]) -> list[str]:
    """Columns called customer_id that no key declares, where a table customer or customers exists."""
    found: list[str] = []
    names = {table["name"].lower(): table["name"] for table in tables}
    for table in tables:
        declared = {reference.split(" -> ")[0] for reference in table["references"]}
        for column in table["columns"]:
            stem = column["name"].lower().removesuffix("_id").removesuffix("id").rstrip("_")
            other = next((names[word] for word in (stem, f"{stem}s", f"{stem}es") if word in names), None)
            if stem != column["name"].lower() and other not in {None, table["name"]} and column["name"] not in declared:
                found.append(f"{table['name']}.{column['name']} -> {other}")
    return found


if __name__ == "__main__":
    sys.exit(run(overview, "path tables count"))
