"""Lets go of checkpoints whose session is gone, now and then, and packs what is left.

A checkpoint that a copy of its session names stays. What a checkpoint is stands in shadow.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
from pathlib import Path

from ba_tui.core.errors import StorageError
from ba_tui.sessions.checkpoints.shadow import Store
from ba_tui.sessions.records import FILE, forwards, loads, read_header

log = logging.getLogger(__name__)
SOON = 60.0
EVERY = 3600.0
DAY = 86_400.0
PACKED = "packed"
"""Its time says when the store was packed."""
LOOSE = 20
"""Files in one of the 256 folders of loose contents from which packing pays."""
PACKS = 8
"""The same for packs."""
LET_GO = "let-go"
"""Says that packs may hold what nothing needs any more."""
_KINDS = (b'"type":"checkpointed"', b'"type":"rewound"')


async def keep_pruned(folder: Path, sessions: Path) -> None:
    """Prune all stores below ``folder`` every hour, in a thread, until cancelled."""
    while True:
        await asyncio.sleep(SOON)
        await asyncio.to_thread(prune, folder, sessions)
        await asyncio.sleep(EVERY)


def prune(folder: Path, sessions: Path, stop: threading.Event | None = None) -> int:
    """Take away what no session needs; how many checkpoints went. With ``stop``, which ends it, nothing is packed: that
    may take minutes."""
    gone = 0
    try:
        known = _sessions(sessions)
    except OSError as error:
        # What can't be seen is not gone.
        log.info("no checkpoints are pruned: %s", error)
        return 0
    for path in _folders(folder) if folder.is_dir() else ():
        # No file of the project is looked at, so any folder will do for one.
        store = Store(path, path)
        if stop and stop.is_set():
            break
        try:
            gone += _pruned(store, known)
            if stop is None:
                _pack(store)
        except (StorageError, OSError) as error:
            log.info("checkpoints in %s were not pruned: %s", path.name, error)
    return gone


def _pruned(store: Store, known: dict[str, Path]) -> int:
    lost = {name: id for name, id in store.refs().items() if name.partition("/")[0] not in known}
    if not lost:
        return 0
    needed = _named_by_copies(known)
    # How a turn left the files goes with the checkpoint it began with.
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
    """The ids in those sessions that began as copies of others."""
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
    """Once a day, when it pays. What was let go of stays another day: somebody may be writing just now."""
    stamp = store.folder / PACKED
    with contextlib.suppress(OSError):
        if time.time() - stamp.stat().st_mtime < DAY:
            return
    with contextlib.suppress(OSError):
        if _pays(store.folder):
            store.git("gc", "--quiet", "--prune=1.day.ago", seconds=600)
            (store.folder / LET_GO).unlink(missing_ok=True)
    stamp.touch()


def _pays(folder: Path) -> bool:
    packs = folder / "objects" / "pack"
    kept = sum(1 for _ in packs.glob("*.pack"))
    # Of a pack that was never finished, git takes away what is left.
    if kept >= PACKS or (kept and (folder / LET_GO).exists()) or any(packs.glob("tmp_pack_*")):
        return True
    loose = folder / "objects" / "17"
    return loose.is_dir() and len(list(loose.iterdir())) >= LOOSE


def _sessions(root: Path) -> dict[str, Path]:
    return {path.name: path / FILE for folder in _folders(root) for path in _folders(folder)}


def _folders(folder: Path) -> list[Path]:
    with os.scandir(folder) as entries:
        return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
