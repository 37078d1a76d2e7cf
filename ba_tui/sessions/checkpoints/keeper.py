"""core.rewinding.Checkpoints: the files of one session before its turns, kept in the store of its project.

How files are stored and brought back stands in shadow and restoring; what is no longer needed goes in ``prune``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ba_tui.core.errors import StorageError
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.results import Diff, Diffs
from ba_tui.core.rewinding import FileChange, Restored, turn_history
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count
from ba_tui.resources import Places, folder_slug, project_root, user_home
from ba_tui.sessions.checkpoints.git import GitWatch
from ba_tui.sessions.checkpoints.shadow import (
    SavedCheckpoint,
    ShadowLimits,
    Snapshot,
    Store,
    TreeChange,
    TreeEntry,
)
from ba_tui.sessions.checkpoints.traits import FILES, holds
from ba_tui.sessions.checkpoints.turn_writes import TurnWrites
from ba_tui.sessions.journal import JournalFile
from ba_tui.settings.sections.sessions import CheckpointSettings
from ba_tui.write_ahead import AbandonedList, WriteAhead, write_ahead

if TYPE_CHECKING:
    from ba_tui.sessions.checkpoints.restoring import Contents

log = logging.getLogger(__name__)
SHOWN = 200
"""Files whose texts are shown."""
LONGEST = 1_000_000
"""Bytes of a text that is shown."""
MB = 1_000_000
KIND = "rewind"
"""Of lists of changes (write_ahead.py)."""
NAMED = 8
_ID = regex(r"[0-9a-f]{40,64}")
_STOPPED = "ba was stopped while a rewind changed files."
_GONE = (
    "The checkpoint is gone: the oldest are deleted beyond checkpoints.max_session_mb and checkpoints.max_total_mb, "
    "or the store was deleted."
)


class SessionCheckpoints:
    """Those that ``session`` takes; those of others, such as the one it was forked from, can be restored too."""

    def __init__(self, store: Store, session: str, ahead: WriteAhead | None = None) -> None:
        self._store = store
        self._session = session
        self._ahead = ahead or write_ahead(store.root, session)

    def take(self, turn: int, watch: GitWatch | None = None) -> str:
        """Raises Stopped when whoever watches did not want to wait."""
        self._fit()
        with self._store.locked():
            return self._store.keep(self._store.snapshot(watch), f"{self._session}/{turn}", self._session, turn)

    def settle(self, turn: int, writes: TurnWrites | None = None) -> None:
        """The turn has ended: keep what it made, so that later changes by hand can be told from its own, and which of
        the files other programs wrote meanwhile."""
        self._fit()
        store = self._store
        with store.locked():
            end, begun = store.snapshot(), store.read(f"refs/ba/{self._session}/{turn}")
            if writes and begun:
                # A file that is gone comes back with a rewind, whoever removed it: that loses nothing.
                there = [change.name for change in store.changed(begun.tree, end.tree) if change.after is not None]
                end = replace(end, others=writes.others(store.root, there))
            store.keep(end, f"{self._session}/end-{turn}", self._session, turn)
            self._trim()

    def _trim(self) -> None:
        """Delete the oldest checkpoints of the session when they take too much room."""
        from ba_tui.sessions.checkpoints.prune import trim  # noqa: PLC0415 - nothing waits for the end of a turn

        if most := self._store.limits.session:
            try:
                if gone := trim(self._store, self._session, most):
                    log.info("%d checkpoints of %s were deleted: they took too much room", gone, self._session)
            except StorageError as error:
                # Git before 2.31 can't tell how much room they take.
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
            # When a rewind is taken back: how it had left the files.
            left = self._store.read(f"refs/ba/{target.session}/left-{to}")
            ends = [*((left,) if left else ()), *map(self._end, begun)]
            hand = self._by_hand(ends, [kept.tree for kept in (begun if left else begun[1:])] + ([now] if ends else []))
            stay = self._others(target)
        return [replace(item, by_hand=item.path in hand, stays=item.path in stay) for item in found]

    def diffs(self, before: str, after: str = "") -> Diffs:
        from ba_tui.sessions.checkpoints.restoring import Contents  # noqa: PLC0415 - most sessions restore nothing

        with self._store.locked():
            old, new = self._tree(before), self._tree(after)
            found = self._store.changed(old, new)[:SHOWN]
            with Contents(self._store) as contents:
                return Diffs(tuple(_diff(change, contents) for change in found))

    def patch(self, before: str, after: str = "", *, stat: bool = False) -> bytes:
        with self._store.locked():
            old, new = self._tree(before), self._tree(after)
            how = ["--stat=100"] if stat else ["-p", "--binary"]
            return self._store.git("diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv", *how, old, new)

    def begin(self, to: str) -> str:
        from ba_tui.sessions.checkpoints.restoring import check  # noqa: PLC0415 - see diffs

        self._fit()
        store = self._store
        with store.locked():
            target, now = self._read(to), store.snapshot()
            check(store, now.tree, target.tree)
            return store.keep(now, f"{self._session}/undo-{os.urandom(4).hex()}", self._session, 0)

    def restore(self, to: str, undo: str) -> Restored:
        from ba_tui.sessions.checkpoints.restoring import restore  # noqa: PLC0415 - see diffs

        store = self._store
        with store.locked():
            now, target = self._read(undo), self._read(to)
            with self._ahead.listed(KIND, "a rewind", {"to": to, "undo": undo}):
                done = restore(store, now, target, self._others(target))
            store.keep(done.after, f"{self._session}/left-{undo}", self._session, 0)
        return Restored(tuple(done.done), tuple(done.left))

    def take_back(self, left: AbandonedList) -> str:
        """write_ahead.Undo of a ``restore`` whose process was killed: the files are as before it, and so is the
        conversation. Raises StorageError where the store is in use."""
        from ba_tui.sessions.checkpoints.restoring import restore  # noqa: PLC0415 - see diffs

        to, undo = str(left.body["to"]), str(left.body["undo"])
        if not (_ID.fullmatch(to) and _ID.fullmatch(undo)):
            raise ValueError
        with self._store.locked():
            self._store.ready()
            reached, before = self._store.read(to), self._store.read(undo)
            if not reached or not before:
                return f"{_STOPPED} Its checkpoint is gone, so check your files."
            done = restore(self._store, reached, before, resumed=True)
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
        """That of a checkpoint; of the files as they are when there is no id."""
        return self._read(id).tree if id else self._now().tree

    def _now(self) -> Snapshot:
        self._fit()
        return self._store.snapshot()

    def _end(self, begun: SavedCheckpoint) -> SavedCheckpoint | None:
        """How the turn left the files that began with ``begun``."""
        return self._store.read(f"refs/ba/{begun.session}/end-{begun.turn}")

    def _others(self, target: SavedCheckpoint) -> frozenset[str]:
        """Files that other programs wrote during the turns since: a rewind leaves them as they are."""
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
        """Paths that changed between the turns: after each end and before the next change of a later turn."""
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
        """What a rewind changes beside contents: rights of files, and empty folders."""
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
        """Raises StorageError for a folder that holds much more than a project."""
        root, home = self._store.root, user_home()
        if root == Path(root.anchor) or (home is not None and (root == home or root in home.parents)):
            text = f"There are no checkpoints in {root}: it holds much more than one project."
            raise StorageError(text, "Start ba in a project's folder to be able to rewind files.")


def checkpoints_for(where: Places, cwd: Path, session: str, settings: CheckpointSettings) -> SessionCheckpoints:
    """Those of ``session`` in the project of ``cwd``. Touches no disk but to find the project."""
    root = project_root(cwd)
    ours = (where.home,) if where.home else (where.data, where.cache, where.state)
    limits = ShadowLimits(largest=int(settings.max_file_mb * MB), session=int(settings.max_session_mb * MB))
    store = Store(where.checkpoints / folder_slug(root), root, ours, limits)
    return SessionCheckpoints(store, session, write_ahead(root, session, where))


def session_start(where: Places, info: SessionInfo) -> str:
    """The id of a session's first checkpoint; empty when it changed no files. Raises StorageError."""
    folder = where.sessions / folder_slug(info.cwd) / info.id
    return turn_history(JournalFile.peek(folder, running=bool(info.locked_by)).read()).first


def session_patch(where: Places, info: SessionInfo, settings: CheckpointSettings, *, stat: bool = False) -> bytes:
    """What changed in files since a session began, as a patch or as a line a file; empty when it changed none.

    Raises:
        StorageError: the session or its checkpoints can't be read.
    """
    first = session_start(where, info)
    return checkpoints_for(where, info.cwd, info.id, settings).patch(first, stat=stat) if first else b""


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
