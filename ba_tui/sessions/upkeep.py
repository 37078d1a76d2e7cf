"""Periodic maintenance: deletes old results, checkpoints and temporary folders, and chooses old sessions to prune."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import stat
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.processes.scratch import clear_scratch
from ba_tui.resources import UserFolders
from ba_tui.sessions import journal
from ba_tui.sessions.artifacts import FOLDER, NAME, remove_unfinished
from ba_tui.sessions.checkpoints.prune import keep_pruned, prune
from ba_tui.sessions.records import FILE
from ba_tui.settings.sections.agents import CheckpointSettings

log = logging.getLogger(__name__)

HOUR = 3600.0
MB = 1_000_000
STAMP = "cleaned"
"""A file in the state folder whose time is that of the last cleaning by an unattended run."""
PATIENCE = 2.0
"""Seconds that an unattended run may clean; the next one continues."""


async def upkeep(where: UserFolders, kept: CheckpointSettings) -> None:
    """Clean and prune regularly, until cancelled."""
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.to_thread(clear_scratch))
        group.create_task(keep_clean(where.sessions))
        group.create_task(keep_pruned(where.checkpoints, where.sessions, int(kept.max_total_mb * MB)))


def tidy(where: UserFolders, kept: CheckpointSettings) -> bool:
    """Clean and prune for at most ``PATIENCE`` seconds; return False if that was done within the last hour. Blocks."""
    clear_scratch()
    stamp = where.state / STAMP
    with contextlib.suppress(OSError):
        if time.time() - stamp.stat().st_mtime < HOUR:
            return False
    try:
        stamp.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        stamp.touch()
    except OSError:
        return False
    stop = threading.Event()
    timer = threading.Timer(PATIENCE, stop.set)
    timer.daemon = True
    timer.start()
    try:
        clean(where.sessions, StorageLimits(), stop)
        prune(where.checkpoints, where.sessions, int(kept.max_total_mb * MB), stop)
    finally:
        timer.cancel()
    return True


@frozen
class StorageLimits:
    """``age``: seconds since a session was last used; ``size``: bytes of all results; ``down_to``: share of it that
    remains."""

    age: float = 24 * 3600
    size: int = 10_000_000_000
    down_to: float = 0.8


@dataclass(slots=True)
class CleanupResult:
    files: int = 0
    bytes: int = 0


@dataclass(slots=True)
class _StoredResult:
    """One content on disk, under all names that sessions share."""

    size: int
    used: float
    paths: list[Path] = field(default_factory=list[Path])


async def keep_clean(root: Path, pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
    """Clean every hour, in a thread, until cancelled; a running round stops after the current file."""
    stop = threading.Event()
    try:
        while True:
            await asyncio.to_thread(clean, root, StorageLimits(), stop)
            await pause(HOUR)
    finally:
        stop.set()


def clean(root: Path, limits: StorageLimits, stop: threading.Event | None = None) -> CleanupResult:
    """Clean all sessions below ``root`` once, except open ones. Errors are skipped until the next round.

    Results are deleted if their session was not used for a day, and the least recently used ones if all take too much
    space.
    """
    stop = stop or threading.Event()
    done = CleanupResult()
    for folder in _sessions(root):
        if stop.is_set():
            return done
        with contextlib.suppress(OSError):
            if time.time() - _last_use(folder) > limits.age:
                _empty(folder, done, stop)
            if not journal.owner(folder):
                remove_unfinished(folder / FOLDER)
    stored = list(_stored(root).values())
    total = sum(item.size for item in stored)
    if total > limits.size:
        for item in sorted(stored, key=lambda item: item.used):
            if stop.is_set() or total <= limits.size * limits.down_to:
                break
            if not any(journal.owner(path.parent.parent) for path in item.paths):
                total -= item.size
                for path in item.paths:
                    _remove(path, done)
    if done.files:
        log.info("removed %d stored results (%d bytes)", done.files, done.bytes)
    return done


def _empty(folder: Path, done: CleanupResult, stop: threading.Event) -> None:
    for path in _results(folder / FOLDER):
        # Check for each file: the session may be opened meanwhile.
        if stop.is_set() or journal.owner(folder):
            return
        _remove(path, done)


def _remove(path: Path, done: CleanupResult) -> None:
    with contextlib.suppress(OSError):
        found = path.lstat()
        path.unlink()
        done.files += 1
        done.bytes += found.st_size if found.st_nlink == 1 else 0


def _stored(root: Path) -> dict[tuple[int, int], _StoredResult]:
    """Return all results by device and inode."""
    found: dict[tuple[int, int], _StoredResult] = {}
    for folder in _sessions(root):
        for path in _results(folder / FOLDER):
            with contextlib.suppress(OSError):
                state = path.lstat()
                item = found.setdefault((state.st_dev, state.st_ino), _StoredResult(state.st_size, state.st_mtime))
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
    """Return when the session was last written or open: its lock is touched at both times."""
    times = [0.0]
    for name in (FILE, journal.LOCK_FILE):
        with contextlib.suppress(OSError):
            state = (folder / name).stat()
            times.append(state.st_mtime if stat.S_ISREG(state.st_mode) else 0.0)
    return max(times)


_AGE = regex(r"(\d{1,6})\s*([hdwmy])", re.IGNORECASE)
_SECONDS = {"h": 3600, "d": 86_400, "w": 7 * 86_400, "m": 30 * 86_400, "y": 365 * 86_400}


@frozen
class RetentionRule:
    """Which sessions to delete: last used more than ``older`` seconds ago and not among the ``keep`` newest. None: no
    such limit."""

    older: float | None = None
    keep: int | None = None


def sessions_to_prune(infos: Sequence[SessionInfo], rule: RetentionRule, now: float) -> list[SessionInfo]:
    """Return the sessions to delete, oldest first, none that is open; empty without any limit."""
    if rule.older is None and rule.keep is None:
        return []
    newest = sorted(infos, key=lambda info: (info.updated, info.id), reverse=True)
    beyond = newest[rule.keep :] if rule.keep is not None else newest
    old = [info for info in beyond if rule.older is None or now - info.updated > rule.older]
    return [info for info in reversed(old) if not info.locked_by]


def seconds_of(age: str) -> float:
    """Parse an age such as ``30d`` to seconds; units h, d, w, m (30 days) and y (365 days). Raises UsageError."""
    found = _AGE.fullmatch(age.strip())
    if found is None:
        raise UsageError(f"“{age}” is no age.", "Write a number and h, d, w, m or y: 30d.")
    return int(found[1]) * _SECONDS[found[2].lower()]
