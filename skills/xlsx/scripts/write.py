"""A formatted workbook from rows or CSV files, or single cells of an existing one changed into a new file.

In: {"output": "out.xlsx", "sheets": [{"name": "Sales", "csv": "sales.csv", "columns": [{"name": "amount",
"format": "#,##0.00", "width": 12, "total": "sum"}]}]}; a sheet has csv or rows (names first), columns, freeze ("A2"),
filter (true). Or {"path": "in.xlsx", "output": "out.xlsx", "set": {"Sales!B2": 5, "Sales!C2": "=A2*B2"}}.
Text that begins with "=" is a formula only under "set" and in sheets with "formulas": true.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from datetime import date
from pathlib import Path
from typing import Any

from books import opened
from workspace import Args, Refused, encoding_of, option, run, shown, source, target

try:
    from openpyxl import Workbook
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
    from openpyxl.styles import Font, PatternFill
    from openpyxl.utils import get_column_letter
except ModuleNotFoundError:
    sys.exit("error: the package openpyxl is not installed; it stands in requirements.txt of this skill")

NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d+)?")
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
TOTALS = {"sum": "SUM", "mean": "AVERAGE", "count": "COUNT", "min": "MIN", "max": "MAX"}


def write(args: Args) -> Args:
    if bool(args.get("set")) == bool(args.get("sheets")):
        raise Refused('give either "sheets" for a new workbook, or "path" and "set" to change one')
    output = target(args)
    if output.suffix.lower() not in {".xlsx", ".xlsm"}:
        raise Refused('"output" must end in .xlsx')
    return changed(args, output) if args.get("set") else made(args, output)


def changed(args: Args, output: Path) -> Args:
    path = source(args)
    macros = path.suffix.lower() == ".xlsm"
    if macros != (output.suffix.lower() == ".xlsm"):
        raise Refused("keep the ending: a workbook with macros is .xlsm, one without .xlsx")
    book = opened(path, values=False, macros=macros)
    lost = [sheet.title for sheet in book.worksheets if sheet._images or sheet._charts]
    was: dict[str, Any] = {}
    for place, value in option(args, "set", dict, {}).items():
        name, _, at = str(place).rpartition("!")
        name = name.strip("'")
        if name not in book.sheetnames or not re.fullmatch(r"[A-Z]{1,3}[1-9]\d{0,6}", at):
            raise Refused(f"{place} is not Sheet!A1; sheets: {', '.join(book.sheetnames)}")
        was[place] = book[name][at].value
        put(book[name][at], value, formulas=True)
    book.save(output)
    beware = ["computed values of formulas are gone until the file is recalculated"]
    if lost:
        beware.append(f"compare charts and pictures with the original: {', '.join(lost)}")
    return {"written": shown(output), "was": {place: str(value) for place, value in was.items()}, "beware": beware}


def made(args: Args, output: Path) -> Args:
    book = Workbook()
    book.remove(book.active)
    told: list[Args] = []
    for number, spec in enumerate(option(args, "sheets", list, []), 1):
        if not isinstance(spec, dict):
            raise Refused('each of "sheets" is an object')
        name = re.sub(r"[\[\]:*?/\\]", "-", option(spec, "name", str, f"Sheet{number}"))[:31]
        rows = rows_of(spec)
        sheet = book.create_sheet(name)
        for place, row in enumerate(rows, 1):
            for column, value in enumerate(row, 1):
                typed = value if place == 1 or "csv" not in spec else from_text(value)
                put(sheet.cell(place, column), typed, option(spec, "formulas", bool, False))
        styled(sheet, spec, [str(cell) for cell in rows[0]], len(rows))
        told.append({"name": name, "rows": len(rows) - 1, "columns": len(rows[0])})
    book.save(output)
    return {"written": shown(output), "sheets": told}


def rows_of(spec: Args) -> list[list[Any]]:
    if "csv" in spec:
        data = source(spec, "csv").read_bytes()
        text = data.decode(encoding_of(data), "replace")
        try:
            rows: list[Any] = list(csv.reader(io.StringIO(text, newline=""), delimiter=sign_of(text)))
        except csv.Error as error:
            raise Refused(f"{spec['csv']}: {error}") from None
    else:
        rows = option(spec, "rows", list, [])
    if not rows or not all(isinstance(row, list) for row in rows) or not rows[0]:
        raise Refused('a sheet needs "csv", or "rows" whose first row holds the names')
    return rows


def sign_of(text: str) -> str:
    """What stands between the cells of the first line."""
    return max(",;\t|", key=text.split("\n", 1)[0].count)


def from_text(value: str) -> Any:
    """Numbers and days as such; codes such as 007 and long digits stay text."""
    if NUMBER.fullmatch(value):
        return float(value) if "." in value else int(value)
    if DAY.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            return value
    return value or None


def put(cell: Any, value: Any, formulas: bool) -> None:
    if not isinstance(value, str | int | float | bool | date | None):
        raise Refused(f"{cell.coordinate}: a cell holds text, a number, a truth or nothing")
    cell.value = ILLEGAL_CHARACTERS_RE.sub("", value)[:32767] if isinstance(value, str) else value
    if isinstance(value, str) and value.startswith("=") and not formulas:
        cell.data_type = "s"


def styled(sheet: Any, spec: Args, names: list[str], rows: int) -> None:
    for cell in sheet[1]:
        cell.font, cell.fill = Font(bold=True), PatternFill("solid", fgColor="DDE6F0")
    given = option(spec, "columns", list, [])
    if not all(isinstance(column, dict) for column in given):
        raise Refused('each of "columns" is an object')
    columns = {option(column, "name", str, ""): column for column in given}
    if absent := [name for name in columns if name not in names]:
        raise Refused(f"no column {', '.join(absent)}; there are {', '.join(names)}")
    for number, name in enumerate(names, 1):
        column, letter = columns.get(name, {}), get_column_letter(number)
        widest = max(len(str(cell.value or "")) for cell in sheet[letter][:1000])
        sheet.column_dimensions[letter].width = option(column, "width", int, min(60, max(8, widest + 2)))
        way = option(column, "total", str, "")
        if way and way not in TOTALS:
            raise Refused(f'"total" is one of {", ".join(TOTALS)}')
        if way and rows > 1:
            cell = sheet.cell(rows + 1, number, f"={TOTALS[way]}({letter}2:{letter}{rows})")
            cell.font = Font(bold=True)
        for cell in sheet[letter][1:] if column.get("format") else []:
            cell.number_format = option(column, "format", str, "General")
    sheet.freeze_panes = option(spec, "freeze", str, "A2")
    if option(spec, "filter", bool, True):
        sheet.auto_filter.ref = f"A1:{get_column_letter(len(names))}{rows}"


if __name__ == "__main__":
    sys.exit(run(write, "path output sheets set overwrite"))
