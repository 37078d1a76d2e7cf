"""Takes old results away: those of sessions not used for a day, and the least recently used when all take too much.

Never one of a session that is open. What is said of a removed result is artifacts.py's business.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import stat
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ba_tui.core.values import frozen
from ba_tui.sessions import lock
from ba_tui.sessions.records import FILE
from ba_tui.sessions.results.artifacts import FOLDER, NAME, remove_unfinished

log = logging.getLogger(__name__)
EVERY = 3600.0


@frozen
class StorageLimits:
    """``age`` in seconds since a session was last used, ``size`` in bytes of all results; ``down_to`` of it is left."""

    age: float = 24 * 3600
    size: int = 10_000_000_000
    down_to: float = 0.8


@dataclass(slots=True)
class Cleaned:
    files: int = 0
    bytes: int = 0


@dataclass(slots=True)
class _Stored:
    """One content on disk, under as many names as sessions share it."""

    size: int
    used: float
    paths: list[Path] = field(default_factory=list[Path])


async def keep_clean(root: Path, pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
    """Clean now and then every hour, in a thread, until cancelled; a running round ends with the file it is at."""
    stop = threading.Event()
    try:
        while True:
            await asyncio.to_thread(clean, root, StorageLimits(), stop)
            await pause(EVERY)
    finally:
        stop.set()


def clean(root: Path, limits: StorageLimits, stop: threading.Event | None = None) -> Cleaned:
    """One round over all sessions below ``root``. What can't be looked at or removed stays until the next one."""
    stop = stop or threading.Event()
    done = Cleaned()
    for folder in _sessions(root):
        if stop.is_set():
            return done
        with contextlib.suppress(OSError):
            if time.time() - _last_use(folder) > limits.age:
                _empty(folder, done, stop)
            if not lock.owner(folder):
                remove_unfinished(folder / FOLDER)
    stored = list(_stored(root).values())
    total = sum(item.size for item in stored)
    if total > limits.size:
        for item in sorted(stored, key=lambda item: item.used):
            if stop.is_set() or total <= limits.size * limits.down_to:
                break
            if not any(lock.owner(path.parent.parent) for path in item.paths):
                total -= item.size
                for path in item.paths:
                    _remove(path, done)
    if done.files:
        log.info("removed %d stored results (%d bytes)", done.files, done.bytes)
    return done


def _empty(folder: Path, done: Cleaned, stop: threading.Event) -> None:
    for path in _results(folder / FOLDER):
        # Asked anew for each: the session may be opened meanwhile.
        if stop.is_set() or lock.owner(folder):
            return
        _remove(path, done)


def _remove(path: Path, done: Cleaned) -> None:
    with contextlib.suppress(OSError):
        found = path.lstat()
        path.unlink()
        done.files += 1
        done.bytes += found.st_size if found.st_nlink == 1 else 0


def _stored(root: Path) -> dict[tuple[int, int], _Stored]:
    """All results by what they are on disk."""
    found: dict[tuple[int, int], _Stored] = {}
    for folder in _sessions(root):
        for path in _results(folder / FOLDER):
            with contextlib.suppress(OSError):
                state = path.lstat()
                item = found.setdefault((state.st_dev, state.st_ino), _Stored(state.st_size, state.st_mtime))
                item.paths.append(path)
    return found


def _sessions(root: Path) -> Iterator[Path]:
    for project in _folders(root):
        yield from (folder for folder in _folders(project) if (folder / FOLDER).is_dir())


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _results(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in entries if NAME.fullmatch(entry.name)]
    except OSError:
        return []


def _last_use(folder: Path) -> float:
    """When the session was last written or open: its lock is touched at either end."""
    times = [0.0]
    for name in (FILE, lock.FILE):
        with contextlib.suppress(OSError):
            state = (folder / name).stat()
            times.append(state.st_mtime if stat.S_ISREG(state.st_mode) else 0.0)
    return max(times)
