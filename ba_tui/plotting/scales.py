"""Axes: the positions of their ticks, and labels for numbers and times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias

from ba_tui.core.values import frozen

TimeUnit: TypeAlias = Literal["second", "minute", "hour", "day", "week", "month", "quarter", "year"]
UNIT_SECONDS: dict[TimeUnit, float] = {
    "second": 1,
    "minute": 60,
    "hour": 3_600,
    "day": 86_400,
    "week": 7 * 86_400,
    "month": 30.44 * 86_400,
    "quarter": 91.31 * 86_400,
    "year": 365.25 * 86_400,
}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STEPS = (1.0, 2.0, 5.0, 10.0)
_TIME_STEPS: tuple[tuple[TimeUnit, int], ...] = (
    *(("second", count) for count in (1, 5, 15, 30)),
    *(("minute", count) for count in (1, 5, 15, 30)),
    *(("hour", count) for count in (1, 3, 6, 12)),
    *(("day", count) for count in (1, 2)),
    ("week", 1),
    *(("month", count) for count in (1, 2, 3, 6)),
    *(("year", count) for count in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)),
)


@frozen
class Scale:
    """An axis from ``low`` to ``high`` with ``ticks`` and their ``labels``; ``log``: logarithmic."""

    low: float
    high: float
    ticks: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()
    log: bool = False

    def share(self, value: float) -> float:
        """Return the position of ``value``, from 0 at ``low`` to 1 at ``high``; outside the axis beyond that."""
        if self.log:
            if value <= 0:
                return -1.0
            low, high = math.log10(self.low), math.log10(self.high)
            return (math.log10(value) - low) / ((high - low) or 1.0)
        return (value - self.low) / ((self.high - self.low) or 1.0)


def nice_step(span: float, count: int) -> float:
    """Return a step of 1, 2 or 5 times a power of ten, of which at most ``count`` fit into ``span``."""
    if not span > 0:
        return 1.0
    rough = span / max(1, count)
    power = 10.0 ** math.floor(math.log10(rough))
    return power * next((each for each in _STEPS if rough <= power * each * (1 + 1e-9)), 10.0)


def number_scale(low: float, high: float, count: int, *, log: bool = False) -> Scale:
    """Return an axis of numbers from ``low`` to ``high``, extended to whole steps."""
    if log:
        return _log_scale(low, high, count)
    if low == high:
        around = 0.5 if low == 0 else abs(low) / 2
        low, high = low - around, high + around
    step = nice_step(high - low, count)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(each * step for each in range(first, last + 1))
    return Scale(ticks[0], ticks[-1], ticks, tuple(number_label(each, step) for each in ticks))


def value_range_scale(low: float, high: float, count: int, *, plain: bool = False) -> Scale:
    """Return an axis exactly from ``low`` to ``high`` with ticks inside: for positions, not for amounts."""
    if low == high:
        return Scale(low - 0.5, high + 0.5, (low,), (number_label(low, 1 if low == int(low) else 0, plain=plain),))
    step = nice_step(high - low, count)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    ticks = tuple(each * step for each in range(first, last + 1))
    return Scale(low, high, ticks, tuple(number_label(each, step, plain=plain) for each in ticks))


def _log_scale(low: float, high: float, count: int) -> Scale:
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    last = max(last, first + 1)
    every = max(1, math.ceil((last - first) / max(1, count)))
    ticks = tuple(10.0**each for each in range(first, last + 1, every))
    return Scale(10.0**first, 10.0**last, ticks, tuple(number_label(each, each) for each in ticks), log=True)


def number_label(value: float, step: float = 0, *, plain: bool = False) -> str:
    """Return ``value`` with thousands separators and the precision of ``step``; without a step, at most six digits."""
    if value == 0 or abs(value) < abs(step) * 1e-6:
        return "0"
    size = max(abs(value), abs(step))
    if size >= 1e15 or size < 1e-4:
        return f"{value:.3g}"
    for limit, power, name in ((1e12, 1e12, "T"), (1e9, 1e9, "bn"), (1e7, 1e6, "M")):
        if size >= limit and not plain:
            return f"{_trimmed(value / power, step / power)}{name}"
    text = _trimmed(value, step)
    return text.replace(",", "") if plain else text


def _trimmed(value: float, step: float) -> str:
    if not step:
        whole = len(f"{abs(value):.0f}")
        text = f"{value:,.{max(0, 6 - whole) if value != round(value) else 0}f}"
    else:
        text = f"{value:,.{max(0, -math.floor(math.log10(abs(step)) + 1e-9))}f}"
        if "." not in text:
            return text
    return text.rstrip("0").rstrip(".") if "." in text else text


def time_scale(low: float, high: float, count: int) -> Scale:
    """Return an axis of times, in seconds since the epoch, with ticks at the start of days, months or years."""
    if low == high:
        return Scale(low - 0.5, high + 0.5, (low,), (time_label(low, unit_of((low,))),))
    unit, every = next(
        (each for each in _TIME_STEPS if (high - low) / (UNIT_SECONDS[each[0]] * each[1]) <= max(1, count)),
        _TIME_STEPS[-1],
    )
    ticks = tuple(_ticks(low, high, unit, every))
    return Scale(low, high, ticks, tuple(time_label(each, unit) for each in ticks))


def _ticks(low: float, high: float, unit: TimeUnit, every: int) -> Sequence[float]:
    at = _floor(moment(low), unit, every)
    found: list[float] = []
    while len(found) < 1_000:
        seconds = (at - EPOCH).total_seconds()
        if seconds > high:
            break
        if seconds >= low:
            found.append(seconds)
        try:
            at = _after(at, unit, every)
        except (ValueError, OverflowError):
            break
    return found


def moment(seconds: float) -> datetime:
    """Return the time of a position on a time axis, limited to the years 1 to 9999."""
    try:
        return EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if seconds > 0 else datetime.min.replace(tzinfo=UTC)


def _floor(at: datetime, unit: TimeUnit, every: int) -> datetime:
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "year":
            return day.replace(year=max(1, at.year - at.year % every), month=1, day=1)
        case "month":
            return day.replace(month=at.month - (at.month - 1) % every, day=1)
        case "week":
            return day - timedelta(days=day.weekday()) if day.toordinal() > 7 else day
        case "day":
            return day
        case _:
            size = UNIT_SECONDS[unit] * every
            return day + timedelta(seconds=size * (((at - day).total_seconds()) // size))


def _after(at: datetime, unit: TimeUnit, every: int) -> datetime:
    match unit:
        case "year":
            return at.replace(year=at.year + every)
        case "month":
            month = at.month - 1 + every
            return at.replace(year=at.year + month // 12, month=month % 12 + 1)
        case _:
            return at + timedelta(seconds=UNIT_SECONDS[unit] * every)


def time_label(seconds: float, unit: TimeUnit) -> str:
    """Return a time with the precision of ``unit``: ``2026``, ``2026 Q3``, ``2026-07``, ``2026-07-14``, ``07-14
    08:00``."""
    at = moment(seconds)
    match unit:
        case "year":
            return f"{at.year:04}"
        case "quarter":
            return f"{at.year:04} Q{(at.month + 2) // 3}"
        case "month":
            return f"{at:%Y-%m}"
        case "week" | "day":
            return f"{at:%Y-%m-%d}"
        case "hour" | "minute":
            return f"{at:%m-%d %H:%M}"
        case "second":
            return f"{at:%H:%M:%S}"


def unit_of(times: Sequence[float]) -> TimeUnit:
    """Return the coarsest unit at whose start all ``times`` are."""
    found = [moment(each) for each in times]
    if any(each.second or each.microsecond for each in found):
        return "second"
    if any(each.hour or each.minute for each in found):
        return "hour" if all(not each.minute for each in found) else "minute"
    if any(each.day != 1 for each in found):
        return "day"
    return "month" if any(each.month != 1 for each in found) or len(found) < 2 else "year"
