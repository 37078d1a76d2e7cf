"""Run an exported report again and compare the results with those in the report. Needs duckdb, and no model.

ba copies this file next to each report. A report is a folder with report.json and Parquet files, and a script or
notebook next to it that calls this module.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import duckdb

SHOWN = 20
"""Rows of a result that are printed."""
MOST_COMPARED = 1_000_000
"""Most rows of a result compared one by one."""
CLOSE = 1e-9
"""Relative tolerance for floating-point sums, whose order is not fixed."""
PIECE = 4_000_000
NUMBER = r"U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)|FLOAT|DOUBLE|DECIMAL\(\d+,\d+\)"
"""Column types that don't identify a row."""


class Rerun:
    """The report in ``folder``. ``data`` replaces files of tables, as in {"sales": "new.csv"}."""

    def __init__(self, folder: Path, data: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.report: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
        self.database = duckdb.connect()
        self.differences: list[str] = []
        self._data = data or {}
        self._done: list[str] = []
        self._tables = {table["name"]: table for table in self.report["tables"]}
        self._results = {result["handle"]: result for result in self.report["results"]}
        if unknown := sorted(self._data.keys() - self._tables.keys()):
            raise SystemExit(f"There is no table {unknown[0]}. The report has {', '.join(sorted(self._tables))}.")

    def table(self, name: str) -> None:
        """Read a table from its files, or from the copy in the report."""
        table = self._tables[name]
        if given := self._data.get(name):
            files = [given]
            # The original reading options don't fit a copy: let DuckDB detect them.
            query = table["reading"] or f"FROM {_text(given)}"
        elif table["stored"]:
            files, query = [], f"FROM {_text(str(self.folder / table['stored']))}"
        else:
            files, query = [self._file(name, file) for file in table["files"]], table["reading"]
        listed = ", ".join(_text(file) for file in files)
        self._run(f"CREATE OR REPLACE TABLE {_name(name)} AS {query.replace('$files', f'[{listed}]')}", name)

    def query(self, handle: str, sql: str) -> Result:
        """Compute a result again and compare it."""
        result = self._results[handle]
        for called, name in result["called"]:
            self._run(f"CREATE OR REPLACE VIEW {_name(called)} AS FROM {_name(name)}", handle)
        self._run(f"CREATE OR REPLACE TABLE {_name(handle)} AS SELECT * FROM (\n{sql}\n)", handle)
        self._compare(result)
        self._done.append(handle)
        return Result(self.database, handle)

    def stored(self, handle: str) -> Result:
        """Load the stored copy of a result that can't be computed again."""
        path = str(self.folder / self._results[handle]["expected"])
        self._run(f"CREATE OR REPLACE TABLE {_name(handle)} AS FROM {_text(path)}", handle)
        self._done.append(handle)
        return Result(self.database, handle)

    def check(self) -> int:
        """Compare the figures of the answers too, and print differences. Return 1 if there are any, else 0."""
        figures = [figure for figure in self.report["figures"] if figure["handle"] in self._done]
        for figure in figures:
            self._figure(figure)
        for line in self.differences:
            print(f"DIFFERENT  {line}")
        again = sum(not self._results[handle]["kept"] for handle in self._done)
        print(
            f"{again} result{'' if again == 1 else 's'} worked out again, "
            f"{len(self._done) - again} taken from copies, "
            f"{len(figures)} figure{'' if len(figures) == 1 else 's'} compared: "
            f"{len(self.differences) or 'no'} difference{'' if len(self.differences) == 1 else 's'}."
        )
        return 1 if self.differences else 0

    def _file(self, name: str, file: dict[str, Any]) -> str:
        path = Path(file["path"])
        path = path if path.is_absolute() else self.folder.parent / path
        if not path.exists():
            raise SystemExit(f"{path} is gone, which {name} reads. Name another file: --data {name}=FILE")
        if path.stat().st_size != file["size"] or _sha256(path) != file["sha256"]:
            self.differences.append(f"{path.name}: the file changed since the report was made")
        return str(path)

    def _run(self, sql: str, name: str) -> None:
        try:
            self.database.execute(sql)
        except duckdb.Error as error:
            raise SystemExit(f"{name} can't be worked out: {str(error).splitlines()[0]}") from None

    def _compare(self, result: dict[str, Any]) -> None:
        handle, columns = result["handle"], [column["name"] for column in result["columns"]]
        names = [str(each[0]) for each in self.database.execute(f"FROM {_name(handle)} LIMIT 0").description or ()]
        if names != columns:
            self.differences.append(f"{handle}: its columns are {', '.join(names)}, not {', '.join(columns)}")
            return
        row = self.database.execute(f"SELECT count(*) FROM {_name(handle)}").fetchone()
        rows = int(row[0]) if row else 0
        if rows != result["rows"]:
            self.differences.append(f"{handle}: {rows:,} rows, not {result['rows']:,}")
        elif rows <= MOST_COMPARED:
            self._compare_rows(result, columns)

    def _compare_rows(self, result: dict[str, Any], columns: list[str]) -> None:
        """Return rows in an order independent of the query: exact columns first, since floats may differ slightly."""
        kinds = {column["name"]: column["type"] for column in result["columns"]}
        exact = sorted(columns, key=lambda name: kinds[name] in {"DOUBLE", "FLOAT"})
        order = ", ".join(_name(name) for name in exact)
        before = self.database.cursor().execute(f"FROM {_text(str(self.folder / result['expected']))} ORDER BY {order}")
        now = self.database.cursor().execute(f"FROM {_name(result['handle'])} ORDER BY {order}")
        while rows := before.fetchmany(10_000):
            for old, new in zip(rows, now.fetchmany(10_000), strict=True):
                for name, was, value in zip(columns, old, new, strict=True):
                    if not _equal(was, value):
                        where = ", ".join(f"{each}={old[columns.index(each)]}" for each in exact[:2] if each != name)
                        self.differences.append(f"{result['handle']}.{name} ({where}): {value}, not {was}")
                        return

    def _figure(self, figure: dict[str, Any]) -> None:
        """Find a figure in its row, identified by text, date and boolean columns; else among all rows."""
        handle, column, was = figure["handle"], figure["column"], figure["value"]
        said = f"“{figure['text']}” of an answer: {handle}"
        row = self._row(figure)
        named = ", ".join(f"{name}={_shown(value)}" for name, value in row.items())
        where = " AND ".join(f"{_name(name)} IS NOT DISTINCT FROM ?" for name in row) or "true"
        query = f"SELECT {_name(column)} FROM {_name(handle)} WHERE {where}"
        try:
            values = [each[0] for each in self.database.execute(query, list(row.values())).fetchall()]
        except duckdb.Error:
            self.differences.append(f"{said} no longer has the columns {', '.join([*row, column])}")
            return
        if any(_equal(was, value) for value in values):
            return
        if not values:
            self.differences.append(f"{said} has no row {named}".rstrip())
        elif len(values) == 1:
            self.differences.append(f"{said}.{column}{f' ({named})' if row else ''} is {values[0]}, not {was}")
        else:
            self.differences.append(f"{said}.{column} no longer has {was}")

    def _row(self, figure: dict[str, Any]) -> dict[str, Any]:
        """Return what identifies the row of a figure; empty if nothing does, or the report has no copy of the
        result."""
        result = self._results[figure["handle"]]
        names = [each["name"] for each in result["columns"] if not re.fullmatch(NUMBER, each["type"])]
        names = [name for name in names if name != figure["column"]]
        if not names or not result["expected"]:
            return {}
        copy = _text(str(self.folder / result["expected"]))
        query = f"SELECT {', '.join(map(_name, names))} FROM {copy} LIMIT 1 OFFSET {int(figure['row'])}"
        found = self.database.execute(query).fetchone()
        return dict(zip(names, found, strict=True)) if found else {}


class Result:
    """The first rows of a table, for terminals and notebooks."""

    def __init__(self, database: duckdb.DuckDBPyConnection, handle: str) -> None:
        found = database.execute(f"FROM {_name(handle)} LIMIT {SHOWN}")
        self.handle = handle
        self.columns = [str(each[0]) for each in found.description or ()]
        self.rows = found.fetchall()

    def __repr__(self) -> str:
        cells = [self.columns, *([_shown(value) for value in row] for row in self.rows)]
        widths = [max(len(row[place]) for row in cells) for place in range(len(self.columns))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
        ]
        return "\n".join([self.handle, *lines])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            f"<tr>{''.join(f'<td>{html.escape(_shown(value))}</td>' for value in row)}</tr>" for row in self.rows
        )
        return f"<table><caption>{html.escape(self.handle)}</caption><tr>{head}</tr>{body}</table>"


def options(arguments: list[str] | None = None) -> dict[str, str]:
    """Return the replaced files of tables on the command line."""
    parser = argparse.ArgumentParser(description="Run this report again, and say what differs.")
    parser.add_argument("--data", action="append", default=[], metavar="TABLE=FILE", help="read a table from this file")
    given: list[str] = parser.parse_args(arguments).data
    if wrong := next((each for each in given if "=" not in each), None):
        parser.error(f"--data {wrong}: write TABLE=FILE")
    return dict(each.split("=", 1) for each in given)


def _equal(was: Any, value: Any) -> bool:
    """Compare cells; decimals, dates and nested values come from JSON as text."""
    if was is None or value is None:
        return was is value
    if was == value or str(was) == str(value):
        return True
    if not isinstance(was, float) and not isinstance(value, float):
        return False
    try:
        first, second = float(was), float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return math.isclose(first, second, rel_tol=CLOSE) or (math.isnan(first) and math.isnan(second))


def _shown(value: Any) -> str:
    return "NULL" if value is None else str(value).replace("\n", " ")


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(PIECE):
            digest.update(data)
    return digest.hexdigest()


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


if __name__ == "__main__":
    sys.exit("Run the script next to this folder.")
