"""Patches of several files, all of them or none. The tool itself is patching.py.

Reading the forms of patches is patch_formats.py, finding the places hunks.py, writing transaction.py.

A patch carries the lines it changes, so a file need not have been read where all of them stand in it exactly and in one
place only. What it replaces unseen, or matches with tolerance, must have been read, and what was read must not have
changed since.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ba_tui.core.results import Diff, Diffs, ToolResult
from ba_tui.core.text.markup import restored
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import Workspace
from ba_tui.tools.builtin.binary_kinds import no_text
from ba_tui.tools.editing.changes import PlannedChange
from ba_tui.tools.editing.disk import mode_of, read_bytes
from ba_tui.tools.editing.documents import FileEncoding, binary_kind, detect, line_end, plain_lines, spliced
from ba_tui.tools.editing.edits import encoded
from ba_tui.tools.editing.hunks import Placed, place
from ba_tui.tools.editing.patch_formats import read_patch
from ba_tui.tools.editing.patch_parts import FilePatch, Hunk
from ba_tui.tools.editing.placeholders import refuse_placeholders
from ba_tui.tools.editing.seen import SeenFiles
from ba_tui.tools.editing.transaction import FileStep, commit
from ba_tui.tools.failed import Failed
from ba_tui.write_ahead import WriteAhead

NAME = "apply_patch"
MAX_BYTES_TOGETHER = 60_000_000
"""Bytes of all the files of one patch: they are held in memory until the last is checked."""


@dataclass(slots=True)
class _File:
    """A file while the patch is worked out: ``before`` on the disk, ``now`` after the patch so far; None: absent.

    ``text`` is None for what is no text. ``source`` is the file that it was before it moved.
    """

    path: Path
    shown: str
    before: bytes | None
    now: bytes | None
    encoding: FileEncoding = field(default_factory=FileEncoding)
    text: str | None = None
    source: _File | None = None
    gone_to: str = ""
    notes: list[str] = field(default_factory=list[str])


@frozen
class PatchChange:
    """All that a patch changes, worked out and checked but not written."""

    files: tuple[_File, ...]

    def display(self) -> Diff | Diffs:
        diffs = tuple(_diff(file) for file in self.files if not file.gone_to)
        return diffs[0] if len(diffs) == 1 else Diffs(diffs)

    def commit(self, seen: SeenFiles, ahead: WriteAhead) -> ToolResult:
        """Write all of it. Raises Failed; then nothing is changed."""
        commit([_step(file) for file in self.files], ahead, NAME)
        known = {file.path for file in self.files if _known(file, seen)}
        for file in self.files:
            if file.now is not None and file.path in known:
                origin = file.source or file
                seen.note_edit(file.path, file.now, (_words(origin.before), file.text or ""), origin.path)
        for file in self.files:
            if file.now is None or file.path not in known:
                seen.forget(file.path)
        shown = [file for file in self.files if not file.gone_to]
        lines = [f"{_done(file)} ({_change(file).size()} lines)." for file in shown]
        notes = [f"Note: {file.shown}: {note}." for file in shown for note in dict.fromkeys(file.notes)]
        sizes = [_change(file).size().split() for file in shown]
        added, removed = (sum(abs(int(size[index])) for size in sizes) for index in (0, 1))
        count = f"{len(shown)} files " if len(shown) > 1 else ""
        return ToolResult("\n".join([*lines, *notes]), self.display(), summary=f"{count}+{added} -{removed}")


def planned_patch(workspace: Workspace, seen: SeenFiles, args: Mapping[str, Any]) -> PatchChange:
    """What the call would change. Raises Failed, PathRefused."""
    patch: str = args["patch"]
    if (written := restored(patch)) != patch:
        # It quotes tags as results show them; a file may hold them in just that form.
        with suppress(Failed):
            return _planned(workspace, seen, written)
    return _planned(workspace, seen, patch)


def _planned(workspace: Workspace, seen: SeenFiles, patch: str) -> PatchChange:
    plan = _Plan(workspace, seen)
    parts = read_patch(patch)
    while parts:
        # What a diff moves to may be free only after another part: git lists by name, not by what must come first.
        part = next((part for part in parts if not plan.waits(part, parts)), parts[0])
        parts.remove(part)
        plan.take(part)
    changed = [file for file in plan.files.values() if file.before != file.now]
    # A start after a kill puts back no file outside the workspace: the fewest are changed by then if they come last.
    files = tuple(sorted(changed, key=lambda file: not workspace.contains(file.path)))
    if not files:
        raise Failed("validation_error", "The files already hold what the patch makes of them; nothing would change.")
    for file in files:
        refuse_placeholders(_words((file.source or file).before), file.text or "")
    return PatchChange(files)


class _Plan:
    """Applies the parts of a patch one after the other to what the files hold, in memory."""

    def __init__(self, workspace: Workspace, seen: SeenFiles) -> None:
        self.workspace = workspace
        self.seen = seen
        self.files: dict[Path, _File] = {}
        self._size = 0

    def waits(self, part: FilePatch, parts: Sequence[FilePatch]) -> bool:
        """Whether something stands in the way of ``part`` that another of ``parts`` takes away."""
        name = part.path if part.action == "add" else part.target
        if name is None or (there := self._file(name)).now is None:
            return False
        leaving = (other for other in parts if other is not part and (other.target or other.action == "delete"))
        return any(self.workspace.resolve(other.path) == there.path for other in leaving)

    def take(self, part: FilePatch) -> None:
        file = self._file(part.path)
        match part.action:
            case "add":
                self._add(file, part)
            case "delete":
                self._delete(file, part)
            case "update":
                self._update(file, part)

    def _file(self, name: str) -> _File:
        path = self.workspace.resolve(name)
        if path in self.files:
            return self.files[path]
        shown = self.workspace.shown(path)
        before = read_bytes(path, shown, self.workspace) if os.path.lexists(path) else None
        self._size += len(before or b"")
        if self._size > MAX_BYTES_TOGETHER:
            message = f"The files of the patch are larger than {MAX_BYTES_TOGETHER // 1_000_000} MB together."
            raise Failed("resource_error", message, "Patch them one after the other.")
        file = _File(path, shown, before, before)
        if before is not None and not binary_kind(before[:8192]):
            file.encoding = detect(before)
            file.text = file.encoding.decode(before)
        self.files[path] = file
        return file

    def _add(self, file: _File, part: FilePatch) -> None:
        if file.now is not None:
            self._replaceable(file, "exists already", "Read it first, or update it.")
        file.encoding, file.text, file.gone_to = FileEncoding(), part.content, ""
        file.now = encoded(file.encoding, part.content, file.shown)

    def _replaceable(self, file: _File, why: str, hint: str) -> None:
        """What is replaced without being shown in the patch must be known as it stands."""
        if file.path not in self.seen or file.before is None or file.now != file.before:
            raise Failed("validation_error", f"{file.shown} {why}.", hint)
        self.seen.check(file.path, file.before, file.shown)

    def _delete(self, file: _File, part: FilePatch) -> None:
        self._itself(file, part)
        self._unchanged(file)
        if part.whole:
            self._patched(file, part.hunks)
            if file.text:
                message = f"{file.shown} holds more than the patch deletes."
                raise Failed("validation_error", message, "Show all of its lines, or use *** Delete File.")
        file.now = file.text = None

    def _itself(self, file: _File, part: FilePatch) -> None:
        if self.workspace.named(part.path).is_symlink():
            message = f"{part.path} is a symbolic link to {file.shown}."
            raise Failed("validation_error", message, "Name the file itself, or use the shell for the link.")

    def _unchanged(self, file: _File, *, exact: bool = True) -> None:
        """Raises Failed when the file is absent, or is not what was read of it."""
        if file.now is None:
            raise Failed("not_found", f"{file.shown} does not exist.", "Check the path; search with glob.")
        if file.before is not None and (not exact or file.path in self.seen):
            self.seen.check(file.path, file.before, file.shown)

    def _update(self, file: _File, part: FilePatch) -> None:
        self._unchanged(file)
        if part.hunks:
            placed = self._patched(file, part.hunks)
            self._unchanged(file, exact=placed.exact)
            file.notes += placed.notes
        if part.target is not None:
            self._itself(file, part)
            self._move(file, part.target)

    def _patched(self, file: _File, hunks: Sequence[Hunk]) -> Placed:
        if file.text is None or file.now is None:
            now = file.now or b""
            raise no_text(now[:8192], file.shown, len(now), "a binary file")
        plain = plain_lines(file.text)
        try:
            placed = place(plain, hunks)
        except Failed as error:
            raise error.reworded(f"{file.shown}: {error}") from error
        windows = all(hunk.windows for hunk in hunks)
        file.text = _ended(spliced(file.text, plain, placed.changes, windows=windows), file.text, placed.ended)
        file.now = encoded(file.encoding, file.text, file.shown)
        return placed

    def _move(self, file: _File, target: str) -> None:
        to = self._file(target)
        if to is file:
            raise Failed("invalid_parameters", f"{file.shown} can't move to itself.")
        if to.now is not None:
            self._replaceable(to, "exists already, so nothing can move there", "Read it first, or move elsewhere.")
        to.encoding, to.text, to.now, to.notes = file.encoding, file.text, file.now, file.notes
        to.source = file.source or file
        file.now = file.text = None
        file.gone_to = to.shown


def _ended(text: str, before: str, ended: bool | None) -> str:
    """``text`` with one more line end at its end, or with one less (see Placed)."""
    if ended is None:
        return text
    return text + line_end(before or text) if ended else text.removesuffix("\n").removesuffix("\r")


def _step(file: _File) -> FileStep:
    source = file.source
    mode = mode_of(source.path, source.shown) if source and source.before is not None and file.before is None else None
    return FileStep(file.path, file.shown, file.before, file.now, mode)


def _known(file: _File, seen: SeenFiles) -> bool:
    """Whether all that the file holds afterwards is known: as a patch shows only parts, it is when it was before."""
    origin = file.source or file
    return origin.before is None or origin.path in seen


def _change(file: _File) -> PlannedChange:
    origin = file.source or file
    old = _words(origin.before)
    shown = f"{origin.shown} → {file.shown}" if file.source else file.shown
    return PlannedChange(file.path, shown, origin.before, file.now or b"", old, file.text or "")


def _words(data: bytes | None) -> str:
    if data is None or binary_kind(data[:8192]):
        return ""
    return detect(data).decode(data)


def _diff(file: _File) -> Diff:
    change = _change(file)
    diff = change.diff()
    return Diff(f"{file.shown} (deleted)", diff.before, "") if file.now is None else diff


def _done(file: _File) -> str:
    if file.now is None:
        return f"Deleted {file.shown}"
    if file.source:
        return f"Moved {file.source.shown} to {file.shown}"
    return f"Created {file.shown}" if file.before is None else f"Changed {file.shown}"
