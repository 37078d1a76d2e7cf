"""Restores files from a tree: each file is checked before it is replaced, and is replaced completely or not at all.

No file is replaced or deleted whose current content is not stored. ``shadow`` stores contents.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Container, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ba_tui.core.errors import StorageError
from ba_tui.processes.programs import PipedChild
from ba_tui.resources import temporary_name, unfinished
from ba_tui.sessions.checkpoints.git import FILES, FileTraits, changed, holds
from ba_tui.sessions.checkpoints.shadow import SavedCheckpoint, Snapshot, Store, TreeChange, TreeEntry

LINK = "120000"
SAFE = 500
"""Up to this number of files, each is synced to disk before the next one is changed."""
OTHERS = "another program wrote it during the turn"
_DAMAGED = "The checkpoint is damaged, or the store was deleted."


@dataclass(slots=True)
class RestoredFiles:
    """Restored or deleted paths, paths left unchanged with the reasons, and the resulting state of the files."""

    done: list[str] = field(default_factory=list[str])
    left: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    after: Snapshot = field(default_factory=lambda: Snapshot(""))


class Contents:
    """Reads contents of a store through one git process. Use it in a ``with`` block."""

    def __init__(self, store: Store) -> None:
        self._git = PipedChild(store.command("cat-file", "--batch"), store.root, store.environment())

    def __enter__(self) -> Contents:
        return self

    def __exit__(self, *raised: object) -> None:
        self._git.close()

    def read(self, id: str) -> bytes:
        """Return a content. Raises StorageError if it is missing or damaged."""
        given, taken = self._git.input, self._git.output
        try:
            given.write(id.encode() + b"\n")
            given.flush()
            head = taken.readline().split()
            data = taken.read(int(head[2])) if len(head) == 3 else b""
            taken.read(1 if len(head) == 3 else 0)
        except (OSError, ValueError) as error:
            raise StorageError(_DAMAGED) from error
        if len(head) != 3 or digest(data) != id:
            raise StorageError(_DAMAGED)
        return data


def digest(data: bytes) -> str:
    """Return the id that git gives a content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def restore(
    store: Store, now: SavedCheckpoint, target: SavedCheckpoint, stay: Container[str] = (), *, resumed: bool = False
) -> RestoredFiles:
    """Change the files to those of ``target``, except for those that ``stay``; ``now`` is their current state.

    Call it with the store's lock held. ``resumed``: some files may already have been restored.

    Raises:
        StorageError: a content of the target is missing; no file was changed.
    """
    every = check(store, now.tree, target.tree)
    changes = [change for change in every if change.name not in stay]
    with Contents(store) as contents:
        left_out, safe = (now.skipped, target.skipped), len(changes) <= SAFE
        work = _Work(store.root, contents, *left_out, target.traits, safe=safe, resumed=resumed)
        work.result.left += [(change.name, OTHERS) for change in every if change.name in stay]
        rules = [change for change in changes if (b"/" + change.path).endswith(b"/.gitignore")]
        rest = [change for change in changes if change not in rules] if rules else changes
        # Restore ignore rules first: a file that they ignore is missing in the target without having been absent.
        work.each(rules, work.turn)
        gone = [change for change in rest if change.after is None]
        ignored = _ignored(store, [change.path for change in gone])
        for change in gone:
            if change.path in ignored:
                work.result.left.append((change.name, "the ignore rules of that time exclude it"))
        work.each([change for change in gone if change.path not in ignored], work.turn)
        work.each([change for change in rest if change.after is not None], work.turn)
    if target.traits:
        _Traits(store.root, work.result).restore(store.files(target.tree), now.traits, target.traits)
    else:
        work.result.left.append(("rights of files and empty folders", "this checkpoint does not contain them"))
    _verify(store, target, work.result)
    return work.result


def check(store: Store, now: str, target: str) -> Sequence[TreeChange]:
    """Return the changes between two trees. Raises StorageError if a content for them is missing."""
    changes = store.changed(now, target)
    given = "".join(f"{change.after.id}\n" for change in changes if change.after)
    if b" missing\n" in store.git("cat-file", "--batch-check", given=given.encode()):
        raise StorageError(_DAMAGED, "No file was touched.")
    return changes


def _ignored(store: Store, paths: Sequence[bytes]) -> set[bytes]:
    if not paths:
        return set()
    given = b"".join(path + b"\0" for path in paths)
    try:
        said = store.git("check-ignore", "--no-index", "-z", "--stdin", given=given)
    except StorageError:
        # git check-ignore fails if no path is ignored.
        return set()
    return set(said.split(b"\0"))


def _verify(store: Store, target: SavedCheckpoint, result: RestoredFiles) -> None:
    """Check the files again, and report differences that were not left on purpose."""
    known = {path for path, _ in result.left}
    result.after = store.snapshot()
    for change in store.changed(result.after.tree, target.tree):
        if change.name not in known:
            result.left.append((change.name, "it was changed again meanwhile"))
            with contextlib.suppress(ValueError):
                result.done.remove(change.name)


class _LeftAsFound(Exception):
    """The reason why a file is left unchanged."""


class _Same(Exception):
    """A file is already in the wanted state."""


@dataclass(slots=True)
class _Work:
    root: Path
    contents: Contents
    unkept: frozenset[str]
    unknown: frozenset[str]
    traits: FileTraits | None
    safe: bool
    resumed: bool
    result: RestoredFiles = field(default_factory=RestoredFiles)

    def each(self, changes: Sequence[TreeChange], do: Callable[[TreeChange], None]) -> None:
        for change in changes:
            try:
                do(change)
            except _Same:
                pass
            except _LeftAsFound as left:
                self.result.left.append((change.name, str(left)))
            except StorageError as error:
                self.result.left.append((change.name, str(error)))
            except OSError as error:
                self.result.left.append((change.name, error.strerror or str(error)))
            else:
                self.result.done.append(change.name)

    def turn(self, change: TreeChange) -> None:
        """Change one path from ``before`` to ``after``."""
        if change.after is None and change.name in self.unknown:
            raise _LeftAsFound("it existed but was too large to be kept")
        if change.name in self.unkept:
            raise _LeftAsFound("it is now too large to be saved first")
        if change.after is None and not os.path.lexists(self.root / change.name):
            if self.resumed:
                # Its folders may already have been created.
                _prune(self.root, change.path)
            raise _Same
        with _folder(self.root, change.path, make=change.after is not None) as (folder, name):
            if self.resumed and _is(folder, name, change.after):
                raise _Same
            if not _is(folder, name, change.before):
                raise _LeftAsFound("it was changed meanwhile, or was not saved")
            if change.after is None:
                os.unlink(name, dir_fd=folder)
            else:
                self._put(folder, name, change, change.after)
        if change.after is None:
            _prune(self.root, change.path)

    def _put(self, folder: int, name: bytes, change: TreeChange, entry: TreeEntry) -> None:
        data = self.contents.read(entry.id)
        with contextlib.suppress(OSError):
            # Remove an empty folder in its place.
            os.rmdir(name, dir_fd=folder)
        made = os.fsencode(temporary_name(os.fsdecode(name)))
        with unfinished(self.root / os.fsdecode(change.path[: -len(name)] + made)):
            rights = self.traits.of(change.path, entry.mode.encode()) if self.traits else None
            self._exchange(folder, (made, name), (entry, rights), data)

    def _exchange(
        self, folder: int, names: tuple[bytes, bytes], kind: tuple[TreeEntry, int | None], data: bytes
    ) -> None:
        entry, rights = kind
        made, name = names
        try:
            if entry.mode == LINK:
                os.symlink(data, made, dir_fd=folder)
            else:
                self._write(folder, names, data, rights if rights is not None else _rights(folder, name, entry))
            os.rename(made, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(made, dir_fd=folder)
            raise

    def _write(self, folder: int, names: tuple[bytes, bytes], data: bytes, rights: int | None) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(names[0], flags, 0o666 if rights is None else rights & 0o700 | 0o600, dir_fd=folder)
        with open(fd, "wb") as file:
            file.write(data)
            file.flush()
            if rights is not None:
                os.fchmod(fd, rights)
            if self.safe:
                os.fsync(fd)


def _rights(folder: int, name: bytes, entry: TreeEntry) -> int | None:
    """Return the rights of the existing file with the executable bit of ``entry``; None if there is no file."""
    runs = entry.mode == "100755"
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return 0o755 if runs else None
    if not stat.S_ISREG(found.st_mode):
        return 0o755 if runs else None
    rights = stat.S_IMODE(found.st_mode) & ~0o111
    return rights | (rights & 0o444) >> 2 if runs else rights


@dataclass(slots=True)
class _Traits:
    """Restores attributes that no tree contains, and reports those that can't be restored."""

    root: Path
    result: RestoredFiles

    def restore(self, files: Sequence[tuple[bytes, bytes]], now: FileTraits | None, target: FileTraits) -> None:
        known = {path for path, _ in self.result.left}
        for mode, path in files:
            name = os.fsdecode(path)
            if mode in FILES and name not in known and self._others(name, target.of(path, mode)):
                self._try(name, lambda path=path, mode=mode: self._set(path, target.of(path, mode)))
        for name in now.empty if now else ():
            if name not in target.empty and os.path.lexists(self.root / name) and not holds(files, name):
                self._try(f"{name}/", lambda name=name: _remove_folder(self.root, os.fsencode(name)))
        for name in target.empty:
            if not os.path.lexists(self.root / name):
                self._try(f"{name}/", lambda name=name: _make_folder(self.root, os.fsencode(name)))
        gone = [name for name in changed(self.root, target.unkept) if name not in known]
        self.result.left += [(name, "it was not saved: too large, or unreadable") for name in gone]

    def _others(self, name: str, rights: int) -> bool:
        try:
            found = os.lstat(self.root / name)
        except OSError:
            return False
        return stat.S_ISREG(found.st_mode) and found.st_mode & 0o777 != rights

    def _set(self, path: bytes, rights: int) -> None:
        flags = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with _folder(self.root, path, make=False) as (folder, name):
            fd = os.open(name, flags, dir_fd=folder)
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    return
                # This name allows changing the rights of an unreadable file.
                if hasattr(os, "O_PATH"):
                    os.chmod(f"/proc/self/fd/{fd}", rights)  # noqa: PTH101 - no path of a file
                else:
                    os.fchmod(fd, rights)
            finally:
                os.close(fd)

    def _try(self, name: str, do: Callable[[], None]) -> None:
        try:
            do()
        except OSError as error:
            self.result.left.append((name, error.strerror or str(error)))
        else:
            if name not in self.result.done:
                self.result.done.append(name)


def _make_folder(root: Path, path: bytes) -> None:
    with _folder(root, path, make=True) as (folder, name):
        os.mkdir(name, dir_fd=folder)


def _remove_folder(root: Path, path: bytes) -> None:
    with _folder(root, path, make=False) as (folder, name):
        os.rmdir(name, dir_fd=folder)
    _prune(root, path)


def _is(folder: int, name: bytes, entry: TreeEntry | None) -> bool:
    """Return whether the current file equals its stored content. A folder counts as absent: it is removed only if
    empty."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return entry is None
    if stat.S_ISDIR(found.st_mode):
        return entry is None
    if entry is None or stat.S_ISLNK(found.st_mode) != (entry.mode == LINK):
        return False
    if stat.S_ISLNK(found.st_mode):
        return digest(os.readlink(name, dir_fd=folder)) == entry.id
    if not stat.S_ISREG(found.st_mode):
        return False
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with open(fd, "rb") as file:
        return digest(file.read()) == entry.id


@contextlib.contextmanager
def _folder(root: Path, path: bytes, *, make: bool) -> Generator[tuple[int, bytes]]:
    """Yield the open folder of ``path`` and the name in it. Follows no link, so it never leaves the project."""
    *parts, name = path.split(b"/")
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    fd = os.open(root, flags)
    try:
        for part in parts:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=fd)
            deeper = os.open(part, flags | os.O_NOFOLLOW, dir_fd=fd)
            os.close(fd)
            fd = deeper
        yield fd, name
    finally:
        os.close(fd)


def _prune(root: Path, path: bytes) -> None:
    """Remove folders that the deleted file leaves empty."""
    parent = path.rpartition(b"/")[0]
    while parent:
        try:
            with _folder(root, parent, make=False) as (folder, name):
                os.rmdir(name, dir_fd=folder)
        except OSError:
            return
        parent = parent.rpartition(b"/")[0]
