"""Deletes checkpoints of deleted sessions and those beyond the space limits; packs the rest regularly.

A checkpoint that a fork of its session refers to is kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from ba_tui.core.errors import StorageError
from ba_tui.core.text.patterns import regex
from ba_tui.sessions.checkpoints.shadow import Store
from ba_tui.sessions.records import FILE, forwards, loads, read_header

log = logging.getLogger(__name__)
SOON = 60.0
EVERY = 3600.0
DAY = 86_400.0
PACKED = "packed"
"""A file whose time is that of the last packing."""
LOOSE = 20
"""Number of files in one of the 256 object folders from which packing pays."""
PACKS = 8
"""The same for packs."""
HEAVY = 64 * 1024 * 1024
"""Bytes of loose objects from which packing always pays, since versions of a file are then stored as differences."""
ROOM = 0.75
"""Share of a limit to which checkpoints are deleted, so that it does not happen after each turn."""
_NUMBERED = regex(r"(end-)?(\d+)")
LET_GO = "let-go"
"""A file that marks packs with possibly unneeded contents."""
_KINDS = (b'"type":"checkpointed"', b'"type":"rewound"')


async def keep_pruned(folder: Path, sessions: Path, most: int) -> None:
    """Prune all stores below ``folder`` every hour, in a thread, until cancelled. ``most``: see ``prune``."""
    while True:
        await asyncio.sleep(SOON)
        await asyncio.to_thread(prune, folder, sessions, most)
        await asyncio.sleep(EVERY)


def prune(folder: Path, sessions: Path, most: int = 0, stop: threading.Event | None = None) -> int:
    """Delete checkpoints that no session needs, and the oldest ones while all stores have more than ``most`` bytes (0:
    no limit). Return the number of deleted checkpoints.

    ``stop`` ends it; then nothing is packed, which may take minutes.
    """
    gone = 0
    try:
        known = _sessions(sessions)
    except OSError as error:
        # Sessions that can't be listed may still exist.
        log.info("no checkpoints are pruned: %s", error)
        return 0
    for path in _folders(folder) if folder.is_dir() else ():
        # No project file is read, so any folder will do as the project.
        store = Store(path, path)
        if stop and stop.is_set():
            break
        try:
            gone += _pruned(store, known)
            if stop is None:
                _pack(store)
        except (StorageError, OSError) as error:
            log.info("checkpoints in %s were not pruned: %s", path.name, error)
    return gone + (_within(folder, most, stop) if most else 0)


def trim(store: Store, session: str, most: int) -> int:
    """Delete the oldest checkpoints of a session if those before its newest take more than ``most`` additional bytes.

    Return the number of deleted checkpoints. Call it with the store's lock held.
    """
    names = _by_age(store, session)
    if len(names) < 3 or _size(store, names) <= most:
        return 0
    low, high = 1, len(names) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _size(store, names[middle:]) <= most * ROOM else (middle + 1, high)
    _delete(store, names[:low])
    return low


def _by_age(store: Store, session: str = "") -> list[str]:
    """Return the names of checkpoints, the oldest first: of one session, or of all."""
    form = "--format=%(committerdate:unix) %(refname)"
    found: list[tuple[int, int, int, str]] = []
    for line in store.git("for-each-ref", form, f"refs/ba/{session}").decode().splitlines():
        at, _, ref = line.partition(" ")
        name = ref.removeprefix("refs/ba/")
        turn = _NUMBERED.fullmatch(name.rpartition("/")[2])
        found.append((int(at), int(turn[2]) if turn else 0, bool(turn and turn[1]), name))
    return [name for *_, name in sorted(found)]


def _size(store: Store, names: Sequence[str]) -> int:
    """Return the bytes on disk of everything in ``names`` that the last of them does not contain."""
    given = "".join(f"refs/ba/{name}\n" for name in names[:-1]) + f"^refs/ba/{names[-1]}\n"
    return int(store.git("rev-list", "--objects", "--disk-usage", "--stdin", given=given.encode()))


def _delete(store: Store, names: Sequence[str]) -> None:
    """Delete checkpoints and their loose contents. Call it with the store's lock held."""
    store.git("update-ref", "--stdin", given="".join(f"delete refs/ba/{name}\n" for name in names).encode())
    (store.folder / LET_GO).touch()
    # No other process writes now, so unreferenced objects are not needed.
    store.git("prune", "--expire=now")


def _within(folder: Path, most: int, stop: threading.Event | None) -> int:
    """Delete checkpoints of whole sessions, the least recently used first, until all stores have at most ``most``
    bytes.

    The most recently used session is kept.
    """
    stores = [Store(path, path) for path in _folders(folder)] if folder.is_dir() else []
    sizes = {store.folder: _bytes_of(store.folder) for store in stores}
    if sum(sizes.values()) <= most:
        return 0
    used: list[tuple[int, str, Store]] = []
    for store in stores:
        with contextlib.suppress(StorageError, OSError):
            for session in {name.partition("/")[0] for name in store.refs()}:
                newest = store.git("log", "-1", "--format=%ct", f"--glob=refs/ba/{session}/*")
                used.append((int(newest), session, store))
    gone = 0
    for _, session, store in sorted(used, key=lambda each: each[:2])[:-1]:
        if sum(sizes.values()) <= most or (stop and stop.is_set()):
            break
        try:
            with store.locked():
                names = _by_age(store, session)
                _delete(store, names)
                if stop is None:
                    store.git("gc", "--quiet", "--prune=now", seconds=600)
        except (StorageError, OSError) as error:
            log.info("checkpoints of %s were not deleted: %s", session, error)
            continue
        gone += len(names)
        sizes[store.folder] = _bytes_of(store.folder)
    return gone


def _bytes_of(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    size = 0
    for path, _, files in os.walk(folder):
        for file in files:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(path, file)).st_size  # noqa: PTH118 - tens of thousands of names
    return size


def _pruned(store: Store, known: dict[str, Path]) -> int:
    lost = {name: id for name, id in store.refs().items() if name.partition("/")[0] not in known}
    if not lost:
        return 0
    needed = _named_by_copies(known)
    # The checkpoint at the end of a turn is kept with the one at its beginning.
    staying = {name: id for name, id in lost.items() if id in needed}
    ends = {name.replace("/", "/end-", 1) for name in staying}
    ends |= {f"{name.partition('/')[0]}/left-{id}" for name, id in staying.items()}
    going = [name for name, id in lost.items() if id not in needed and name not in ends]
    if going:
        with store.locked():
            store.git("update-ref", "--stdin", given="".join(f"delete refs/ba/{name}\n" for name in going).encode())
            (store.folder / LET_GO).touch()
    return len(going)


def _named_by_copies(known: dict[str, Path]) -> set[str]:
    """Return the checkpoint ids in sessions that began as forks."""
    found: set[str] = set()
    for path in known.values():
        with contextlib.suppress(OSError):
            header = read_header(path)
            if header is None or not header.parent:
                continue
            for line in forwards(path):
                if any(kind in line[-40:] for kind in _KINDS) and (record := loads(line)):
                    found |= {str(record.get(key)) for key in ("id", "files", "undo") if record.get(key)}
    return found


def _pack(store: Store) -> None:
    """Pack once a day if it pays, and whenever there is much.

    Unreferenced objects are kept for a day, since another process may be writing.
    """
    stamp = store.folder / PACKED
    with contextlib.suppress(OSError):
        if time.time() - stamp.stat().st_mtime < DAY and not _heavy(store.folder):
            return
    with contextlib.suppress(OSError):
        if _pays(store.folder):
            store.git("gc", "--quiet", "--prune=1.day.ago", seconds=600)
            (store.folder / LET_GO).unlink(missing_ok=True)
    stamp.touch()


def _heavy(folder: Path) -> bool:
    """Return whether there are many bytes of loose objects."""
    return sum(_bytes_of(path) for path in _folders(folder / "objects") if len(path.name) == 2) > HEAVY


def _pays(folder: Path) -> bool:
    packs = folder / "objects" / "pack"
    kept = sum(1 for _ in packs.glob("*.pack"))
    # Git removes the remains of unfinished packs.
    if kept >= PACKS or (kept and (folder / LET_GO).exists()) or any(packs.glob("tmp_pack_*")):
        return True
    loose = folder / "objects" / "17"
    return _heavy(folder) or (loose.is_dir() and len(list(loose.iterdir())) >= LOOSE)


def _sessions(root: Path) -> dict[str, Path]:
    return {path.name: path / FILE for folder in _folders(root) for path in _folders(folder)}


def _folders(folder: Path) -> list[Path]:
    with os.scandir(folder) as entries:
        return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
