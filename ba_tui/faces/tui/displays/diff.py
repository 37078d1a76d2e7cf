"""Renderers of changes to one file and to several files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar

from rich.segment import Segment

from ba_tui.core.results import Diff, Diffs
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.faces.tui.displays.renderer import Build, Renderer
from ba_tui.faces.tui.inspector.diff import DiffBlock, DiffChange, compare, diff_rows, patch, steps
from ba_tui.faces.tui.inspector.rows import line
from ba_tui.faces.tui.transcript.lines import PaintedLine, PreviewSpace, Rows, Unit, beginning, first_rows, missing
from ba_tui.faces.tui.transcript.markdown import plain

LINES = 200
"""Lines of either text that are compared, from the first that differs."""


@frozen
class ChangedLine:
    """A line of a diff. ``number``: from 1, in the old text for a removed line."""

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
        """Yield the changed lines with ``context`` around them; a number replaces that many unchanged lines."""
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
    """Return how many characters at the beginning (``late``: end) of ``text`` pass ``test``, by binary search."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        passes = test(text[len(text) - middle :] if late else text[:middle])
        low, high = (middle, high) if passes else (low, middle - 1)
    return low


def _back(text: str, at: int, lines: int) -> int:
    """Return where the line begins that is ``lines`` above the one at ``at``."""
    for _ in range(lines + 1):
        at = text.rfind("\n", 0, max(0, at - 1) if _ else at) + 1
    return at


def _ahead(text: str, at: int, lines: int) -> int:
    """Return where the line ends that is ``lines`` below the one at ``at``."""
    for _ in range(lines + 1):
        at = text.find("\n", at) + 1 or len(text)
    return at


CONTEXT = 2
"""Unchanged lines around a change that are shown once the row is unfolded."""


def _painted(line: ChangedLine | int, size: int, space: PreviewSpace) -> Rows:
    palette = space.palette
    if isinstance(line, int):
        words = count(line, "unchanged line")
        return [PaintedLine((Segment(words, palette.dim),), (Segment(" " * (size + 3), palette.dim),), Unit(""))]
    tone = {"+": palette.added, "-": palette.removed}.get(line.sign, palette.dim)
    first, rest = Segment(f"{line.number:>{size}} {line.sign} ", tone), Segment(" " * (size + 3), tone)
    rows = plain(beginning(line.text.removesuffix("\n"), space), space.width - size - 3, tone)
    return [row._replace(gutter=(rest if at else first,)) for at, row in enumerate(rows)]


class DiffRenderer(Renderer[Diff]):
    """Shows changed lines with their numbers; unfolded, with the lines around them."""

    complete: ClassVar[bool] = True
    has_changes: ClassVar[bool] = True

    def preview(self, display: Diff, space: PreviewSpace) -> Rows:
        start = diff_start(display, CONTEXT)
        lines = list(start.lines(CONTEXT if space.unfolded else 0))
        if not space.unfolded:
            lines = [line for line in lines if not isinstance(line, int) and line.sign != " "]
        if not lines:
            return plain("No line changed.", space.width, space.palette.dim)
        shown = lines[: space.limit]
        size = max(len(str(line.number)) for line in shown if not isinstance(line, int))
        rows = [_painted(line, size, space) for line in shown]
        hidden = len(lines) - len(rows) + start.beyond
        return first_rows(rows, space, hidden, "" if start.exact else "at least ")

    def page(self, display: Diff, *, split: bool) -> Sequence[Build]:
        return [lambda: diff_rows(display, split=split)]

    def question(self, display: Diff) -> Sequence[Build]:
        return [lambda: diff_rows(display, context=1)]

    def text(self, display: Diff) -> str:
        return patch(display)

    def values(self, display: Diff) -> Sequence[object]:
        return (display.path, display.before, display.after)

    def shows(self, display: Diff, argument: object) -> bool:
        if not isinstance(argument, str) or not argument:
            return False
        return argument == display.path or argument in display.after or argument in (display.before or "")

    def edited(self, display: Diff, texts: Mapping[str, str]) -> Sequence[str]:
        """Return the argument with the whole new text, else those with text that is new in it."""
        before = display.before or ""
        whole = [key for key, value in texts.items() if value == display.after]
        return whole or [
            key
            for key, value in texts.items()
            if value and value != display.path and value in display.after and value not in before
        ]

    def changes(self, display: Diff) -> Sequence[Diff]:
        return (display,)


class DiffsRenderer(Renderer[Diffs]):
    """Shows the changes of each file below its path."""

    complete: ClassVar[bool] = True
    has_changes: ClassVar[bool] = True

    def preview(self, display: Diffs, space: PreviewSpace) -> Rows:
        rows: Rows = []
        for at, item in enumerate(display.items):
            more = at < len(display.items) - 1
            room = space.limit - len(rows) - 1 - more
            if room < 1:
                return [*rows, missing(f"{count(len(display.items) - at, 'more file')} below", space)]
            rows += plain(item.path, space.width, space.palette.dim)[:1]
            rows += DiffRenderer().preview(item, space._replace(limit=room))
        return rows

    def page(self, display: Diffs, *, split: bool) -> Sequence[Build]:
        return [lambda: [row for item in display.items for row in (*diff_rows(item, split=split), line())]]

    def question(self, display: Diffs) -> Sequence[Build]:
        return [lambda: [row for item in display.items for row in diff_rows(item, context=1)]]

    def text(self, display: Diffs) -> str:
        return "".join(map(patch, display.items))

    def values(self, display: Diffs) -> Sequence[object]:
        return [text for item in display.items for text in (item.path, item.before, item.after)]

    def changes(self, display: Diffs) -> Sequence[Diff]:
        return display.items
