"""The periods of a series: how long one is, which are missing, and which come next. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Literal, TypeAlias

from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen

Step: TypeAlias = Literal["day", "weekday", "week", "month", "quarter", "year"]
SEASONS: Mapping[Step, int] = {"day": 7, "weekday": 5, "week": 52, "month": 12, "quarter": 4, "year": 1}
"""Periods after which a pattern may repeat."""
_MONTHS: Mapping[Step, int] = {"month": 1, "quarter": 3, "year": 12}
_LONGEST: tuple[tuple[float, Step], ...] = ((1.7, "day"), (10, "week"), (50, "month"), (200, "quarter"))
"""Days from one date to the next, up to which a series is of such periods."""
LEAST = 10
"""Periods that a forecast needs."""
SHOWN_GAPS = 5


@frozen
class Point:
    """One period by its first day; ``value`` is None where it has none."""

    period: date
    value: float | None


def step_of(first: date, last: date, dates: int) -> Step:
    """The length of a period of a series with so many different ``dates``."""
    days = (last - first).days / max(1, dates - 1)
    for longest, step in _LONGEST:
        if days <= longest:
            return step
    return "year"


def following(period: date, step: Step) -> date:
    """The first day of the next period."""
    if step == "day":
        return period + timedelta(1)
    if step == "weekday":
        return period + timedelta(3 if period.weekday() == 4 else 1)
    if step == "week":
        return period + timedelta(7)
    months = period.year * 12 + period.month - 1 + _MONTHS[step]
    return date(months // 12, months % 12 + 1, 1)


def whole_periods(points: Sequence[Point], last_day: date, dates: int, step: Step) -> tuple[Sequence[Point], str]:
    """``points`` without a last period that is not over yet, and a sentence about it; empty when it is whole.

    ``last_day`` is the last date of the rows; a series of one date a period has only whole ones.
    """
    if not points or dates <= len(points) or step in {"day", "weekday"}:
        return points, ""
    end = following(points[-1].period, step) - timedelta(1)
    # Rows of working days may end a few days early.
    if end - last_day <= timedelta(3):
        return points, ""
    return points[:-1], f"The period from {points[-1].period} is left out: its rows end on {last_day}, before {end}."


def of_weekdays(points: Sequence[Point]) -> bool:
    """Whether a series of days has no Saturday and no Sunday."""
    return len(points) > SEASONS["weekday"] and all(point.period.weekday() < SEASONS["weekday"] for point in points)


def trouble(points: Sequence[Point], step: Step, ahead: int) -> str:
    """Why no forecast can be made of ``points``; empty when one can."""
    if len(points) < LEAST:
        return f"The series has {count(len(points), step)}; a forecast needs at least {LEAST}."
    if ahead > len(points) // 2:
        most = count(len(points) // 2, step)
        return f"{count(ahead, step)} ahead is too far for {len(points):,} of history: at most {most}."
    if gaps := list(_gaps(points, step)):
        shown = ", ".join(map(str, gaps[:SHOWN_GAPS])) + (" …" if len(gaps) > SHOWN_GAPS else "")
        return f"The series has {count(len(gaps), 'gap')}: no value for the {step} of {shown}."
    return ""


def _gaps(points: Sequence[Point], step: Step) -> Iterator[date]:
    known = {point.period for point in points if point.value is not None}
    period = points[0].period
    while period <= points[-1].period:
        if period not in known:
            yield period
        period = following(period, step)
