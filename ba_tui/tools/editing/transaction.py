"""Writes the changes of several files as one: all of them, or none, and then what was written is put back.

What is to be written is decided before (patches.py); the single steps are disk.py. The changes of a process that was
killed in between are undone at the next start (undoing.py), from the list that is saved before the first one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from ba_tui.core.errors import StorageError
from ba_tui.core.values import frozen
from ba_tui.tools.editing.disk import Content, bring_back, discard, set_aside, write_bytes
from ba_tui.tools.failed import Failed
from ba_tui.write_ahead import WriteAhead

KIND = "files"
"""Of lists of changes (write_ahead.py)."""


@frozen
class FileStep:
    """The file at ``path`` holds ``before`` and is to hold ``after``; None where there is no file.

    ``mode``: the rights of a new file, None for the usual.
    """

    path: Path
    shown: str
    before: bytes | None
    after: bytes | None
    mode: int | None = None


def commit(steps: Sequence[FileStep], ahead: WriteAhead, by: str) -> None:
    """Make every step. Nobody sees a half-written file; between two files there is a moment, and if the process is
    killed then, the next start puts back what ``by``, a tool, had changed.

    Raises:
        Failed: one could not be made; then those before it are undone, and the message says if one of them was not.
    """
    with ExitStack() as kept:
        if len(steps) > 1:
            try:
                kept.enter_context(ahead.listed(KIND, by, described(steps), [step.before or b"" for step in steps]))
            except StorageError as error:
                raise Failed("resource_error", f"{error} No file was changed.", error.hint) from error
        _commit(steps, kept.enter_context(ExitStack()))


def described(steps: Sequence[FileStep]) -> Mapping[str, object]:
    """The body of a list: undoing.py reads it."""
    files, at = list[Mapping[str, object]](), 0
    for step in steps:
        size = len(step.before or b"")
        digests = {"before": digest(step.before), "after": digest(step.after)}
        files.append({"path": str(step.path), **digests, "mode": _mode(step), "at": at, "size": size})
        at += size
    folders = dict.fromkeys(str(folder) for step in steps for folder in missing_folders(step.path))
    return {"files": files, "folders": sorted(folders, key=len, reverse=True)}


def digest(data: bytes | None) -> str:
    """Of the content of a file; empty for no file."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def _mode(step: FileStep) -> int | None:
    """The rights of the file that is there."""
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
        if not isinstance(error, Failed):
            raise
        if stuck:
            message = f"{error} What was written before could not all be put back: {' '.join(stuck)}"
            raise Failed("resource_error", message, "Look at these files before anything else.") from error
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
    """The folders above ``path`` that are not there yet, the innermost first."""
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
    """Why it could not be undone; empty when it was."""
    try:
        undo()
    except Failed as error:
        return str(error)
    return ""
