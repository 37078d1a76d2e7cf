"""What a data file is made of, in a few lines: columns with types and examples, rows, tables. Reads a bounded part.

The whole of it is for tools that query data; this is what a model needs to know to ask them.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count, one_line

KINDS = {
    "csv": "CSV data",
    "tsv": "TSV data",
    "parquet": "Parquet data",
    "xlsx": "Excel workbook",
    "xlsm": "Excel workbook",
    "json": "JSON data",
    "jsonl": "JSON Lines data",
    "ndjson": "JSON Lines data",
    "sqlite": "SQLite database",
    "sqlite3": "SQLite database",
    "db": "SQLite database",
    "duckdb": "DuckDB database",
}
LOOK = 262_144
COUNTED = 64_000_000
"""Bytes of lines that are counted; of larger files the number is estimated."""
WHOLE = 2_000_000
COLUMNS = 60
TABLES = 40
ROWS = 5
CELL = 60
Decode: TypeAlias = Callable[[bytes], str]
_SHEET = regex(rb'<(?:\w+:)?sheet\b[^>]*?\bname="([^"]*)"')
_TYPES = (
    ("integer", regex(r"[+-]?\d{1,18}$")),
    ("number", regex(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$")),
    ("date", regex(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?$")),
    ("boolean", regex(r"(?:true|false|yes|no)$", re.IGNORECASE)),
)


def dataset_kind(name: str) -> str:
    """What sort of data a file with such a name holds; empty for other files."""
    return KINDS.get(name.rpartition(".")[2].lower(), "") if "." in name else ""


def in_utf8(data: bytes) -> str:
    return data.decode("utf-8-sig", "replace")


def profile(path: Path, decode: Decode = in_utf8) -> str:
    """A few lines about a data file; empty when there is nothing to say beside its size. Blocks. Raises OSError."""
    ending = path.suffix.lower().lstrip(".")
    if ending in {"csv", "tsv"}:
        return _table(path, decode)
    if ending in {"jsonl", "ndjson"}:
        return _lines_of_json(path)
    if ending == "json":
        return _json(path)
    if ending in {"xlsx", "xlsm"}:
        return _workbook(path)
    return _database(path) if ending in {"sqlite", "sqlite3", "db"} else ""


def _table(path: Path, decode: Decode) -> str:
    head, size = _head(path)
    text = decode(head)
    if len(head) < size:
        text = text[: text.rfind("\n") + 1] or text
    first = text.partition("\n")[0]
    mark = "\t" if path.suffix.lower() == ".tsv" else max(",;\t|", key=first.count)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=mark))
    except csv.Error:
        return ""
    rows = [row for row in rows if row]
    if not rows:
        return "It is empty."
    names, body = rows[0], rows[1:]
    about = f"{_rows(path, size, len(body), whole=len(head) >= size)}, {len(names)} columns, separated by {mark!r}"
    columns = [
        f"- {_cell(name)}: {_column([row[place] for row in body if place < len(row)])}"
        for place, name in enumerate(names[:COLUMNS])
    ]
    more = [f"- and {len(names) - COLUMNS} more"] if len(names) > COLUMNS else []
    sample = [mark.join(map(_cell, row[:COLUMNS])) for row in rows[: ROWS + 1]]
    return "\n".join([f"{about}.", *columns, *more, "The first rows:", *sample])


def _rows(path: Path, size: int, seen: int, *, whole: bool) -> str:
    if whole:
        return count(seen, "row")
    lines = 0
    with path.open("rb") as file:
        while file.tell() < COUNTED and (part := file.read(1 << 20)):
            lines += part.count(b"\n")
        read = file.tell()
    return f"about {lines * size // read:,} rows" if read < size else f"about {max(0, lines - 1):,} rows"


def _column(values: Sequence[str]) -> str:
    given = [value.strip() for value in values if value.strip()]
    if not given:
        return "empty"
    kind = next((name for name, shape in _TYPES if all(map(shape.match, given))), "text")
    gaps = len(values) - len(given)
    examples = ", ".join(_cell(value) for value in list(dict.fromkeys(given))[:3])
    return f"{kind}{f', {gaps} of {len(values)} empty' if gaps else ''}, such as {examples}"


def _lines_of_json(path: Path) -> str:
    head, size = _head(path)
    lines = head.decode("utf-8", "replace").split("\n")
    kept = lines if len(head) >= size else lines[:-1]
    items = [item for line in kept if line.strip() and (item := _parsed(line)) is not None]
    rows = _rows(path, size, len(items), whole=len(head) >= size)
    sample = [one_line(line, 400) for line in kept[:ROWS] if line.strip()]
    return "\n".join([f"{rows}. {_shape(items)}", "The first lines:", *sample])


def _json(path: Path) -> str:
    head, size = _head(path, WHOLE)
    value = _parsed(head.decode("utf-8-sig", "replace")) if len(head) >= size else None
    start = one_line(head[:2_000].decode("utf-8-sig", "replace"), 800)
    if value is None:
        return f"It begins: {start}"
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return f"A list of {count(len(items), 'item')}. {_shape(items)}\nIt begins: {start}"
    if isinstance(value, dict):
        keys = cast("dict[str, Any]", value)
        return f"An object with {count(len(keys), 'key')}: {_names(keys)}.\nIt begins: {start}"
    return f"It is: {start}"


def _shape(items: Sequence[Any]) -> str:
    keys: dict[str, None] = {}
    for item in items[:500]:
        if isinstance(item, dict):
            keys.update(dict.fromkeys(map(str, cast("dict[Any, Any]", item))))
    return f"Keys of its items: {_names(keys)}." if keys else ""


def _workbook(path: Path) -> str:
    import html  # noqa: PLC0415 - its table of entities is large
    import zipfile  # noqa: PLC0415 - brings compressors that most sessions do without

    try:
        with zipfile.ZipFile(path) as book, book.open("xl/workbook.xml") as file:
            names = _SHEET.findall(file.read(WHOLE))
    except (zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError, ValueError, EOFError):
        return ""
    return f"Sheets: {_names(html.unescape(name.decode('utf-8', 'replace')) for name in names)}." if names else ""


def _database(path: Path) -> str:
    import sqlite3  # noqa: PLC0415 - most sessions never look into one

    with path.open("rb") as file:
        if not file.read(16).startswith(b"SQLite format 3"):
            return ""
    try:
        # Read as it lies there: nothing is locked, and no file is made beside it.
        base = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True, timeout=1)
        try:
            tables = base.execute("select name, sql from sqlite_master where type in ('table', 'view')").fetchall()
        finally:
            base.close()
    except sqlite3.Error:
        return ""
    lines = [f"- {_cell(str(name))}: {one_line(str(sql), 600)}" for name, sql in tables[:TABLES]]
    more = [f"- and {len(tables) - TABLES} more"] if len(tables) > TABLES else []
    return "\n".join([f"{count(len(tables), 'table')}.", *lines, *more])


def _head(path: Path, most: int = LOOK) -> tuple[bytes, int]:
    with path.open("rb") as file:
        return file.read(most), path.stat().st_size


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _names(names: Iterable[str]) -> str:
    every = [_cell(name) for name in names]
    return f"{', '.join(every[:COLUMNS])}{f' and {len(every) - COLUMNS} more' if len(every) > COLUMNS else ''}"


def _cell(text: str) -> str:
    return one_line(text, CELL)
