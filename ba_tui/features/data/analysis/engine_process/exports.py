"""Writes tables to temporary files in the folder of the session: CSV, JSON, Parquet, XLSX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from ba_tui.core.ports.tables import Arrangement
from ba_tui.features.data.analysis.engine_process.arranging import Table, conditions
from ba_tui.features.data.analysis.engine_process.cells import listed, row_of
from ba_tui.features.data.analysis.engine_process.database import Database, quoted, text
from ba_tui.features.data.analysis.engine_process.failures import failed
from ba_tui.processes.serving import RequestCancelled, WorkerRequest

OPTIONS = {
    "csv": "FORMAT csv, HEADER true",
    "tsv": "FORMAT csv, HEADER true, DELIMITER '\t'",
    "json": "FORMAT json, ARRAY true",
    "jsonl": "FORMAT json",
    "parquet": "FORMAT parquet, COMPRESSION zstd",
}
SHEET_ROWS, SHEET_COLUMNS = 1_048_575, 16_384
BATCH = 2_000
WIDE = frozenset({"HUGEINT", "UHUGEINT"})
SAFE_INTEGER = 2**53


def exported(database: Database, request: WorkerRequest, table: Table, arrangement: Arrangement, target: Path) -> None:
    """Write the rows of ``arrangement`` to ``target``, in the format of its ending. Raises HandlerFailed."""
    with database.shared(request, f"exporting {table.name}") as cursor:
        where, values = conditions(table, arrangement)
        order = ", ".join(
            f"{quoted(table.column(each.column).name)} {'DESC' if each.descending else 'ASC'}"
            for each in arrangement.order
        )
        tail = f"{f' WHERE {where}' if where else ''}{f' ORDER BY {order}' if order else ''}"
        try:
            if target.suffix == ".xlsx":
                _workbook(cursor, request, table, (tail, values), target)
            else:
                columns = _exact(cursor, table) if target.suffix == ".parquet" else "*"
                query = f"COPY (SELECT {columns} FROM {quoted(table.name)}{tail}) TO {text(str(target))}"
                cursor.execute(f"{query} ({OPTIONS[target.suffix[1:]]})", values)
        except BaseException:
            target.unlink(missing_ok=True)
            raise


def _exact(cursor: duckdb.DuckDBPyConnection, table: Table) -> str:
    """The columns for Parquet, which has no integers of 128 bits and would round them, as those of every sum are."""
    parts: list[str] = []
    for column in table.columns:
        name = quoted(column.name)
        if column.type in WIDE:
            row = cursor.execute(f"SELECT max(abs({name}::DOUBLE)) < 1e37 FROM {quoted(table.name)}").fetchone()
            fits = row is None or row[0] in {None, True}
            parts.append(f"CAST({name} AS {'DECIMAL(38, 0)' if fits else 'VARCHAR'}) AS {name}")
        else:
            parts.append(name)
    return ", ".join(parts)


def _workbook(
    cursor: duckdb.DuckDBPyConnection, request: WorkerRequest, table: Table, rest: tuple[str, list[Any]], target: Path
) -> None:
    from xlsxwriter import Workbook  # noqa: PLC0415 - only for workbooks

    tail, values = rest
    row = cursor.execute(f"SELECT count(*) FROM {quoted(table.name)}{tail.split(' ORDER BY ')[0]}", values).fetchone()
    if (row and row[0] > SHEET_ROWS) or len(table.columns) > SHEET_COLUMNS:
        raise failed(f"{table.name} is larger than a worksheet can be ({SHEET_ROWS:,} rows).", "Export CSV or Parquet.")
    options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "tmpdir": target.parent}
    with Workbook(target, options) as made:
        book: Any = made
        sheet = book.add_worksheet(table.name[:31])
        for place, column in enumerate(table.columns):
            sheet.write_string(0, place, column.name)
        found = cursor.execute(f"SELECT {listed(table.columns)} FROM {quoted(table.name)}{tail}", values)
        number = 1
        while rows := found.fetchmany(BATCH):
            if request.cancelled.is_set():
                raise RequestCancelled
            for each in rows:
                _write(sheet, number, table, row_of(each, 32_000))
                number += 1


def _write(sheet: Any, number: int, table: Table, row: tuple[Any, ...]) -> None:
    for place, (value, column) in enumerate(zip(row, table.columns, strict=True)):
        if value is None:
            continue
        if column.kind == "decimal" and len(value) <= 16:
            sheet.write_number(number, place, float(value))
        elif isinstance(value, bool):
            sheet.write_boolean(number, place, value)
        elif isinstance(value, int | float) and abs(value) < SAFE_INTEGER:
            sheet.write_number(number, place, value)
        else:
            sheet.write_string(number, place, str(value))
