"""The beginning of a change, compared in bounded time however large the file is. All of it is inspector.diff's."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ba_tui.core.results import Diff
from ba_tui.core.values import frozen
from ba_tui.faces.tui.inspector.diff import DiffBlock, DiffChange, compare, steps

LINES = 200
"""Lines of either text that are compared, from the first that differs."""


@frozen
class ChangedLine:
    """``number`` counts from 1, in the old text for a removed line."""

    number: int
    sign: str
    text: str


@frozen
class DiffStart:
    """Both texts from line ``start`` (from 0) on. ``beyond``: how many changed lines follow, at least; ``exact`` when
    no more do."""

    change: DiffChange
    start: int
    beyond: int
    exact: bool

    def lines(self, context: int) -> Iterator[ChangedLine | int]:
        """Changed lines with ``context`` around them; a number stands for so many unchanged lines between."""
        for step in steps(self.change, context):
            if isinstance(step, int):
                yield step
            else:
                yield from self._block(step)

    def _block(self, block: DiffBlock) -> Iterator[ChangedLine]:
        if not block.same:
            for at in range(block.i1, block.i2):
                yield ChangedLine(self.start + at + 1, "-", self.change.before[at])
        for at in range(block.j1, block.j2):
            yield ChangedLine(self.start + at + 1, " " if block.same else "+", self.change.after[at])


def diff_start(diff: Diff, context: int) -> DiffStart:
    """Compare the texts of ``diff`` from ``context`` lines above the first change on."""
    before, after = diff.before or "", diff.after
    head = _back(before, _passed(before.startswith, after), context)
    old, new = before[head:], after[head:]
    tail = _passed(old.endswith, new, late=True)
    end = _ahead(old, max(0, len(old) - tail), context)
    old, new = old[:end], new[: len(new) - (len(old) - end)]
    parts = old[: _ahead(old, 0, LINES)], new[: _ahead(new, 0, LINES)]
    change = compare(*parts)
    beyond = sum(max(0, text.count("\n") - part.count("\n")) for text, part in zip((old, new), parts, strict=True))
    exact = not (beyond and old and new)
    if not exact and len(change.blocks) > 1 and not change.blocks[-1].same:
        # Where the texts are cut, lines that are only moved apart look changed.
        change = DiffChange(change.before, change.after, change.blocks[:-1])
    return DiffStart(change, before.count("\n", 0, head), beyond if exact else 1, exact)


def _passed(test: Callable[[str], bool], text: str, *, late: bool = False) -> int:
    """How many characters at the beginning (``late``: end) of ``text`` pass. By halves: texts may be megabytes."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        passes = test(text[len(text) - middle :] if late else text[:middle])
        low, high = (middle, high) if passes else (low, middle - 1)
    return low


def _back(text: str, at: int, lines: int) -> int:
    """Where the line begins that is ``lines`` above the one at ``at``."""
    for _ in range(lines + 1):
        at = text.rfind("\n", 0, max(0, at - 1) if _ else at) + 1
    return at


def _ahead(text: str, at: int, lines: int) -> int:
    """Where the line ends that is ``lines`` below the one at ``at``."""
    for _ in range(lines + 1):
        at = text.find("\n", at) + 1 or len(text)
    return at
