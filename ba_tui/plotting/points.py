"""Lines, areas and scatter plots."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

from ba_tui.core.displays.charts import Chart, ChartSeries
from ba_tui.plotting.canvas import SERIES, Canvas, Line, Room, safe
from ba_tui.plotting.frame import canvas_for, framed
from ba_tui.plotting.scales import Scale, number_scale, time_scale, value_range_scale

MARKS_EVERY = 10
"""Columns between the marks that tell lines apart."""
FEW_POINTS = 12


def lines_of(chart: Chart, room: Room, height: int) -> list[Line]:
    """Lines and points on two axes."""
    values = value_axis(chart, height, zero=chart.kind == "area")
    canvas = canvas_for(room, values, height)
    places, below = place_axis(chart, canvas.width, room)
    if chart.kind == "area":
        _areas(canvas, chart, places, values, room)
    else:
        for number, series in enumerate(chart.series):
            _series(canvas, series, number, (places, values), chart)
    return framed(canvas, values, below, room.signs)


def value_axis(chart: Chart, height: int, *, zero: bool) -> Scale:
    """The axis of values; ``zero``: it begins there, or spans it."""
    if chart.kind == "area":
        totals = [sum(each) for each in zip(*stacked_values(chart), strict=True)]
        found = [value for value in totals if value] or [0.0]
    else:
        found = [value for each in chart.series for value in each.y if value is not None]
    low, high = min(found, default=0.0), max(found, default=1.0)
    if zero and not chart.request.log:
        low, high = min(0.0, low), max(0.0, high)
    if not zero or chart.request.log:
        low = chart.request.low if chart.request.low is not None else low
        high = chart.request.high if chart.request.high is not None else high
    log = chart.request.log and low > 0
    return number_scale(low, max(low, high), max(2, height // 3), log=log)


def place_axis(chart: Chart, width: int, room: Room) -> tuple[Scale, list[tuple[int, str]]]:
    """The axis of places, and its labels by column."""
    places = [value for each in chart.series for value in each.x]
    low, high = min(places, default=0.0), max(places, default=1.0)
    if chart.axis == "category":
        last = max(1, len(chart.labels) - 1)
        scale = Scale(0, last)
        below = [(round(at / last * (width - 1)), safe(label)) for at, label in enumerate(chart.labels)]
        return scale, below
    if chart.axis == "time":
        scale = time_scale(low, high, max(2, width // 14))
    else:
        scale = value_range_scale(low, high, max(2, width // 12), plain=plain_numbers(chart))
    ticks = zip(scale.ticks, scale.labels, strict=True)
    return scale, [(round(scale.share(tick) * (width - 1)), label) for tick, label in ticks]


def plain_numbers(chart: Chart) -> bool:
    """Whether the places are years, which have no thousands separators."""
    places = [value for each in chart.series for value in each.x]
    whole = all(value == int(value) for value in places)
    return whole and min(places, default=0) >= 1500 and max(places, default=9999) <= 2200


def _series(canvas: Canvas, series: ChartSeries, number: int, axes: tuple[Scale, Scale], chart: Chart) -> None:
    stretches = _dots(canvas, series, axes)
    if chart.kind == "line":
        for stretch in stretches:
            _line(canvas, stretch, number)
    else:
        for dot in {dot for stretch in stretches for dot in stretch}:
            canvas.dot(*dot, number)
    if len(chart.series) > 1 or not any(len(each) > 1 for each in stretches):
        _marks(canvas, [dot for each in stretches for dot in each], number, every=chart.kind != "line")


def _dots(canvas: Canvas, series: ChartSeries, axes: tuple[Scale, Scale]) -> list[list[tuple[int, int]]]:
    """Where the points lie, in dots; a new list begins behind each gap, and what is out of bounds is one."""
    places, values = axes
    right, bottom = canvas.width * canvas.fine[0] - 1, canvas.height * canvas.fine[1] - 1
    left, across = places.low, right / ((places.high - places.low) or 1.0)
    base, down = values.low, bottom / ((values.high - values.low) or 1.0)
    log = values.log
    found: list[list[tuple[int, int]]] = [[]]
    for x, y in zip(series.x, series.y, strict=True):
        up = -1 if y is None else round(values.share(y) * bottom) if log else round((y - base) * down)
        if 0 <= up <= bottom:
            found[-1].append((round((x - left) * across), bottom - up))
        elif found[-1]:
            found.append([])
    return found


def _line(canvas: Canvas, dots: Sequence[tuple[int, int]], number: int) -> None:
    """Connect dots; those of one column, of which there may be many, are one stroke."""
    before: tuple[int, int] | None = None
    for column, group in groupby(dots, key=lambda dot: dot[0]):
        rows = [row for _, row in group]
        if before:
            canvas.segment(before, (column, rows[0]), number)
        canvas.upright(column, min(rows), max(rows), number)
        before = (column, rows[-1])


def _marks(canvas: Canvas, dots: Sequence[tuple[int, int]], number: int, *, every: bool) -> None:
    """Put the sign of a series on its points, and at its end; on some where points are many."""
    sign, role = canvas.signs.marks[number % len(canvas.signs.marks)], SERIES[number % len(SERIES)]
    last = -MARKS_EVERY
    for at, (x, y) in enumerate(dots):
        column, row = x // canvas.fine[0], y // canvas.fine[1]
        if every or column - last >= MARKS_EVERY or len(dots) <= FEW_POINTS or at == len(dots) - 1:
            canvas.put(column, row, sign, role)
            last = column


def stacked_values(chart: Chart) -> list[list[float]]:
    """The values of each series at all places of the chart, 0 where it has none."""
    places = sorted({x for each in chart.series for x in each.x})
    found: list[list[float]] = []
    for series in chart.series:
        known = dict(zip(series.x, series.y, strict=True))
        found.append([max(0.0, known.get(place) or 0.0) for place in places])
    return found


def _areas(canvas: Canvas, chart: Chart, places: Scale, values: Scale, room: Room) -> None:
    at = sorted({x for each in chart.series for x in each.x})
    columns = [round(places.share(each) * (canvas.width - 1)) for each in at]
    stacks = [_by_column(columns, each, canvas.width) for each in stacked_values(chart)]
    single = len(stacks) == 1
    for column in range(canvas.width):
        total = filled = 0.0
        for number, series in enumerate(stacks):
            total += series[column]
            top = max(0.0, values.share(total)) * canvas.height if total else 0.0
            fill = room.signs.fills[number % len(room.signs.fills)]
            for row in range(round(filled), int(top) if single else round(top)):
                canvas.put(column, canvas.height - 1 - row, fill, SERIES[number % len(SERIES)])
            rest = top - int(top)
            if single and rest > 0:
                steps = room.signs.rising
                canvas.put(column, canvas.height - 1 - int(top), steps[round(rest * (len(steps) - 1))], SERIES[0])
            filled = top


def _by_column(columns: Sequence[int], series: Sequence[float], width: int) -> list[float]:
    """The value at each column, on the line between its neighbours."""
    found = [0.0] * width
    for column, value in zip(columns, series, strict=True):
        found[column] = value
    for place, (left, right) in enumerate(pairwise(columns)):
        for column in range(left + 1, right):
            share = (column - left) / (right - left)
            found[column] = series[place] + (series[place + 1] - series[place]) * share
    return found
