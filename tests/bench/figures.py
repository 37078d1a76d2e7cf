"""Figures and the table they stand in. How a figure is measured is the business of its family's file."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """``value`` in ``unit`` must be at most ``limit``; ``target`` says how the limit came about, floors included."""

    name: str
    value: float
    unit: str
    limit: float
    target: str = ""

    @property
    def holds(self) -> bool:
        return self.value <= self.limit


@dataclass(frozen=True, slots=True)
class Effort:
    """How often things are repeated, and for how long things are watched."""

    starts: int = 7
    steps: int = 1_000
    watch: float = 20.0
    keys: int = 40


QUICK = Effort(starts=3, steps=200, watch=6.0, keys=12)
Family = Callable[[Effort], Iterable[Figure]]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def p95(values: Sequence[float]) -> float:
    return sorted(values)[max(0, round(len(values) * 0.95) - 1)]


def shown(value: float, unit: str) -> str:
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 3
    return f"{value:,.{digits}f} {unit}".strip()


def line(figure: Figure) -> str:
    """One row of the Markdown table."""
    if figure.limit == float("inf"):
        return f"| {figure.name} | {shown(figure.value, figure.unit)} | | |"
    verdict = "yes" if figure.holds else "**no**"
    limit = shown(figure.limit, figure.unit)
    target = f"≤ {limit} ({figure.target})" if figure.target else f"≤ {limit}"
    return f"| {figure.name} | {shown(figure.value, figure.unit)} | {target} | {verdict} |"


HEAD = "| figure | measured | target | holds |\n|---|---|---|---|"


def _finite(limit: float) -> float | None:
    return None if limit == float("inf") else limit


def as_json(figures: Iterable[Figure]) -> str:
    return json.dumps(
        [{**asdict(figure), "limit": _finite(figure.limit), "holds": figure.holds} for figure in figures], indent=2
    )
