"""What stored data is made of, in one line: length, keys or columns, first item, ranges. Counted, never guessed.

Reads a bounded part of large files and then says of what part it speaks.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

from ba_tui.core.results import Kind
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import byte_size, count, one_line
from ba_tui.sessions.results.pages import opened

WHOLE = 2_000_000
"""Bytes up to which JSON and tables are read whole."""
LOOK = 256_000
WORDS = 100
NAMES = 20
RANGES = 8
LENGTH = 700
_HIT = regex(r"(.+?)[:-]\d+[:-]")
_RULE = frozenset("|:- \t")

TableRow: TypeAlias = Mapping[str, Any]


def describe(path: Path, kind: Kind, size: int, lines: int) -> str:
    """One line about the file. Raises OSError when it can't be read."""
    with opened(path) as file:
        part = file.read(WHOLE if kind in {"json", "table"} and size <= WHOLE else LOOK)
        text = part.decode("utf-8", "replace")
        whole = len(part) >= size
        found = outline(text, kind, lines, whole=whole)
        if found is None:
            found = f"{count(lines, 'line')}{_ends(text, file, size)}"
    return _one_line(f"{_NAMES[kind]}, {byte_size(size)}; {found}", LENGTH)


_NAMES: dict[Kind, str] = {
    "text": "text",
    "json": "JSON",
    "table": "table",
    "listing": "listing",
    "hits": "search hits",
}


def outline(text: str, kind: Kind, lines: int, *, whole: bool) -> str | None:
    """What ``text`` is made of; None when it has no structure. ``whole``: it is all there is, not the beginning."""
    match kind:
        case "json":
            return _json(text, lines, whole=whole)
        case "table":
            return _table(text, lines, whole=whole)
        case "listing":
            return f"{count(lines, 'entry')}; first: {_first(text)}"
        case "hits":
            files = {found[1] for line in text.splitlines() if (found := _HIT.match(line))}
            within = f" in {'' if whole else 'at least '}{count(len(files), 'file')}" if files else ""
            return f"{count(lines, 'line')}{within}; first: {_first(text)}"
        case "text":
            return None


def _ends(text: str, file: BinaryIO, size: int) -> str:
    file.seek(max(0, size - 4_000))
    last = next((line for line in reversed(file.read().decode("utf-8", "replace").splitlines()) if line.strip()), "")
    first = _first(text)
    if not first:
        return ""
    ends = f"; ends “{_one_line(last, WORDS)}”" if _one_line(last, WORDS) != first else ""
    return f"; begins “{first}”{ends}"


def _first(text: str) -> str:
    return _one_line(next((line for line in text.splitlines() if line.strip()), ""), WORDS)


def _one_line(text: str, length: int) -> str:
    return one_line(text[: 4 * length], length)


def parsed(text: str) -> Any:
    """The JSON value of ``text``. Raises ValueError, also for what is nested too deep."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _json(text: str, lines: int, *, whole: bool) -> str | None:
    if whole:
        try:
            return _value(parsed(text))
        except ValueError:
            pass
    if (records := _records(text, whole=whole)) is not None:
        looked = "" if whole else f" (seen in the first {len(records)})"
        return f"JSON lines, {count(lines, 'record')}{_items(records, looked)}"
    start = text.lstrip()
    if start[:1] == "[":
        try:
            first, _ = json.JSONDecoder().raw_decode(start[1:].lstrip())
        except (ValueError, RecursionError):
            return f"an array; begins {_one_line(start, WORDS)}"
        return f"an array{_items([first], ' of the first item')}"
    return f"an object; begins {_one_line(start, WORDS)}" if start[:1] == "{" else None


def _records(text: str, *, whole: bool) -> list[Any] | None:
    """The values of JSON lines, the last one left out where the text was cut; None when it is no such thing."""
    lines = text.splitlines()
    if not whole:
        del lines[-1:]
    try:
        records = [parsed(line) for line in lines if line.strip()]
    except ValueError:
        return None
    return records if len(records) > 1 else None


def _value(value: Any) -> str:
    match value:
        case list():
            items = cast("list[Any]", value)
            return f"an array of {count(len(items), 'item')}{_items(items, '')}"
        case dict():
            pairs = cast("dict[str, Any]", value)
            names = [f"{_one_line(key, 40)} ({_type(item)})" for key, item in list(pairs.items())[:NAMES]]
            more = f" and {len(pairs) - NAMES} more" if len(pairs) > NAMES else ""
            return f"an object of {count(len(pairs), 'key')}: {', '.join(names)}{more}"
        case _:
            return f"{_type(value)} {_short(value)}"


def _items(items: Sequence[Any], looked: str) -> str:
    """What the items have in common: keys and ranges of objects, the range of numbers, and the first of them."""
    if not items:
        return ""
    if all(isinstance(item, dict) for item in items):
        rows = cast("Sequence[TableRow]", items)
        keys = list(dict.fromkeys(key for row in rows for key in row))
        ranges = ((key, [row.get(key) for row in rows]) for key in keys)
        return f"; keys{looked}: {_names(keys)}{_ranges(ranges, looked)}; first: {_short(items[0])}"
    return f"{_ranges([('values', items)], looked)}; first: {_short(items[0])}"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return ", ".join(_one_line(str(name), 40) for name in names[:NAMES]) + more


def _ranges(columns: Iterable[tuple[str, Iterable[Any]]], looked: str) -> str:
    """``; ranges: price 1 to 9`` for columns that hold nothing but numbers and gaps."""
    found: list[str] = []
    for name, values in columns:
        if len(found) == RANGES:
            break
        numbers = [pair for value in values if value is not None and value != "" for pair in [(_number(value), value)]]
        if len(numbers) > 1 and all(number is not None for number, _ in numbers):
            pairs = cast("list[tuple[float, Any]]", numbers)
            low, high = min(pairs, key=lambda pair: pair[0])[1], max(pairs, key=lambda pair: pair[0])[1]
            found.append(f"{_one_line(name, 40)} {low} to {high}")
    return f"; ranges{looked}: {', '.join(found)}" if found else ""


def _number(value: Any) -> float | None:
    """``value`` as a number that can be compared; None for anything else, NaN and truth values included."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number


def _type(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return f"array of {len(cast('list[Any]', value))}"
        case _:
            return f"object of {len(cast('dict[str, Any]', value))}"


def _short(value: Any) -> str:
    try:
        return _one_line(json.dumps(value, ensure_ascii=False), WORDS)
    except RecursionError:
        return f"{_type(value)}, nested deep"


def rows(text: str) -> list[list[str]]:
    """The cells of a table's text, the names of its columns first: comma, tab, semicolon or Markdown."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return []
    if lines[0].lstrip().startswith("|"):
        cells = [line.strip().strip("|").split("|") for line in lines if not _RULE.issuperset(line)]
        return [[cell.strip() for cell in row] for row in cells]
    delimiter = max("\t,;|", key=lines[0].count)
    try:
        return list(csv.reader(lines, delimiter=delimiter))
    except csv.Error:
        return [line.split(delimiter) for line in lines]


def _table(text: str, lines: int, *, whole: bool) -> str | None:
    if not whole:
        text = text[: text.rfind("\n") + 1]
    found = rows(text)
    if not found:
        return None
    names, body = found[0], found[1:]
    total = len(body) if whole else max(len(body), lines - 1)
    looked = "" if whole else f" in the first {len(body):,} rows"
    columns = ((name, [row[at] if at < len(row) else "" for row in body]) for at, name in enumerate(names))
    first = f"; first row: {_one_line(', '.join(body[0]), WORDS)}" if body else ""
    return f"{count(total, 'row')}, {count(len(names), 'column')}: {_names(names)}{first}{_ranges(columns, looked)}"
