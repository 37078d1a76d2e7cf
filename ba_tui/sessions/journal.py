"""The journal of one session: events.jsonl, append-only, repaired when it is opened; and the lock for one writer.

The kernel releases the lock when its owner ends in any way. The lock file remains; only the kernel's lock on it is
decisive, and its text names the owner.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import json
import logging
import os
import socket
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
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.transcript import OpenTurn
from ba_tui.resources import open_regular, process_runs
from ba_tui.sessions.records import (
    FILE,
    OURS,
    TORN,
    Header,
    JournalEntry,
    RecordReading,
    Schema,
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
from ba_tui.sessions.timeline import newest
from ba_tui.shared_files import (
    append_whole,
    is_locked,
    open_lock_file,
    sync_path,
    take_lock_if_supported,
    write_owner,
)

log = logging.getLogger(__name__)

LOCK_FILE = "lock"
_PATIENCE = 0.05
"""Seconds to wait for a lock: listing sessions takes it for an instant to test it."""


class Lock:
    """The lock of a session, held from ``acquire`` to ``release`` or the end of the process."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def acquire(cls, folder: Path) -> Lock:
        """Acquire the lock. Raises SessionLocked if another process holds it; OSError if the file can't be created."""
        fd = open_lock_file(folder / LOCK_FILE)
        try:
            if not take_lock_if_supported(fd, wait=_PATIENCE):
                raise _locked(folder)
            write_owner(fd, json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "started": time.time()}))
        except BaseException:
            os.close(fd)
            raise
        return cls(fd)

    def release(self) -> None:
        with contextlib.suppress(OSError):
            os.ftruncate(self._fd, 0)
        os.close(self._fd)


def left_open(folder: Path) -> bool:
    """Return whether the last owner ended without releasing the lock; a released lock is empty. Call it only without an
    owner."""
    try:
        return (folder / LOCK_FILE).stat().st_size > 0
    except OSError:
        return False


def owner(folder: Path) -> str:
    """Return who writes the session in ``folder`` now (``pid 123``); empty for nobody."""
    path = folder / LOCK_FILE
    try:
        if path.stat().st_size == 0:
            return ""
        record = loads(path.read_bytes()) or {}
    except OSError:
        return ""
    pid, host = record.get("pid"), record.get("host")
    if not isinstance(pid, int):
        return "another process" if _held(path) else ""
    if host != socket.gethostname():
        return f"pid {pid} on {host}" if _held(path) else ""
    return f"pid {pid}" if process_runs(pid) and _held(path) else ""


def _held(path: Path) -> bool:
    with contextlib.suppress(OSError), open_regular(path) as file:
        return is_locked(file.fileno())
    return False


def _locked(folder: Path) -> SessionLocked:
    who = owner(folder) or "another process"
    if who == f"pid {os.getpid()}":
        return SessionLocked(f"Session {folder.name} is already open here.", "Close it first, or fork it.")
    hint = f"Close it there, or take a copy: ba --resume {folder.name} --fork"
    return SessionLocked(f"Session {folder.name} is open in {who}.", hint)


ASIDE = 2_000
"""Number of events after which those read so far are excluded from garbage collection."""
_Entry = TypeVar("_Entry", bound=JournalEntry)
_SETTINGS = (ModeChanged, ModelChanged, Notice, Titled)
_ASKED = b'"type":"asked"}\n'
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_CLOSED = {errno.EROFS, errno.EACCES, errno.EPERM}
_NO_RIGHTS = {*_CLOSED, errno.ENOTDIR, errno.EEXIST}


class JournalFile:
    """A session file. It is created with the first turn, so no session without a turn is on disk; ``header`` is its
    first line."""

    def __init__(self, folder: Path, header: Header, schema: Schema = OURS) -> None:
        self.path = folder / FILE
        self.header = header
        self._schema = schema
        self._writing = threading.Lock()
        """Turns end, and so are synced, in a thread while the next one may begin."""
        self._pending = bytearray()
        """Lines that are not on disk yet, oldest first."""
        self._waiting = True
        """There are only settings so far; they are written with the first turn."""
        self._healed = True
        self._found = False
        """The file existed before."""
        self._named = False
        self._fd: int | None = None
        self._lock: Lock | None = None
        self._attended = b""
        """A header line to write before the next entry."""
        self._aside = False
        """Whether a history was excluded from garbage collection."""
        self._torn: int | None = None
        """Offset to truncate to before the next write, if a failed write could not be undone."""

    @classmethod
    def peek(cls, folder: Path, *, running: bool = False, schema: Schema = OURS) -> JournalFile:
        """Return an existing session for reading. Raises as ``open`` does.

        ``running``: another process writes it, so that a turn without an end is not interrupted.
        """
        try:
            header = read_header(folder / FILE) or Header(folder.name, "", (folder / FILE).stat().st_mtime)
            lost = not running and emptied(folder / FILE)
        except OSError as error:
            raise unreadable(folder, error) from error
        if lost:
            raise StorageError(
                f"The file of session {folder.name} is empty: its content is lost.",
                f"Restore a copy of {folder / FILE}, or remove it: ba sessions delete {folder.name}.",
            )
        schema.check(header.schema_version, folder.name)
        journal = cls(folder, header, schema)
        journal._waiting = False
        journal._found = True
        journal._healed = running
        return journal

    @classmethod
    def open(cls, folder: Path, schema: Schema = OURS, *, questions: bool = True) -> JournalFile:
        """Return an existing session, locked and repaired. ``questions``: a turn that waits for an answer stays open.

        Raises:
            SessionLocked, SessionNotFound, NewerSchema, StorageError
        """
        journal = cls.peek(folder, schema=schema)
        try:
            journal._lock = Lock.acquire(folder)
        except OSError as error:
            # Without rights for a lock, writing fails too: the session is readable, and the first append reports it.
            log.warning("no lock for %s: %s", folder, error)
        try:
            journal._pending += repair_of(journal.path, questions=questions) + journal._renewal()
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
        """Whether entries that should be on disk are only in memory."""
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
        """Return what lists would show of the session, including entries that are only in memory."""
        header, titles = self.header, ["", *(event.title for event in self if isinstance(event, Titled))]
        return SessionInfo(header.id, titles[-1], Path(header.cwd), header.created, time.time(), model=header.model)

    def attend(self) -> None:
        """Note that a user continues the session: from the next entry on, lists show it even if only ``ba -p`` wrote it
        so far."""
        if self.header.unattended:
            attended = replace(self.header, unattended=False, schema_version=self._schema.version)
            self._attended = attended.line()

    def read(self) -> list[Event]:
        events: list[Event] = []
        for event in self:
            events.append(event)
            if not len(events) % ASIDE:
                gc.freeze()  # the collector would scan a long history repeatedly
                self._aside = True
        return events

    def __iter__(self) -> Iterator[Event]:
        """Iterate over the events that exist now, one by one, for files of any size."""
        return self._whole(RecordReading.events)

    def entries(self) -> Iterator[JournalEntry]:
        """Iterate over the entries including those of types that only a later version knows, for lossless copies."""
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
        # The last line may be incomplete; it is read later.
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
                    sync_path(self.path.parent)
                    sync_path(self.path.parent.parent)
                    self._named = True
        except OSError as error:
            lost = self._unsaved(error)
            lost.hint = "Check the disk: what ba wrote may be lost there. /export FILE writes the session elsewhere."
            raise lost from error

    def close(self) -> None:
        """Try to write pending entries once more, then release everything. Earlier failures were already reported."""
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
        """Delete the file of a session whose first line did not fit on the disk."""
        with contextlib.suppress(OSError):
            self.path.unlink()
            (self.path.parent / LOCK_FILE).unlink()
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
        """Yield what ``read`` makes of the file's ``lines`` and of those that are not on disk yet."""
        try:
            missing = b"" if self._healed else repair_of(self.path)
            rest = (missing + pending).splitlines(keepends=True)
            reading = RecordReading(self.path, self.header.schema_version, self._schema)
            yield from read(reading, chain(lines, rest))
        except OSError as error:
            raise unreadable(self.path.parent, error) from error

    def _newest(self, limit: int) -> list[bytes]:
        try:
            return newest(self.path, limit) if self._on_disk() else []
        except OSError as error:
            raise unreadable(self.path.parent, error) from error

    def _on_disk(self) -> bool:
        # An unwritten new session has no file, and its folder may be inaccessible.
        return (self._found or self._fd is not None) and self.path.exists()

    def _renewal(self) -> bytes:
        """Return a header of the current version to append to a session of an older version.

        Raises NewerSchema if a later ba has continued it.
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
        try:
            append_whole(fd, (self.header.line() if stat.st_size == 0 else b"") + self._pending)
        except OSError:
            # The pending entries are written again completely.
            self._torn = stat.st_size
            with contextlib.suppress(OSError):
                if os.fstat(fd).st_size <= stat.st_size:
                    self._torn = None
            raise

    def _unsaved(self, error: OSError | SessionLocked) -> SessionNotSaved:
        if isinstance(error, SessionLocked):
            return SessionNotSaved(str(error).rstrip("."), error.hint, str(self.path.parent), partly=self._found)
        why = error.strerror or str(error)
        if error.errno in _NO_SPACE:
            hint = "Free some space: unsaved entries are kept in memory and saved with the next step."
        elif error.errno in _NO_RIGHTS:
            hint = "Check the folder and its rights, or set BA_HOME to a folder that you can write to."
        else:
            hint = "Check the disk: unsaved entries are kept in memory and saved with the next step."
        begun = self._found or (self._fd is not None and os.fstat(self._fd).st_size > 0)
        chosen = not begun and error.errno in _CLOSED
        return SessionNotSaved(why, hint, str(self.path.parent), partly=begun, chosen=chosen)


def repair_of(path: Path, *, questions: bool = True) -> bytes:
    """Return what to append so that the file is complete; empty if it is.

    That is a line end and a notice after a torn line, and an end for a turn that was killed. With ``questions``, a turn
    that waits for an answer needs no end. Nothing is ever removed.
    """
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
    """Return whether the turn with these lines waits for an answer about a call that has not run."""
    if not any(line.endswith(_ASKED) for line in turn):
        return False
    open_turn = OpenTurn()
    for event in RecordReading(path).events(turn):
        open_turn.apply(event)
    return open_turn.waiting() is not None


def make_private(folder: Path) -> None:
    """Create ``folder`` and its missing parents, accessible only to the user."""
    for path in reversed([folder, *folder.parents]):
        if not path.exists():
            path.mkdir(mode=0o700, exist_ok=True)


def unreadable(folder: Path, error: OSError) -> StorageError:
    if isinstance(error, FileNotFoundError):
        return SessionNotFound(f"Session {folder.name} is gone.", "See ba sessions list.")
    why = error.strerror or str(error)
    return StorageError(f"Session {folder.name} cannot be read: {why}.", f"Check the rights of {folder}.")
