"""The figures of an answer as footnotes: a mark behind each figure, and a note of where it comes from.

Pure values, and how they read in Markdown. How they look on a page is the business of whoever makes one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path

from ba_tui.core.text.figures import FigureReport, FigureVerdict
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen

MOST = 500
"""Figures of one answer that get a note."""
MARK = regex("\ue000([0-9]+)\ue001")
"""A mark in a text that is still to be rendered; its group is the number of the note."""
_PRIVATE = regex("[\ue000\ue001]")
_ADDRESS = regex(r"\]\([^()\s]*$")
"""Before a figure within the address of a link."""
_HANDLE = regex(r"\bR[1-9][0-9]*\b")
_SIGNS = regex(r"[\\`*_\[\]<>|]")


@frozen
class Footnote:
    """``number`` counts in the document. ``results``: the results, as R1, that the figure comes from."""

    number: int
    figure: str
    label: str
    text: str
    results: tuple[str, ...] = ()

    def linked(self, text: str, link: str, known: Collection[str]) -> str:
        """``text``, with its results that are ``known`` as links: ``link`` has {0} for R1 and {1} for r1."""
        named = {*self.results} & {*known}
        return _HANDLE.sub(
            lambda found: link.format(found[0], found[0].lower()) if found[0] in named else found[0], text
        )


@frozen
class AnswerNotes:
    """The answer's ``text`` with marks, its notes, and a ``summary`` of the figures."""

    text: str
    notes: tuple[Footnote, ...] = ()
    summary: str = ""

    def marked(self, mark: str) -> str:
        """The text with ``mark``, in which ``\\1`` is the number, behind each figure."""
        return MARK.sub(mark, self.text).strip()


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
        results = dict.fromkeys(each.name for each in verdict.sources if _HANDLE.fullmatch(each.name))
        return Footnote(number, one_line(self._safe(verdict.text), 80), verdict.label, reason, tuple(results))


def noted(found: AnswerNotes, known: Collection[str] = ()) -> Iterator[str]:
    """The lines of an answer with its footnotes in Markdown; results that are ``known`` are links."""
    yield found.marked(r"[^\1]")
    yield from notes_in_markdown(found, known, "[^{}]: ")


def notes_in_text(found: AnswerNotes) -> Iterator[str]:
    """The notes alone, as plain lines."""
    if found.notes:
        yield from ("", f"Figures: {found.summary}")
    yield from (f"[{note.number}] {note.figure} {note.label}: {note.text}" for note in found.notes)


def notes_in_markdown(found: AnswerNotes, known: Collection[str], lead: str) -> Iterator[str]:
    """The notes alone, each after ``lead``, in which {} is its number."""
    if not found.notes:
        return
    yield from ("", f"*Figures: {found.summary}*", "")
    for note in found.notes:
        label = f"**{note.label}**" if note.label == "unsourced" else note.label
        # Nothing that a source is called is Markdown.
        text = note.linked(_SIGNS.sub(r"\\\g<0>", note.text), "[{0}](#{1})", known)
        yield f"{lead.format(note.number)}`{note.figure}` {label}: {text}"
