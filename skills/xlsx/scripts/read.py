"""What a workbook holds: its sheets, or the cells of one as values and as formulas.

In: {"path": "book.xlsx"} for the sheets; with sheet (name or number from 1) also range ("A1:F20"), formulas (true: what
is written in the cells), rows (200).
"""

from __future__ import annotations

import sys
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from books import cells_of, counted, opened, sheet_of
from workspace import Args, option, run, shown, source

KNOWN = "path sheet range formulas rows"


def read(args: Args) -> Args:
    path = source(args)
    if "sheet" not in args:
        return overview(path)
    values = cells_of(sheet_of(opened(path, values=True), args), option(args, "range", str, ""))
    written = cells_of(sheet_of(opened(path, values=False), args), option(args, "range", str, ""))
    formulas = [cell for row in written for cell in row if cell.data_type == "f"]
    without = [cell.coordinate for row in values for cell in row if cell.value is None]
    blind = sorted({cell.coordinate for cell in formulas} & set(without))
    chosen = written if option(args, "formulas", bool, False) else values
    rows = [[told(cell.value) for cell in row] for row in chosen]
    while rows and not any(cell is not None for cell in rows[-1]):
        rows.pop()
    corner = f"{written[0][0].coordinate}:{written[-1][-1].coordinate}" if written and written[0] else ""
    said: Args = {"path": shown(path), "range": corner, "rows": len(rows), "formulas": len(formulas)}
    if blind:
        said["beware"] = [
            f"{len(blind)} formulas have no computed value in the file, such as {blind[0]}: they read as empty"
        ]
    most = max(1, option(args, "rows", int, 200))
    return said | {"more": len(rows) > most, "cells": rows[:most]}


def overview(path: Path) -> Args:
    book = opened(path, values=False)
    sheets = [about(sheet) for sheet in book.worksheets]
    names = [f"{name} = {defined.attr_text}" for name, defined in book.defined_names.items()]
    charts = [sheet.title for sheet in book.chartsheets]
    dates = "1904" if book.epoch.year == 1904 else "1900"
    return {"path": shown(path), "dates_from": dates, "names": names, "chart_sheets": charts, "sheets": sheets}


def about(sheet: Any) -> Args:
    hidden_rows = sum(1 for row in sheet.row_dimensions.values() if row.hidden)
    hidden_columns = [name for name, column in sheet.column_dimensions.items() if column.hidden]
    first = next((row for row in sheet.iter_rows(values_only=True) if any(cell is not None for cell in row)), ())
    said = {"name": sheet.title, "state": sheet.sheet_state, "cells": sheet.dimensions, **counted(sheet)}
    said["first_row"] = [told(cell) for cell in first[:30]]
    extras: Args = {
        "tables": [f"{table.name} ({table.ref})" for table in sheet.tables.values()],
        "merged": [str(area) for area in sheet.merged_cells.ranges][:20],
        "hidden_rows": hidden_rows,
        "hidden_columns": hidden_columns,
        "filter": sheet.auto_filter.ref,
    }
    return said | {key: value for key, value in extras.items() if value}


def told(value: Any) -> Any:
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if value is None or isinstance(value, str | int | float):
        return value
    return str(getattr(value, "text", value))


if __name__ == "__main__":
    sys.exit(run(read, KNOWN))
