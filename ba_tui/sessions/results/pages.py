"""Reads a file of any size in parts: by byte, by line, by word. Never more than a few blocks of it are in memory.

Which file a reference means is artifacts.py's business.
"""

from __future__ import annotations

import codecs
import os
import stat
import threading
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ba_tui.core.results import LineMatch, TextPage

BLOCK = 1 << 20
LONGEST = 4 * BLOCK
"""A line beyond this is searched in pieces."""
SHOWN = 300
BEFORE = 80


class Pages:
    """One file that does not change. What was counted once is kept: one number for each block."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ends = [0]
        """How many line ends lie before each block."""
        self._counting = threading.Lock()

    def read(self, offset: int, limit: int) -> TextPage:
        with opened(self._path) as file:
            size = _size(file)
            offset = _character_start(file, min(max(0, offset), size))
            text, upto = _decoded(file, offset, max(4, limit), size)
            return TextPage(text, self._ends_before(file, offset) + 1, offset, upto, size)

    def lines(self, start: int, count: int, limit: int) -> TextPage:
        with opened(self._path) as file:
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
        with opened(self._path) as file:
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
        """Where ``line`` begins; the size of the file when it has fewer lines."""
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
        """Count on until a block or so many line ends are reached, or the file ends."""
        with self._counting:
            file.seek((len(self._ends) - 1) * BLOCK)
            while len(self._ends) <= upto_block or self._ends[-1] < upto_ends:
                data = file.read(BLOCK)
                if len(data) < BLOCK:
                    return
                self._ends.append(self._ends[-1] + data.count(b"\n"))


def opened(path: Path) -> BinaryIO:
    """A regular file, opened to be read; OSError for anything else, a link included."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{path.name} is not a regular file")
    return os.fdopen(handle, "rb")


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _decoded(file: BinaryIO, offset: int, limit: int, size: int) -> tuple[str, int]:
    """The text from ``offset`` on, and where it ends: before a character that ``limit`` would cut."""
    file.seek(offset)
    data = file.read(limit)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    upto = offset + len(data)
    text = decoder.decode(data, final=upto >= size)
    return text, upto - len(decoder.getstate()[0])


def _character_start(file: BinaryIO, offset: int) -> int:
    """``offset``, or the beginning of the character that it lies within."""
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
    """How much of ``data`` its first ``count`` lines take, a last one left out that is not all there."""
    pieces = data.split(b"\n", count)
    if len(pieces) > count:
        return len(data) - len(pieces[count])
    return len(data) if whole else data.rfind(b"\n") + 1 or len(data)


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    """The rest of ``file`` in parts that end where a line does, unless that line is longer than any should be."""
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
