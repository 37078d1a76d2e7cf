"""Undoes what a killed process had changed of several files that belong together (transaction.py).

A file that holds what the process wrote gets its old content back; one that holds anything else stays as it is and is
named. Where every file was written, all of them stay. The list is data: no path of it leads out of the workspace or
through a link, and a file is replaced only if it holds just what the list says.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import Workspace
from ba_tui.resources import TEMPORARY, Places, clear_unfinished, parent_folder, project_root
from ba_tui.sessions.checkpoints.keeper import KIND as REWIND
from ba_tui.sessions.checkpoints.keeper import checkpoints_for
from ba_tui.settings.model import Settings
from ba_tui.tools.editing.disk import Content, digest_of, discard, read_bytes, set_aside, write_bytes
from ba_tui.tools.editing.placing import Placing
from ba_tui.tools.editing.transaction import KIND, digest
from ba_tui.tools.failed import Failed
from ba_tui.write_ahead import AbandonedList, recover, write_ahead

FileState: TypeAlias = Literal["before", "after", "other"]
NAMED = 8
"""Most files that a sentence names."""


@frozen
class _File:
    """One file of a list, and what it holds now; None where there is no file or it can't be read. ``placing``: how it
    was placed; None where the list has its ``old`` content."""

    path: Path
    before: str
    old: bytes
    mode: int | None
    now: bytes | None
    state: FileState
    placing: Placing | None = None


@frozen
class UndoneFiles:
    """write_ahead.Undo for the files in ``folders``, which are resolved."""

    folders: tuple[Path, ...]

    def __call__(self, left: AbandonedList) -> str:
        every = [self._file(entry, left) for entry in left.body["files"]]
        files = [file for file in every if self._inside(file.path)]
        outside = [str(file.path) for file in every if not self._inside(file.path) and file.state != "before"]
        changed = [file for file in files if file.state == "after"]
        stuck = [self._shown(file.path) for file in files if file.state == "other"]
        said, kept = "", list[_File]()
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
                # What was set aside is not what the list says: somebody wrote it meanwhile.
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

    def _file(self, entry: dict[str, Any], left: AbandonedList) -> _File:
        """Raises ValueError where the list holds another content than it says, or names of other files."""
        path, before, after = Path(str(entry["path"])), str(entry["before"]), str(entry["after"])
        placing, old, mode = None, b"", None
        if "aside" in entry:
            names = str(entry["new"]), str(entry["aside"])
            if not all(map(TEMPORARY.fullmatch, names)):
                raise ValueError
            placing = Placing(path, str(path), before, after, *names)
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
        except Failed:
            # It is a link, a folder or too large by now.
            pass
        return _File(path, before, old, None if mode is None else int(mode) & 0o777, now, state, placing)

    def _put_back(self, file: _File) -> bool:
        shown = self._shown(file.path)
        try:
            if file.placing:
                return file.placing.take_back()
            if file.before:
                write_bytes(file.path, Content(file.old, file.mode), before=file.now, shown=shown)
            else:
                with set_aside(file.path, before=file.now or b"", shown=shown) as aside:
                    discard(aside)
        except Failed:
            return False
        return True

    def _remove(self, folders: Sequence[object]) -> None:
        """Remove the folders that the process had made, where they are empty."""
        for path in map(Path, map(str, folders)):
            if self._inside(path):
                with suppress(OSError), parent_folder(path) as folder:
                    os.rmdir(path.name, dir_fd=folder)


def recover_changes(where: Places, cwd: Path, settings: Settings) -> list[str]:
    """Remove the temporary files of killed processes and undo their incomplete changes in the workspace of ``cwd``;
    return a sentence or two for each. Blocks."""
    clear_unfinished(where)
    root = project_root(cwd)
    lists = write_ahead(root, where=where).folder
    if not lists.is_dir():
        return []
    workspace = Workspace(cwd, (root, *settings.add_dirs))
    rewinds = checkpoints_for(where, cwd, "", settings.checkpoints)
    files = UndoneFiles((workspace.root, *workspace.extra))
    return recover(lists, {KIND: files, REWIND: rewinds.take_back})


def _files(number: int) -> str:
    return "file" if number == 1 else f"{number} files"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
