"""Write-ahead lists: the changes that one call makes to several files, saved before the first file changes.

A killed process leaves its list. The next start in the workspace undoes the changes and reports them (``recover``). The
module that writes a kind of list also undoes it. Lists are untrusted data: undoing checks every path.
"""

from __future__ import annotations

import errno
import json
import logging
import math
import os
import secrets
import stat
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias, cast

from ba_tui.core.errors import BaError, StorageError
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.resources import UserFolders, abandoned, folder_slug, open_regular, places, save_whole
from ba_tui.shared_files import sync_path, take_lock

log = logging.getLogger(__name__)
FOLDER = "changes"
VERSION = 1
LIST, OUTCOME = ".list", ".outcome"
LONGEST_HEAD = 50_000_000
"""Maximum bytes of a list's description: 100,000 files."""
KEPT = 90 * 86_400.0
"""Seconds that an outcome waits for its session to be opened again."""
HINT = "Check the rights and the free space of BA_HOME, or change the files one by one."
MOST_SAID = 1_000
"""Maximum length of the report on one list."""
LATER = "ba was stopped while {by} changed files here. They could not be put back: {why} The next start tries again."
NEWER = "A newer ba was stopped while {by} changed files here. Start that version to have them put back."


@frozen
class WriteAhead:
    """The folder with the lists of one workspace, and the id of the session that writes them; empty for none."""

    folder: Path
    session: str = ""

    @contextmanager
    def listed(self, kind: str, by: str, body: Mapping[str, object], contents: Iterable[bytes] = ()) -> Generator[None]:
        """Save a locked list, and remove it at the end of the block, when all changes are made or undone.

        Raises:
            StorageError: the list cannot be saved, so nothing may be changed.
        """
        try:
            file = self._save(kind, by, body, tuple(contents))
        except OSError as error:
            message = f"ba can't save which files are about to change: {error.strerror or error}."
            raise StorageError(message, HINT) from error
        number, path = file
        try:
            yield
        finally:
            _void(number, path)
            os.close(number)

    def lists(self) -> Sequence[Path]:
        """Return the lists in the folder, also those of running processes. Blocks."""
        return list(_files(self.folder, LIST))

    def outcomes(self) -> list[RecoveryOutcome]:
        """Return the outcomes missing from the session's journal, oldest first. Blocks."""
        found: list[RecoveryOutcome] = []
        for path in _files(self.folder, OUTCOME):
            with suppress(OSError, ValueError, KeyError, TypeError):
                with open_regular(path) as file:
                    kept = json.loads(file.read())
                    old = time.time() - os.fstat(file.fileno()).st_mtime > KEPT
                if kept["session"] == self.session:
                    found.append(RecoveryOutcome(path, one_line(paintable(str(kept["text"])), MOST_SAID)))
                elif old:
                    path.unlink()
        return found

    def _save(self, kind: str, by: str, body: Mapping[str, object], contents: Sequence[bytes]) -> tuple[int, Path]:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.folder / f"{os.getpid()}-{secrets.token_hex(4)}{LIST}"
        head = {"version": VERSION, "kind": kind, "by": by, "session": self.session, "size": sum(map(len, contents))}
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with suppress(OSError):
                take_lock(number, wait=math.inf)
            with open(number, "wb", closefd=False) as file:
                file.write(json.dumps({**head, "body": body}).encode() + b"\n")
                file.writelines(contents)
            os.fsync(number)
            sync_path(self.folder)
            if not os.fstat(number).st_nlink:
                # Another start took it for an abandoned list before it was locked.
                raise OSError(errno.ESTALE, "the list was removed by another ba")
        except BaseException:
            with suppress(OSError):
                path.unlink()
            os.close(number)
            raise
        return number, path


def write_ahead(root: Path, session: str = "", where: UserFolders | None = None) -> WriteAhead:
    """Return the lists of the workspace at ``root``."""
    return WriteAhead((where or places()).state / FOLDER / folder_slug(root), session)


@frozen
class AbandonedList:
    """A list whose process is gone. ``number`` is its open, locked file."""

    number: int
    kind: str
    by: str
    session: str
    body: Mapping[str, Any]
    _start: int
    _size: int

    def content(self, at: int, size: int) -> bytes:
        """Return ``size`` bytes of the contents from ``at`` on. Raises ValueError outside the contents."""
        if at < 0 or size < 0 or at + size > self._size:
            raise ValueError("the list is damaged")
        return os.pread(self.number, size, self._start + at)


Undo: TypeAlias = Callable[[AbandonedList], str]
"""Undoes the changes of a list and returns one or two sentences about it.

Raises BaError or OSError if the next start should try again, and ValueError, KeyError, TypeError for a damaged list.
"""


@frozen
class RecoveryOutcome:
    """The outcome of undoing a list, for the session whose call wrote it."""

    file: Path
    text: str

    def forget(self) -> None:
        """Remove the outcome once the session's journal has it."""
        with suppress(OSError):
            self.file.unlink()


def recover(folder: Path, undo: Mapping[str, Undo]) -> list[str]:
    """Undo the lists of dead processes in ``folder`` by kind; return one or two sentences for each. Blocks."""
    found: list[str] = []
    for path in _files(folder, LIST):
        try:
            # Open for writing, because an undone list is emptied: otherwise the next start would undo it again.
            number = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            log.warning("the list of changes %s can't be opened: %s", path.name, error)
            found.append(LATER.format(by="it", why=_sentence(error)))
            continue
        try:
            if _ours(number, path.name):
                found += filter(None, [_recovered(number, path, undo)])
        finally:
            os.close(number)
    return [one_line(paintable(text.encode("utf-8", "replace").decode()), MOST_SAID) for text in found]


def _ours(number: int, name: str) -> bool:
    """Return whether an open file is a list whose process is gone. Locks it."""
    about, pid = os.fstat(number), name.partition("-")[0]
    if not (stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid() and pid.isdigit()):
        return False
    # Another start may have undone and removed it meanwhile: then it has no link.
    return abandoned(number, int(pid)) and os.fstat(number).st_nlink == 1


def _recovered(number: int, path: Path, undo: Mapping[str, Undo]) -> str:
    try:
        left = _read(number)
    except (ValueError, KeyError, TypeError):
        # The list is incomplete, so no file was changed.
        with suppress(OSError):
            path.unlink()
        return ""
    if left.kind not in undo:
        return NEWER.format(by=left.by)
    try:
        text = _undone(left, undo[left.kind], path)
    except (BaError, OSError) as error:
        log.warning("the changes of %s can't be undone: %s", left.by, error)
        return LATER.format(by=left.by, why=_sentence(error))
    _void(number, path)
    return text


def _undone(left: AbandonedList, undo: Undo, path: Path) -> str:
    try:
        text = undo(left)
    except (ValueError, KeyError, TypeError):
        log.warning("the list of changes %s is damaged", path.name)
        text = f"ba was stopped while {left.by} changed files here, and its list of them is damaged: check your files."
    kept = path.with_suffix(OUTCOME)
    if left.session and not kept.exists():
        try:
            words = text.encode("utf-8", "replace").decode()
            save_whole(kept, json.dumps({"session": left.session, "text": words}))
        except StorageError as error:
            log.warning("the session can't be told what came of its changes: %s", error)
    return text


def _read(number: int) -> AbandonedList:
    """Read a list. Raises ValueError, KeyError, TypeError if it is incomplete."""
    with open(os.dup(number), "rb") as file:
        line = file.readline(LONGEST_HEAD)
        start, end = len(line), os.fstat(number).st_size
    head = cast("dict[str, Any]", json.loads(line)) if line.endswith(b"\n") else {}
    if head["size"] != end - start:
        raise ValueError
    kind = str(head["kind"]) if head["version"] == VERSION else f"of version {head['version']}"
    return AbandonedList(number, kind, str(head["by"]), str(head["session"]), dict(head["body"]), start, end - start)


def _void(number: int, path: Path) -> None:
    """Empty the list, then remove it: a power failure may restore its name, but not its content."""
    with suppress(OSError):
        os.ftruncate(number, 0)
        os.fsync(number)
    with suppress(OSError):
        path.unlink()


def _files(folder: Path, suffix: str) -> list[Path]:
    try:
        names = os.listdir(folder)  # noqa: PTH208 - names only
    except OSError:
        return []
    return [folder / name for name in sorted(names) if name.endswith(suffix)]


def _sentence(error: BaError | OSError) -> str:
    text = str(error) if isinstance(error, BaError) else error.strerror or str(error)
    return f"{text.rstrip('.')}."
