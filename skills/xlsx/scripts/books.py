"""Workbooks as openpyxl sees them. No script: read.py, check.py and write.py use it.

Nothing is computed here: values are those that the program stored which saved the file last.
"""

from __future__ import annotations

import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

from workspace import Args, Refused, shown

try:
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException
except ModuleNotFoundError:
    sys.exit("error: the package openpyxl is not installed; it stands in requirements.txt of this skill")

MOST_CELLS = 2_000_000


def opened(path: Path, values: bool, macros: bool = False) -> Any:
    if path.suffix.lower() in {".xls", ".xlsb", ".ods"}:
        raise Refused(
            f"{shown(path)} is not .xlsx: save it as .xlsx first (libreoffice --headless --convert-to xlsx FILE)"
        )
    try:
        with warnings.catch_warnings(), zipfile.ZipFile(path) as packed:
            warnings.simplefilter("ignore")
            if sum(part.file_size for part in packed.infolist()) > 1 << 30:
                raise Refused(f"{shown(path)} unpacks to more than 1 GB")
            return load_workbook(path, data_only=values, keep_vba=macros)
    except (InvalidFileException, zipfile.BadZipFile, KeyError, ValueError, SyntaxError, TypeError) as error:
        raise Refused(f"{shown(path)} cannot be read as a workbook: {error or type(error).__name__}") from None


def sheet_of(book: Any, args: Args) -> Any:
    """By name, or by number from 1."""
    wanted, names = args.get("sheet"), [sheet.title for sheet in book.worksheets]
    if isinstance(wanted, int) and 1 <= wanted <= len(names):
        return book.worksheets[wanted - 1]
    if wanted not in names:
        raise Refused(f"no sheet {wanted!r}; there are {', '.join(names)}")
    return book[wanted]


def cells_of(sheet: Any, area: str) -> list[tuple[Any, ...]]:
    if not area and sheet.max_row * sheet.max_column > MOST_CELLS:
        raise Refused(f"{sheet.title} spans {sheet.dimensions}: give a range")
    try:
        found = sheet[area or sheet.dimensions]
    except (ValueError, TypeError, AttributeError):
        raise Refused(f"{area!r} is not a range such as A1:F20") from None
    rows = found if isinstance(found, tuple) else ((found,),)
    return [row if isinstance(row, tuple) else (row,) for row in rows]


def counted(sheet: Any) -> Args:
    """How many cells hold something, and how many of them a formula. Looks at cells that exist, not at the span."""
    cells = [cell for cell in sheet._cells.values() if cell.value is not None]
    return {"filled": len(cells), "formulas": sum(cell.data_type == "f" for cell in cells)}
