"""The figures of an answer as footnotes: a mark behind each figure, and a note of where it comes from.

Pure. How marks and notes look is the business of markdown and html.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from ba_tui.core.text.figures import FigureReport, FigureVerdict
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.sessions.foreign import one_line

MOST = 500
"""Figures of one answer that get a note."""
MARK = regex("\ue000([0-9]+)\ue001")
"""A mark in a text that is still to be rendered; its group is the number of the note."""
_PRIVATE = regex("[\ue000\ue001]")
_ADDRESS = regex(r"\]\([^()\s]*$")
"""Before a figure within the address of a link."""


@frozen
class Footnote:
    """``number`` counts in the document."""

    number: int
    figure: str
    label: str
    text: str


@frozen
class AnswerNotes:
    """The answer's ``text`` with marks, its notes, and a ``summary`` of the figures."""

    text: str
    notes: tuple[Footnote, ...]
    summary: str


class Footnotes:
    """Numbers the notes of one document. ``safe`` takes secrets and what must not be painted out of a text."""

    def __init__(self, safe: Callable[[str], str]) -> None:
        self._safe = safe
        self._next = 1

    def of(self, text: str, report: FigureReport) -> AnswerNotes:
        """The notes of one answer. Nothing is marked in a text from which a secret was taken: its places moved."""
        shown = self._safe(text)
        marks = shown == text and not _PRIVATE.search(text)
        notes: list[Footnote] = []
        parts: list[str] = []
        at = 0
        for number, verdict in islice(enumerate(report.verdicts, self._next), MOST):
            notes.append(self._note(number, verdict, report))
            if marks and not _ADDRESS.search(text, max(0, verdict.start - 200), verdict.start):
                parts += [text[at : verdict.end], f"\ue000{number}\ue001"]
                at = verdict.end
        self._next += len(notes)
        return AnswerNotes("".join(parts) + shown[at:], tuple(notes), " · ".join(report.parts))

    def _note(self, number: int, verdict: FigureVerdict, report: FigureReport) -> Footnote:
        stale: Sequence[str] = [Path(path).name for path in report.stale_files(verdict)]
        changed = f" (changed since: {', '.join(stale)})" if stale else ""
        reason = one_line(self._safe(f"{verdict.reason}{changed}"), 500)
        return Footnote(number, one_line(self._safe(verdict.text), 80), verdict.label, reason)
