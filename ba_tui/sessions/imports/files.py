"""The records of a file that is to be imported, line by line: a file of any size takes little memory."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.messages import clean_json
from ba_tui.core.values import frozen
from ba_tui.sessions.migrations import Record
from ba_tui.sessions.records import loads

LARGEST_VALUE = 500_000_000
"""Bytes of a file that is one JSON value, or no UTF-8: such a file is read whole."""
HEAD_BYTES = 1_000_000
_MARK = b"\xef\xbb\xbf"
_WIDE = (b"\xff\xfe", b"\xfe\xff")
_VALUES = (b"[", b"{\n", b"{\r", b"{ ")


@frozen
class ImportedLine:
    """One line of a file, and the object in it; ``place`` is where ``load`` finds it again."""

    text: bytes
    record: Record
    place: int


class TranscriptFile:
    """``damaged`` counts the lines that could not be read, of the last time through.

    Raises:
        UsageError: there is no such file. StorageError: it can't be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged = 0
        self._whole: list[Record] | None = None
        self._text: list[bytes] | None = None
        try:
            with path.open("rb") as file:
                head = file.read(64)
                if head.startswith(_WIDE) or head.removeprefix(_MARK).lstrip().startswith(_VALUES):
                    self._read(head + file.read(LARGEST_VALUE))
        except OSError as error:
            misnamed = isinstance(error, FileNotFoundError | IsADirectoryError)
            raise (UsageError if misnamed else StorageError)(
                f"{path} can't be read: {error.strerror or error}.", "Check the name and its rights."
            ) from error

    @property
    def value(self) -> Sequence[Record]:
        """The objects of a file that is one JSON value: itself, or a list of them. Empty for lines of objects."""
        return self._whole or ()

    def lines(self) -> Iterator[ImportedLine]:
        """Each object, one a line or in the list that the file is."""
        self.damaged = 0
        if self._whole is not None:
            for place, record in enumerate(self._whole):
                yield ImportedLine(json.dumps(record).encode(), record, place)
            return
        for place, line in self._lines():
            if not line.strip():
                continue
            record = loads(line)
            if record is None:
                self.damaged += 1
                continue
            yield ImportedLine(_whole_letters(line, record), record, place)

    def head(self, most: int) -> list[Record]:
        """The first objects, so many at most, and only the first of large ones."""
        found: list[Record] = []
        size = 0
        for line in itertools.islice(self.lines(), most):
            found.append(line.record)
            size += len(line.text)
            if size > HEAD_BYTES:
                break
        return found

    def load(self, place: int) -> Record:
        """The object at a place that ``lines`` gave."""
        if self._whole is not None:
            return self._whole[place]
        if self._text is not None:
            return loads(self._text[place]) or {}
        with self.path.open("rb") as file:
            file.seek(place)
            return loads(_ended(file.readline())) or {}

    def _read(self, data: bytes) -> None:
        if data.startswith(_WIDE):
            data = data.decode("utf-16", "replace").encode()
        data = data.removeprefix(_MARK)
        try:
            value: Any = clean_json(json.loads(data)) if data.lstrip().startswith(_VALUES) else None
        except (ValueError, RecursionError):
            value = None
        items = cast("list[Any]", value) if isinstance(value, list) else [value] if value is not None else []
        objects = [cast("Record", item) for item in items if isinstance(item, dict)]
        if objects:
            self._whole = objects
        else:
            self._text = data.splitlines()

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        if self._text is not None:
            yield from enumerate(self._text)
            return
        with self.path.open("rb") as file:
            place = 0
            for line in file:
                yield place, _ended(line.removeprefix(_MARK) if place == 0 else line)
                place += len(line)


def _ended(line: bytes) -> bytes:
    return line.rstrip(b"\r\n")


def _whole_letters(line: bytes, record: Record) -> bytes:
    """``line``, or ``record`` anew where an escaped half of a letter keeps the line from being read as an event."""
    return json.dumps(record).encode() if b"\\ud" in line.lower() else line
