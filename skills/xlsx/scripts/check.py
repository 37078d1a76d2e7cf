"""What is wrong in a workbook: errors, formulas without values, odd ones out, numbers typed over or stored as text.

In: {"path": "book.xlsx"}; also sheet (only this one). Nothing is computed: see the skill on how to recalculate.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from typing import Any

from books import opened, sheet_of
from workspace import Args, run, shown, source

NUMBER = re.compile(r"\s*[-+(]?\s*[$€£¥]?\s*\d[\d.,' ]*\s*[%€]?\)?\s*")
CELL = re.compile(r"(\$?)([A-Z]{1,3})(\$?)(\d+)(?![\d(])")
MOST = 20


def check(args: Args) -> Args:
    path = source(args)
    written, values = opened(path, values=False), opened(path, values=True)
    sheets = [sheet_of(written, args)] if "sheet" in args else written.worksheets
    found: dict[str, list[str]] = defaultdict(list)
    formulas = 0
    for sheet in sheets:
        cells = {(cell.row, cell.column): cell for cell in sheet._cells.values() if cell.value is not None}
        results = values[sheet.title]
        for (row, column), cell in sorted(cells.items()):
            formulas += cell.data_type == "f"
            look(found, cell, results.cell(row, column).value)
        for column in sorted({column for _, column in cells}):
            odd_ones(found, [cell for (_, c), cell in sorted(cells.items()) if c == column])
    report = [{"problem": name, "count": len(places), "cells": places[:MOST]} for name, places in sorted(found.items())]
    return {
        "path": shown(path),
        "sheets": [s.title for s in sheets],
        "formulas": formulas,
        "sound": not report,
        "found": report,
    }


def look(found: dict[str, list[str]], cell: Any, value: Any) -> None:
    place = f"{cell.parent.title}!{cell.coordinate}"
    if cell.data_type == "f":
        if isinstance(value, str) and value.startswith("#"):
            found["formula gives an error"].append(f"{place} {value}")
        elif value is None:
            found["formula without a computed value (recalculate and save)"].append(place)
        formula = text_of(cell)
        if "#REF!" in formula:
            found["formula refers to cells that are gone"].append(f"{place} {formula[:80]}")
        if re.search(r"\[[^\]]+\]", formula) and "!" in formula:
            found["formula refers to another workbook"].append(f"{place} {formula[:80]}")
    elif cell.data_type == "e":
        found["error typed as a value"].append(f"{place} {cell.value}")
    elif isinstance(cell.value, str) and NUMBER.fullmatch(cell.value) and not cell.value.startswith("0"):
        found["number stored as text (sums leave it out)"].append(f"{place} {cell.value!r}")


def odd_ones(found: dict[str, list[str]], cells: list[Any]) -> None:
    """A column of one formula copied down: whatever differs in it was probably not meant."""
    shapes = {cell.coordinate: shape(cell) for cell in cells if cell.data_type == "f"}
    if len(shapes) < 4:
        return
    usual, times = Counter(shapes.values()).most_common(1)[0]
    if times < 0.6 * len(shapes):
        return
    rows = [cell.row for cell in cells if shapes.get(cell.coordinate) == usual]
    for cell in cells:
        place = f"{cell.parent.title}!{cell.coordinate}"
        if cell.coordinate in shapes and shapes[cell.coordinate] != usual and rows[0] < cell.row < rows[-1]:
            found["formula unlike its neighbours"].append(f"{place} {text_of(cell)[:80]}")
        elif cell.data_type == "n" and rows[0] < cell.row < rows[-1]:
            found["typed number among formulas"].append(f"{place} {cell.value}")


def shape(cell: Any) -> str:
    """The formula with places told from where it stands, so that copies are alike."""

    def relative(match: re.Match[str]) -> str:
        fixed_column, letters, fixed_row, digits = match.groups()
        number = 0
        for letter in letters:
            number = number * 26 + ord(letter) - 64
        column = letters if fixed_column else f"c{number - cell.column}"
        return f"{column}{digits if fixed_row else f'r{int(digits) - cell.row}'}"

    return CELL.sub(relative, text_of(cell))


def text_of(cell: Any) -> str:
    return str(getattr(cell.value, "text", cell.value) or "")


if __name__ == "__main__":
    sys.exit(run(check, "path sheet"))
