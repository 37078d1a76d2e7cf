"""The journal of one session: events.jsonl, appended to and never rewritten; healed when it is opened.

Which sessions there are is the library's business; how a line is read stands in records.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TypeVar

from ba_tui.core.errors import SessionLocked, SessionNotFound, SessionNotSaved, StorageError
from ba_tui.core.events import (
    TRANSIENT,
    Event,
    ModeChanged,
    ModelChanged,
    Notice,
    Titled,
    TurnEnded,
    event_to_json,
)
from ba_tui.core.open_turn import OpenTurn
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.resources import open_regular
from ba_tui.sessions.lock import FILE as LOCK
from ba_tui.sessions.lock import Lock
from ba_tui.sessions.migrations import OURS, Schema
from ba_tui.sessions.records import (
    FILE,
    TORN,
    Header,
    JournalEntry,
    RecordReading,
    UnknownRecord,
    backwards,
    emptied,
    ends_turn,
    forwards,
    is_record,
    loads,
    newest_version,
    number,
    opens_turn,
    read_header,
    starts_turn,
)

ASIDE = 2_000
"""Events after which what was read is set aside from the garbage collector."""
log = logging.getLogger(__name__)
_Entry = TypeVar("_Entry", bound=JournalEntry)
_SETTINGS = (ModeChanged, ModelChanged, Notice, Titled)
_ASKED = b'"type":"asked"}\n'
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_CLOSED = {errno.EROFS, errno.EACCES, errno.EPERM}
_NO_RIGHTS = {*_CLOSED, errno.ENOTDIR, errno.EEXIST}


class JournalFile:
    """``header`` opens the file when it is made, which is with the first turn: no session without one is on disk."""

    def __init__(self, folder: Path, header: Header, schema: Schema = OURS) -> None:
        self.path = folder / FILE
        self.header = header
        self._schema = schema
        self._writing = threading.Lock()
        """Turns end, and so are synced, in a thread while the next may begin."""
        self._pending = bytearray()
        """Lines that are not on disk yet, oldest first."""
        self._waiting = True
        """Nothing but settings so far: they go out with the first turn."""
        self._healed = True
        self._found = False
        """There was a file before this."""
        self._named = False
        self._fd: int | None = None
        self._lock: Lock | None = None
        self._attended = b""
        """A header line that goes out before the next entry."""
        self._aside = False
        """Whether a history was set aside from what the garbage collector looks at."""
        self._torn: int | None = None
        """Where to cut before the next write, when a broken one could not be taken back."""

    @classmethod
    def peek(cls, folder: Path, *, running: bool = False, schema: Schema = OURS) -> JournalFile:
        """An existing session to read from. Raises as ``open`` does.

        ``running``: somebody writes it now, so a turn without its end goes on and was not interrupted.
        """
        try:
            header = read_header(folder / FILE) or Header(folder.name, "", (folder / FILE).stat().st_mtime)
            lost = not running and emptied(folder / FILE)
        except OSError as error:
            raise unreadable(folder, error) from error
        if lost:
            raise StorageError(
                f"The file of session {folder.name} is empty: what it held is lost.",
                f"Put back a copy of {folder / FILE}, or remove it: ba sessions delete {folder.name}.",
            )
        schema.check(header.schema_version, folder.name)
        journal = cls(folder, header, schema)
        journal._waiting = False
        journal._found = True
        journal._healed = running
        return journal

    @classmethod
    def open(cls, folder: Path, schema: Schema = OURS, *, questions: bool = True) -> JournalFile:
        """An existing session, locked and healed. ``questions``: a turn that stopped at one stays open.

        Raises:
            SessionLocked, SessionNotFound, NewerSchema, StorageError
        """
        journal = cls.peek(folder, schema=schema)
        try:
            journal._lock = Lock.acquire(folder)
        except OSError as error:
            # Without rights for a lock there are none for writing: it can be read, and the first append will tell.
            log.warning("no lock for %s: %s", folder, error)
        try:
            journal._pending += cure(journal.path, questions=questions) + journal._renewal()
        except BaseException as error:
            journal.close()
            if isinstance(error, OSError):
                raise unreadable(folder, error) from error
            raise
        journal._healed = True
        with contextlib.suppress(StorageError):
            journal._flush()
        return journal

    @property
    def unsaved(self) -> bool:
        """Whether entries are in memory alone that should be on the disk."""
        return bool(self._pending) and not self._waiting

    def append(self, event: JournalEntry) -> None:
        if isinstance(event, TRANSIENT):
            return
        line = (event.line if isinstance(event, UnknownRecord) else event_to_json(event)) + b"\n"
        with self._writing:
            self._pending += self._attended + line
            self._attended = b""
            self._waiting = self._waiting and isinstance(event, _SETTINGS)
            self._flush()

    def info(self) -> SessionInfo:
        """What lists would show of the session, with the entries that are in memory alone."""
        header, titles = self.header, ["", *(event.title for event in self if isinstance(event, Titled))]
        return SessionInfo(header.id, titles[-1], Path(header.cwd), header.created, time.time(), model=header.model)

    def attend(self) -> None:
        """A person goes on with it: from its next entry on, lists show a session that only ``ba -p`` wrote."""
        if self.header.unattended:
            attended = replace(self.header, unattended=False, schema_version=self._schema.version)
            self._attended = attended.line()

    def read(self) -> list[Event]:
        events: list[Event] = []
        for event in self:
            events.append(event)
            if not len(events) % ASIDE:
                gc.freeze()  # the collector would look at a long history again and again
                self._aside = True
        return events

    def __iter__(self) -> Iterator[Event]:
        """All of it as it stands when this is begun, one by one: for files of any size."""
        return self._whole(RecordReading.events)

    def entries(self) -> Iterator[JournalEntry]:
        """The same with the lines of types that only a later version knows: for copies that lose nothing."""
        return self._whole(RecordReading.entries)

    def tail(self, limit: int) -> list[Event]:
        older = self.header.schema_version < self._schema.version
        events = self.read() if older else self._newest_events(max(1, limit))
        starts = (index for index, event in enumerate(events) if opens_turn(event))
        return events[next(starts, 0) :]

    def later(self, place: int) -> tuple[list[Event], int]:
        try:
            with open_regular(self.path) as file:
                file.seek(place)
                data = file.read()
        except OSError as error:
            raise unreadable(self.path.parent, error) from error
        # Of a line that is being written the rest comes later.
        whole = data[: data.rfind(b"\n") + 1]
        reading = RecordReading(self.path, self.header.schema_version, self._schema)
        return list(reading.events(whole.splitlines(keepends=True))), place + len(whole)

    def sync(self) -> None:
        with self._writing:
            self._flush()
        try:
            if self._fd is not None:
                os.fsync(self._fd)
                if not self._named:
                    _sync_folder(self.path.parent)
                    _sync_folder(self.path.parent.parent)
                    self._named = True
        except OSError as error:
            lost = self._unsaved(error)
            lost.hint = "Check the disk: what ba wrote may be lost there. /export FILE writes the session elsewhere."
            raise lost from error

    def close(self) -> None:
        """What could not be written until now was told when it happened; it is tried once more, then let go."""
        if self._aside:
            gc.unfreeze()
        with self._writing:
            try:
                self._flush()
            except StorageError as error:
                log.error("%s", error)
            if self._fd is not None:
                empty = os.fstat(self._fd).st_size == 0
                os.close(self._fd)
                if empty:
                    self._remove()
            if self._lock:
                self._lock.release()
            self._fd = self._lock = None

    def _remove(self) -> None:
        """The file of a session whose first line never fitted on the disk."""
        with contextlib.suppress(OSError):
            self.path.unlink()
            (self.path.parent / LOCK).unlink()
            self.path.parent.rmdir()

    def _newest_events(self, limit: int) -> list[Event]:
        lines = self._newest(limit)
        with self._writing:
            pending = bytes(self._pending)
        return list(self._read(reversed(lines), pending, RecordReading.events))

    def _whole(self, read: Callable[[RecordReading, Iterable[bytes]], Iterator[_Entry]]) -> Iterator[_Entry]:
        try:
            with self._writing:
                size = self.path.stat().st_size if self._on_disk() else 0
                pending = bytes(self._pending)
        except OSError as error:
            raise unreadable(self.path.parent, error) from error
        yield from self._read(forwards(self.path, size) if size else (), pending, read)

    def _read(
        self,
        lines: Iterable[bytes],
        pending: bytes,
        read: Callable[[RecordReading, Iterable[bytes]], Iterator[_Entry]],
    ) -> Iterator[_Entry]:
        """What ``read`` makes of the file's ``lines`` and of those that are not on disk yet."""
        try:
            missing = b"" if self._healed else cure(self.path)
            rest = (missing + pending).splitlines(keepends=True)
            reading = RecordReading(self.path, self.header.schema_version, self._schema)
            yield from read(reading, chain(lines, rest))
        except OSError as error:
            raise unreadable(self.path.parent, error) from error

    def _newest(self, limit: int) -> list[bytes]:
        from ba_tui.sessions.tails import newest  # noqa: PLC0415 - only a session that is continued has an end to read

        try:
            return newest(self.path, limit) if self._on_disk() else []
        except OSError as error:
            raise unreadable(self.path.parent, error) from error

    def _on_disk(self) -> bool:
        # Of a new session nothing is, as long as it could not be written: the place may not even be looked at.
        return (self._found or self._fd is not None) and self.path.exists()

    def _renewal(self) -> bytes:
        """What goes before the next entry of a session that an older ba began: entries are of our version from here.

        Raises NewerSchema when a later ba went on with it.
        """
        if self.header.schema_version >= self._schema.version:
            return b""
        version = newest_version(self.path, self.header)
        self._schema.check(version, self.path.parent.name)
        return (
            replace(self.header, schema_version=self._schema.version).line() if version < self._schema.version else b""
        )

    def _flush(self) -> None:
        if not self._pending or self._waiting:
            return
        try:
            self._write(self._file())
        except (OSError, SessionLocked) as error:
            raise self._unsaved(error) from error
        self._pending.clear()

    def _file(self) -> int:
        if self._fd is None:
            folder = self.path.parent
            make_private(folder)
            self._lock = self._lock or Lock.acquire(folder)
            self._fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._fd

    def _write(self, fd: int) -> None:
        if self._torn is not None:
            os.ftruncate(fd, self._torn)
            self._torn = None
        stat = os.fstat(fd)
        if stat.st_nlink == 0:
            raise FileNotFoundError(errno.ENOENT, "the file was deleted while the session was open")
        data = memoryview((self.header.line() if stat.st_size == 0 else b"") + self._pending)
        written = 0
        try:
            while written < len(data):
                written += os.write(fd, data[written:])
        except OSError:
            # Take the beginning back: what is pending goes out whole with the next write.
            self._torn = stat.st_size
            with contextlib.suppress(OSError):
                os.ftruncate(fd, stat.st_size)
                self._torn = None
            raise

    def _unsaved(self, error: OSError | SessionLocked) -> SessionNotSaved:
        if isinstance(error, SessionLocked):
            return SessionNotSaved(str(error).rstrip("."), error.hint, str(self.path.parent), partly=self._found)
        why = error.strerror or str(error)
        if error.errno in _NO_SPACE:
            hint = "Free some space: what is missing is kept in memory and saved with the next step."
        elif error.errno in _NO_RIGHTS:
            hint = "Check the folder and its rights, or set BA_HOME to a folder that you can write to."
        else:
            hint = "Check the disk: what is missing is kept in memory and saved with the next step."
        begun = self._found or (self._fd is not None and os.fstat(self._fd).st_size > 0)
        chosen = not begun and error.errno in _CLOSED
        return SessionNotSaved(why, hint, str(self.path.parent), partly=begun, chosen=chosen)


def cure(path: Path, *, questions: bool = True) -> bytes:
    """What has to be appended so that the file is whole: a line end and a notice after a torn line, an end for a
    turn that was killed. With ``questions``, a turn that waits for an answer needs none. Empty for a sound file;
    nothing is ever taken away."""
    mend, torn, at, running = b"", False, 0.0, False
    turn: list[bytes] = []
    for index, line in enumerate(backwards(path)):
        turn.append(line)
        if index == 0 and not line.endswith(b"\n"):
            mend, torn = b"\n", not is_record(line)
        at = at or number((loads(line) or {}).get("at"))
        running = starts_turn(line)
        if running or ends_turn(line):
            break
    events: list[Event] = [Notice(TORN, "warning", damage=True, at=at)] if torn else []
    waits = running and questions and _waits(path, turn[::-1])
    events += [TurnEnded("interrupted", at=at)] if running and not waits else []
    return mend + b"".join(event_to_json(event) + b"\n" for event in events)


def _waits(path: Path, turn: list[bytes]) -> bool:
    """Whether the turn with these lines stopped at a question about a call that has not run."""
    if not any(line.endswith(_ASKED) for line in turn):
        return False
    open_turn = OpenTurn()
    for event in RecordReading(path).events(turn):
        open_turn.apply(event)
    return open_turn.waiting() is not None


def make_private(folder: Path) -> None:
    """``folder`` and what is missing above it, for nobody else to read."""
    for path in reversed([folder, *folder.parents]):
        if not path.exists():
            path.mkdir(mode=0o700, exist_ok=True)


def unreadable(folder: Path, error: OSError) -> StorageError:
    if isinstance(error, FileNotFoundError):
        return SessionNotFound(f"Session {folder.name} is gone.", "See ba sessions list.")
    why = error.strerror or str(error)
    return StorageError(f"Session {folder.name} cannot be read: {why}.", f"Check the rights of {folder}.")


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
