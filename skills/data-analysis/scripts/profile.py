"""What a table really holds: rows, types, gaps, doubles, ranges, and what would make a figure wrong.

In: {"path": "sales.csv"}; also delimiter, encoding, header (true or false), skip (lines before the header), pointer
("/items", where the records lie in JSON), key (columns that should be unique together), seconds (20).
Reads CSV, TSV, JSON and JSON lines, also with .gz, with the standard library alone.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from columns import DAY, POINT, REMEMBERED, Column, described
from workspace import Args, Refused, encoding_of, option, run, shown, source

KNOWN = "path delimiter encoding header skip pointer key seconds"


@contextmanager
def opened(path: Path, args: Args) -> Iterator[io.TextIOWrapper]:
    """The file as text, unpacked."""
    if kind_of(path) in {"xlsx", "xls", "ods", "parquet", "db", "sqlite", "duckdb", "pdf", "zip"}:
        raise Refused(f"{shown(path)} is not text: the skills xlsx and sql read workbooks and databases")
    with path.open("rb") as file:
        raw = gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
        try:
            encoding = option(args, "encoding", str, "") or encoding_of(raw.read(1 << 20))
            raw.seek(0)
            text = io.TextIOWrapper(raw, encoding, errors="replace", newline="")
        except (LookupError, ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise Refused(f"{shown(path)}: {error}") from None
        with text:
            yield text


def kind_of(path: Path) -> str:
    return path.name.lower().removesuffix(".gz").rpartition(".")[2]


def separated(text: io.TextIOWrapper, args: Args) -> tuple[Iterator[list[str]], list[str], Args]:
    csv.field_size_limit(1 << 24)
    start = text.read(1 << 16)
    text.seek(0)
    delimiter = option(args, "delimiter", str, "") or max(",;\t|", key=lambda sign: regular(start, sign))
    if len(delimiter) != 1:
        raise Refused('"delimiter" is one character')
    widths = Counter(len(row) for row in list(csv.reader(start.splitlines(), delimiter=delimiter))[:50] if row)
    width = widths.most_common(1)[0][0] if widths else 0
    rows = csv.reader(text, delimiter=delimiter)
    skipped = [next(rows, []) for _ in range(option(args, "skip", int, 0))]
    first = next(rows, [])
    while "skip" not in args and len(skipped) < 20 and width > 1 and len(first) < width / 2:
        skipped.append(first)
        first = next(rows, [])
    words = [cell.strip() for cell in first]
    looks = (
        all(words) and len(set(words)) == len(words) and not any(POINT.fullmatch(w) or DAY.fullmatch(w) for w in words)
    )
    header = option(args, "header", bool, looks)
    read_as = {"encoding": text.encoding, "delimiter": delimiter, "header": header, "lines_before_header": len(skipped)}
    names = words if header else [f"column {place + 1}" for place in range(len(first))]
    return (rows if header else chain([first], rows)), names, read_as


def regular(start: str, sign: str) -> float:
    """How much the lines look like a table with this sign between the cells."""
    widths = Counter(len(row) for row in list(csv.reader(start.splitlines(), delimiter=sign))[:50] if row)
    width, times = widths.most_common(1)[0] if widths else (1, 0)
    return 0 if width == 1 else times / sum(widths.values()) + width / 1000


def records(text: io.TextIOWrapper, kind: str, pointer: str) -> tuple[Iterator[list[str]], list[str], Args]:
    if kind == "json":
        try:
            held: Any = json.load(text)
            for step in pointer.strip("/").split("/") if pointer.strip("/") else []:
                held = held[int(step) if isinstance(held, list) else step]
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise Refused(f"the JSON cannot be read so: {error}") from None
        if not isinstance(held, list):
            first = held if isinstance(held, dict) else {}
            lists = ", ".join(f"/{key}" for key, value in first.items() if isinstance(value, list))
            raise Refused(f'this JSON is no list of records: set "pointer"; lists lie at: {lists or "no first level"}')
    else:
        held = [parsed(line, place) for place, line in enumerate(text, 1) if line.strip()]
    names = list(dict.fromkeys(key for record in held if isinstance(record, dict) for key in record))
    strange = [*names, "no record"]
    rows = ([plain(record.get(name)) for name in names] if isinstance(record, dict) else strange for record in held)
    return rows, names, {"encoding": text.encoding, "records_at": pointer or "/"}


def parsed(line: str, place: int) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return f"line {place}"


def plain(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass
class Count:
    """What is true of rows rather than of columns."""

    rows: int = 0
    blank: int = 0
    odd: list[int] = field(default_factory=list)
    sample: list[list[str]] = field(default_factory=list)
    whole: Counter[int] = field(default_factory=Counter)
    keys: Counter[tuple[str, ...]] = field(default_factory=Counter)
    complete: bool = True

    def take(self, row: list[str], key: list[int]) -> None:
        self.rows += 1
        if len(self.sample) < 3:
            self.sample.append([cell[:60] for cell in row])
        if len(self.whole) < REMEMBERED:
            self.whole[hash(tuple(row))] += 1
        if key and len(self.keys) < REMEMBERED:
            self.keys[tuple(row[place].strip() for place in key)] += 1

    @property
    def doubled(self) -> int:
        return sum(times - 1 for times in self.whole.values())


def counted(rows: Iterator[list[str]], columns: list[Column], key: list[int], seconds: int) -> Count:
    count, until = Count(), time.monotonic() + seconds
    for place, row in enumerate(rows, 1):
        if not place % 4096 and time.monotonic() > until:
            count.complete = False
            break
        if not any(cell.strip() for cell in row):
            count.blank += 1
        elif len(row) != len(columns):
            count.odd.append(place)
        else:
            count.take(row, key)
            for column, cell in zip(columns, row, strict=True):
                column.take(cell)
    return count


def profile(args: Args) -> Args:
    path = source(args)
    with opened(path, args) as text:
        kind = kind_of(path)
        if kind in {"json", "jsonl", "ndjson"}:
            rows, names, read_as = records(text, kind, option(args, "pointer", str, ""))
        else:
            rows, names, read_as = separated(text, args)
        key = [str(name) for name in option(args, "key", list, [])]
        if absent := [name for name in key if name not in names]:
            raise Refused(f"no column {', '.join(absent)}; there are {', '.join(names)}")
        columns = [Column(name or f"column {place}") for place, name in enumerate(names, 1)]
        try:
            count = counted(rows, columns, [names.index(name) for name in key], option(args, "seconds", int, 20))
        except (csv.Error, EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise Refused(f"{shown(path)} cannot be read to its end: {error}") from None
    seen = [described(column, count.rows) for column in columns]
    unique = [said["name"] for said, _ in seen if count.rows > 1 and said["distinct"] == said["filled"] == count.rows]
    answer: Args = {
        "source": fingerprint(path) | read_as,
        "rows": count.rows,
        "complete": count.complete,
        "columns": [said for said, _ in seen],
        "duplicate_rows": count.doubled,
        "unique_columns": unique,
        "rows_left_out": {"blank": count.blank, "wrong_width": len(count.odd), "at_rows": count.odd[:10]},
        "sample": count.sample,
    }
    if key:
        twice = {name: times for name, times in count.keys.items() if times > 1}
        answer["key"] = {
            "columns": key,
            "unique": not twice,
            "repeated": [[*n, t] for n, t in list(twice.items())[:10]],
        }
    return answer | {"beware": [*beware(count, names), *(note for _, notes in seen for note in notes)]}


def beware(count: Count, names: list[str]) -> list[str]:
    said: list[str] = []
    if not count.complete:
        said.append(f"stopped for time after {count.rows} rows: nothing here speaks for the rest; raise seconds")
    if count.odd:
        said.append(f"{len(count.odd)} rows have another number of cells and are in no figure here")
    if count.doubled:
        said.append(f"{count.doubled} rows repeat an earlier row in every cell")
    if len(count.whole) >= REMEMBERED:
        said.append(f"repeated rows were looked for in the first {REMEMBERED} different rows only")
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        said.append(f"several columns have the same name: {', '.join(twice)}")
    return said


def fingerprint(path: Path) -> Args:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    facts = path.stat()
    modified = datetime.fromtimestamp(facts.st_mtime, UTC).isoformat(timespec="seconds")
    return {"path": shown(path), "bytes": facts.st_size, "modified": modified, "sha256": digest}


if __name__ == "__main__":
    sys.exit(run(profile, KNOWN))
