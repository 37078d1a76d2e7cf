"""Large results of one session: files in its ``data/``, named by what is in them, each with a note of what it is.

How a file is read in parts is pages.py, what its summary says structure.py, when it goes cleaning.py.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast, get_args

from ba_tui.core.errors import StorageError
from ba_tui.core.messages import clean_text
from ba_tui.core.results import Artifact, Kind, LineMatch, TextPage
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.resources import save_whole
from ba_tui.sessions.journal import make_private
from ba_tui.sessions.records import loads
from ba_tui.sessions.results.pages import Pages, opened
from ba_tui.sessions.results.spill import LARGEST, UNFINISHED, ArtifactSpill, name_of, unstored
from ba_tui.sessions.results.structure import describe, parsed

FOLDER = "data"
NOTE = ".json"
NAME = regex(r"[0-9a-f]{32}")
REFERENCE = regex(rf"{FOLDER}/({NAME.pattern})")
PIECE = 1 << 20
SMALL = 2_000_000
MAKERS = 50
OPEN_FILES = 16
KINDS = frozenset(get_args(Kind))


@frozen
class Maker:
    """The call that a result came from."""

    call: str
    tool: str
    at: float


class Artifacts:
    """core.ports.results.Reader over ``folder``, which is made with the first result; and the way to store one.

    ``largest``: bytes of one result; of a larger one head and tail are stored.
    """

    def __init__(self, folder: Path, largest: int = LARGEST) -> None:
        self.folder = folder
        self.largest = largest
        self._noting = threading.Lock()
        self._pages: dict[str, Pages] = {}
        self._tidied = False

    @property
    def begun(self) -> bool:
        """Whether it holds results, of now or of before it was opened; the disk is asked once."""
        return self._tidied or self._earlier

    @cached_property
    def _earlier(self) -> bool:
        return os.path.isdir(self.folder)  # noqa: PTH112 - is_dir raises where the folder above is closed

    def store(self, data: bytes | str, *, kind: Kind = "text", call_id: str = "", tool: str = "") -> Artifact:
        """Raises StorageError."""
        with self.open(call_id, tool) as spill:
            for start in range(0, len(data), PIECE):
                piece = data[start : start + PIECE]
                spill.write(piece if isinstance(piece, bytes) else piece.encode("utf-8", "replace"))
            return spill.finish(kind)

    def open(self, call_id: str = "", tool: str = "") -> ArtifactSpill:
        """A result to be written piece by piece; leave it by ``finish``, or by ``drop``. Raises StorageError."""
        try:
            make_private(self.folder)
            if not self._tidied:
                self._tidied = True
                remove_unfinished(self.folder)
            maker = Maker(call_id, tool, time.time())
            return ArtifactSpill(self.folder, partial(self._noted, maker), self.largest)
        except OSError as error:
            raise unstored(error) from error

    def about(self, ref: str) -> Artifact:
        name = _name(ref)
        path = self.folder / name
        note = read_note(self.folder, name)
        try:
            size = path.lstat().st_size
        except FileNotFoundError:
            if note:
                return replace(note.artifact(name), expired=True)
            raise StorageError(
                f"There is no result {ref} in this session.", "Use a reference just as it was given."
            ) from None
        except OSError as error:
            raise _unread(ref, error) from error
        return (note if note and note.size == size else self._rebuilt(name, note)).artifact(name)

    def path(self, ref: str) -> Path:
        """The file of ``ref``, and a sign that it is used. Raises StorageError when there is none (any more)."""
        if self.about(ref).expired:
            raise StorageError(
                f"The result {ref} has expired: its file was removed to save space.",
                "Make the call again if it is still needed.",
            )
        path = self.folder / _name(ref)
        with contextlib.suppress(OSError):
            os.utime(path, follow_symlinks=False)
        return path

    def read(self, ref: str, offset: int = 0, limit: int = 65_536) -> TextPage:
        with _readable(ref):
            return self._pages_of(ref).read(offset, limit)

    def lines(self, ref: str, start: int = 1, count: int = 200, limit: int = 65_536) -> TextPage:
        with _readable(ref):
            return self._pages_of(ref).lines(start, count, limit)

    def search(self, ref: str, words: str, limit: int = 100, start: int = 1) -> list[LineMatch]:
        with _readable(ref):
            return self._pages_of(ref).search(words, limit, start)

    def _pages_of(self, ref: str) -> Pages:
        path = self.path(ref)
        with self._noting:
            pages = self._pages.pop(ref, None) or Pages(path)
            self._pages[ref] = pages
            while len(self._pages) > OPEN_FILES:
                del self._pages[next(iter(self._pages))]
        return pages

    def _noted(self, maker: Maker, name: str, measure: tuple[int, int], kind: Kind) -> Artifact:
        """Write down what the file ``name`` is; its earlier makers stay."""
        summary = describe(self.folder / name, kind, *measure)
        with self._noting:
            earlier = read_note(self.folder, name)
            made = (*(earlier.made if earlier else ()), maker)[-MAKERS:]
            note = ArtifactNote(measure[0], measure[1], kind, clean_text(summary), made)
            # The file is there: a note that finds no room is made up for when it is next asked for.
            with contextlib.suppress(StorageError):
                self._write_note(name, note)
        return note.artifact(name)

    def _rebuilt(self, name: str, note: ArtifactNote | None) -> ArtifactNote:
        """The note of a file that has none, or a wrong one: counted anew, if the file is what its name says."""
        ref = f"{FOLDER}/{name}"
        digest, size, lines = hashlib.sha256(), 0, 0
        with _readable(ref), opened(self.folder / name) as file:
            while piece := file.read(PIECE):
                digest.update(piece)
                size += len(piece)
                lines += piece.count(b"\n")
            lines += _unended(file, size)
        if name_of(digest) != name:
            raise StorageError(
                f"The file of the result {ref} is damaged.", "Make the call again if it is still needed."
            )
        with _readable(ref):
            kind = note.kind if note else _kind_of(self.folder / name, size)
            summary = clean_text(describe(self.folder / name, kind, size, lines))
        rebuilt = ArtifactNote(size, lines, kind, summary, note.made if note else ())
        with self._noting, contextlib.suppress(StorageError):
            self._write_note(name, rebuilt)
        return rebuilt

    def _write_note(self, name: str, note: ArtifactNote) -> None:
        save_whole(self.folder / f"{name}{NOTE}", json.dumps(asdict(note)), mode=0o600)


@frozen
class ArtifactNote:
    """What stands beside a file, as ``<name>.json``. It outlives the file, to say what was there."""

    size: int
    lines: int
    kind: Kind
    summary: str
    made: tuple[Maker, ...] = ()

    def artifact(self, name: str) -> Artifact:
        return Artifact(f"{FOLDER}/{name}", self.size, self.lines, self.kind, self.summary)


def read_note(folder: Path, name: str) -> ArtifactNote | None:
    """None when there is none, or none that can be trusted."""
    try:
        with opened(folder / f"{name}{NOTE}") as file:
            record = loads(file.read(64_000)) or {}
    except OSError:
        return None
    match record:
        case {"size": int(size), "lines": int(lines), "kind": str(kind), "summary": str(summary)} if kind in KINDS:
            made = tuple(_makers(record.get("made")))
            return ArtifactNote(size, lines, cast("Kind", kind), summary, made)
        case _:
            return None


def _makers(value: Any) -> Iterator[Maker]:
    for item in cast("list[Any]", value) if isinstance(value, list) else ():
        match item:
            case {"call": str(call), "tool": str(tool), "at": int() | float() as at}:
                yield Maker(call, tool, float(at))
            case _:
                pass


def remove_unfinished(folder: Path) -> None:
    """What a process left that died while it wrote: nobody holds it, and it is not from just now."""
    for path in folder.glob(f"{UNFINISHED}*"):
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime < 60 or _held(path):
                continue
            path.unlink()


def _held(path: Path) -> bool:
    with opened(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _name(ref: str) -> str:
    found = REFERENCE.fullmatch(ref)
    if found is None:
        raise StorageError(
            f"{clean_text(ref)[:100]!r} is no reference of a result.", "One looks like data/ and 32 letters and digits."
        )
    return found[1]


def _kind_of(path: Path, size: int) -> Kind:
    """JSON is recognised, as far as it is read whole; for all else there is no telling."""
    if size > SMALL:
        return "text"
    with opened(path) as file:
        data = file.read()
    if not data.lstrip().startswith((b"{", b"[")):
        return "text"
    try:
        parsed(data.decode("utf-8", "replace"))
    except ValueError:
        return "text"
    return "json"


def _unended(file: Any, size: int) -> bool:
    """Whether the last line lacks its line end."""
    if not size:
        return False
    file.seek(size - 1)
    return file.read(1) != b"\n"


@contextlib.contextmanager
def _readable(ref: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise _unread(ref, error) from error


def _unread(ref: str, error: OSError) -> StorageError:
    return StorageError(f"The result {ref} can't be read: {error.strerror or error}.", "Make the call again.")
