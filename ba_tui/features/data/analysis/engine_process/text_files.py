"""Loads CSV, JSON and Parquet files with DuckDB's readers, and counts the rows that don't fit."""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias, cast

import duckdb

from ba_tui.core.ports.tables import FILES, BadRow, DataFormat
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count, one_line
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.database import (
    columns_of,
    disk_full,
    fetch_number,
    quoted,
    said,
    text,
    unreadable,
)

# Formats are detected by the first bytes before the name; text encodings too.

FORMAT_BYTES = 65_536
SAMPLE = 1_000_000
MOST_NAMES = 5
Compression: TypeAlias = Literal["none", "gzip", "zstd"]

MAGIC: tuple[tuple[bytes, DataFormat | Literal["gzip", "zstd", "zip", "ole", "pdf"]], ...] = (
    (b"SQLite format 3\0", "sqlite"), (b"PAR1", "parquet"), (b"ARROW1", "arrow"), (b"\xff\xff\xff\xff", "arrow"),
    (b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"PK\x03\x04", "zip"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "ole"), (b"%PDF-", "pdf"),
)  # fmt: skip
ENDINGS: dict[str, DataFormat] = {
    **dict.fromkeys(("json", "jsonl", "ndjson", "geojson"), "json"),
    **dict.fromkeys(("xlsx", "xlsm", "xlsb", "xls", "ods"), "excel"),
    **dict.fromkeys(("csv", "tsv", "tab", "txt", "psv", "dat"), "csv"),
    **dict.fromkeys(("parquet", "pq"), "parquet"),
    **dict.fromkeys(("arrow", "feather", "ipc", "arrows"), "arrow"),
    **dict.fromkeys(("sqlite", "sqlite3", "db"), "sqlite"),
}
ARTICLES = {"parquet": "a Parquet", "arrow": "an Arrow", "sqlite": "an SQLite"}
_HTML = regex(rb"(?is)\s*(?:<!--.{0,2000}?-->\s*)?(?:<\?xml[^>]{0,200}>\s*)?<(?:!doctype\s+html|html|head|body)\b")
_XML = regex(rb"(?is)\s*<\?xml\b")
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"),
         (codecs.BOM_UTF16_BE, "utf-16"))  # fmt: skip
LEGACY = ("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp932", "gb18030", "big5", "euc_kr", "koi8_r", "mac_roman")


@frozen
class FoundFormat:
    """``encoding`` of text formats; empty when the first bytes do not show it."""

    format: DataFormat
    compression: Compression = "none"
    encoding: str = ""


def detect_format(path: Path) -> FoundFormat:
    """Return the format of ``path``. Raises HandlerFailed, in words, for other content."""
    name = path.name
    try:
        with path.open("rb") as file:
            head = file.read(FORMAT_BYTES)
    except OSError as error:
        raise unreadable(f"{name} can't be read: {error.strerror}.") from error
    if not head:
        raise unreadable(f"{name} is empty.")
    kind = next((kind for magic, kind in MAGIC if head.startswith(magic)), None)
    if kind == "zip":
        _check_workbook(path)
    if kind in {"zip", "ole"}:
        return FoundFormat("excel")
    if kind == "pdf":
        raise unreadable(f"{name} is a PDF document, not a table.")
    if kind in {"sqlite", "parquet", "arrow"}:
        return FoundFormat(kind)  # type: ignore[arg-type]
    ending = path.suffix.lower().lstrip(".")
    compression: Compression = "none"
    if kind in {"gzip", "zstd"}:
        compression = "gzip" if kind == "gzip" else "zstd"
        ending = Path(path.stem).suffix.lower().lstrip(".")
        head = _unpacked(path) if compression == "gzip" else b""
    if head:
        _check_text(head, name)
    declared = ENDINGS.get(ending, "csv")
    if article := ARTICLES.get(declared):
        raise unreadable(f"{name} is not {article} file: its content is something else.")
    return FoundFormat("json" if declared == "json" else "csv", compression, _marked(head))


def _check_workbook(path: Path) -> None:
    """Raise HandlerFailed for archives and documents that are no workbooks."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile, ValueError):
        # The workbook reader reports the error.
        return
    if not any(name.startswith("xl/") or name == "content.xml" for name in names):
        files = ", ".join(one_line(name, 40) for name in names[:MOST_NAMES])
        document = "[Content_Types].xml" in names
        what = "an Office document without tables" if document else f"a zip archive of {count(len(names), 'file')}"
        hint = "" if document else f"Unpack it first: it holds {files}{' …' if len(names) > MOST_NAMES else ''}"
        raise unreadable(f"{path.name} is {what}, not a table.", hint)


def _unpacked(path: Path) -> bytes:
    try:
        with gzip.open(path) as file:
            return file.read(FORMAT_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(f"{path.name} is a broken gzip file: {error}.") from error


def _check_text(head: bytes, name: str) -> None:
    if not head.strip(b"\0"):
        raise unreadable(f"{name} begins with nothing but NUL bytes; it is not a table.")
    if _HTML.match(head):
        raise unreadable(f"{name} is a web page (HTML), not a table.", "Download the data itself.")
    if _XML.match(head):
        raise unreadable(f"{name} is XML, not a table.")
    if not _marked(head) and _binary(head):
        raise unreadable(f"{name} is a binary file of an unknown kind, not a table.")


def _binary(head: bytes) -> bool:
    """Return whether there are many control characters, other than in UTF-16."""
    control = sum(head.count(bytes([code])) for code in (*range(9), *range(14, 27), *range(28, 32)))
    return control * 10 > len(head)


def _marked(head: bytes) -> str:
    """Return the encoding shown by a byte order mark or by zero bytes; empty for UTF-8 and others."""
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return "" if encoding == "utf-8-sig" else encoding
    pairs = len(head) // 2
    if pairs > 4:
        if head[1::2].count(0) * 10 > pairs * 6 and head[::2].count(0) * 10 < pairs:
            return "utf-16-le"
        if head[::2].count(0) * 10 > pairs * 6 and head[1::2].count(0) * 10 < pairs:
            return "utf-16-be"
    return ""


def opened_text(path: Path, compression: Compression) -> IO[bytes]:
    """Open the uncompressed bytes of a text file. Raises OSError."""
    return cast("IO[bytes]", gzip.open(path)) if compression == "gzip" else path.open("rb")


def legacy_encoding(path: Path, compression: Compression) -> str:
    """Return the likeliest encoding of text that is not UTF-8. Blocks for the time of one megabyte."""
    from charset_normalizer import from_bytes  # noqa: PLC0415 - only for legacy encodings

    data = _around_high_bytes(path, compression)
    best = from_bytes(data, cp_isolation=list(LEGACY), enable_fallback=False).best()
    guess = best.encoding if best else "cp1252"
    try:
        western = data.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1" if guess == "cp1252" else guess
    # When both decode to the same text, or no word is known, the most frequent encoding is right.
    unsure = best is None or not best.coherence or guess in {"cp1254", "mac_roman"}
    return "cp1252" if unsure or data.decode(guess, "replace") == western else guess


def _around_high_bytes(path: Path, compression: Compression) -> bytes:
    """Return whole lines with non-ASCII bytes, up to the size of a sample."""
    kept = bytearray()
    with opened_text(path, compression) as file:
        for line in file:
            if not line.isascii():
                kept += line
                if len(kept) > SAMPLE // 10:
                    break
    return bytes(kept)


def transcoded(path: Path, found: FoundFormat, to: Path) -> None:
    """Write the text of ``path`` as UTF-8. Undecodable bytes become "�"."""
    decoder = codecs.getincrementaldecoder(found.encoding)("replace")
    with opened_text(path, found.compression) as file, to.open("wb") as target:
        while data := file.read(4_000_000):
            target.write(decoder.decode(data).encode("utf-8", "replace"))
        target.write(decoder.decode(b"", True).encode("utf-8", "replace"))


LOADING = '"~loading"'
"""The table being filled; it is renamed once complete."""
MOST_LINE = 64_000_000
LONGEST_HEADER = 1_000_000
MOST_SHOWN = 20
MOST_CHARS = 120
ROUNDS = 4
ABOVE = "before the header"
"""Note about lines above the header."""
LOOK, LOOK_LINES = 65_536, 40
DELIMITERS = ",;\t|"
ZONE_ROWS = 20_000
ZONE = r"([+-]\d\d:?\d*|[A-Z]{1,5}|[A-Z]\w+/\w+)$"


@frozen
class LoadedTable:
    """How LOADING was filled. ``plain``: the file stores all values as text. ``reader``: the call that reads the
    original files, with FILES in place of their list; empty when there is none. ``date_format``: how dates were
    written."""

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
    """``paths`` of one format. ``scratch`` returns a path for a temporary file; ``widen`` gives a load more memory."""

    paths: tuple[Path, ...]
    found: FoundFormat
    scratch: Callable[[str], Path]
    widen: Callable[[], None]

    @property
    def name(self) -> str:
        return self.paths[0].name if len(self.paths) == 1 else f"{self.paths[0].name} and {len(self.paths) - 1} more"


@frozen
class _Csv:
    """Options of the next attempt. ``kept``: columns to keep as text. ``longest``: bytes of a line, when lines are
    longer than usual. ``united``: the files have different columns, which DuckDB matches by name, without counting
    bad rows. ``skip``: lines before the header."""

    kept: tuple[str, ...] = ()
    longest: int = 0
    united: bool = False
    skip: int = 0

    def reader(self, files: str) -> str:
        """Return the call that reads ``files``, a list in SQL."""
        types = ", ".join(f"{text(name)}: 'VARCHAR'" for name in self.kept)
        more = [f"types = {{{types}}}"] if types else []
        more += [f"skip = {self.skip}", "header = true"] if self.skip else []
        if self.longest:
            more += [*self.sizes, "parallel = false"]
        options = ["union_by_name = true" if self.united else "store_rejects = true", *more]
        return f"read_csv({', '.join([files, *options])})"

    @property
    def sizes(self) -> list[str]:
        """Return options for lines longer than usual."""
        return [f"maximum_line_size = {self.longest}", f"buffer_size = {2 * self.longest}"] if self.longest else []


def load_csv(cursor: duckdb.DuckDBPyConnection, source: TextSource) -> LoadedTable:
    """Fill LOADING from delimited text. Raises HandlerFailed when it is no table."""
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
    return LoadedTable("csv", encoding or "utf-8", delimiter, skipped, bad, notes, True, reader, dates)


def _longest_line(source: TextSource) -> int:
    """Return the most bytes of a line: a larger buffer would waste memory."""
    if source.found.compression != "none":
        return MOST_LINE
    return min(MOST_LINE, max(path.stat().st_size for path in source.paths))


def _tried(cursor: duckdb.DuckDBPyConnection, source: TextSource, way: _Csv) -> tuple[str, Sequence[str]]:
    """Fill LOADING and return how to improve: a word, and the affected columns."""
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
    if any(each in words.lower() for each in ("gzip", "decompress", "miniz")):
        return "its compressed content is broken."
    if "read enough bytes" in words:
        return "the file became shorter while it was read."
    if "sniffing file" in words:
        return "it has no columns that a delimiter separates."
    return one_line(said(error), 200)


def _in_utf8(source: TextSource, encoding: str) -> TextSource:
    """Return the text in UTF-8, in temporary files."""
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
    """Return the kinds of errors, each with its columns."""
    rows = cursor.execute(
        "SELECT error_type, list(DISTINCT column_name) FILTER (column_name IS NOT NULL) FROM reject_errors GROUP BY ALL"
    ).fetchall()
    return {str(kind): [str(name) for name in names or ()] for kind, names in rows}


def _bad_rows(cursor: duckdb.DuckDBPyConnection) -> tuple[int, tuple[BadRow, ...]]:
    skipped = fetch_number(cursor, "SELECT count(DISTINCT (file_id, line)) FROM reject_errors")
    shown = cursor.execute(
        f"""SELECT line, any_value(error_type), any_value(left(csv_line, {MOST_CHARS})), any_value(error_message)
            FROM reject_errors GROUP BY file_id, line ORDER BY file_id, line LIMIT {MOST_SHOWN}"""
    ).fetchall()
    bad = tuple(BadRow(int(line), _reason(kind, words), one_line(line_text or "", MOST_CHARS))
                for line, kind, line_text, words in shown)  # fmt: skip
    return skipped, bad


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
    """Return whether the first lines of several files differ."""
    if len(source.paths) < 2 or source.found.compression == "zstd":
        return len(source.paths) > 1
    firsts: set[bytes] = set()
    for path in source.paths:
        with opened_text(path, source.found.compression) as file:
            firsts.add(file.readline(LONGEST_HEADER).strip())
    return len(firsts) > 1


def _lines_above(source: TextSource) -> int:
    """Return the number of title and remark lines above the header: lines with few filled cells."""
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
    """Return the delimiter, sentences about how the files were read, and the date format."""
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
    """Return whether dates in this format stay dates when day and month are swapped."""
    if written[:5] not in {"%d/%m", "%m/%d", "%d-%m", "%m-%d"}:
        return False
    days = [f"max(day({quoted(each.name)}))" for each in columns_of(cursor, LOADING) if each.type == "DATE"]
    row = cursor.execute(f"SELECT greatest({', '.join(days)}) FROM {LOADING}").fetchone() if days else None
    return bool(row and row[0] and row[0] <= 12)


def _several_zones(cursor: duckdb.DuckDBPyConnection, way: _Csv, paths: Sequence[Path]) -> list[str]:
    """Return time columns whose text has several zones, which a conversion would lose."""
    names = [each.name for each in columns_of(cursor, LOADING) if each.type == "TIMESTAMP WITH TIME ZONE"]
    found: list[str] = []
    for name in names:
        # Rows that don't fit were counted by the load.
        reader = replace(way, kept=(*way.kept, name)).reader(_listed(paths))
        reader = reader.replace("store_rejects = true", "ignore_errors = true")
        zone = f"regexp_extract({quoted(name)}, {text(ZONE)})"
        rows = f"(SELECT {quoted(name)} FROM {reader} LIMIT {ZONE_ROWS})"
        if fetch_number(cursor, f"SELECT count(DISTINCT {zone}) FROM {rows}") > 1:
            found.append(name)
    return found


def _check_shape(cursor: duckdb.DuckDBPyConnection, name: str) -> None:
    """Raise HandlerFailed when there is no header."""
    columns = [column.name for column in columns_of(cursor, LOADING)]
    if columns in ([], ["column0"]) and not fetch_number(cursor, f"SELECT count(*) FROM {LOADING}"):
        raise unreadable(f"{name} holds no rows and no header.")


def load_json(cursor: duckdb.DuckDBPyConnection, source: TextSource) -> LoadedTable:
    """Fill LOADING from JSON or JSON Lines; invalid lines are counted and skipped."""
    encoding = source.found.encoding
    if encoding:
        source = _in_utf8(source, encoding)
    whole = LoadedTable("json", encoding or "utf-8", reader="" if encoding else _json_reader(FILES))
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
        return LoadedTable("json", encoding or "utf-8", rows_skipped=len(bad), bad_rows=tuple(bad[:MOST_SHOWN]))


def _create_from_json(cursor: duckdb.DuckDBPyConnection, paths: Sequence[Path]) -> None:
    cursor.execute(f"CREATE OR REPLACE TABLE {LOADING} AS FROM {_json_reader(_listed(paths))}")


def _json_reader(files: str) -> str:
    return f"read_json({files}, union_by_name = true, maximum_object_size = {MOST_LINE})"


def _json_lines(source: TextSource) -> Iterator[tuple[int, str, str]]:
    """Yield each line with its number, and why it is not JSON."""
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
    """Make ``name`` a view of Parquet files, which DuckDB reads in place."""
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
    """Return a list of files in SQL."""
    return f"[{', '.join(text(str(path)) for path in paths)}]"
