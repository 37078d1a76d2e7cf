"""The changes of a diff one by one: which lines belong together, what a choice of them leads to, how a call says that.

Pure, and slow for long files: call it in a thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ba_tui.core.results import Diff
from ba_tui.core.values import frozen
from ba_tui.faces.tui.inspector.diff import DiffBlock, DiffChange, compare, step_rows, steps
from ba_tui.faces.tui.inspector.rows import GridRow

NEAR = 1
"""Unchanged lines between two changed places that still count as one change."""
ONE_EDIT = frozenset({"path", "old_string", "new_string", "replace_all"})
EDITS = frozenset({"path", "edits"})


@frozen
class Hunks:
    """``of`` names, for each changed block in order, the change it belongs to, from 0."""

    change: DiffChange
    of: tuple[int, ...]

    @property
    def count(self) -> int:
        return self.of[-1] + 1 if self.of else 0


def hunks(diff: Diff) -> Hunks:
    """The changes of one file."""
    change = compare(diff.before, diff.after)
    found: list[int] = []
    last: DiffBlock | None = None
    for block in change.blocks:
        if block.same:
            continue
        near = last is not None and block.i1 - last.i2 <= NEAR
        found.append(found[-1] if near else (found[-1] + 1 if found else 0))
        last = block
    return Hunks(change, tuple(found))


def hunk_rows(of: Hunks, *, split: bool) -> Iterator[GridRow | int]:
    """The diff as rows; a number, the change that begins there, stands before its first row."""
    places = iter(of.of)
    begun = -1
    for step in steps(of.change):
        if not isinstance(step, int) and not step.same and (place := next(places)) != begun:
            begun = place
            yield place
        yield from step_rows(of.change, step, split=split)


def merged(of: Hunks, accepted: frozenset[int]) -> str:
    """The text when only the accepted changes are made."""
    change, places = of.change, iter(of.of)
    lines: list[str] = []
    for block in change.blocks:
        taken = block.same or next(places) in accepted
        lines += change.after[block.j1 : block.j2] if taken else change.before[block.i1 : block.i2]
    return "".join(lines)


def can_say(args: Mapping[str, Any], diff: Diff) -> bool:
    """Whether a choice of its changes can be put into the arguments of the call."""
    return _whole(args, diff) is not None or _is_edit(args, diff)


def said(args: Mapping[str, Any], diff: Diff, wanted: str) -> dict[str, Any] | None:
    """The arguments with which the same call leads to ``wanted`` instead; None when they can't be found."""
    if (key := _whole(args, diff)) is not None:
        return {**args, key: wanted}
    pair = _replacement(diff.before or "", wanted) if _is_edit(args, diff) else None
    if pair is None:
        return None
    rest = {
        key: value for key, value in args.items() if key not in {"old_string", "new_string", "replace_all", "edits"}
    }
    return {**rest, "old_string": pair[0], "new_string": pair[1]}


def _whole(args: Mapping[str, Any], diff: Diff) -> str | None:
    """The argument that is all of the new text."""
    if "old_string" in args or "edits" in args:
        return None
    found = [key for key, value in args.items() if isinstance(value, str) and value == diff.after]
    return found[0] if len(found) == 1 else None


def _is_edit(args: Mapping[str, Any], diff: Diff) -> bool:
    """Whether the call replaces texts in one plain file. In a notebook the file is not what the call speaks of."""
    one = {"path", "old_string", "new_string"} <= args.keys() <= ONE_EDIT
    texts = diff.before is not None and "\r" not in diff.before + diff.after
    return (one or not EDITS ^ args.keys()) and texts and not diff.path.endswith(".ipynb")


def _replacement(before: str, wanted: str) -> tuple[str, str] | None:
    """One replacement that leads from ``before`` to ``wanted``; what it replaces stands there once."""
    change = compare(before, wanted)
    changed = [block for block in change.blocks if not block.same]
    if not changed:
        return None
    (i1, i2), (j1, j2) = (changed[0].i1, changed[-1].i2), (changed[0].j1, changed[-1].j2)
    more = 1
    while True:
        old = "".join(change.before[i1:i2])
        if old and _stands_once(before, old):
            return old, "".join(change.after[j1:j2])
        above, below = min(more, i1), min(more, len(change.before) - i2)
        if not above and not below:
            return None
        i1, j1, i2, j2 = i1 - above, j1 - above, i2 + below, j2 + below
        more *= 2


def _stands_once(text: str, part: str) -> bool:
    at = text.find(part)
    return at >= 0 and text.find(part, at + 1) < 0
