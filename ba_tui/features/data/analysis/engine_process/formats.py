"""What a file is, from its first bytes before its name, and in which encoding its text is."""

from __future__ import annotations

import codecs
import gzip
import zipfile
import zlib
from pathlib import Path
from typing import IO, Literal, TypeAlias, cast

from ba_tui.core.ports.tables import DataFormat
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count, one_line
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.failures import unreadable

LOOK = 65_536
SAMPLE = 1_000_000
MOST_NAMES = 5
Compression: TypeAlias = Literal["none", "gzip", "zstd"]

MAGIC: tuple[tuple[bytes, DataFormat | Literal["gzip", "zstd", "zip", "ole", "pdf"]], ...] = (
    (b"SQLite format 3\0", "sqlite"),
    (b"PAR1", "parquet"),
    (b"ARROW1", "arrow"),
    (b"\xff\xff\xff\xff", "arrow"),
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"PK\x03\x04", "zip"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "ole"),
    (b"%PDF-", "pdf"),
)
ENDINGS: dict[str, DataFormat] = {
    **dict.fromkeys(("json", "jsonl", "ndjson", "geojson"), "json"),
    **dict.fromkeys(("xlsx", "xlsm", "xlsb", "xls", "ods"), "excel"),
    **dict.fromkeys(("csv", "tsv", "tab", "txt", "psv", "dat"), "csv"),
    **dict.fromkeys(("parquet", "pq"), "parquet"),
    **dict.fromkeys(("arrow", "feather", "ipc", "arrows"), "arrow"),
    **dict.fromkeys(("sqlite", "sqlite3", "db"), "sqlite"),
}
_HTML = regex(rb"(?is)\s*(?:<!--.{0,2000}?-->\s*)?(?:<\?xml[^>]{0,200}>\s*)?<(?:!doctype\s+html|html|head|body)\b")
_XML = regex(rb"(?is)\s*<\?xml\b")
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"),
         (codecs.BOM_UTF16_BE, "utf-16"))  # fmt: skip
LEGACY = ("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp932", "gb18030", "big5", "euc_kr", "koi8_r", "mac_roman")


@frozen
class FoundFormat:
    """``encoding``: of text formats, empty where the first bytes do not show it."""

    format: DataFormat
    compression: Compression = "none"
    encoding: str = ""


def found_format(path: Path) -> FoundFormat:
    """Return what ``path`` is. Raises HandlerFailed, in words, for what is not data."""
    name = path.name
    try:
        with path.open("rb") as file:
            head = file.read(LOOK)
    except OSError as error:
        raise unreadable(f"{name} can't be read: {error.strerror}.") from error
    if not head:
        raise unreadable(f"{name} is empty.")
    kind = next((kind for magic, kind in MAGIC if head.startswith(magic)), None)
    if kind == "zip":
        _check_workbook(path)
    if kind == "zip" or kind == "ole":
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
    if declared in {"parquet", "arrow", "sqlite"}:
        raise unreadable(f"{name} is not {_article(declared)} file: its content is something else.")
    return FoundFormat("json" if declared == "json" else "csv", compression, _marked(head))


def _article(name: str) -> str:
    return {"parquet": "a Parquet", "arrow": "an Arrow", "sqlite": "an SQLite"}[name]


def _check_workbook(path: Path) -> None:
    """Raises HandlerFailed for archives and documents that are no workbooks."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile, ValueError):
        # The reader of workbooks says what is wrong.
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
            return file.read(LOOK)
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
    """Many control characters, and not in the way of UTF-16."""
    control = sum(head.count(bytes([code])) for code in (*range(9), *range(14, 27), *range(28, 32)))
    return control * 10 > len(head)


def _marked(head: bytes) -> str:
    """The encoding that the first bytes show; empty for UTF-8 and others."""
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
    """The bytes of a text file as they are without compression. Raises OSError."""
    return cast("IO[bytes]", gzip.open(path)) if compression == "gzip" else path.open("rb")


def legacy_encoding(path: Path, compression: Compression) -> str:
    """Return the likeliest encoding of a text that is not UTF-8. Blocks for as long as a megabyte takes."""
    from charset_normalizer import from_bytes  # noqa: PLC0415 - only for files of old encodings

    data = _around_high_bytes(path, compression)
    best = from_bytes(data, cp_isolation=list(LEGACY), enable_fallback=False).best()
    guess = best.encoding if best else "cp1252"
    try:
        western = data.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1" if guess == "cp1252" else guess
    # Where both read the same, or no word is known, the most frequent one is right.
    unsure = best is None or not best.coherence or guess in {"cp1254", "mac_roman"}
    return "cp1252" if unsure or data.decode(guess, "replace") == western else guess


def _around_high_bytes(path: Path, compression: Compression) -> bytes:
    """Whole lines that hold bytes beyond ASCII, up to a sample's size."""
    kept = bytearray()
    with opened_text(path, compression) as file:
        for line in file:
            if not line.isascii():
                kept += line
                if len(kept) > SAMPLE // 10:
                    break
    return bytes(kept)


def transcoded(path: Path, found: FoundFormat, to: Path) -> None:
    """Write the text of ``path`` as UTF-8. Characters that the encoding does not have become "�"."""
    decoder = codecs.getincrementaldecoder(found.encoding)("replace")
    with opened_text(path, found.compression) as file, to.open("wb") as target:
        while data := file.read(4_000_000):
            target.write(decoder.decode(data).encode("utf-8", "replace"))
        target.write(decoder.decode(b"", True).encode("utf-8", "replace"))
