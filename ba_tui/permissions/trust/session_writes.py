"""Detects files that run or instruct models when a session's tools write them, and lists them in the write record.

A session's record is open from before its first tool runs until the session is closed. A change counts as the user's
only if no tool, command or server ran since the last look.
"""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeAlias

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.instruction_names import NAMES, RULE_FOLDERS
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import folded
from ba_tui.permissions.sandbox.workspace_scan import WorkspaceScan, respelled
from ba_tui.permissions.trust.files import PARTS, TrustFile, found_in
from ba_tui.permissions.trust.write_records import (
    ABSENT,
    MOST_BY,
    Contents,
    FileKey,
    Record,
    SeenContent,
    WriteRecords,
    alive,
    digest_of,
    this_process,
    told,
)

log = logging.getLogger(__name__)
RECENT = 1.0
"""Maximum age, in seconds, of a look before a call. A user who edits faster can't be distinguished from a tool."""
SETTLED = 3 * 10**9
"""Nanoseconds after which a change shows in a file's times, on any file system."""
NOTHING: Mapping[str, str] = MappingProxyType({})
MOST_FOLDERS = 200
"""Folders below the workspace that are treated as projects."""
Writers: TypeAlias = Literal["none", "held", "loose"]
"""What may write while no call runs: nothing, servers that a sandbox keeps from protected files, or any program."""
MOST_GUARDED = 150
"""Number of protected files up to which the sandbox write-protects all of them."""
_CARRIERS = frozenset(part.split("/")[0] for parts in PARTS.values() for part in parts if part[0] == ".")
"""Names of folders and files that contain something to run."""


@frozen
class WatchedPlace:
    """The project at ``root`` and everything that ``scan`` searches. ``own``: the user's config folder.
    ``instructions`` returns the instruction files that are loaded or imported, given those in the workspace."""

    root: Path
    own: Path
    scan: WorkspaceScan
    instructions: Callable[[Sequence[Path]], Iterable[Path]] = lambda found: found


class CountedFiles:
    """Reads the files of a workspace that run something or instruct models; each again only if it has changed."""

    def __init__(self, place: WatchedPlace) -> None:
        self._place = place
        self._cache: dict[FileKey, tuple[tuple[int, ...], SeenContent]] = {}
        self._last: Contents = {}
        self.complete = True
        """Whether the last look covered every folder."""

    def look(self) -> Contents:
        """Return every file that runs something or instructs models, with its digest."""
        found = self._place.scan.look()
        self.complete = found.complete
        seen: dict[FileKey, SeenContent] = {}
        folders = [path.parent for path in found.protected if folded(path.name) in _CARRIERS]
        for folder in list(dict.fromkeys([self._place.root, *folders]))[:MOST_FOLDERS]:
            try:
                files = found_in(folder, self._place.own)
            except (UsageError, OSError):
                # Too many files to be trusted. They are not recorded, so later ones count as new.
                continue
            for file in files:
                key = FileKey("runs", str(file.path))
                seen[key] = self._seen(key, lambda file=file: _content(file))
        for path in self._place.instructions([*_instructions(found.protected)]):
            key = FileKey("told", os.path.normpath(path))
            seen[key] = self._seen(key, lambda path=path: told(path))
        self._cache = {key: self._cache[key] for key in seen if key in self._cache}
        self._last = seen
        return seen

    def guarded(self) -> frozenset[FileKey]:
        """Return the files of the last look that a program in a sandbox can't write: protected files, no links."""
        found = self._place.scan.last
        if not found.complete or len(found.protected) > MOST_GUARDED:
            return frozenset()
        folders = {str(path) for path in found.protected}
        above = {key: (key.path, *map(str, Path(key.path).parents)) for key in self._last}
        return frozenset(
            key for key in above if not folders.isdisjoint(above[key]) and os.path.realpath(key.path) == key.path
        )

    def _seen(self, key: FileKey, read: Callable[[], SeenContent]) -> SeenContent:
        try:
            status = os.stat(key.path)  # noqa: PTH116 - for hundreds of files
        except OSError:
            return ABSENT
        stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        known = self._cache.get(key)
        if known and known[0] == stamp:
            return known[1]
        content = read()
        if max(status.st_mtime_ns, status.st_ctime_ns) < time.time_ns() - SETTLED:
            self._cache[key] = (stamp, content)
        return content


class SessionWrites:
    """The writes of a session's tools. Thread-safe; all methods block for some milliseconds.

    ``busy`` returns the running background commands, servers and workers. ``recent``: maximum age of a look before a
    call, in seconds.
    """

    def __init__(
        self,
        records: WriteRecords,
        place: WatchedPlace,
        busy: Callable[[], Sequence[str]] = tuple,
        recent: float = RECENT,
    ) -> None:
        self._records = records
        self._place = place
        self._busy = busy
        self._recent = recent
        self._token = secrets.token_hex(8)
        self._files = CountedFiles(place)
        self._lock = threading.RLock()
        self._running: list[str] = []
        self._servers: dict[str, bool] = {}
        """Programs that may write until the session ends, and whether a sandbox keeps each from protected files."""
        self._guarded: frozenset[FileKey] | None = None
        """Files that no sandboxed server can write; None before the first server."""
        self._loose = ""
        """Names of programs that may have written any file during or after the last call."""
        self._opened = 0
        """When the record was opened, in nanoseconds."""
        self._looked = float("-inf")

    def begin(self, by: str) -> None:
        """Note that a call is about to run; the record is on disk when this returns.

        Raises:
            StorageError: the record can't be saved.
        """
        with self._lock:
            if not self._opened or time.monotonic() - self._looked > self._recent:
                self._settle(*self._between())
            self._running.append(by)
            self._note()

    def end(self, by: str, approved: Mapping[str, str] = NOTHING) -> None:
        """Note that a call has ended. ``approved``: by path, the texts of instruction files that the user has just
        allowed.

        Raises:
            StorageError: its writes can't be listed. The record stays open, so they count all the same.
        """
        with self._lock:
            names = [by, *self._running, *self._servers, *self._busy()]
            if by in self._running:
                self._running.remove(by)
            self._loose = " or ".join(dict.fromkeys(names))
            self._settle(self._loose, approved=approved)
            self._loose = "a background command" if self._writers() == "loose" else ""
            self._note()

    def start(self, by: str, *, held: bool = False) -> None:
        """Note that a server or worker is about to run, which may write at any time.

        ``held``: a sandbox keeps it from existing protected files. Raises as ``begin``.
        """
        with self._lock:
            self.begin(by)
            self._running.remove(by)
            self._servers[by] = held
            if held:
                guarded = self._files.guarded()
                self._guarded = guarded if self._guarded is None else self._guarded & guarded

    def close(self) -> None:
        """End the session and everything that its tools started."""
        try:
            self._close()
        except (BaError, OSError) as error:
            # The record stays open: at the next start, differences count as written by tools.
            log.warning("the record of what tools wrote could not be closed: %s", error)

    def _close(self) -> None:
        with self._lock:
            if not self._opened:
                return
            by, writers = self._between()
            now = self._files.look()
            with self._records.changing(self._place.root) as record:
                self._list(record, now, by, writers)
                record.open.pop(self._token, None)
                record.known = dict(now) if record.open else {}
            self._opened = 0
            atexit.unregister(self.close)
            with suppress(OSError):
                self._records.now(self._place.root, self._token).unlink()

    def accept(self, paths: Iterable[Path]) -> None:
        """Accept the current state of files that the user has seen: models may read them. Raises StorageError."""
        known = self._files.look()
        keys = [key for path in paths if (key := FileKey("told", os.path.normpath(path))) in known]
        self._records.accept(self._place.root, [(key, told(key.path).digest) for key in keys])

    def held(self, path: Path, raw: bytes) -> str:
        """Return why a model may not read the file at ``path``, which begins with ``raw``; empty if it may."""
        with self._lock:
            _, writers = self._between()
            key = FileKey("told", os.path.normpath(path))
            users = writers == "none" or (writers == "held" and key in (self._guarded or ()))
            mine = self._token if users else ""
            return held_file(self._records, self._place.root, path, raw, mine)

    def counts(self, path: Path) -> bool:
        """Return whether a file at ``path`` currently runs something or instructs models, whatever its name."""
        with self._lock:
            known = self._files.look()
        return any(FileKey(use, str(path)) in known for use in ("runs", "told"))

    def _writers(self) -> Writers:
        """Return what may write files now."""
        others = [by for by in self._busy() if by not in self._servers]
        if self._running or others or not all(self._servers.values()):
            return "loose"
        return "held" if self._servers else "none"

    def _between(self) -> tuple[str, Writers]:
        """Return what may have written files since the last look, with names."""
        writers = "loose" if self._loose else self._writers()
        names = dict.fromkeys((*self._running, *self._servers, *self._busy()))
        return " or ".join(names) or self._loose, writers

    def _settle(self, by: str, writers: Writers = "loose", approved: Mapping[str, str] = NOTHING) -> None:
        with suppress(OSError):
            # A sandbox hides ba's folders only if they exist, so a command must not be able to create them.
            self._place.own.mkdir(mode=0o700, parents=True, exist_ok=True)
        now = self._files.look()
        with self._records.changing(self._place.root) as record:
            self._list(record, now, by, writers, approved)
            gone = [token for token, process in record.open.items() if not alive(process)]
            for token in gone:
                del record.open[token]
                with suppress(OSError):
                    self._records.now(self._place.root, token).unlink()
            record.known = dict(now)
            record.open[self._token] = this_process()
            record.roots = tuple(dict.fromkeys((*record.roots, *map(str, self._place.scan.roots))))
        if not self._opened:
            self._opened = time.time_ns()
            # Without a conversation, work ends with the process, which must not look killed.
            atexit.register(self.close)
        self._looked = time.monotonic()

    def _list(
        self, record: Record, now: Contents, by: str, writers: Writers, approved: Mapping[str, str] = NOTHING
    ) -> None:
        """List differences from the known state, unless the user made them."""
        alone = list(record.open) == [self._token]
        if not record.open or (writers == "none" and alone):
            return
        users = (self._guarded or frozenset()) if writers == "held" and alone else frozenset[FileKey]()
        for key, seen in record.differing(now):
            allowed = key.use == "told" and seen.text is not None and approved.get(key.path) == seen.text
            if not (allowed or key in users or self._old(key, record)):
                record.add([(key, seen)], by or self._records.running(record))

    def _old(self, key: FileKey, record: Record) -> bool:
        """Return whether a file existed before the record was opened, but earlier looks did not reach it."""
        if self._files.complete or key in record.known or not self._opened:
            return False
        path = Path(key.path)
        within = (each for each in (path, *path.parents) if each.is_relative_to(self._place.root))
        try:
            return all(each.stat().st_ctime_ns < self._opened for each in within if each != self._place.root)
        except OSError:
            return False

    def _note(self) -> None:
        """Name the running calls, for the record of a session that is killed."""
        with suppress(OSError):
            text = one_line(" or ".join(self._running), MOST_BY)
            if text:
                self._records.now(self._place.root, self._token).write_bytes(text.encode("utf-8", "replace"))


def recover(records: WriteRecords, root: Path, own: Path) -> None:
    """List what tools wrote in killed sessions of ``root``, and close these sessions. Blocks while searching the
    workspace.

    If that can't be saved, the record stays open and the files count all the same.
    """
    record = records.of(root)
    if not record.open or any(map(alive, record.open.values())):
        return
    now = dict(CountedFiles(WatchedPlace(root, own, WorkspaceScan(map(Path, record.roots)))).look())
    for key in record.known:
        if key not in now and os.path.lexists(key.path):
            # It was imported or started by another file.
            now[key] = told(key.path)
    with suppress(BaError, OSError), records.changing(root) as record:
        if any(map(alive, record.open.values())):
            return
        record.add(record.differing(now), records.running(record))
        for token in record.open:
            with suppress(OSError):
                records.now(root, token).unlink()
        record.open, record.known = {}, {}


def held_file(records: WriteRecords, root: Path, path: Path, raw: bytes, mine: str = "") -> str:
    """Return why a model may not read the file at ``path``, which begins with ``raw``, in ``root``; empty if it may.

    ``mine``: a session in which nothing runs.
    """
    now: Mapping[FileKey, SeenContent] = {
        FileKey("told", each): SeenContent(digest_of(raw, path))
        for each in dict.fromkeys((os.path.normpath(path), os.path.realpath(path)))
    }
    found = next((each for each in records.listed(root, now, mine) if each.digest), None)
    if found is None:
        return ""
    when = f" ({found.at})" if found.at else ""
    return f"{found.by} wrote it{when}; to accept it, run `ba trust` or enter /trust"


def _content(file: TrustFile) -> SeenContent:
    try:
        return SeenContent(digest_of(file.content(), file.path))
    except OSError:
        return ABSENT


def _instructions(protected: Iterable[Path]) -> Iterator[Path]:
    """Yield the instruction files among protected paths, and those in protected folders."""
    for path in protected:
        if path.name in NAMES or respelled(path):
            yield path
        for folder, suffix in RULE_FOLDERS:
            top, _, below = folder.partition("/")
            if path.name == top:
                yield from (each for each in sorted((path / below).rglob(f"*{suffix}")) if each.is_file())
        if path.name == ".claude" and (path / "CLAUDE.md").is_file():
            yield path / "CLAUDE.md"
