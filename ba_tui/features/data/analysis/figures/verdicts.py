"""The verdict on every figure of an answer: sourced, derived, given, unsourced or not checked, each with its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal, TypeAlias

from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.figures.answers.apart import Apart
from ba_tui.features.data.analysis.figures.answers.extract import Figure

Label: TypeAlias = Literal["sourced", "derived", "given", "unsourced", "unchecked"]
DROPPED = "older results are not held any more"
"""Why a figure is not checked that is in none of the newest results of a long session."""
PERSON = "P"
"""Stands for the person where a call is named."""


@frozen
class Source:
    """A number of the evidence: the call that returned it (``P`` for the person, with the ``turn`` of the words, from
    1), its place in that text (0 to 0 for a result that came as values, whose row is ``line``), the name of its column
    and the label of its row."""

    call: str
    start: int
    end: int
    value: float
    column: str = ""
    row: str = ""
    turn: int = 0
    line: int = -1


@frozen
class Derivation:
    """How a figure was worked out: the operation (``pct``, ``share``, ``sum`` …), its operands (of each sum or
    mean the first 100), and its exact result in the figure's unit. ``text`` reads like
    ``pct(R1[1025], R1[521]) = 96.737``."""

    operation: str
    operands: tuple[Source, ...]
    value: float
    text: str


@frozen
class Verdict:
    """What was found for a figure. A sourced or given one has a source; ``conversion`` is by what its value is
    multiplied. ``odds`` say how many times as probable as an accident the explanations together are; ``note`` says
    why a figure was not checked, or that it repeats one of an earlier answer, whose reason it then has."""

    figure: Figure
    label: Label
    sources: tuple[Source, ...] = ()
    conversion: float = 1.0
    derivation: Derivation | None = None
    odds: float = 0.0
    note: str = ""

    @property
    def unfounded(self) -> bool:
        """Whether nothing was found that the figure comes from."""
        return self.label == "unsourced" or self.note == DROPPED

    @property
    def calls(self) -> tuple[str, ...]:
        """The calls that the figure comes from, each once, the person left out."""
        found = self.derivation.operands if self.derivation else self.sources
        return tuple(dict.fromkeys(source.call for source in found if source.call != PERSON))


@frozen
class Checked:
    """An answer's figures with their verdicts, and what in it has digits and is no figure, both in order. ``partly``
    names the calls whose results were too long to be read whole, ``unread`` counts the numbers that were not looked
    at."""

    verdicts: tuple[Verdict, ...]
    apart: tuple[Apart, ...]
    partly: tuple[str, ...] = ()
    unread: int = 0

    @property
    def counts(self) -> Mapping[str, int]:
        """How many figures have each label."""
        return Counter(verdict.label for verdict in self.verdicts)
