"""The encoding, byte order mark and line ends of a text file: detected on reading, preserved on changes. No I/O."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections.abc import Sequence

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_KINDS = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive (or an Office document)"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3", "an SQLite database"),
    (b"PAR1", "a Parquet table"),
)
_CONTROL = regex(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
SAMPLE_BYTES = 65_536
_SCRIPTS = (
    "cp932", "euc_jp", "cp949", "big5", "gb18030", "cp1251", "koi8_r", "cp1250", "cp1253", "cp1255", "cp1256",
)  # fmt: skip
_HIGH = regex(rb"[\x80-\xff]")
_LETTER = regex(rb"[A-Za-z]")
_PAIR = regex(rb"[\xa1-\xfe]{2}")
_WITHIN_WORD = regex(rb"(?<=[A-Za-z])[\xa1-\xfe]{2}(?=[A-Za-z])")
_KANA = regex(rb"[\xa4\xa5][\xa1-\xf6]")
_SHIFTED_KANA = regex(rb"[\x82\x83][\x40-\xf1]")
"""Kana in Shift JIS; in other encodings these pairs are rare symbols."""
_LONG_RUN = regex(rb"[\x80-\xff]{4}")
_WRITTEN = regex(rb"[\xb0-\xfe][\xa1-\xfe]")
_HANGUL = regex(rb"[\xb0-\xc8][\xa1-\xfe]")
"""Rows of the table with Korean letters; about half of the Chinese characters are in other rows."""
_LINE_END = regex(r"\r?\n")


@frozen
class FileEncoding:
    """``codec`` after ``mark`` (the byte order mark, often empty). ``guessed``: the file does not name its encoding."""

    codec: str = "utf-8"
    mark: bytes = b""
    guessed: bool = False

    @property
    def shown(self) -> str:
        """The name for the model; empty for plain UTF-8."""
        if self.codec == "utf-8":
            return "UTF-8 with byte order mark" if self.mark else ""
        return f"{self.codec} (guessed)" if self.guessed else self.codec

    def decode(self, data: bytes) -> str:
        return data[len(self.mark) :].decode(self.codec)

    def encode(self, text: str) -> bytes:
        """Encode ``text``. Raises UnicodeEncodeError for a character that the encoding lacks."""
        return self.mark + (text.removeprefix("\ufeff") if self.mark else text).encode(self.codec)


def binary_kind(head: bytes) -> str | None:
    """Return the kind of a binary file that starts with ``head``; None for text."""
    for magic, kind in _KINDS:
        if head.startswith(magic):
            return kind
    if any(head.startswith(mark) for mark, _ in _MARKS) or _wide(head):
        return None
    if b"\0" in head or len(_CONTROL.findall(head)) * 20 > len(head):
        return "a binary file"
    return None


def detect(data: bytes, *, whole: bool = True) -> FileEncoding:
    """Return the encoding of ``data``: by its mark, else UTF-8 if valid, else the most likely old encoding.

    ``whole`` False: ``data`` is the start of a file, so its last character may be cut.
    """
    for mark, codec in _MARKS:
        if data.startswith(mark) and _decodes(data[len(mark) :], codec, whole=whole):
            return FileEncoding(codec, mark)
    if (wide := _wide(data)) and _decodes(data, wide, whole=whole):
        return FileEncoding(wide, guessed=True)
    if _decodes(data, "utf-8", whole=whole):
        return FileEncoding()
    for codec in (*_by_script(data), "cp1252"):
        if _decodes(data, codec, whole=whole) and (not whole or data.decode(codec).encode(codec, "replace") == data):
            return FileEncoding(codec, guessed=True)
    return FileEncoding("latin-1", guessed=True)


def _by_script(data: bytes) -> tuple[str, ...]:
    """Return likely encodings of text in other scripts than Latin, the most likely first."""
    head = data[:SAMPLE_BYTES]
    if len(data) > SAMPLE_BYTES:
        head = head[: head.rfind(b"\n") + 1] or head
    if len(_SHIFTED_KANA.findall(head)) * 8 > len(_HIGH.findall(head)):
        return ("cp932",)
    paired = _in_pairs(head)
    if not paired and len(_HIGH.findall(head)) <= len(_LETTER.findall(head)):
        return ()
    if paired and len(_KANA.findall(head)) * 4 > len(_PAIR.findall(head)):
        return ("euc_jp",)
    written = _WRITTEN.findall(head)
    if paired and len(written) >= 8 and len(_HANGUL.findall(head)) == len(written):
        return ("cp949", "gb18030")
    from charset_normalizer import from_bytes  # noqa: PLC0415 - only for files of old encodings

    # No word of a Latin script has so many accented letters in a row.
    latin = not _LONG_RUN.search(head)
    scripts = [script for script in _SCRIPTS if latin or script != "cp1250"]
    best = from_bytes(head, cp_isolation=scripts, enable_fallback=False).best()
    # Without known words the library's choice between East Asian encodings is random.
    if paired and (best is None or not best.coherence):
        return ("gb18030", best.encoding) if best else ("gb18030",)
    return (best.encoding,) if best else ()


def _decodes(data: bytes, codec: str, *, whole: bool) -> bool:
    try:
        codecs.getincrementaldecoder(codec)().decode(data, final=whole)
    except UnicodeDecodeError:
        return False
    return True


def _wide(data: bytes) -> str | None:
    """Detect UTF-16 without a mark: in mostly Latin text each second byte is NUL, always on the same side."""
    head = data[:4096]
    if len(head) < 8:
        return None
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if odd * 2 > len(head) * 0.7 and even * 20 < len(head):
        return "utf-16-le"
    if even * 2 > len(head) * 0.7 and odd * 20 < len(head):
        return "utf-16-be"
    return None


def _in_pairs(data: bytes) -> bool:
    """Return whether high bytes come in pairs, as in GB 2312; in Western text most are single."""
    runs = re.findall(rb"[\x80-\xff]+", data)
    within = len(_WITHIN_WORD.findall(data))
    paired = sum(len(run) for run in runs if len(run) % 2 == 0 and all(byte >= 0xA1 for byte in run)) - 2 * within
    return bool(runs) and paired >= 0.8 * sum(map(len, runs))


def plain_lines(text: str) -> str:
    """Return ``text`` with ``\\n`` line ends, as the model sees it. A lone ``\\r`` is a line end only in a text
    without others."""
    if "\r" not in text:
        return text
    return text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")


def line_end(text: str) -> str:
    """Return the most frequent line end of ``text``; ``\\n`` if it has none."""
    windows = text.count("\r\n")
    unix = text.count("\n") - windows
    if windows or unix:
        return "\r\n" if windows > unix else "\n"
    return "\r" if "\r" in text else "\n"


def with_line_end(text: str, end: str) -> str:
    return _LINE_END.sub(lambda _: end, text)


class Positions:
    """Converts offsets in the plain text (see plain_lines) to offsets in the file's text."""

    def __init__(self, raw: str) -> None:
        self._ends = [match.start() - index for index, match in enumerate(re.finditer("\r\n", raw))]

    def raw(self, plain: int) -> int:
        return plain + bisect_left(self._ends, plain)


@frozen
class Splice:
    """Replaces the characters from ``start`` to ``end`` with ``text``."""

    start: int
    end: int
    text: str


def spliced(raw: str, plain: str, changes: Sequence[Splice], *, windows: bool = False) -> str:
    """Return ``raw`` with ``changes``, whose offsets are in ``plain``, the result of ``plain_lines``.

    ``windows``: the new text has ``\\r\\n`` line ends, which are kept if ``raw`` has no line ends.
    """
    usual = "\r\n" if windows and not re.search("[\r\n]", raw) else line_end(raw)
    positions = Positions(raw)
    pieces: list[str] = []
    at = 0
    for change in changes:
        start, end, text = _tightened(plain, change)
        first, last = positions.raw(start), positions.raw(end)
        near = raw[first:last] if "\n" in plain[start:end] else raw[first:]
        pieces += [raw[at:first], with_line_end(text, _end_near(near, usual))]
        at = last
    return "".join([*pieces, raw[at:]])


def shared_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """Return the number of equal items at the start, and of the rest at the end."""
    limit = min(len(old), len(new))
    head = 0
    while head < limit and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < limit - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return head, tail


def _tightened(plain: str, change: Splice) -> tuple[int, int, str]:
    """Return the change without equal text at both ends, so that mixed line ends around it are preserved."""
    old, new = plain[change.start : change.end], change.text
    head, tail = shared_ends(old, new)
    return change.start + head, change.end - tail, new[head : len(new) - tail]


def _end_near(near: str, usual: str) -> str:
    """Return the line end at a change: the first one there, else the file's usual one."""
    found = re.search("\r\n|\n", near)
    return found.group(0) if found else usual
