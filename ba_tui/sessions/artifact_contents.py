"""Reads a stored file in parts by byte, line or word, and describes its structure in one line.

Only a few blocks are in memory at a time. Of large files, the description covers the beginning and says so.
"""

from __future__ import annotations

import codecs
import csv
import json
import math
import os
import stat
import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

from ba_tui.core.results import Kind, LineMatch, TextPage
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import byte_size, count, one_line

BLOCK = 1 << 20
LONGEST = 4 * BLOCK
"""Lines longer than this are searched in pieces."""
SHOWN = 300
BEFORE = 80


class Pages:
    """One immutable file. Line counts are cached, one number per block."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ends = [0]
        """Number of line ends before each block."""
        self._counting = threading.Lock()

    def read(self, offset: int, limit: int) -> TextPage:
        with open_result(self._path) as file:
            size = _size(file)
            offset = _character_start(file, min(max(0, offset), size))
            text, upto = _decoded(file, offset, max(4, limit), size)
            return TextPage(text, self._ends_before(file, offset) + 1, offset, upto, size)

    def lines(self, start: int, count: int, limit: int) -> TextPage:
        with open_result(self._path) as file:
            size = _size(file)
            offset = self._offset_of(file, max(1, start), size)
            if offset >= size:
                return TextPage("", self._ends_before(file, size) + 1, size, size, size)
            file.seek(offset)
            data = file.read(max(4, limit))
            end = _end_of(data, max(1, count), whole=offset + len(data) >= size)
            text, upto = _decoded(file, offset, end, size)
            return TextPage(text, max(1, start), offset, upto, size)

    def search(self, words: str, limit: int, start: int) -> list[LineMatch]:
        wanted = words.lower().split()
        hits: list[LineMatch] = []
        if not wanted:
            return hits
        with open_result(self._path) as file:
            offset = self._offset_of(file, max(1, start), _size(file))
            line = max(1, start)
            file.seek(offset)
            for chunk in _chunks(file):
                lowered = chunk.decode("utf-8", "replace").lower()
                if all(word in lowered for word in wanted):
                    hits += _hits(chunk, wanted, line, offset)
                    if len(hits) >= limit:
                        return hits[:limit]
                line += chunk.count(b"\n")
                offset += len(chunk)
        return hits

    def _ends_before(self, file: BinaryIO, offset: int) -> int:
        block, rest = divmod(offset, BLOCK)
        self._count(file, upto_block=block)
        file.seek(block * BLOCK)
        return self._ends[block] + file.read(rest).count(b"\n")

    def _offset_of(self, file: BinaryIO, line: int, size: int) -> int:
        """Return the offset of ``line``; the file's size if it has fewer lines."""
        before = line - 1
        if before == 0:
            return 0
        self._count(file, upto_ends=before)
        block = bisect_left(self._ends, before) - 1
        file.seek(block * BLOCK)
        data = file.read(BLOCK)
        *head, rest = data.split(b"\n", before - self._ends[block])
        return block * BLOCK + len(data) - len(rest) if len(head) == before - self._ends[block] else size

    def _count(self, file: BinaryIO, *, upto_block: int = 0, upto_ends: int = 0) -> None:
        """Count line ends up to a block, or up to a number of them."""
        with self._counting:
            file.seek((len(self._ends) - 1) * BLOCK)
            while len(self._ends) <= upto_block or self._ends[-1] < upto_ends:
                data = file.read(BLOCK)
                if len(data) < BLOCK:
                    return
                self._ends.append(self._ends[-1] + data.count(b"\n"))


def open_result(path: Path) -> BinaryIO:
    """Open a regular file for reading. Raises OSError for anything else, including a link."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{path.name} is not a regular file")
    return os.fdopen(handle, "rb")


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _decoded(file: BinaryIO, offset: int, limit: int, size: int) -> tuple[str, int]:
    """Return the text from ``offset`` and its end, before a character that ``limit`` would cut."""
    file.seek(offset)
    data = file.read(limit)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    upto = offset + len(data)
    text = decoder.decode(data, final=upto >= size)
    return text, upto - len(decoder.getstate()[0])


def _character_start(file: BinaryIO, offset: int) -> int:
    """Return ``offset``, or the start of the character that contains it."""
    start = max(0, offset - 3)
    file.seek(start)
    around = file.read(8)
    at = offset - start
    if not 0x80 <= (around[at] if at < len(around) else 0) <= 0xBF:
        return offset
    for back in range(1, at + 1):
        for length in range(back + 1, 5):
            try:
                around[at - back : at - back + length].decode()
            except UnicodeDecodeError:
                continue
            return offset - back
    return offset


def _end_of(data: bytes, count: int, *, whole: bool) -> int:
    """Return the size of the first ``count`` lines of ``data``, without an incomplete last line."""
    pieces = data.split(b"\n", count)
    if len(pieces) > count:
        return len(data) - len(pieces[count])
    return len(data) if whole else data.rfind(b"\n") + 1 or len(data)


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    """Yield the rest of ``file`` in parts that end at line ends, except in overlong lines."""
    carry = b""
    while data := file.read(BLOCK):
        carry += data
        cut = carry.rfind(b"\n") + 1
        if not cut and len(carry) < LONGEST:
            continue
        cut = cut or len(carry)
        yield carry[:cut]
        carry = carry[cut:]
    if carry:
        yield carry


def _hits(chunk: bytes, wanted: list[str], line: int, offset: int) -> Iterator[LineMatch]:
    for number, raw in enumerate(chunk.split(b"\n"), line):
        text = raw.decode("utf-8", "replace")
        lowered = text.lower()
        if all(word in lowered for word in wanted):
            yield LineMatch(number, offset, _around(text, lowered.find(wanted[0])))
        offset += len(raw) + 1


def _around(text: str, at: int) -> str:
    if len(text) <= SHOWN:
        return text
    start = min(max(0, at - BEFORE), max(0, len(text) - SHOWN))
    end = start + SHOWN
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


WHOLE = 2_000_000
"""Maximum bytes of JSON and tables that are read completely."""
LOOK = 256_000
WORDS = 100
NAMES = 20
RANGES = 8
LENGTH = 700
_HIT = regex(r"(.+?)[:-]\d+[:-]")
_RULE = frozenset("|:- \t")

TableRow: TypeAlias = Mapping[str, Any]


def describe(path: Path, kind: Kind, size: int, lines: int) -> str:
    """Return one line about the file. Raises OSError if it can't be read."""
    with open_result(path) as file:
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
    """Return the structure of ``text``; None if it has none. ``whole``: it is complete, not only the beginning."""
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


def parse_json(text: str) -> Any:
    """Parse JSON. Raises ValueError, also if it is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _json(text: str, lines: int, *, whole: bool) -> str | None:
    if whole:
        try:
            return _value(parse_json(text))
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
    """Return the values of JSON lines, without the last one of a truncated text; None if it is something else."""
    lines = text.splitlines()
    if not whole:
        del lines[-1:]
    try:
        records = [parse_json(line) for line in lines if line.strip()]
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
    """Return what items have in common: keys and ranges of objects, the range of numbers; and the first item."""
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
    """Return ``; ranges: price 1 to 9`` for columns with only numbers and gaps."""
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
    """Return ``value`` as a comparable number; None for anything else, including NaN and booleans."""
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
    """Return the cells of a table, column names first. Separators: comma, tab, semicolon, or Markdown."""
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
