"""Verdicts as JSON values: the shape that ``ba verify --json`` prints."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from ba_tui.features.data.analysis.figures.answers.extract import Figure
from ba_tui.features.data.analysis.figures.verdicts import Checked, Source, Verdict


def serialized(checked: Checked) -> dict[str, Any]:
    """The figures of an answer in order, with what has digits and is no figure; ``counts`` by label.

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
        "unit": _unit(figure),
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


def _source(source: Source) -> dict[str, Any]:
    found: dict[str, Any] = {"call": source.call, "value": source.value}
    if source.end:
        found |= {"start": source.start, "end": source.end}
    if source.column:
        found["column"] = source.column
    if source.row:
        found["row"] = source.row
    return found


def _unit(figure: Figure) -> str:
    return figure.unit.family if figure.unit else ""


def _number(value: Decimal) -> float | int | None:
    """A JSON number; None for one that no float can hold."""
    if not value.is_finite() or abs(value) > Decimal("1e300"):
        return None
    return int(value) if value == value.to_integral_value() and abs(value) < 10**15 else float(value)
