"""Loads CSV, JSON and Parquet files with DuckDB's own readers, and counts the rows that they can't take."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb

from ba_tui.core.ports.tables import FILES, BadRow, DataFormat
from ba_tui.core.text.wording import count, one_line
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.database import quoted, text
from ba_tui.features.data.analysis.engine_process.failures import disk_full, said, unreadable
from ba_tui.features.data.analysis.engine_process.formats import FoundFormat, legacy_encoding, opened_text, transcoded

LOADING = '"~loading"'
"""The table that is being filled; it gets its name once it is whole."""
MOST_LINE = 64_000_000
LONGEST_HEADER = 1_000_000
MOST_SHOWN = 20
MOST_CHARS = 120
ROUNDS = 4
ABOVE = "before the header"
"""What a note says of lines above the header."""
LOOK, LOOK_LINES = 65_536, 40
DELIMITERS = ",;\t|"
ZONE_ROWS = 20_000
ZONE = r"([+-]\d\d:?\d*|[A-Z]{1,5}|[A-Z]\w+/\w+)$"


@frozen
class Loaded:
    """What a load made of LOADING. ``plain``: its texts came from a file where all values are text. ``reader``: the
    call that reads the same from the files as they are, with FILES in place of their list; empty where none does.
    ``date_format``: how its dates were written."""

    format: DataFormat
    encoding: str = ""
    delimiter: str = ""
    rows_skipped: int = 0
    bad_rows: tuple[BadRow, ...] = ()
    notes: tuple[str, ...] = ()
    plain: bool = False
    reader: str = ""
    date_format: str = ""


@frozen
class TextSource:
    """``paths`` of one format; ``scratch`` makes a path for a temporary file; ``widen`` gives a load more memory."""

    paths: tuple[Path, ...]
    found: FoundFormat
    scratch: Callable[[str], Path]
    widen: Callable[[], None]

    @property
    def name(self) -> str:
        return self.paths[0].name if len(self.paths) == 1 else f"{self.paths[0].name} and {len(self.paths) - 1} more"


@frozen
class _Csv:
    """How the next try reads. ``kept``: columns to keep as text. ``longest``: bytes of a line, where lines are
    longer than usual. ``united``: the files have different columns, which
    DuckDB puts together by their names, but then it counts no bad rows. ``skip``: lines before the header."""

    kept: tuple[str, ...] = ()
    longest: int = 0
    united: bool = False
    skip: int = 0

    def reader(self, files: str) -> str:
        """The call that reads ``files``, a list in SQL."""
        types = ", ".join(f"{text(name)}: 'VARCHAR'" for name in self.kept)
        more = [f"types = {{{types}}}"] if types else []
        more += [f"skip = {self.skip}", "header = true"] if self.skip else []
        if self.longest:
            more += [*self.sizes, "parallel = false"]
        options = ["union_by_name = true" if self.united else "store_rejects = true", *more]
        return f"read_csv({', '.join([files, *options])})"

    @property
    def sizes(self) -> list[str]:
        """Options for lines that are longer than usual."""
        return [f"maximum_line_size = {self.longest}", f"buffer_size = {2 * self.longest}"] if self.longest else []


def load_csv(cursor: duckdb.DuckDBPyConnection, source: TextSource) -> Loaded:
    """Fill LOADING from text with delimiters. Raises HandlerFailed when it is not a table."""
    way, encoding, given = _Csv(), source.found.encoding, source.paths
    if encoding:
        source = _in_utf8(source, encoding)
    way = replace(way, united=_differ(source), skip=_lines_above(source))
    for _ in range(ROUNDS):
        trouble, columns = _tried(cursor, source, way)
        if trouble == "encoding" and not encoding:
            encoding = legacy_encoding(source.paths[0], source.found.compression)
            source = _in_utf8(source, encoding)
        elif trouble == "line" and not way.longest:
            source.widen()
            way = replace(way, longest=_longest_line(source))
        elif trouble == "types" and (mixed := [name for name in columns if name not in way.kept]):
            way = replace(way, kept=(*way.kept, *mixed))
        elif zoned := _several_zones(cursor, way, source.paths):
            way = replace(way, kept=(*way.kept, *zoned))
        else:
            break
    skipped, bad = (0, ()) if way.united else _bad_rows(cursor)
    delimiter, notes, dates = _dialect(cursor, source, way)
    _check_shape(cursor, source.name)
    reader = way.reader(FILES) if source.paths == given else ""
    return Loaded("csv", encoding or "utf-8", delimiter, skipped, bad, notes, True, reader, dates)


def _longest_line(source: TextSource) -> int:
    """The most bytes that a line can have: a buffer for more takes memory for nothing."""
    if source.found.compression != "none":
        return MOST_LINE
    return min(MOST_LINE, max(path.stat().st_size for path in source.paths))


def _tried(cursor: duckdb.DuckDBPyConnection, source: TextSource, way: _Csv) -> tuple[str, Sequence[str]]:
    """Fill LOADING and return what to do better: a word, and the columns that it is about."""
    _forget_rejects(cursor)
    statement = f"CREATE OR REPLACE TABLE {LOADING} AS FROM {way.reader(_listed(source.paths))}"
    try:
        try:
            cursor.execute(statement)
        except duckdb.OutOfMemoryException:
            source.widen()
            cursor.execute(statement)
    except duckdb.Error as error:
        words = str(error)
        if "line size" in words and not way.longest:
            return "line", ()
        if any(each in words for each in ("Invalid unicode", "not utf-8", "Invalid Byte Sequence")):
            return "encoding", ()
        if disk_full(error):
            raise
        raise unreadable(f"{source.name} can't be read as a table: {_broken(error)}") from error
    kinds = {} if way.united else _reject_kinds(cursor)
    if "INVALID ENCODING" in kinds:
        return "encoding", ()
    if "LINE SIZE OVER MAXIMUM" in kinds:
        return "line", ()
    return ("types", kinds["CAST"]) if kinds.get("CAST") else ("", ())


def _broken(error: Exception) -> str:
    words = str(error)
    if "gzip" in words.lower() or "decompress" in words.lower() or "miniz" in words.lower():
        return "its compressed content is broken."
    if "read enough bytes" in words:
        return "the file became shorter while it was read."
    if "sniffing file" in words:
        return "it has no columns that a delimiter separates."
    return one_line(said(error), 200)


def _in_utf8(source: TextSource, encoding: str) -> TextSource:
    """The same text in UTF-8, in temporary files."""
    found, paths = replace(source.found, encoding=encoding), list[Path]()
    for number, path in enumerate(source.paths):
        target = source.scratch(f"text-{number}{Path(path.stem if found.compression != 'none' else path).suffix}")
        transcoded(path, found, target)
        paths.append(target)
    return replace(source, paths=tuple(paths), found=replace(source.found, compression="none"))


def _forget_rejects(cursor: duckdb.DuckDBPyConnection) -> None:
    for table in ("reject_errors", "reject_scans"):
        cursor.execute(f"DROP TABLE IF EXISTS {table}")


def _reject_kinds(cursor: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """The kinds of errors, each with the columns that it is about."""
    rows = cursor.execute(
        "SELECT error_type, list(DISTINCT column_name) FILTER (column_name IS NOT NULL) FROM reject_errors GROUP BY ALL"
    ).fetchall()
    return {str(kind): [str(name) for name in names or ()] for kind, names in rows}


def _bad_rows(cursor: duckdb.DuckDBPyConnection) -> tuple[int, tuple[BadRow, ...]]:
    row = cursor.execute("SELECT count(DISTINCT (file_id, line)) FROM reject_errors").fetchone()
    shown = cursor.execute(
        f"""SELECT line, any_value(error_type), any_value(left(csv_line, {MOST_CHARS})), any_value(error_message)
            FROM reject_errors GROUP BY file_id, line ORDER BY file_id, line LIMIT {MOST_SHOWN}"""
    ).fetchall()
    bad = tuple(BadRow(int(line), _reason(kind, words), one_line(line_text or "", MOST_CHARS))
                for line, kind, line_text, words in shown)  # fmt: skip
    return (int(row[0]) if row else 0), bad


def _reason(kind: str, words: str) -> str:
    reasons = {
        "MISSING COLUMNS": "too few columns",
        "TOO MANY COLUMNS": "too many columns",
        "UNQUOTED VALUE": "a quote that is not closed",
        "LINE SIZE OVER MAXIMUM": f"longer than {MOST_LINE // 1_000_000} MB",
        "INVALID ENCODING": "characters that are not valid in the encoding",
    }
    return reasons.get(kind) or one_line(words.split("\n", 1)[0], 80)


def _differ(source: TextSource) -> bool:
    """Whether the first lines of several files are not all the same."""
    if len(source.paths) < 2 or source.found.compression == "zstd":
        return len(source.paths) > 1
    firsts: set[bytes] = set()
    for path in source.paths:
        with opened_text(path, source.found.compression) as file:
            firsts.add(file.readline(LONGEST_HEADER).strip())
    return len(firsts) > 1


def _lines_above(source: TextSource) -> int:
    """Return how many lines of titles and remarks stand above the header: lines with hardly a cell filled."""
    if source.found.compression == "zstd":
        return 0
    with opened_text(source.paths[0], source.found.compression) as file:
        lines = file.read(LOOK).decode("utf-8", "replace").splitlines()[:LOOK_LINES]
    best = (0, 0, 0)
    for delimiter in DELIMITERS:
        with suppress(csv.Error):
            rows = list(csv.reader(lines, delimiter=delimiter))
            filled = [sum(bool(cell.strip()) for cell in row) for row in rows]
            width = max(map(len, rows), default=0)
            full = sum(len(row) == width for row in rows)
            head = next((at for at, cells in enumerate(filled) if cells * 10 >= width * 6), 0)
            clear = all(cells * 3 <= width for cells in filled[:head])
            if width > 1 and full * 2 > len(rows) - head:
                best = max(best, (full * width, width, head if clear and len(rows) == len(lines) else 0))
    return best[2]


def _dialect(cursor: duckdb.DuckDBPyConnection, source: TextSource, way: _Csv) -> tuple[str, tuple[str, ...], str]:
    """The delimiter, sentences about how the files were read, and how dates are written."""
    above = [f"skip = {way.skip}", "header = true"] if way.skip else []
    options = ", ".join((text(str(source.paths[0])), "ignore_errors = true", *way.sizes, *above))
    query = f"FROM sniff_csv({options})"
    try:
        found = cursor.execute(f"SELECT Delimiter, SkipRows, DateFormat {query}").fetchone()
    except duckdb.Error:
        found = None
    delimiter, skip, dates = found or ("", 0, None)
    skip = way.skip or skip
    notes: list[str] = []
    if skip:
        notes.append(f"{count(skip, 'line')} {ABOVE} {'was' if skip == 1 else 'were'} skipped.")
    if way.united:
        notes.append("The files have different columns, which were put together by their names.")
    if dates and _either_order(cursor, dates):
        notes.append(f"The dates are read as {dates}; day and month may be the other way round.")
    return str(delimiter), tuple(notes), str(dates or "")


def _either_order(cursor: duckdb.DuckDBPyConnection, written: str) -> bool:
    """Whether dates written so would also be dates with day and month exchanged."""
    if written[:5] not in {"%d/%m", "%m/%d", "%d-%m", "%m-%d"}:
        return False
    columns = cursor.execute(f"FROM {LOADING} LIMIT 0").description or ()
    days = [f"max(day({quoted(str(name))}))" for name, kind, *_ in columns if str(kind) == "DATE"]
    row = cursor.execute(f"SELECT greatest({', '.join(days)}) FROM {LOADING}").fetchone() if days else None
    return bool(row and row[0] and row[0] <= 12)


def _several_zones(cursor: duckdb.DuckDBPyConnection, way: _Csv, paths: Sequence[Path]) -> list[str]:
    """Columns of times whose text has several zones, which would be lost."""
    described = cursor.execute(f"FROM {LOADING} LIMIT 0").description or ()
    names = [str(name) for name, kind, *_ in described if str(kind) == "TIMESTAMP WITH TIME ZONE"]
    found: list[str] = []
    for name in names:
        # Rows that don't fit were counted by the load.
        reader = replace(way, kept=(*way.kept, name)).reader(_listed(paths))
        reader = reader.replace("store_rejects = true", "ignore_errors = true")
        zone = f"regexp_extract({quoted(name)}, {text(ZONE)})"
        row = cursor.execute(
            f"SELECT count(DISTINCT {zone}) FROM (SELECT {quoted(name)} FROM {reader} LIMIT {ZONE_ROWS})"
        ).fetchone()
        if row and row[0] > 1:
            found.append(name)
    return found


def _check_shape(cursor: duckdb.DuckDBPyConnection, name: str) -> None:
    """Raises HandlerFailed when there is not even a header."""
    row = cursor.execute(f"SELECT count(*) FROM {LOADING}").fetchone()
    columns = [column[0] for column in cursor.execute(f"FROM {LOADING} LIMIT 0").description or ()]
    if row and not row[0] and columns in ([], ["column0"]):
        raise unreadable(f"{name} holds no rows and no header.")


def load_json(cursor: duckdb.DuckDBPyConnection, source: TextSource) -> Loaded:
    """Fill LOADING from JSON or JSON Lines; lines that are not JSON are counted and left out."""
    encoding = source.found.encoding
    if encoding:
        source = _in_utf8(source, encoding)
    whole = Loaded("json", encoding or "utf-8", reader="" if encoding else _json_reader(FILES))
    try:
        _create_from_json(cursor, source.paths)
        return whole
    except duckdb.OutOfMemoryException:
        source.widen()
        _create_from_json(cursor, source.paths)
        return whole
    except duckdb.Error as error:
        target, bad = source.scratch("lines.jsonl"), list[BadRow]()
        good = 0
        with target.open("w", encoding="utf-8") as file:
            for number, line, why in _json_lines(source):
                if why:
                    bad.append(BadRow(number, why, one_line(line, MOST_CHARS)))
                else:
                    file.write(f"{line.strip()}\n")
                    good += 1
        if good < 2 or len(bad) > good:
            raise unreadable(f"{source.name} is not valid JSON: {one_line(said(error), 160)}") from error
        _create_from_json(cursor, (target,))
        return Loaded("json", encoding or "utf-8", rows_skipped=len(bad), bad_rows=tuple(bad[:MOST_SHOWN]))


def _create_from_json(cursor: duckdb.DuckDBPyConnection, paths: Sequence[Path]) -> None:
    cursor.execute(f"CREATE OR REPLACE TABLE {LOADING} AS FROM {_json_reader(_listed(paths))}")


def _json_reader(files: str) -> str:
    return f"read_json({files}, union_by_name = true, maximum_object_size = {MOST_LINE})"


def _json_lines(source: TextSource) -> Iterator[tuple[int, str, str]]:
    """Each line with its number, and why it is not JSON."""
    for path in source.paths:
        with opened_text(path, source.found.compression) as file:
            for number, data in enumerate(file, 1):
                line = data.decode("utf-8", "replace")
                if line.strip():
                    yield number, line, _not_json(line)


def _not_json(line: str) -> str:
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {one_line(str(error), 60)}"
    return "" if isinstance(value, dict) else "not an object"


def view_parquet(cursor: duckdb.DuckDBPyConnection, name: str, paths: Sequence[Path]) -> None:
    """Make ``name`` a view of Parquet files, which DuckDB reads where they lie."""
    query = f"FROM {parquet_reader(_listed(paths), len(paths))}"
    try:
        cursor.execute(f"{query} LIMIT 0")
    except duckdb.Error as error:
        raise unreadable(f"{paths[0].name} can't be read as Parquet: {one_line(said(error), 160)}") from error
    with suppress(duckdb.CatalogException):
        cursor.execute(f"DROP TABLE IF EXISTS {quoted(name)}")
    cursor.execute(f"CREATE OR REPLACE VIEW {quoted(name)} AS {query}")


def parquet_reader(files: str, count: int) -> str:
    """Return the call that reads ``files``, a list of ``count`` files in SQL."""
    return f"read_parquet({files}, union_by_name = {str(count > 1).lower()})"


def _listed(paths: Sequence[Path]) -> str:
    """A list of files in SQL."""
    return f"[{', '.join(text(str(path)) for path in paths)}]"
