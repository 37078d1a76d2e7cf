"""Rows of a diff, unified or side by side, and choosing some of its hunks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from ba_tui.core.results import Diff
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.faces.tui.inspector.rows import GridCell, GridRow, Piece, line, visible

CONTEXT = 3
MANY_LINES = 20_000
LONG_LINE = 2_000
ALIKE = 0.4
WORDS = regex(r"\w+|\s+|[^\w\s]")
NO_END = " (no line end)"


@frozen
class DiffBlock:
    """Lines ``before[i1:i2]`` that became ``after[j1:j2]``; ``same`` when nothing changed there."""

    same: bool
    i1: int
    i2: int
    j1: int
    j2: int


@frozen
class DiffChange:
    """Both texts by line, and the blocks that lead from one to the other."""

    before: Sequence[str]
    after: Sequence[str]
    blocks: Sequence[DiffBlock]

    @property
    def added(self) -> int:
        return sum(block.j2 - block.j1 for block in self.blocks if not block.same)

    @property
    def removed(self) -> int:
        return sum(block.i2 - block.i1 for block in self.blocks if not block.same)


def compare(before: str | None, after: str) -> DiffChange:
    """Compare line by line. Slow for long files that share little: call it in a thread."""
    old, new = _lines(before or ""), _lines(after)
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    blocks = [DiffBlock(True, 0, head, 0, head)] if head else []
    blocks += [
        DiffBlock(tag == "equal", head + i1, head + i2, head + j1, head + j2)
        for tag, i1, i2, j1, j2 in _opcodes(middle_old, middle_new)
    ]
    if tail:
        blocks.append(DiffBlock(True, len(old) - tail, len(old), len(new) - tail, len(new)))
    return DiffChange(old, new, blocks)


def _lines(text: str) -> list[str]:
    parts = re.split(r"(?<=\n)", text)
    return parts if parts[-1] else parts[:-1]


def _opcodes(old: Sequence[str], new: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    if not old and not new:
        return []
    if not old or not new or len(old) + len(new) > MANY_LINES:
        return [("replace", 0, len(old), 0, len(new))]
    return SequenceMatcher(None, old, new, autojunk=len(old) + len(new) > 2_000).get_opcodes()


def unified(change: DiffChange, context: int = CONTEXT) -> list[GridRow]:
    """Yield removed lines above added ones, each with its sign."""
    return [row for step in steps(change, context) for row in step_rows(change, step, split=False)]


def side_by_side(change: DiffChange, context: int = CONTEXT) -> list[GridRow]:
    """Yield rows with the old line on the left and the new one on the right."""
    return [row for step in steps(change, context) for row in step_rows(change, step, split=True)]


def step_rows(change: DiffChange, step: DiffBlock | int, *, split: bool) -> list[GridRow]:
    """Yield the rows of one block, or the line for folded ones."""
    digits = _digits(change)
    if isinstance(step, int):
        return [_fold(step, digits)]
    if step.same:
        new = [_cell(change.after[j], digits, j + 1) for j in range(step.j1, step.j2)]
        if not split:
            return [(cell,) for cell in new]
        old = [_cell(change.before[i], digits, i + 1) for i in range(step.i1, step.i2)]
        return list(zip(old, new, strict=True))
    pairs = list(_pairs(change, step))
    if split:
        return pairs
    gone = [(cell,) for cell, _ in pairs if cell.gutter]
    return [*gone, *((cell,) for _, cell in pairs if cell.gutter)]


def diff_rows(display: Diff, *, split: bool = False, context: int = CONTEXT) -> list[GridRow]:
    """Return a row with the file's name and line counts, then the change."""
    change = compare(display.before, display.after)
    kind = "new file  " if display.before is None else ""
    head = line(
        (visible(display.path) + "  ", "heading"),
        (kind, "muted"),
        (f"+{change.added}", "plus"),
        (" ", ""),
        (f"-{change.removed}", "minus"),
    )
    if not change.added and not change.removed:
        return [head, line(("No line changed.", "muted"))]
    return [head, *(side_by_side(change, context) if split else unified(change, context))]


def patch(display: Diff) -> str:
    """Return the change in the form that patch programs read, for the clipboard."""
    change = compare(display.before, display.after)
    old = "/dev/null" if display.before is None else display.path
    lines = [f"--- {old}\n", f"+++ {display.path}\n"]
    hunk: list[DiffBlock] = []
    for step in (*steps(change), 0):
        if not isinstance(step, int):
            hunk.append(step)
        elif any(not block.same for block in hunk):
            lines += _hunk(change, hunk)
            hunk = []
        else:
            hunk = []
    return "".join(lines)


def _hunk(change: DiffChange, blocks: Sequence[DiffBlock]) -> list[str]:
    first, last = blocks[0], blocks[-1]
    lines = [f"@@ -{_span(first.i1, last.i2)} +{_span(first.j1, last.j2)} @@\n"]
    for block in blocks:
        if block.same:
            lines += [" " + text for text in change.after[block.j1 : block.j2]]
        else:
            lines += ["-" + text for text in change.before[block.i1 : block.i2]]
            lines += ["+" + text for text in change.after[block.j1 : block.j2]]
    return [text if text.endswith("\n") else f"{text}\n\\ No newline at end of file\n" for text in lines]


def _span(start: int, end: int) -> str:
    return f"{start + 1 if end > start else start},{end - start}"


def steps(change: DiffChange, context: int = CONTEXT) -> Iterator[DiffBlock | int]:
    """Yield blocks with their context; a number replaces that many unchanged lines."""
    last = len(change.blocks) - 1
    for index, block in enumerate(change.blocks):
        size = block.i2 - block.i1
        head = context if index else 0
        tail = context if index < last else 0
        if not block.same or size <= head + tail + 1:
            yield block
            continue
        if head:
            yield DiffBlock(True, block.i1, block.i1 + head, block.j1, block.j1 + head)
        yield size - head - tail
        if tail:
            yield DiffBlock(True, block.i2 - tail, block.i2, block.j2 - tail, block.j2)


def _pairs(change: DiffChange, block: DiffBlock) -> Iterator[tuple[GridCell, GridCell]]:
    """Yield the rows of a changed block: removed and added lines, with an empty cell where one side is longer."""
    digits = _digits(change)
    for step in range(max(block.i2 - block.i1, block.j2 - block.j1)):
        i, j = block.i1 + step, block.j1 + step
        old = change.before[i] if i < block.i2 else None
        new = change.after[j] if j < block.j2 else None
        gone, come = _marked(old, new)
        yield (
            GridCell(gone, f"{i + 1:>{digits}} - ", "removed") if old is not None else GridCell(),
            GridCell(come, f"{j + 1:>{digits}} + ", "added") if new is not None else GridCell(),
        )


def _marked(old: str | None, new: str | None) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Return the pieces of both lines; if the lines are similar, different words are marked."""
    left, right = _shown(old), _shown(new)
    plain = ((left, "removed"),), ((right, "added"),)
    if old is None or new is None or len(left) + len(right) > LONG_LINE:
        return plain
    a, b = WORDS.findall(left), WORDS.findall(right)
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    if left == right or matcher.quick_ratio() < ALIKE or matcher.ratio() < ALIKE:
        return plain
    gone: list[Piece] = []
    come: list[Piece] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        same = tag == "equal"
        gone.append(("".join(a[i1:i2]), "removed" if same else "removed-word"))
        come.append(("".join(b[j1:j2]), "added" if same else "added-word"))
    return tuple(piece for piece in gone if piece[0]), tuple(piece for piece in come if piece[0])


def _shown(text: str | None) -> str:
    if text is None:
        return ""
    return visible(text[:-1]) if text.endswith("\n") else visible(text) + NO_END


def _cell(text: str, digits: int, number: int) -> GridCell:
    return GridCell(((_shown(text), ""),), f"{number:>{digits}}   ")


def _fold(hidden: int, digits: int) -> GridRow:
    return line((count(hidden, "unchanged line"), "fold"), gutter=f"{'⋯':>{digits}}   ")


def _digits(change: DiffChange) -> int:
    return len(str(max(len(change.before), len(change.after), 1)))


# Hunks of a diff. Pure, and slow for long files: call it in a thread.

NEAR = 1
"""Maximum unchanged lines within one change."""
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
    """Return the changes of one file."""
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
    """Yield the rows of a diff, and the number of each change before its first row."""
    places = iter(of.of)
    begun = -1
    for step in steps(of.change):
        if not isinstance(step, int) and not step.same and (place := next(places)) != begun:
            begun = place
            yield place
        yield from step_rows(of.change, step, split=split)


def merged(of: Hunks, accepted: frozenset[int]) -> str:
    """Return the text when only the accepted changes are made."""
    change, places = of.change, iter(of.of)
    lines: list[str] = []
    for block in change.blocks:
        taken = block.same or next(places) in accepted
        lines += change.after[block.j1 : block.j2] if taken else change.before[block.i1 : block.i2]
    return "".join(lines)


def can_say(args: Mapping[str, Any], diff: Diff) -> bool:
    """Return whether a choice of its changes can be put into the arguments of the call."""
    return _whole(args, diff) is not None or _is_edit(args, diff)


def said(args: Mapping[str, Any], diff: Diff, wanted: str) -> dict[str, Any] | None:
    """Return the arguments with which the same call leads to ``wanted`` instead; None when they can't be found."""
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
    """Return the argument that is all of the new text."""
    if "old_string" in args or "edits" in args:
        return None
    found = [key for key, value in args.items() if isinstance(value, str) and value == diff.after]
    return found[0] if len(found) == 1 else None


def _is_edit(args: Mapping[str, Any], diff: Diff) -> bool:
    """Return whether the call replaces texts in one plain file, not in a notebook."""
    one = {"path", "old_string", "new_string"} <= args.keys() <= ONE_EDIT
    texts = diff.before is not None and "\r" not in diff.before + diff.after
    return (one or not EDITS ^ args.keys()) and texts and not diff.path.endswith(".ipynb")


def _replacement(before: str, wanted: str) -> tuple[str, str] | None:
    """Return a replacement of a text that occurs once in ``before``, which gives ``wanted``."""
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
