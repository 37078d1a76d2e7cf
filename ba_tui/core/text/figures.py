"""The verdicts on the figures of an answer, as every face shows them: where each figure comes from.

Pure values. How figures are judged stands in ``ba_tui.features.data.analysis``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, TypeAlias

from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen

FigureLabel: TypeAlias = Literal["sourced", "derived", "given", "unsourced", "unchecked"]
YOU = "you"
"""The name of the person's words as a source."""
LABELS: tuple[FigureLabel, ...] = ("sourced", "derived", "given", "unsourced", "unchecked")


@frozen
class SourceFile:
    """A file as it was when a query read it. ``path`` is absolute, ``size`` in bytes."""

    path: str
    size: int
    mtime_ns: int


@frozen
class FigureSource:
    """A number that a figure comes from.

    ``name`` says where it stands: ``R1``, ``shell#2`` (the second call of a tool in the session), ``you``, ``file``.
    ``call`` is the id of the call, empty for words. ``start`` and ``end`` are its place in the text of the result,
    0 to 0 for a cell of a result table, whose ``column`` and ``line`` (from 0) name it; ``row`` is the row's label.
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
        """Its place in words: ``R1 · revenue · March``."""
        return " · ".join(part for part in (self.name, self.column, self.row) if part)


@frozen
class FigureVerdict:
    """A figure of an answer: its ``text`` from ``start`` to ``end`` (code points of the answer), and what was found.

    ``value`` is None where no float can hold it. ``derivation`` reads like ``pct(R1[1025], R1[521]) = 96.737``.
    ``files``: those that its sources were read from, as places in ``FigureReport.files``.
    """

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
        """One line on where it comes from."""
        if self.derivation:
            return self.derivation
        if self.sources:
            return "your words" if self.sources[0].name == YOU else self.sources[0].where
        return self.note or "nothing in this session supports it"


@frozen
class FigureReport:
    """The figures of one answer in order. ``partly`` names results that were too long to be read whole, ``unread``
    counts numbers of the answer that were not looked at, ``changed`` the files that are not what they were."""

    verdicts: tuple[FigureVerdict, ...] = ()
    partly: tuple[str, ...] = ()
    unread: int = 0
    files: tuple[SourceFile, ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def counts(self) -> Counter[str]:
        """How many figures have each label."""
        return Counter(verdict.label for verdict in self.verdicts)

    @property
    def unsourced(self) -> Sequence[FigureVerdict]:
        return [verdict for verdict in self.verdicts if verdict.label == "unsourced"]

    @property
    def skipped(self) -> int:
        """How many figures were not judged, because the answer has too many."""
        return self.counts["unchecked"] + self.unread

    @property
    def parts(self) -> Sequence[str]:
        """``12 figures``, ``9 sourced``, … and what else is to be known, for a footer."""
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
        """Whether a file that the figure comes from changed since it was read."""
        return any(self.files[at].path in self.changed for at in verdict.files)

    def stale_files(self, verdict: FigureVerdict) -> Sequence[str]:
        """The paths of those files."""
        return [self.files[at].path for at in verdict.files if self.files[at].path in self.changed]
