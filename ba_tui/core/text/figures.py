"""Verdicts on the figures (numbers) of an answer, and footnotes that name the source of each figure.

Pure values. ``ba_tui.features.figures`` judges the figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal, TypeAlias

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count, one_line
from ba_tui.core.values import frozen

FigureLabel: TypeAlias = Literal["sourced", "derived", "given", "misplaced", "unsourced", "unchecked"]
YOU = "you"
"""The source name of numbers that the user gave."""
LABELS: tuple[FigureLabel, ...] = ("sourced", "derived", "given", "misplaced", "unsourced", "unchecked")
DOUBTFUL: tuple[FigureLabel, ...] = ("misplaced", "unsourced")
"""Labels of figures that nothing supports at their place."""
NO_RESULT = "no result to check against"
"""The note of figures in a session in which no tool returned anything."""


@frozen
class SourceFile:
    """State of a file when a query read it. ``path`` is absolute, ``size`` in bytes."""

    path: str
    size: int
    mtime_ns: int


@frozen
class FigureSource:
    """A number that a figure comes from.

    ``name`` is the source: ``R1`` (a result), ``shell#2`` (the second call of a tool in the session), ``you`` or
    ``file``. ``call`` is the call id, empty for words of the user. ``start`` and ``end`` are the position in the result
    text, 0 and 0 for a cell of a result table; ``column``, ``line`` (from 0) and the row label ``row`` then identify
    the cell.
    """

    name: str
    value: float
    call: str = ""
    start: int = 0
    end: int = 0
    column: str = ""
    row: str = ""
    line: int = -1

    @property
    def where(self) -> str:
        """Return the source for people: ``R1 · revenue · March``."""
        return " · ".join(part for part in (self.name, self.column, self.row) if part)


@frozen
class FigureVerdict:
    """A figure of an answer, at ``start`` to ``end`` in code points, and the verdict on it. ``value`` is None if no
    float can represent it. ``derivation`` reads like ``pct(R1[1025], R1[521]) = 96.737``. ``files`` are indexes into
    ``FigureReport.files``: the files that its sources were read from."""

    text: str
    start: int
    end: int
    label: FigureLabel
    value: float | None = None
    unit: str = ""
    sources: tuple[FigureSource, ...] = ()
    derivation: str = ""
    note: str = ""
    files: tuple[int, ...] = ()

    @property
    def reason(self) -> str:
        """Return one line that says where the figure comes from."""
        if self.label == "misplaced":
            return _places(*self.sources)
        if self.derivation:
            return self.derivation
        if self.sources:
            return "your words" if self.sources[0].name == YOU else self.sources[0].where
        return self.note or "nothing in this session supports it"


def _places(found: FigureSource, named: FigureSource) -> str:
    """Return the row or column of a misplaced figure, and the value of the one that the sentence names."""
    mine, other = (found.column, named.column) if found.row == named.row else (found.row, named.row)
    if found.row != named.row and found.column != named.column:
        mine, other = f"{found.row}, {found.column}", f"{named.row}, {named.column}"
    return f"this is {mine}; {other} is {named.value:,.15g} ({named.name})"


@frozen
class FigureReport:
    """The figures of one answer, in order. ``partly`` names results that were too long to read in full, ``unread``
    counts numbers of the answer that were skipped, ``changed`` lists files that changed since they were read."""

    verdicts: tuple[FigureVerdict, ...] = ()
    partly: tuple[str, ...] = ()
    unread: int = 0
    files: tuple[SourceFile, ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def counts(self) -> Counter[str]:
        """Return the number of figures by label."""
        return Counter(verdict.label for verdict in self.verdicts)

    @property
    def doubtful(self) -> Sequence[FigureVerdict]:
        """Return the figures that nothing supports at their place."""
        return [verdict for verdict in self.verdicts if verdict.label in DOUBTFUL]

    @property
    def is_empty(self) -> bool:
        """Return whether there is no result to check figures against, apart from the user's words."""
        return all(verdict.note == NO_RESULT or verdict.label == "given" for verdict in self.verdicts)

    @property
    def unsupported(self) -> Sequence[FigureVerdict]:
        """Return the figures of an answer for which there is no result to check them against."""
        return [verdict for verdict in self.verdicts if verdict.note == NO_RESULT]

    @property
    def skipped(self) -> int:
        """Return how many figures were not judged because the answer has too many."""
        return self.counts["unchecked"] + self.unread

    @property
    def parts(self) -> Sequence[str]:
        """Return the parts of a footer line, such as ``12 figures`` and ``9 sourced``."""
        counts = self.counts
        parts = [count(len(self.verdicts), "figure"), *(f"{counts[each]} {each}" for each in LABELS if counts[each])]
        if self.unread:
            parts.append(f"{self.unread:,} more not read")
        if self.partly:
            parts.append(f"{count(len(self.partly), 'long result')} read in part")
        if stale := sum(map(self.stale, self.verdicts)):
            parts.append(f"{stale} from a file that changed since")
        return parts

    def stale(self, verdict: FigureVerdict) -> bool:
        """Return whether a file behind the figure changed since it was read."""
        return any(self.files[at].path in self.changed for at in verdict.files)

    def stale_files(self, verdict: FigureVerdict) -> Sequence[str]:
        """Return the paths of the files behind the figure that changed since they were read."""
        return [self.files[at].path for at in verdict.files if self.files[at].path in self.changed]


MOST = 500
"""Maximum number of footnotes for one answer."""
MARK = regex("\ue000([0-9]+)\ue001")
"""A footnote mark in text that is not rendered yet; the group is the footnote number."""
_PRIVATE = regex("[\ue000\ue001]")
_ADDRESS = regex(r"\]\([^()\s]*$")
"""Matches before a figure inside a link target."""
_HANDLE = regex(r"\bR[1-9][0-9]*\b")
_SIGNS = regex(r"[\\`*_\[\]<>|]")


@frozen
class Footnote:
    """A footnote. ``number`` is unique in the document. ``results`` are the handles, such as R1, that the figure comes
    from."""

    number: int
    figure: str
    label: str
    text: str
    results: tuple[str, ...] = ()

    def linked(self, text: str, link: str, known: Collection[str]) -> str:
        """Return ``text`` with its ``known`` results as links. ``link`` is a format with {0} for R1 and {1} for r1."""
        named = {*self.results} & {*known}
        return _HANDLE.sub(
            lambda found: link.format(found[0], found[0].lower()) if found[0] in named else found[0], text
        )


@frozen
class AnswerNotes:
    """An answer's ``text`` with marks, its footnotes, and a ``summary`` of its figures."""

    text: str
    notes: tuple[Footnote, ...] = ()
    summary: str = ""

    def marked(self, mark: str) -> str:
        """Return the text with ``mark`` after each figure; ``\\1`` in ``mark`` is the footnote number."""
        return MARK.sub(mark, self.text).strip()


class Footnotes:
    """Number the footnotes of one document. ``safe`` removes secrets and unsafe characters from a text."""

    def __init__(self, safe: Callable[[str], str]) -> None:
        self._safe = safe
        self._next = 1

    def of(self, text: str, report: FigureReport) -> AnswerNotes:
        """Return the footnotes of one answer. If ``safe`` changed the text, positions moved and no marks are set."""
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
    """Yield the lines of an answer with its footnotes in Markdown; ``known`` results become links."""
    yield found.marked(r"[^\1]")
    yield from notes_in_markdown(found, known, "[^{}]: ")


def notes_in_text(found: AnswerNotes) -> Iterator[str]:
    """Yield only the footnotes, as plain lines."""
    if found.notes:
        yield from ("", f"Figures: {found.summary}")
    yield from (f"[{note.number}] {note.figure} {note.label}: {note.text}" for note in found.notes)


def notes_in_markdown(found: AnswerNotes, known: Collection[str], lead: str) -> Iterator[str]:
    """Yield only the footnotes in Markdown, each after ``lead``, in which {} is its number."""
    if not found.notes:
        return
    yield from ("", f"*Figures: {found.summary}*", "")
    for note in found.notes:
        label = f"**{note.label}**" if note.label in DOUBTFUL else note.label
        # Source names may contain characters that Markdown would interpret.
        text = note.linked(_SIGNS.sub(r"\\\g<0>", note.text), "[{0}](#{1})", known)
        yield f"{lead.format(note.number)}`{note.figure}` {label}: {text}"
