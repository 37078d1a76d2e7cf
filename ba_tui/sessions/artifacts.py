"""Large results of one session: files in its ``data/``, named by their content, each with a descriptive note.

``artifact_contents`` reads parts of a file and describes its structure; ``upkeep`` deletes old ones.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast, get_args

from ba_tui.core.errors import StorageError
from ba_tui.core.messages import clean_text
from ba_tui.core.results import Artifact, Kind, LineMatch, TextPage
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.resources import save_whole
from ba_tui.sessions.artifact_contents import Pages, describe, open_result, parse_json
from ba_tui.sessions.journal import make_private
from ba_tui.sessions.records import loads
from ba_tui.shared_files import is_locked, take_lock

if TYPE_CHECKING:
    from hashlib import _Hash


UNFINISHED = ".unfinished-"
LARGEST = 64_000_000
LONGEST_TAIL = 8_000_000


class ArtifactSpill:
    """A result that is being written to disk.

    Only the tail of a result over ``largest`` bytes is kept in memory. ``write`` and ``finish`` raise StorageError;
    after that nothing is kept. An unfinished result is deleted.
    """

    def __init__(self, folder: Path, filed: Callable[[str, tuple[int, int], Kind], Artifact], largest: int) -> None:
        self.folder = folder
        self.largest = largest
        self._filed = filed
        tail = min(largest // 8, LONGEST_TAIL)
        self._tail = SpillTail(tail)
        self._head = largest - tail
        self._path = folder / f"{UNFINISHED}{secrets.token_hex(8)}"
        self._digest = hashlib.sha256()
        self._ends = 0
        self._last = b"\n"
        self.size = 0
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with contextlib.suppress(OSError):
            # Lock it while it is written: an unlocked file was left by a process that died.
            take_lock(handle)
        self._file = os.fdopen(handle, "wb")

    @property
    def left_out(self) -> int:
        """Bytes between head and tail that are not stored."""
        return self._tail.lost

    def write(self, data: bytes) -> None:
        room = max(0, self._head - self.size)
        if room:
            self._put(data[:room])
        if len(data) > room:
            self._tail.feed(data[room:])

    def _put(self, data: bytes) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            self.drop()
            raise unstored(error) from error
        except ValueError as error:
            raise StorageError("This result was discarded before.", "Make the call again.") from error
        self._digest.update(data)
        self._ends += data.count(b"\n")
        self._last = data[-1:] or self._last
        self.size += len(data)

    def finish(self, kind: Kind = "text") -> Artifact:
        if self._tail.lost:
            self._put(f"\n[… {self._tail.lost:,} bytes are left out here …]\n".encode())
        if tail := self._tail.read():
            self._put(tail)
        name = name_of(self._digest)
        try:
            self._file.flush()
            # Replace equal content of an earlier call too, so that it survives a concurrent clean-up.
            self._path.replace(self.folder / name)
            self._file.close()
            return self._filed(name, (self.size, self._ends + (self._last != b"\n")), kind)
        except (OSError, ValueError) as error:
            self.drop()
            raise unstored(error) from error

    def drop(self) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._file.close()

    def __enter__(self) -> ArtifactSpill:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drop()


class SpillTail:
    """The last ``limit`` bytes of a stream; ``lost`` counts those before them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self.lost = 0

    def feed(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        while self._size > self._limit:
            first = self._pieces.popleft()
            over = min(len(first), self._size - self._limit)
            self._size -= over
            self.lost += over
            if over < len(first):
                self._pieces.appendleft(first[over:])

    def read(self) -> bytes:
        return b"".join(self._pieces)


def name_of(digest: _Hash) -> str:
    return digest.hexdigest()[:32]


def unstored(error: Exception) -> StorageError:
    why = getattr(error, "strerror", None) or error
    return StorageError(
        f"The result can't be kept in a file: {why}.", "Free some space, or check the rights of BA_HOME."
    )


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
    """The call that produced a result."""

    call: str
    tool: str
    at: float


class Artifacts:
    """core.ports.tools.Reader over ``folder``, which is created with the first result; also stores results.

    ``largest``: maximum bytes of one result; of a larger one, head and tail are stored.
    """

    def __init__(self, folder: Path, largest: int = LARGEST) -> None:
        self.folder = folder
        self.largest = largest
        self._noting = threading.Lock()
        self._pages: dict[str, Pages] = {}
        self._tidied = False

    @property
    def begun(self) -> bool:
        """Whether it contains results; the disk is checked only once."""
        return self._tidied or self._earlier

    @cached_property
    def _earlier(self) -> bool:
        return os.path.isdir(self.folder)  # noqa: PTH112 - is_dir raises where the folder above is closed

    def store(self, data: bytes | str, *, kind: Kind = "text", call_id: str = "", tool: str = "") -> Artifact:
        """Store a result. Raises StorageError."""
        with self.open(call_id, tool) as spill:
            for start in range(0, len(data), PIECE):
                piece = data[start : start + PIECE]
                spill.write(piece if isinstance(piece, bytes) else piece.encode("utf-8", "replace"))
            return spill.finish(kind)

    def open(self, call_id: str = "", tool: str = "") -> ArtifactSpill:
        """Return a result to write in pieces; end it with ``finish`` or ``drop``. Raises StorageError."""
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
        """Return the file of ``ref`` and mark it as used. Raises StorageError if it does not exist or has expired."""
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
        """Write the note of the file ``name``; its earlier makers are kept."""
        summary = describe(self.folder / name, kind, *measure)
        with self._noting:
            earlier = read_note(self.folder, name)
            made = (*(earlier.made if earlier else ()), maker)[-MAKERS:]
            note = ArtifactNote(measure[0], measure[1], kind, clean_text(summary), made)
            # If the note can't be written, it is rebuilt from the file when needed.
            with contextlib.suppress(StorageError):
                self._write_note(name, note)
        return note.artifact(name)

    def _rebuilt(self, name: str, note: ArtifactNote | None) -> ArtifactNote:
        """Rebuild a missing or wrong note, if the file has the content that its name states."""
        ref = f"{FOLDER}/{name}"
        digest, size, lines = hashlib.sha256(), 0, 0
        with _readable(ref), open_result(self.folder / name) as file:
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
    """The note next to a file, as ``<name>.json``. It outlives the file, to describe it."""

    size: int
    lines: int
    kind: Kind
    summary: str
    made: tuple[Maker, ...] = ()

    def artifact(self, name: str) -> Artifact:
        return Artifact(f"{FOLDER}/{name}", self.size, self.lines, self.kind, self.summary)


def read_note(folder: Path, name: str) -> ArtifactNote | None:
    """Return the note of a file; None if it is missing or invalid."""
    try:
        with open_result(folder / f"{name}{NOTE}") as file:
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
    """Delete files of processes that died while writing: unlocked and not recent."""
    for path in folder.glob(f"{UNFINISHED}*"):
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime < 60 or _held(path):
                continue
            path.unlink()


def _held(path: Path) -> bool:
    with open_result(path) as file:
        return is_locked(file.fileno())


def _name(ref: str) -> str:
    found = REFERENCE.fullmatch(ref)
    if found is None:
        raise StorageError(
            f"{clean_text(ref)[:100]!r} is no reference to a result.", "A reference is data/ and 32 letters and digits."
        )
    return found[1]


def _kind_of(path: Path, size: int) -> Kind:
    """Return the kind of a file: JSON if it is small enough to parse, otherwise text."""
    if size > SMALL:
        return "text"
    with open_result(path) as file:
        data = file.read()
    if not data.lstrip().startswith((b"{", b"[")):
        return "text"
    try:
        parse_json(data.decode("utf-8", "replace"))
    except ValueError:
        return "text"
    return "json"


def _unended(file: Any, size: int) -> bool:
    """Return whether the last line lacks its line end."""
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
