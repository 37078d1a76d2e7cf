"""The tool apply_patch: changes of several files, all of them or none. An uncertain place of a hunk is an error.

A patch contains the lines that it changes, so a file need not have been read if all of them occur exactly and once.
Files that are replaced unseen, or matched with tolerance, must have been read, and must not have changed since.
"""

from __future__ import annotations

import asyncio
import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ba_tui.core.calls import Commit, commit_whole
from ba_tui.core.results import Diff, Diffs, Display, ToolResult
from ba_tui.core.text.untrusted import restored
from ba_tui.core.tool import Call, Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import Workspace
from ba_tui.tools.builtin.media import no_text
from ba_tui.tools.definitions import Definition
from ba_tui.tools.editing.disk import mode_of, read_bytes
from ba_tui.tools.editing.documents import FileEncoding, Splice, binary_kind, detect, line_end, plain_lines, spliced
from ba_tui.tools.editing.edits import PlannedChange, encoded, refuse_placeholders
from ba_tui.tools.editing.matching import composed, even_indents, line_starts, nearest_lines, reindented, telling
from ba_tui.tools.editing.patch_formats import FilePatch, Hunk, read_patch
from ba_tui.tools.editing.seen_files import SeenFiles
from ba_tui.tools.editing.transaction import FileStep, commit
from ba_tui.tools.failures import ToolFailure
from ba_tui.write_ahead import WriteAhead

SHOWN_LINES = 8
LINE_CHARS = 200
LAST = 0x10FFFF
"""The largest code point."""
_DASHES = "\N{HYPHEN}\N{NON-BREAKING HYPHEN}\N{FIGURE DASH}\N{EN DASH}\N{EM DASH}\N{HORIZONTAL BAR}\N{MINUS SIGN}"
_PLAIN = str.maketrans(
    {
        **dict.fromkeys(_DASHES, "-"),
        **dict.fromkeys("\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}\N{PRIME}", "'"),
        **dict.fromkeys("\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}", '"'),
        **dict.fromkeys("\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}\N{IDEOGRAPHIC SPACE}", " "),
        "\N{HORIZONTAL ELLIPSIS}": "...",
    }
)
_HINT = "Read the file again and take the lines of the hunk from it."


def _typed(line: str) -> str:
    """Return ``line`` as typed on a keyboard: plain quotes, dashes and spaces, composed accents."""
    return composed(line).translate(_PLAIN).strip()


@frozen
class Tolerance:
    """``seen`` returns the part of a line that is compared; ``note`` names the ignored part."""

    seen: Callable[[str], str]
    note: str = ""
    indents: bool = False


TOLERANCES = (
    Tolerance(lambda line: line),
    Tolerance(str.rstrip, "white space at line ends did not matter"),
    Tolerance(str.strip, "matched with different indentation, and the file's own was kept", indents=True),
    Tolerance(_typed, "matched with other quotes, dashes, spaces or accents", indents=True),
)


class _Text:
    """The lines of a text, indexed for each tolerance. ``closed``: the last line has a line end."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.closed = self.lines[-1] == ""
        if self.closed:
            self.lines.pop()
        self._seen: dict[str, tuple[str, dict[str, str]]] = {}
        self._found: dict[tuple[str, str], tuple[int, ...]] = {}

    def matches(self, wanted: Sequence[str], tolerance: Tolerance) -> tuple[int, ...]:
        """Return the places of ``wanted``."""
        if tolerance.note not in self._seen:
            # Each distinct line becomes one character of a string, in which Python searches fast.
            codes: dict[str, str] = {}
            signs = (codes.setdefault(tolerance.seen(line), chr(min(len(codes), LAST))) for line in self.lines)
            self._seen[tolerance.note] = "".join(signs), codes
        coded, codes = self._seen[tolerance.note]
        signs = [codes.get(tolerance.seen(line)) for line in wanted]
        target = "".join(sign for sign in signs if sign is not None)
        if len(target) < len(signs):
            return ()
        if (tolerance.note, target) not in self._found:
            there = _everywhere(coded, target)
            if len(codes) > LAST:
                plain = [tolerance.seen(line) for line in wanted]
                there = (at for at in there if list(map(tolerance.seen, self.lines[at : at + len(plain)])) == plain)
            self._found[tolerance.note, target] = tuple(there)
        return self._found[tolerance.note, target]

    def anchored(self, anchor: str) -> tuple[int, ...]:
        """Return the lines equal to ``anchor``, or else those that begin with it."""
        for tolerance in TOLERANCES[1:]:
            if there := self.matches([anchor], tolerance):
                return there
        if ("anchor", anchor) not in self._found:
            begins = re.compile(re.escape(anchor.strip()) + r"(?!\w)")
            there = (at for at, line in enumerate(self.lines) if begins.match(line.strip()))
            self._found["anchor", anchor] = tuple(there)
        return self._found["anchor", anchor]


def _everywhere(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


@frozen
class HunkCandidates:
    """Possible places of ``hunk`` (line indexes), all found with the same tolerance."""

    hunk: Hunk
    places: tuple[int, ...]
    tolerance: Tolerance


@frozen
class HunkPlacement:
    """The result of ``place``. ``exact``: every line was found as written. ``ended``: whether the last line gets
    (True) or loses (False) its line end; None if unchanged."""

    changes: tuple[Splice, ...]
    exact: bool
    notes: tuple[str, ...]
    ended: bool | None


@frozen
class _Swap:
    """Replaces lines ``first`` to ``last`` (exclusive) with ``lines``."""

    first: int
    last: int
    lines: tuple[str, ...]


def place(text: str, hunks: Sequence[Hunk]) -> HunkPlacement:
    """Return the changes of ``hunks`` in ``text``.

    Raises:
        ToolFailure: a hunk is not there, fits in several places, or is out of order.
    """
    whole = _Text(text)
    lines, closed = whole.lines, whole.closed
    # Hunks without any context are appended, so they come last.
    ordered = sorted(hunks, key=lambda hunk: not (hunk.old or hunk.anchors))
    found = [_candidates(whole, hunk) for hunk in ordered]
    swaps: list[_Swap] = []
    ended: bool | None = None
    for each, at in zip(found, _in_order(lines, found), strict=True):
        for swap in _swaps(lines, each, at):
            if swaps and swaps[-1].last == swap.first:
                before = swaps.pop()
                swap = _Swap(before.first, swap.last, before.lines + swap.lines)
            swaps.append(swap)
        hunk = each.hunk
        if (hunk.open_old or hunk.open_new) and at + len(hunk.old) == len(lines):
            ended = not hunk.open_new
    left = len(lines) + sum(len(swap.lines) - (swap.last - swap.first) for swap in swaps)
    notes = dict.fromkeys(each.tolerance.note for each in found if each.tolerance.note)
    return HunkPlacement(
        tuple(_changes(lines, swaps, closed=closed)),
        all(each.tolerance is TOLERANCES[0] for each in found),
        tuple(notes),
        ended if left and ended != closed else None,
    )


def _candidates(text: _Text, hunk: Hunk) -> HunkCandidates:
    lines = text.lines
    if not hunk.old:
        return HunkCandidates(hunk, _room(text, hunk), TOLERANCES[0])
    starts = _after(text, hunk) if hunk.anchors else None
    # Blank lines at the end may only separate hunks: if the hunk fits nowhere, try without them.
    shorter = replace(hunk, lines=hunk.lines[: len(hunk.lines) - hunk.loose]) if hunk.loose else hunk
    for tried in (hunk, shorter) if shorter.lines != hunk.lines and shorter.old else (hunk,):
        for tolerance in TOLERANCES:
            if tolerance.indents and not telling(tried.old):
                continue
            if places := _meant(text, tried, tolerance, starts):
                return HunkCandidates(tried, places, tolerance)
    raise _missing(lines, hunk)


def _room(text: _Text, hunk: Hunk) -> tuple[int, ...]:
    """Return the place of lines without context."""
    if hunk.anchors:
        return tuple(_after(text, hunk))
    if not text.lines:
        return (0,)
    if hunk.start is not None:
        raise _no_place(hunk, "has no line of context, so its place is not certain.", "Add lines around the change.")
    return (len(text.lines),)


def _meant(text: _Text, hunk: Hunk, tolerance: Tolerance, starts: Sequence[int] | None) -> tuple[int, ...] | None:
    """Return the places of a hunk that match its header: the first after an anchor, the end, or the line that it
    names."""
    there = text.matches(hunk.old, tolerance)
    if starts is not None:
        behind = {there[index] for start in starts if (index := bisect_left(there, start)) < len(there)}
        # Some patches repeat the anchor as the first line of the hunk.
        there = tuple(sorted(behind) or [start - 1 for start in starts if _among(there, start - 1)])
    last = len(text.lines) - len(hunk.old)
    if hunk.at_end and _among(there, last):
        return (last,)
    if hunk.start is not None and _among(there, hunk.start - 1):
        return (hunk.start - 1,)
    return there


def _among(places: Sequence[int], at: int) -> bool:
    index = bisect_left(places, at)
    return index < len(places) and places[index] == at


def _after(text: _Text, hunk: Hunk) -> list[int]:
    """Return the lines after the anchors, which must follow each other."""
    starts = [0]
    for number, anchor in enumerate(hunk.anchors):
        there = text.anchored(anchor)
        if number == 0:
            starts = [at + 1 for at in there]
        else:
            starts = [there[index] + 1 for start in starts if (index := bisect_left(there, start)) < len(there)]
        if not starts:
            raise _no_place(hunk, f"belongs behind {anchor.strip()[:LINE_CHARS]!r}, which is not there.", _HINT)
    return sorted(set(starts))


def _in_order(lines: Sequence[str], found: Sequence[HunkCandidates]) -> list[int]:
    """Return one place for each hunk, in order and without overlap, if there is exactly one solution."""
    early: list[int] = []
    at = 0
    for each in found:
        index = bisect_left(each.places, at)
        if index == len(each.places):
            raise _no_place(each.hunk, "belongs before or within the previous hunk.", "Give hunks in file order.")
        early.append(each.places[index])
        at = early[-1] + len(each.hunk.old)
    at = len(lines)
    for each, first in reversed(list(zip(found, early, strict=True))):
        late = each.places[bisect_right(each.places, at - len(each.hunk.old)) - 1]
        if late != first:
            raise _ambiguous(lines, each)
        at = late
    return early


def _swaps(lines: Sequence[str], found: HunkCandidates, at: int) -> list[_Swap]:
    hunk = found.hunk
    indents = even_indents(lines[at : at + len(hunk.old)], hunk.old) if found.tolerance.indents else {}
    if indents is None:
        raise _no_place(hunk, "fits only with other indentation, and not evenly.", _HINT)
    swaps: list[_Swap] = []
    group: list[str] = []
    first = at
    for sign, text in (*hunk.lines, (" ", "")):
        if sign == "-":
            at += 1
        elif sign == "+":
            line = reindented(text, indents) if indents else text
            if line is None:
                raise _no_place(hunk, "fits only with other indentation, so that of its new lines is unsure.", _HINT)
            group.append(line)
        else:
            if group or at > first:
                swaps.append(_Swap(first, at, tuple(group)))
            group, at = [], at + 1
            first = at
    return swaps


def _changes(lines: Sequence[str], swaps: Sequence[_Swap], *, closed: bool) -> list[Splice]:
    starts = line_starts(lines)
    size = starts[-1] if closed else starts[-1] - 1
    changes: list[Splice] = []
    for swap in swaps:
        text = "\n".join(swap.lines)
        start, end = starts[swap.first], min(starts[swap.last], size)
        last = swap.last == len(lines) and not closed
        if swap.lines and swap.last > swap.first:
            changes.append(Splice(start, starts[swap.last] - 1, text))
        elif not swap.lines:
            changes.append(Splice(max(0, start - 1) if last else start, end, ""))
        elif last:
            changes.append(Splice(size, size, f"\n{text}"))
        else:
            changes.append(Splice(start, start, f"{text}\n"))
    return changes


def _no_place(hunk: Hunk, why: str, hint: str) -> ToolFailure:
    return ToolFailure("validation_error", f"The hunk at line {hunk.where} of the patch {why}", hint)


def _ambiguous(lines: Sequence[str], found: HunkCandidates) -> ToolFailure:
    shown = "\n".join(f"{at + 1}\t{lines[at][:LINE_CHARS]}" for at in found.places[:SHOWN_LINES] if at < len(lines))
    hint = "Add lines of context, or @@ with a preceding line, until it fits in one place."
    return _no_place(found.hunk, f"fits in {len(found.places)} places:\n{shown}", hint)


def _missing(lines: Sequence[str], hunk: Hunk) -> ToolFailure:
    near = nearest_lines(lines, hunk.old)
    return _no_place(hunk, f"does not fit: its lines are not there.{near}", _HINT)


NAME = "apply_patch"
MAX_BYTES_TOGETHER = 60_000_000
"""Bytes of all files of one patch, which stay in memory until the last is checked."""


@dataclass(slots=True)
class _PatchedFile:
    """A file while the patch is applied in memory: ``before`` on the disk, ``now`` after the parts so far; None:
    absent.

    ``text`` is None for binary files. ``source``: the file that was moved here.
    """

    path: Path
    shown: str
    before: bytes | None
    now: bytes | None
    encoding: FileEncoding = field(default_factory=FileEncoding)
    text: str | None = None
    source: _PatchedFile | None = None
    gone_to: str = ""
    notes: list[str] = field(default_factory=list[str])


@frozen
class PatchChange:
    """The checked changes of a patch, not yet written."""

    files: tuple[_PatchedFile, ...]

    def display(self) -> Diff | Diffs:
        diffs = tuple(_diff(file) for file in self.files if not file.gone_to)
        return diffs[0] if len(diffs) == 1 else Diffs(diffs)

    def commit(self, seen: SeenFiles, ahead: WriteAhead) -> ToolResult:
        """Write all files. Raises ToolFailure; all files are then unchanged."""
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
    """Return the change that the call would make. Raises ToolFailure, PathRefused."""
    patch: str = args["patch"]
    if (written := restored(patch)) != patch:
        # The patch quotes tags in the form of results, which a file may also contain.
        with suppress(ToolFailure):
            return _planned(workspace, seen, written)
    return _planned(workspace, seen, patch)


def _planned(workspace: Workspace, seen: SeenFiles, patch: str) -> PatchChange:
    plan = _Plan(workspace, seen)
    parts = read_patch(patch)
    while parts:
        # The target of a move may be free only after another part: git sorts by name.
        part = next((part for part in parts if not plan.waits(part, parts)), parts[0])
        parts.remove(part)
        plan.take(part)
    changed = [file for file in plan.files.values() if file.before != file.now]
    # Recovery after a kill restores no file outside the workspace, so these are written last.
    files = tuple(sorted(changed, key=lambda file: not workspace.contains(file.path)))
    if not files:
        raise ToolFailure("validation_error", "The files already have the content of the patch; nothing would change.")
    for file in files:
        refuse_placeholders(_words((file.source or file).before), file.text or "")
    return PatchChange(files)


class _Plan:
    """Applies the parts of a patch in order, in memory."""

    def __init__(self, workspace: Workspace, seen: SeenFiles) -> None:
        self.workspace = workspace
        self.seen = seen
        self.files: dict[Path, _PatchedFile] = {}
        self._size = 0

    def waits(self, part: FilePatch, parts: Sequence[FilePatch]) -> bool:
        """Return whether another of ``parts`` must come before ``part``, because it frees the path."""
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

    def _file(self, name: str) -> _PatchedFile:
        path = self.workspace.resolve(name)
        if path in self.files:
            return self.files[path]
        shown = self.workspace.shown(path)
        before = read_bytes(path, shown, self.workspace) if os.path.lexists(path) else None
        self._size += len(before or b"")
        if self._size > MAX_BYTES_TOGETHER:
            message = f"The files of the patch are larger than {MAX_BYTES_TOGETHER // 1_000_000} MB together."
            raise ToolFailure("resource_error", message, "Patch them one after the other.")
        file = _PatchedFile(path, shown, before, before)
        if before is not None and not binary_kind(before[:8192]):
            file.encoding = detect(before)
            file.text = file.encoding.decode(before)
        self.files[path] = file
        return file

    def _add(self, file: _PatchedFile, part: FilePatch) -> None:
        if file.now is not None:
            self._replaceable(file, "exists already", "Read it first, or update it.")
        file.encoding, file.text, file.gone_to = FileEncoding(), part.content, ""
        file.now = encoded(file.encoding, part.content, file.shown)

    def _replaceable(self, file: _PatchedFile, why: str, hint: str) -> None:
        """Raise ToolFailure if a file that is replaced unseen was not read in its present state."""
        if file.path not in self.seen or file.before is None or file.now != file.before:
            raise ToolFailure("validation_error", f"{file.shown} {why}.", hint)
        self.seen.check(file.path, file.before, file.shown)

    def _delete(self, file: _PatchedFile, part: FilePatch) -> None:
        self._itself(file, part)
        self._unchanged(file)
        if part.whole:
            self._patched(file, part.hunks)
            if file.text:
                message = f"{file.shown} holds more than the patch deletes."
                raise ToolFailure("validation_error", message, "Show all of its lines, or use *** Delete File.")
        file.now = file.text = None

    def _itself(self, file: _PatchedFile, part: FilePatch) -> None:
        if self.workspace.named(part.path).is_symlink():
            message = f"{part.path} is a symbolic link to {file.shown}."
            raise ToolFailure("validation_error", message, "Name the file itself, or use the shell for the link.")

    def _unchanged(self, file: _PatchedFile, *, exact: bool = True) -> None:
        """Raise ToolFailure if the file is absent, or changed since it was read."""
        if file.now is None:
            raise ToolFailure("not_found", f"{file.shown} does not exist.", "Check the path; search with glob.")
        if file.before is not None and (not exact or file.path in self.seen):
            self.seen.check(file.path, file.before, file.shown)

    def _update(self, file: _PatchedFile, part: FilePatch) -> None:
        self._unchanged(file)
        if part.hunks:
            placed = self._patched(file, part.hunks)
            self._unchanged(file, exact=placed.exact)
            file.notes += placed.notes
        if part.target is not None:
            self._itself(file, part)
            self._move(file, part.target)

    def _patched(self, file: _PatchedFile, hunks: Sequence[Hunk]) -> HunkPlacement:
        if file.text is None or file.now is None:
            now = file.now or b""
            raise no_text(now[:8192], file.shown, len(now), "a binary file")
        plain = plain_lines(file.text)
        try:
            placed = place(plain, hunks)
        except ToolFailure as error:
            raise error.reworded(f"{file.shown}: {error}") from error
        windows = all(hunk.windows for hunk in hunks)
        file.text = _ended(spliced(file.text, plain, placed.changes, windows=windows), file.text, placed.ended)
        file.now = encoded(file.encoding, file.text, file.shown)
        return placed

    def _move(self, file: _PatchedFile, target: str) -> None:
        to = self._file(target)
        if to is file:
            raise ToolFailure("invalid_parameters", f"{file.shown} can't move to itself.")
        if to.now is not None:
            self._replaceable(to, "exists already, so nothing can move there", "Read it first, or move elsewhere.")
        to.encoding, to.text, to.now, to.notes = file.encoding, file.text, file.now, file.notes
        to.source = file.source or file
        file.now = file.text = None
        file.gone_to = to.shown


def _ended(text: str, before: str, ended: bool | None) -> str:
    """Return ``text`` with a line end added or removed (see HunkPlacement)."""
    if ended is None:
        return text
    return text + line_end(before or text) if ended else text.removesuffix("\n").removesuffix("\r")


def _step(file: _PatchedFile) -> FileStep:
    source = file.source
    mode = mode_of(source.path, source.shown) if source and source.before is not None and file.before is None else None
    return FileStep(file.path, file.shown, file.before, file.now, mode)


def _known(file: _PatchedFile, seen: SeenFiles) -> bool:
    """Return whether the model knows the whole new file: a patch shows only parts, so only if it knew the old one."""
    origin = file.source or file
    return origin.before is None or origin.path in seen


def _change(file: _PatchedFile) -> PlannedChange:
    origin = file.source or file
    old = _words(origin.before)
    shown = f"{origin.shown} → {file.shown}" if file.source else file.shown
    return PlannedChange(file.path, shown, origin.before, file.now or b"", old, file.text or "")


def _words(data: bytes | None) -> str:
    return "" if data is None or binary_kind(data[:8192]) else detect(data).decode(data)


def _diff(file: _PatchedFile) -> Diff:
    change = _change(file)
    diff = change.diff()
    return Diff(f"{file.shown} (deleted)", diff.before, "") if file.now is None else diff


def _done(file: _PatchedFile) -> str:
    if file.now is None:
        return f"Deleted {file.shown}"
    if file.source:
        return f"Moved {file.source.shown} to {file.shown}"
    return f"Created {file.shown}" if file.before is None else f"Changed {file.shown}"


def apply_patch_tool(definition: Definition, workspace: Workspace, seen: SeenFiles, ahead: WriteAhead) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        def work(commit: Commit) -> ToolResult:
            with seen.lock:
                change = planned_patch(workspace, seen, args)
                commit.begin()
                return change.commit(seen, ahead)

        return await commit_whole(work, call)

    async def preview(args: Mapping[str, Any]) -> Display | None:
        return await asyncio.to_thread(lambda: planned_patch(workspace, seen, args).display())

    return definition.tool(run, preview=preview)


def patched_paths(args: Mapping[str, Any]) -> tuple[str, ...]:
    """Return all paths that the patch in ``args`` names; none for an invalid patch, which is never applied."""
    try:
        files = read_patch(str(args.get("patch", "")))
    except ToolFailure:
        return ()
    return tuple(dict.fromkeys(name for file in files for name in (file.path, file.target) if name))
