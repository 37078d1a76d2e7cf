"""Bars: upright ones for times and short names, lying ones for long names, and the bins of a histogram."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.core.displays.charts import Chart
from ba_tui.plotting.canvas import SERIES, Canvas, Line, Role, Room, Run, Signs, fitted, safe, width_of
from ba_tui.plotting.frame import canvas_for, framed
from ba_tui.plotting.scales import Scale, number_label, number_scale

LONGEST_NAME = 30
WIDEST = 12
"""Columns of one upright bar."""
LEAST = 8
"""Rows of the smallest upright bars."""


def bars_of(chart: Chart, room: Room, height: int) -> list[Line]:
    """The bars of each category; as upright ones where their names fit below them."""
    if chart.kind == "pie":
        return _lying(chart, room, height, shares=True)
    slot = (room.width - 14) // max(1, len(chart.labels))
    longest = max((width_of(safe(each)) for each in chart.labels), default=1)
    thick = 1 if chart.request.stacked else len(chart.series)
    if height >= LEAST and slot >= max(longest + 1, thick + 1):
        return _upright(chart, room, height - 2)
    return _lying(chart, room, height)


def histogram_of(chart: Chart, room: Room, height: int) -> list[Line]:
    """A bar for each bin, without gaps, on an axis of numbers."""
    bins, counts = chart.series[0].x, [value or 0.0 for value in chart.series[0].y]
    scale = _values([counts], chart, max(2, height // 3))
    canvas = canvas_for(room, scale, height)
    thick = max(1, canvas.width // max(1, len(bins)))
    canvas = Canvas(min(canvas.width, max(thick * len(bins) + 1, 12)), height, room.signs)
    for number, value in enumerate(counts):
        for column in range(number * thick, min(canvas.width, (number + 1) * thick)):
            _rise(canvas, column, scale, (0.0, value))
    every = max(1, (len(bins) * 12) // canvas.width + 1)
    edges = [*bins, bins[-1] + chart.step]
    below = [(at * thick, number_label(edges[at], chart.step)) for at in range(0, len(edges), every)]
    return framed(canvas, scale, below, room.signs)


def _values(series: Sequence[Sequence[float]], chart: Chart, count: int) -> Scale:
    """The axis of amounts, which begins at zero unless it is one of powers of ten."""
    found = [value for each in series for value in each]
    low, high = min(found, default=0.0), max(found, default=0.0)
    positive = [value for value in found if value > 0]
    if chart.request.log and positive:
        return number_scale(min(positive) / 2, max(positive), count, log=True)
    return number_scale(min(0.0, low), max(0.0, high) or (0.0 if low < 0 else 1.0), count)


def _table(chart: Chart) -> list[list[float | None]]:
    """The value of each series at each label."""
    found: list[list[float | None]] = []
    for series in chart.series:
        known = dict(zip(series.x, series.y, strict=True))
        found.append([known.get(place) for place in range(len(chart.labels))])
    return found


def _extent(table: Sequence[Sequence[float | None]], *, stacked: bool) -> list[list[float]]:
    """What the axis must hold: each value, or the sums of both signs where bars are stacked."""
    if not stacked:
        return [[value for value in each if value is not None] for each in table]
    columns = [[value for value in each if value is not None] for each in zip(*table, strict=True)]
    return [[sum(v for v in each if v > 0), sum(v for v in each if v < 0)] for each in columns]


def _upright(chart: Chart, room: Room, height: int) -> list[Line]:
    table = _table(chart)
    stacked, several = chart.request.stacked and len(table) > 1, len(table) > 1
    scale = _values(_extent(table, stacked=stacked), chart, max(2, height // 3))
    canvas = canvas_for(room, scale, height)
    slot = canvas.width // max(1, len(chart.labels))
    thick = max(1, min(WIDEST, (slot - 1) // (1 if stacked else len(table))))
    taken = thick * (1 if stacked else len(table))
    below: list[tuple[int, str]] = []
    for at, label in enumerate(chart.labels):
        start = at * slot + (slot - taken) // 2
        below.append((start + taken // 2, safe(label)))
        totals = [0.0, 0.0]
        for number, each in enumerate(table):
            value = each[at]
            if value is None:
                continue
            columns = (
                range(start, start + thick) if stacked else range(start + number * thick, start + (number + 1) * thick)
            )
            base = 0.0
            if stacked:
                base, value = totals[value < 0], totals[value < 0] + value
                totals[value < 0] = value
            for column in columns:
                _rise(canvas, column, scale, (base, value), number if several else None)
    _zero_line(canvas, scale, room)
    return framed(canvas, scale, below, room.signs)


def _rise(canvas: Canvas, column: int, scale: Scale, extent: tuple[float, float], series: int | None = None) -> None:
    """One column between the two values of ``extent``, up or down; eighths of a cell where there is no ``series``."""
    base, value = extent
    single, series = series is None, series or 0
    signs, role = canvas.signs, SERIES[series % len(SERIES)]
    fill = signs.fills[series % len(signs.fills)]
    start = max(0.0, min(1.0, scale.share(base))) * canvas.height
    end = max(0.0, min(1.0, scale.share(value))) * canvas.height
    if end >= start:
        exact = single and base == 0 and start == int(start)
        for row in range(round(start), int(end) if exact else round(end)):
            canvas.put(column, canvas.height - 1 - row, fill, role)
        step = round((end - int(end)) * (len(signs.rising) - 1))
        if exact and (step or (value > 0 and end - start < 1)):
            canvas.put(column, canvas.height - 1 - int(end), signs.rising[max(1, step)], role)
        return
    for row in range(round(end), max(round(start), round(end) + (not round(start)))):
        canvas.put(column, canvas.height - 1 - row, fill, role)


def _zero_line(canvas: Canvas, scale: Scale, room: Room) -> None:
    """A line at zero where bars go both ways, in cells that are free."""
    if scale.log or scale.low >= 0:
        return
    row = canvas.height - 1 - round(scale.share(0.0) * canvas.height)
    canvas.underline(max(0, row), room.signs.flat)


# Lying bars


def _lying(chart: Chart, room: Room, height: int, *, shares: bool = False) -> list[Line]:
    table = _table(chart)
    stacked = chart.request.stacked and len(table) > 1
    each = 1 if stacked else len(table)
    most = max(1, height // each)
    labels = chart.labels if room.grow or len(chart.labels) <= most else chart.labels[: max(1, (height - 1) // each)]
    names = [safe(label) for label in labels]
    size = min(LONGEST_NAME, max(8, room.width // 3), max(map(width_of, names), default=1))
    scale = _values(_extent(table, stacked=stacked), chart, 4)
    total = sum(value or 0.0 for value in table[0])
    lines: list[Line] = []
    for at, name in enumerate(names):
        values = [row[at] for row in table]
        if stacked:
            groups = [[(number, value) for number, value in enumerate(values) if value]]
        else:
            groups = [[(number, value)] for number, value in enumerate(values)]
        for place, group in enumerate(groups):
            label = fitted(name if not place else "", size, more=room.signs.more)
            lines.append(_bar((label, size), group, scale, room, total if shares else None))
    if left := len(chart.labels) - len(labels):
        lines.append((Run(f"{room.signs.more} {left:,} more", "dim"),))
    return lines


def _bar(
    label: tuple[str, int],
    group: Sequence[tuple[int, float | None]],
    scale: Scale,
    room: Room,
    total: float | None,
) -> Line:
    """One line: the name, the bar, and its value behind it."""
    text, size = label
    known = [value for _, value in group if value is not None]
    words = number_label(sum(known)) if known else "-"
    if total:
        words = f"{sum(known) / total:.1%}  {words}"
    wide = max(4, room.width - size - 3 - max(10, width_of(words) + 1))
    cells: list[tuple[str, Role]] = [(" ", "text")] * wide
    zero = 0 if scale.log else round(max(0.0, min(1.0, scale.share(0.0))) * wide)
    ends = [zero, zero]
    for number, value in group:
        if not value:
            continue
        side = int(value < 0)
        length = abs(scale.share(value) - (0.0 if scale.log else scale.share(0.0))) * wide
        alone = len(group) == 1 and number == 0
        _fill(cells, (ends[side], side), length, None if alone else number, room.signs)
        ends[side] += round(length) * (-1 if side else 1)
    if zero:
        cells.insert(zero, (room.signs.upright, "dim"))
    shown = "".join(sign for sign, _ in cells).rstrip()
    runs: list[Run] = [Run(text), Run(f" {room.signs.upright}", "dim")]
    for sign, role in cells[: len(shown)]:
        if runs[-1].role == role and len(runs) > 2:
            runs[-1] = Run(runs[-1].text + sign, role)
        else:
            runs.append(Run(sign, role))
    return (*runs, Run(f" {words}", "text"))


def _fill(
    cells: list[tuple[str, Role]], place: tuple[int, int], length: float, series: int | None, signs: Signs
) -> None:
    """Fill cells from a place to the right, or to the left; with a part of a cell at the end where there is no
    ``series``."""
    start, left = place
    exact, series = series is None, series or 0
    role = SERIES[series % len(SERIES)]
    fill = signs.fills[series % len(signs.fills)]
    whole = int(length) if exact and not left else max(1, round(length))
    for at in range(whole):
        column = start - 1 - at if left else start + at
        if 0 <= column < len(cells):
            cells[column] = (fill, role)
    if exact and not left and start + whole < len(cells):
        step = round((length - whole) * (len(signs.growing) - 1))
        if step or not whole:
            cells[start + whole] = (signs.growing[max(1, step)], role)
