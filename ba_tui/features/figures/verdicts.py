"""Verdicts on the figures of an answer: sourced, derived, given, unsourced or not checked, each with its reason; and
their JSON form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal, TypeAlias

from ba_tui.core.values import frozen
from ba_tui.features.figures.extract import Figure
from ba_tui.features.figures.outline import Apart

Label: TypeAlias = Literal["sourced", "derived", "given", "misplaced", "unsourced", "unchecked"]
DROPPED = "older results are not held any more"
"""Why a figure in none of the newest results of a long session is not checked."""
PERSON = "P"
"""Represents the user in place of a call."""


@frozen
class VerdictSource:
    """A number of the evidence: its call (``P`` for the user, with the ``turn`` of the words, from 1), its place in
    that text (0 to 0 for a result of values, whose row is ``line``), the name of its column and the label of its
    row."""

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
    """The derivation of a figure: the operation (``pct``, ``share``, ``sum`` …), its operands (the first 100 of each
    sum or mean), and the exact result in the figure's unit. ``text`` looks like ``pct(R1[1025], R1[521]) = 96.737``."""

    operation: str
    operands: tuple[VerdictSource, ...]
    value: float
    text: str


@frozen
class Verdict:
    """The verdict on a figure. A sourced or given one has a source; its value is multiplied by ``conversion``. ``odds``
    compare the explanations with a coincidence; ``note`` says why a figure was not checked, or that it repeats one
    of an earlier answer and shares its reason."""

    figure: Figure
    label: Label
    sources: tuple[VerdictSource, ...] = ()
    conversion: float = 1.0
    derivation: Derivation | None = None
    odds: float = 0.0
    note: str = ""

    @property
    def unfounded(self) -> bool:
        """Whether no source of the figure was found."""
        return self.label == "unsourced" or self.note == DROPPED

    @property
    def origins(self) -> tuple[VerdictSource, ...]:
        """The numbers that the figure repeats or is derived from."""
        return self.derivation.operands if self.derivation else self.sources

    @property
    def calls(self) -> tuple[str, ...]:
        """The distinct calls that the figure comes from, without the user."""
        return tuple(dict.fromkeys(source.call for source in self.origins if source.call != PERSON))


@frozen
class CheckedAnswer:
    """The figures of an answer with verdicts, and its other digits, both in order. ``partly`` names calls whose results
    were too long to read completely; ``unread`` is the number of figures not examined."""

    verdicts: tuple[Verdict, ...]
    apart: tuple[Apart, ...]
    partly: tuple[str, ...] = ()
    unread: int = 0

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of figures with each label."""
        return Counter(verdict.label for verdict in self.verdicts)


# Verdicts as JSON, printed by ``ba verify --json``.


def verdicts_json(checked: CheckedAnswer) -> dict[str, Any]:
    """Return the figures of an answer in order, its other digits, and ``counts`` by label.

    ``start`` and ``end`` are offsets in code points. ``source`` lists the calls, ``sources`` the numbers used.
    """
    figures = [_verdict(verdict) for verdict in checked.verdicts]
    figures += [
        {"start": each.start, "end": each.end, "label": "not_a_figure", "note": each.reason} for each in checked.apart
    ]
    found: dict[str, Any] = {
        "figures": sorted(figures, key=lambda figure: figure["start"]),
        "counts": dict(checked.counts),
    }
    if checked.partly:
        found["partly_read"] = list(checked.partly)
    if checked.unread:
        found["not_read"] = checked.unread
    return found


def _verdict(verdict: Verdict) -> dict[str, Any]:
    figure = verdict.figure
    found: dict[str, Any] = {
        "text": figure.text,
        "start": figure.start,
        "end": figure.end,
        "value": _number(figure.value),
        "unit": figure.unit.family if figure.unit else "",
        "label": verdict.label,
        "source": list(verdict.calls),
        "sources": [_source(source) for source in verdict.sources],
        "derivation": verdict.derivation.text if verdict.derivation else None,
    }
    if verdict.derivation:
        found["sources"] = [_source(source) for source in verdict.derivation.operands]
    if verdict.conversion != 1.0:
        found["conversion"] = verdict.conversion
    if verdict.note:
        found["note"] = verdict.note
    return found


def _source(source: VerdictSource) -> dict[str, Any]:
    found: dict[str, Any] = {"call": source.call, "value": source.value}
    if source.end:
        found |= {"start": source.start, "end": source.end}
    if source.column:
        found["column"] = source.column
    if source.row:
        found["row"] = source.row
    return found


def _number(value: Decimal) -> float | int | None:
    """Return a JSON number; None for one that exceeds a float."""
    if not value.is_finite() or abs(value) > Decimal("1e300"):
        return None
    return int(value) if value == value.to_integral_value() and abs(value) < 10**15 else float(value)
