"""Marks around the figures of an answer, which go through the Markdown parser with its text.

A figure begins with a letter of a private plane that says which one it is, and ends with another. Neither is painted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style

from ba_tui.core.text.figures import FigureReport, FigureVerdict
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.faces.tui.transcript.palette import Palette

FIGURE = "figure"
"""The key in the meta of a style for the number of the figure in its report."""
_FIRST, _END = 0xF0000, "\U0010fffd"
MOST = 0xFFF0
MARKS = regex("[\U000f0000-\U000fffff\U0010fffd]")
_ADDRESS = regex(r"\]\([^()\s]*$")
"""Before a figure within the address of a link."""


@frozen
class AnswerFigures:
    """The figures of the answer with the id ``message``. ``place``: where the record begins in it; ``last``: nothing
    of it follows."""

    report: FigureReport
    message: str = ""
    place: int = 0
    last: bool = True


class FigureMarks:
    """Marks ``text``, a part of an answer, piece by piece in order."""

    def __init__(self, text: str, grounded: AnswerFigures) -> None:
        self._text = text
        self._verdicts = grounded.report.verdicts[:MOST]
        self._place = grounded.place
        self._starts = [verdict.start for verdict in self._verdicts]
        self.clean = not MARKS.search(text)
        """Whether the text has no letters that would be taken for marks; else it is left as it is."""

    def marked(self, piece: str, upto: int) -> tuple[str, int]:
        """Return ``piece``, which is found at ``upto`` or later, with its marks, and where it ends."""
        start = self._text.find(piece.rstrip("\n"), upto) if self.clean else -1
        if start < 0:
            return piece, upto
        end = start + len(piece.rstrip("\n"))
        parts: list[str] = []
        at = start
        for number, verdict in self._within(start, end):
            low, high = verdict.start - self._place, verdict.end - self._place
            if _ADDRESS.search(self._text, max(start, low - 200), low):
                continue
            parts += [self._text[at:low], chr(_FIRST + number), self._text[low:high], _END]
            at = high
        return "".join([*parts, self._text[at:end], piece[end - start :]]), end

    def _within(self, start: int, end: int) -> Sequence[tuple[int, FigureVerdict]]:
        first = bisect_left(self._starts, start + self._place)
        last = bisect_left(self._starts, end + self._place)
        found = enumerate(self._verdicts[first:last], first)
        return [(at, each) for at, each in found if each.end <= end + self._place]


class FigureRuns:
    """Cuts the words of a paragraph at the marks of figures. A figure may span several pieces. ``unsourced``: figures
    to highlight; None if the text has no marks.
    """

    def __init__(self, palette: Palette, unsourced: frozenset[int] | None) -> None:
        self._palette = palette
        self._unsourced = unsourced
        self._open = -1

    def without(self, text: str) -> str:
        """Return ``text`` without marks."""
        return text if self._unsourced is None or text.isascii() else MARKS.sub("", text)

    def of(self, text: str, style: Style) -> list[Segment]:
        """Return the runs of ``text``."""
        if self._unsourced is None or text.isascii():
            return [Segment(text, self._within(style))]
        runs: list[Segment] = []
        at = 0
        for found in MARKS.finditer(text):
            if found.start() > at:
                runs.append(Segment(text[at : found.start()], self._within(style)))
            at = found.end()
            if found[0] != _END:
                self._open = ord(found[0]) - _FIRST
            elif self._open >= 0:
                if self._open in self._unsourced:
                    runs.append(Segment(self._palette.glyphs.unsourced, self._within(style)))
                self._open = -1
        if at < len(text):
            runs.append(Segment(text[at:], self._within(style)))
        return runs

    def _within(self, style: Style) -> Style:
        if self._open < 0:
            return style
        look = self._palette.unsourced if self._open in (self._unsourced or ()) else Style.null()
        return style + look + Style.from_meta({FIGURE: self._open})
