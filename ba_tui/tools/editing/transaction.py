"""Writes several files as one transaction: all of them, or none.

If one write fails, the earlier ones are undone. A list of the changes is saved before the first one; if the process is
killed, the next start undoes them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ba_tui.core.errors import StorageError
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import Workspace
from ba_tui.resources import TEMPORARY, UserFolders, parent_folder, project_root, temporary_name
from ba_tui.sessions.checkpoints.keeper import KIND as REWIND
from ba_tui.sessions.checkpoints.keeper import checkpoints_for
from ba_tui.settings.model import Settings
from ba_tui.tools.editing.disk import (
    Content,
    bring_back,
    copy_beside,
    digest_of,
    discard,
    exchange,
    place_file,
    read_bytes,
    set_aside,
    write_bytes,
)
from ba_tui.tools.failures import ToolFailure
from ba_tui.write_ahead import AbandonedList, WriteAhead, recover, write_ahead

KIND = "files"
"""The kind of lists (write_ahead.py) with file changes."""


@frozen
class FileStep:
    """Changes the content of ``path`` from ``before`` to ``after``; None: no file.

    ``mode``: permissions of a new file; None for the default.
    """

    path: Path
    shown: str
    before: bytes | None
    after: bytes | None
    mode: int | None = None


def commit(steps: Sequence[FileStep], ahead: WriteAhead, by: str) -> None:
    """Carry out all steps. Each file is replaced atomically; between two files the process may be killed, and the next
    start then restores what the tool ``by`` had changed.

    Raises:
        ToolFailure: a step failed; the earlier ones are undone, or named in the message if that failed.
    """
    with ExitStack() as kept:
        if len(steps) > 1:
            try:
                kept.enter_context(ahead.listed(KIND, by, described(steps), [step.before or b"" for step in steps]))
            except StorageError as error:
                raise ToolFailure("resource_error", f"{error} No file was changed.", error.hint) from error
        _commit(steps, kept.enter_context(ExitStack()))


def described(steps: Sequence[FileStep]) -> Mapping[str, object]:
    """Return the body of a list, which ``UndoneFiles`` reads."""
    files, at = list[Mapping[str, object]](), 0
    for step in steps:
        size = len(step.before or b"")
        digests = {"before": digest(step.before), "after": digest(step.after)}
        files.append({"path": str(step.path), **digests, "mode": _mode(step), "at": at, "size": size})
        at += size
    folders = dict.fromkeys(str(folder) for step in steps for folder in missing_folders(step.path))
    return {"files": files, "folders": sorted(folders, key=len, reverse=True)}


def digest(data: bytes | None) -> str:
    """Return the SHA-256 of a file's content; empty for no file."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def _mode(step: FileStep) -> int | None:
    """Return the permissions of the existing file; None if there is none."""
    with suppress(OSError):
        return step.path.lstat().st_mode & 0o777
    return None


def _commit(steps: Sequence[FileStep], asides: ExitStack) -> None:
    done: list[Callable[[], object]] = []
    try:
        for step in steps:
            if step.after is not None:
                _write(step, step.after, done)
        removed = [
            _remove(step, step.before, done, asides) for step in steps if step.after is None and step.before is not None
        ]
    except BaseException as error:
        stuck = [problem for undo in reversed(done) if (problem := _tried(undo))]
        if not isinstance(error, ToolFailure):
            raise
        if stuck:
            message = f"{error} What was written before could not all be put back: {' '.join(stuck)}"
            raise ToolFailure("resource_error", message, "Look at these files before anything else.") from error
        raise error.reworded(f"{error} No file was changed.") from error
    for aside in removed:
        discard(aside)


def _write(step: FileStep, after: bytes, done: list[Callable[[], object]]) -> None:
    made = missing_folders(step.path)
    if made:
        done.append(lambda: remove_folders(made))
    write_bytes(step.path, Content(after, step.mode), before=step.before, shown=step.shown)
    if step.before is None:
        done.append(lambda: _withdraw(step, after))
    else:
        before = step.before
        done.append(lambda: write_bytes(step.path, before, before=after, shown=step.shown))


def _withdraw(step: FileStep, after: bytes) -> None:
    with set_aside(step.path, before=after, shown=step.shown) as aside:
        discard(aside)


def _remove(step: FileStep, before: bytes, done: list[Callable[[], object]], asides: ExitStack) -> Path:
    aside = asides.enter_context(set_aside(step.path, before=before, shown=step.shown))
    done.append(lambda: bring_back(aside, step.path, step.shown))
    return aside


def missing_folders(path: Path) -> list[Path]:
    """Return the missing folders above ``path``, the innermost first."""
    missing: list[Path] = []
    for folder in path.parents:
        if os.path.lexists(folder):
            break
        missing.append(folder)
    return missing


def remove_folders(folders: Sequence[Path]) -> None:
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def _tried(undo: Callable[[], object]) -> str:
    """Undo a step; return why that failed, or an empty text."""
    try:
        undo()
    except ToolFailure as error:
        return str(error)
    return ""


# Placing finished files: all of them or none. The files may be large, so the list of changes holds no contents: the
# replaced file keeps a temporary name in the same folder until all files are placed.


@frozen
class FilePlacement:
    """A file to be placed at ``path``, with digests of the content ``before`` and ``after``. ``new`` and ``aside``:
    temporary names in the same folder, of the new file before and of the old file after it is placed. ``source``:
    the file to copy."""

    path: Path
    shown: str
    before: str
    after: str
    new: str
    aside: str
    source: Path = Path()

    def entry(self) -> Mapping[str, object]:
        """Return the entry for a list."""
        names = {"new": self.new, "aside": self.aside}
        return {"path": str(self.path), "before": self.before, "after": self.after, **names}

    def take_back(self) -> bool:
        """Restore the old file; return False if it is gone. Raises OSError, ToolFailure."""
        if self.before and digest_of(self.path.with_name(self.aside), self.shown) != self.before:
            return False
        with parent_folder(self.path) as folder:
            if self.before:
                os.rename(self.aside, self.path.name, src_dir_fd=folder, dst_dir_fd=folder)
            else:
                os.unlink(self.path.name, dir_fd=folder)
        return True

    def clear(self, *, keep_aside: bool = False) -> None:
        """Remove the temporary files."""
        with suppress(OSError), parent_folder(self.path) as folder:
            for name in (self.new,) if keep_aside else (self.new, self.aside):
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)


def place_together(files: Sequence[tuple[Path, Path]], ahead: WriteAhead, by: str, shown: Callable[[Path], str]) -> int:
    """Copy each of ``files`` to its resolved path, replacing existing files; return the total size in bytes. ``by``:
    the name for the report if the process is killed.

    Raises:
        ToolFailure: a file can't be written; all paths are then unchanged.
    """
    if len(files) == 1:
        ((source, path),) = files
        return place_file(source, path, overwrite=True, shown=shown(path))
    placings = [each for source, path in files if (each := _placing(source, path, shown(path)))]
    folders = list(dict.fromkeys(folder for each in placings for folder in missing_folders(each.path)))
    folders.sort(key=lambda folder: len(folder.parts), reverse=True)
    body = {"files": [each.entry() for each in placings], "folders": [str(folder) for folder in folders]}
    try:
        with ahead.listed(KIND, by, body):
            _place(placings, folders)
    except StorageError as error:
        raise ToolFailure("resource_error", f"{error} No file was changed.", error.hint) from error
    return sum(source.stat().st_size for source, _ in files)


def _placing(source: Path, path: Path, shown: str) -> FilePlacement | None:
    """Return the placement; None if ``path`` already has the content."""
    before, after = digest_of(path, shown), digest_of(source, shown)
    names = temporary_name(path.name), temporary_name(path.name)
    return None if before == after else FilePlacement(path, shown, before, after, *names, source)


def _place(placings: Sequence[FilePlacement], folders: Sequence[Path]) -> None:
    begun: list[FilePlacement] = []
    try:
        for each in placings:
            copy_beside(each.source, each.path, each.new, each.shown)
        for each in placings:
            begun.append(each)
            exchange(each.path, each.new, each.aside, each.shown)
    except BaseException as error:
        stuck = [each for each in reversed(begun) if not _as_before(each)]
        for each in placings:
            each.clear(keep_aside=each in stuck)
        remove_folders(folders)
        if not isinstance(error, ToolFailure):
            raise
        if stuck:
            kept = ", ".join(f"{each.shown} (its old content is in {each.aside})" for each in stuck)
            raise ToolFailure("resource_error", f"{error} These files could not be put back: {kept}.") from error
        raise error.reworded(f"{error} No file was changed.") from error
    for each in placings:
        each.clear()


def _as_before(placing: FilePlacement) -> bool:
    """Undo a placement, if any; return whether the path is as before."""
    try:
        return digest_of(placing.path, placing.shown) == placing.before or placing.take_back()
    except (OSError, ToolFailure):
        return False


# Recovery after a kill. A file with the content that the process wrote gets its old content back; any other file is
# left and named. If every file was written, all stay. The list is untrusted: its paths may not lead out of the
# workspace or through a link.

FileState: TypeAlias = Literal["before", "after", "other"]
NAMED = 8
"""Most files that a message names."""


@frozen
class _ListedFile:
    """A file of a list and its present content; None if absent or unreadable. ``placing``: how it was placed; None
    if the list has the ``old`` content."""

    path: Path
    before: str
    old: bytes
    mode: int | None
    now: bytes | None
    state: FileState
    placing: FilePlacement | None = None


@frozen
class UndoneFiles:
    """write_ahead.Undo for files in ``folders``, which are resolved."""

    folders: tuple[Path, ...]

    def __call__(self, left: AbandonedList) -> str:
        every = [self._file(entry, left) for entry in left.body["files"]]
        files = [file for file in every if self._inside(file.path)]
        outside = [str(file.path) for file in every if not self._inside(file.path) and file.state != "before"]
        changed = [file for file in files if file.state == "after"]
        stuck = [self._shown(file.path) for file in files if file.state == "other"]
        said, kept = "", list[_ListedFile]()
        if any(file.state == "before" for file in every):
            kept = [file for file in reversed(changed) if not self._put_back(file)]
            stuck += [self._shown(file.path) for file in kept]
            if undone := len(changed) - len(kept):
                said = f" ba put back the {_files(undone)} that it had changed."
        elif changed:
            stay = "which stays as it is now" if len(changed) == 1 else "which stay as they are now"
            said = f" It had written the {_files(len(changed))}, {stay}."
        for file in files:
            if file.placing:
                # The file set aside differs from the list, so another program wrote it.
                file.placing.clear(keep_aside=file in kept)
        self._remove(left.body["folders"])
        if not (said or stuck or outside):
            said = " No file is changed."
        if stuck:
            said += f" Something else changed {_names(stuck)}: left as found."
        if outside:
            said += f" Outside this workspace, so left as found: {_names(outside)}."
        return f"ba was stopped while {left.by} changed {count(len(every), 'file')}.{said}"

    def _inside(self, path: Path) -> bool:
        text = str(path)
        return os.path.normpath(text) == text and any(folder in path.parents for folder in self.folders)

    def _shown(self, path: Path) -> str:
        folder = next(folder for folder in self.folders if folder in path.parents)
        return path.relative_to(folder).as_posix()

    def _file(self, entry: dict[str, Any], left: AbandonedList) -> _ListedFile:
        """Read an entry. Raises ValueError if its content or names are inconsistent."""
        path, before, after = Path(str(entry["path"])), str(entry["before"]), str(entry["after"])
        placing, old, mode = None, b"", None
        if "aside" in entry:
            names = str(entry["new"]), str(entry["aside"])
            if not all(map(TEMPORARY.fullmatch, names)):
                raise ValueError
            placing = FilePlacement(path, str(path), before, after, *names)
        else:
            old, mode = left.content(int(entry["at"]), int(entry["size"])), entry["mode"]
            if before and digest(old) != before:
                raise ValueError
        now, state = None, "other"
        try:
            if placing:
                is_now = digest_of(path, str(path))
            else:
                now = read_bytes(path, str(path)) if os.path.lexists(path) else None
                is_now = digest(now)
            state: FileState = "after" if is_now == after else "before" if is_now == before else "other"
        except ToolFailure:
            # The path is a link, a folder or a too large file by now.
            pass
        return _ListedFile(path, before, old, None if mode is None else int(mode) & 0o777, now, state, placing)

    def _put_back(self, file: _ListedFile) -> bool:
        shown = self._shown(file.path)
        try:
            if file.placing:
                return file.placing.take_back()
            if file.before:
                write_bytes(file.path, Content(file.old, file.mode), before=file.now, shown=shown)
            else:
                with set_aside(file.path, before=file.now or b"", shown=shown) as aside:
                    discard(aside)
        except ToolFailure:
            return False
        return True

    def _remove(self, folders: Sequence[object]) -> None:
        """Remove the empty folders that the process had created."""
        for path in map(Path, map(str, folders)):
            if self._inside(path):
                with suppress(OSError), parent_folder(path) as folder:
                    os.rmdir(path.name, dir_fd=folder)


def undo_changes(where: UserFolders, cwd: Path, settings: Settings) -> list[str]:
    """Undo the incomplete changes of killed processes in the workspace of ``cwd``; return one or two sentences for
    each. Blocks."""
    root = project_root(cwd)
    lists = write_ahead(root, where=where).folder
    workspace = Workspace(cwd, (root, *settings.add_dirs))
    rewinds = checkpoints_for(where, cwd, "", settings.checkpoints)
    files = UndoneFiles((workspace.root, *workspace.extra))
    return recover(lists, {KIND: files, REWIND: rewinds.take_back})


def _files(number: int) -> str:
    return "file" if number == 1 else f"{number} files"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
