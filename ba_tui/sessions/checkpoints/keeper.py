"""core.rewinding.Checkpoints: the files of one session before its turns, in the store of its project.

``shadow`` stores files, ``restore`` restores them, ``prune`` deletes old checkpoints.
"""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ba_tui.core.errors import StorageError
from ba_tui.core.ports.sessions import FileChange, RestoreResult, SessionInfo
from ba_tui.core.results import Diff, Diffs
from ba_tui.core.rewinding import turn_history
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count
from ba_tui.resources import UserFolders, folder_slug, project_root, user_home
from ba_tui.sessions.checkpoints.git import FILES, GitWatch, holds
from ba_tui.sessions.checkpoints.prune import trim
from ba_tui.sessions.checkpoints.shadow import (
    SavedCheckpoint,
    ShadowLimits,
    Snapshot,
    Store,
    TreeChange,
    TreeEntry,
)
from ba_tui.sessions.journal import JournalFile
from ba_tui.settings.sections.agents import CheckpointSettings
from ba_tui.write_ahead import AbandonedList, WriteAhead, write_ahead

if TYPE_CHECKING:
    from ba_tui.sessions.checkpoints.restore import Contents

log = logging.getLogger(__name__)


SLACK = 20_000_000
"""Nanoseconds that a file system's clock may lag: it advances with the kernel's ticks."""
SECOND = 1_000_000_000


class TurnWrites:
    """Distinguishes files that a turn's tools wrote from those that other programs wrote meanwhile.

    It compares ctimes with the times of calls and the files that they named. In doubt a file counts as written by a
    tool. ``loose`` returns whether a program that a call started still runs.
    """

    def __init__(self, loose: Callable[[], bool] = lambda: False) -> None:
        self._loose = loose
        self._unknown = False
        self._open: dict[str, int] = {}
        self._ran: list[tuple[int, int]] = []
        self._paths: set[str] = set()
        self._until = 0
        self.look()

    def look(self) -> None:
        """Check whether a program runs that may write at any time."""
        self._unknown = self._unknown or self._loose()

    def forget(self) -> None:
        """Note that unrecorded calls ran, so that no file counts as written by another program."""
        self._unknown = True

    def begin(self, call: str, paths: Iterable[str]) -> None:
        """Note that a call begins and writes the files at ``paths``. Relative paths start from the project."""
        self._open.setdefault(call, time.time_ns() - SLACK)
        self._paths.update(paths)

    def end(self, call: str) -> None:
        """Note that a call and its consequences have ended."""
        if call in self._open:
            self._ran.append((self._open.pop(call), time.time_ns()))
            self.look()

    def close(self) -> None:
        """Note that the turn has ended."""
        for call in list(self._open):
            self.end(call)
        self.look()
        self._until = time.time_ns()

    def others(self, root: Path, names: Iterable[str]) -> tuple[str, ...]:
        """Return which of the files ``names`` below ``root`` another program wrote last. Blocks."""
        if self._unknown or not self._ran:
            return ()
        paths = {os.path.normpath(root / path) for path in self._paths}
        named = {os.path.realpath(path) for path in paths} | paths
        return tuple(name for name in names if self._is_others(root / name, named))

    def _is_others(self, path: Path, named: set[str]) -> bool:
        if str(path) in named or os.path.realpath(path) in named:
            return False
        try:
            found = path.lstat()
        except OSError:
            return False
        at = found.st_ctime_ns
        # Times of a file system with whole seconds, or with another clock, are inconclusive.
        if not stat.S_ISREG(found.st_mode) or at % SECOND == 0 or at > self._until:
            return False
        return not any(begun <= at <= ended for begun, ended in self._ran)


SHOWN = 200
"""Number of files whose texts are shown."""
LONGEST = 1_000_000
"""Maximum bytes of a text that is shown."""
MB = 1_000_000
KIND = "rewind"
"""The kind of its write-ahead lists (write_ahead.py)."""
NAMED = 8
_ID = regex(r"[0-9a-f]{40,64}")
_STOPPED = "ba was stopped while a rewind changed files."
_GONE = (
    "The checkpoint was deleted, with its store or as one of the oldest beyond checkpoints.max_session_mb and "
    "checkpoints.max_total_mb."
)


class SessionCheckpoints:
    """The checkpoints of ``session``; those of other sessions, such as its parent, can be restored too."""

    def __init__(self, store: Store, session: str, ahead: WriteAhead | None = None) -> None:
        self._store = store
        self._session = session
        self._ahead = ahead or write_ahead(store.root, session)

    def take(self, turn: int, watch: GitWatch | None = None) -> str:
        """Save the files before a turn; return the checkpoint's id. Raises GitStopped if the user stopped it."""
        self._fit()
        with self._store.locked():
            return self._store.keep(self._store.snapshot(watch), f"{self._session}/{turn}", self._session, turn)

    def settle(self, turn: int, writes: TurnWrites | None = None) -> None:
        """Save the files after a turn, to distinguish later manual changes and concurrent changes by other programs."""
        self._fit()
        store = self._store
        with store.locked():
            end, begun = store.snapshot(), store.read(f"refs/ba/{self._session}/{turn}")
            if writes and begun:
                # A rewind restores deleted files, whoever deleted them, since that loses nothing.
                there = [change.name for change in store.changed(begun.tree, end.tree) if change.after is not None]
                end = replace(end, others=writes.others(store.root, there))
            store.keep(end, f"{self._session}/end-{turn}", self._session, turn)
            self._trim()

    def _trim(self) -> None:
        """Delete the oldest checkpoints of the session if they take too much space."""
        if most := self._store.limits.session:
            try:
                if gone := trim(self._store, self._session, most):
                    log.info("%d checkpoints of %s were deleted: they took too much room", gone, self._session)
            except StorageError as error:
                # Git before 2.31 can't report their size.
                log.info("the checkpoints of %s were not measured: %s", self._session, error)

    def changes(self, before: str, after: str = "") -> Sequence[FileChange]:
        with self._store.locked():
            return self._counted(self._tree(before), self._tree(after))

    def did(self, before: str) -> Sequence[FileChange]:
        with self._store.locked():
            begun = self._read(before)
            end = self._end(begun)
            return self._counted(begun.tree, end.tree) if end else ()

    def undoing(self, to: str, since: Sequence[tuple[int, str]]) -> Sequence[FileChange]:
        with self._store.locked():
            as_is = self._now()
            now = as_is.tree
            target = self._read(to)
            found = self._counted(now, target.tree)
            found += self._unlike(as_is, target, {change.path for change in found})
            begun = [self._read(id) for _, id in since]
            # When a rewind is undone: the files after the rewind.
            left = self._store.read(f"refs/ba/{target.session}/left-{to}")
            ends = [*((left,) if left else ()), *map(self._end, begun)]
            hand = self._by_hand(ends, [kept.tree for kept in (begun if left else begun[1:])] + ([now] if ends else []))
            stay = self._others(target)
        return [replace(item, by_hand=item.path in hand, stays=item.path in stay) for item in found]

    def diffs(self, before: str, after: str = "") -> Diffs:
        with self._store.locked():
            old, new = self._tree(before), self._tree(after)
            found = self._store.changed(old, new)[:SHOWN]
            with _restoring().Contents(self._store) as contents:
                return Diffs(tuple(_diff(change, contents) for change in found))

    def patch(self, before: str, after: str = "", *, stat: bool = False) -> bytes:
        with self._store.locked():
            old, new = self._tree(before), self._tree(after)
            how = ["--stat=100"] if stat else ["-p", "--binary"]
            return self._store.git("diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv", *how, old, new)

    def begin(self, to: str) -> str:
        self._fit()
        store = self._store
        with store.locked():
            target, now = self._read(to), store.snapshot()
            _restoring().check(store, now.tree, target.tree)
            return store.keep(now, f"{self._session}/undo-{os.urandom(4).hex()}", self._session, 0)

    def restore(self, to: str, undo: str) -> RestoreResult:
        store = self._store
        with store.locked():
            now, target = self._read(undo), self._read(to)
            with self._ahead.listed(KIND, "a rewind", {"to": to, "undo": undo}):
                done = _restoring().restore(store, now, target, self._others(target))
            store.keep(done.after, f"{self._session}/left-{undo}", self._session, 0)
        return RestoreResult(tuple(done.done), tuple(done.left))

    def take_back(self, left: AbandonedList) -> str:
        """write_ahead.Undo of a ``restore`` in a killed process: files and conversation return to the state before it.

        Raises StorageError if the store is in use.
        """
        to, undo = str(left.body["to"]), str(left.body["undo"])
        if not (_ID.fullmatch(to) and _ID.fullmatch(undo)):
            raise ValueError
        with self._store.locked():
            self._store.ready()
            reached, before = self._store.read(to), self._store.read(undo)
            if not reached or not before:
                return f"{_STOPPED} Its checkpoint was deleted, so check your files."
            done = _restoring().restore(self._store, reached, before, resumed=True)
        said = f"ba put back {count(len(done.done), 'file')}." if done.done else "No file is changed."
        names = [f"{name} ({why})" for name, why in done.left[:NAMED]]
        more = f" and {len(done.left) - NAMED} more" if len(done.left) > NAMED else ""
        return f"{_STOPPED} {said}" + (f" Left as found: {', '.join(names)}{more}." if names else "")

    def _read(self, id: str) -> SavedCheckpoint:
        self._store.ready()
        kept = self._store.read(id)
        if kept is None:
            raise StorageError(_GONE, "Rewind the conversation only, or rewind the files to a later prompt.")
        return kept

    def _tree(self, id: str) -> str:
        """Return the tree of a checkpoint; of the current files for an empty id."""
        return self._read(id).tree if id else self._now().tree

    def _now(self) -> Snapshot:
        self._fit()
        return self._store.snapshot()

    def _end(self, begun: SavedCheckpoint) -> SavedCheckpoint | None:
        """Return the checkpoint at the end of the turn that began with ``begun``."""
        return self._store.read(f"refs/ba/{begun.session}/end-{begun.turn}")

    def _others(self, target: SavedCheckpoint) -> frozenset[str]:
        """Return files that other programs wrote during later turns: a rewind leaves them unchanged."""
        found: set[str] = set()
        if target.turn:
            prefix = f"{target.session}/end-"
            for name in self._store.refs():
                number = name.removeprefix(prefix)
                if name.startswith(prefix) and number.isdecimal() and int(number) >= target.turn:
                    end = self._store.read(f"refs/ba/{name}")
                    found |= end.others if end else set()
        return frozenset(found)

    def _by_hand(self, ends: Sequence[SavedCheckpoint | None], later: Sequence[str]) -> set[str]:
        """Return paths that changed between turns: after each end and before the next change of a later turn."""
        found: set[str] = set()
        for end, tree in zip(ends, later, strict=True):
            if end and end.tree != tree:
                found |= {change.name for change in self._store.changed(end.tree, tree)}
        return found

    def _counted(self, before: str, after: str) -> list[FileChange]:
        if before == after:
            return []
        said = self._store.git("diff-tree", "-r", "-z", "--numstat", "--no-renames", "--no-ext-diff", before, after)
        counts = {path: (_number(added), _number(removed)) for added, removed, path in map(_columns, said.split(b"\0"))}
        return [
            FileChange(change.name, _kind(change), *counts.get(change.path, (0, 0)))
            for change in self._store.changed(before, after)
        ]

    def _unlike(self, now: Snapshot, target: SavedCheckpoint, known: set[str]) -> list[FileChange]:
        """Return what a rewind changes besides contents: rights of files, and empty folders."""
        if now.traits is None or target.traits is None:
            return []
        old = {path: now.traits.of(path, mode) for mode, path in self._store.files(now.tree)}
        files = self._store.files(target.tree)
        found = [
            FileChange(os.fsdecode(path), "changed")
            for mode, path in files
            if mode in FILES and old.get(path) not in {None, target.traits.of(path, mode)}
        ]
        was, then = set(now.traits.empty), set(target.traits.empty)
        found += [FileChange(f"{path}/", "new") for path in sorted(then - was)]
        found += [FileChange(f"{path}/", "gone") for path in sorted(was - then) if not holds(files, path)]
        return [change for change in found if change.path not in known]

    def _fit(self) -> None:
        """Raise StorageError for a folder that contains much more than a project."""
        root, home = self._store.root, user_home()
        if root == Path(root.anchor) or (home is not None and (root == home or root in home.parents)):
            text = f"There are no checkpoints in {root}: it contains much more than one project."
            raise StorageError(text, "Start ba in a project's folder to be able to rewind files.")


def checkpoints_for(where: UserFolders, cwd: Path, session: str, settings: CheckpointSettings) -> SessionCheckpoints:
    """Return the checkpoints of ``session`` in the project of ``cwd``. Reads the disk only to find the project."""
    root = project_root(cwd)
    ours = (where.home,) if where.home else (where.data, where.cache, where.state)
    limits = ShadowLimits(largest=int(settings.max_file_mb * MB), session=int(settings.max_session_mb * MB))
    store = Store(where.checkpoints / folder_slug(root), root, ours, limits)
    return SessionCheckpoints(store, session, write_ahead(root, session, where))


def session_start(where: UserFolders, info: SessionInfo) -> str:
    """Return the id of a session's first checkpoint; empty if it changed no files. Raises StorageError."""
    folder = where.sessions / folder_slug(info.cwd) / info.id
    return turn_history(JournalFile.peek(folder, running=bool(info.locked_by)).read()).first


def session_patch(where: UserFolders, info: SessionInfo, settings: CheckpointSettings, *, stat: bool = False) -> bytes:
    """Return file changes since a session began, as a patch or as one line per file; empty if there are none.

    Raises:
        StorageError: the session or its checkpoints can't be read.
    """
    first = session_start(where, info)
    return checkpoints_for(where, info.cwd, info.id, settings).patch(first, stat=stat) if first else b""


def _restoring():
    """Return the module that restores files. It is imported late: most sessions restore nothing."""
    from ba_tui.sessions.checkpoints import restore  # noqa: PLC0415

    return restore


def _columns(line: bytes) -> tuple[bytes, bytes, bytes]:
    parts = line.split(b"\t", 2)
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else (b"0", b"0", b"")


def _number(text: bytes) -> int | None:
    return int(text) if text.isdigit() else None


def _kind(change: TreeChange) -> Literal["new", "changed", "gone"]:
    return "new" if change.before is None else "gone" if change.after is None else "changed"


def _diff(change: TreeChange, contents: Contents) -> Diff:
    before = None if change.before is None else _text(change.before, contents)
    return Diff(change.name, before, _text(change.after, contents) if change.after else "")


def _text(entry: TreeEntry, contents: Contents) -> str:
    data = contents.read(entry.id)
    if entry.mode == "120000":
        return f"link to {os.fsdecode(data)}\n"
    if b"\0" in data[:8_000] or len(data) > LONGEST:
        what = "too long to show" if len(data) > LONGEST else "no text"
        return f"{what}, {len(data):,} bytes, {entry.id[:8]}\n"
    return data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
