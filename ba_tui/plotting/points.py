"""Lines, areas and scatter plots."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ba_tui.core.charts import Chart, ChartSeries
from ba_tui.plotting.canvas import SERIES, Canvas, Line, Room, safe
from ba_tui.plotting.frame import canvas_for, framed
from ba_tui.plotting.scales import Scale, number_scale, time_scale, value_range_scale

MARKS_EVERY = 10
"""Columns between the marks that tell lines apart."""


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
    places, values = axes
    if chart.kind == "scatter" and not values.log and len(chart.series) == 1 and canvas.signs.dots:
        _cloud(canvas, series, axes)
        return
    across, down = canvas.width * canvas.fine[0] - 1, canvas.height * canvas.fine[1] - 1
    before: tuple[int, int] | None = None
    connected = chart.kind == "line"
    several = len(chart.series) > 1
    marks = canvas.signs.marks
    last = -MARKS_EVERY
    for x, y in zip(series.x, series.y, strict=True):
        if y is None:
            before = None
            continue
        share = values.share(y)
        if not 0 <= share <= 1:
            before = None
            continue
        here = (round(places.share(x) * across), down - round(share * down))
        if connected and before:
            canvas.segment(before, here, number)
        else:
            canvas.dot(*here, number)
        before = here
        column, row = here[0] // canvas.fine[0], here[1] // canvas.fine[1]
        if several and (not connected or column - last >= MARKS_EVERY or len(series.x) <= 12):
            canvas.put(column, row, marks[number % len(marks)], SERIES[number % len(SERIES)])
            last = column
    if before and several and connected:
        place = before[0] // canvas.fine[0], before[1] // canvas.fine[1]
        canvas.put(*place, marks[number % len(marks)], SERIES[number % len(SERIES)])
    if connected and len(series.x) == 1 and before and not several:
        canvas.put(before[0] // canvas.fine[0], before[1] // canvas.fine[1], marks[0], SERIES[0])


def _cloud(canvas: Canvas, series: ChartSeries, axes: tuple[Scale, Scale]) -> None:
    """The points of one series as dots; quick, since there may be many."""
    places, values = axes
    right, bottom = canvas.width * canvas.fine[0] - 1, canvas.height * canvas.fine[1] - 1
    across = right / ((places.high - places.low) or 1.0)
    down = bottom / ((values.high - values.low) or 1.0)
    low, base = places.low, values.low
    dots = {
        (round((x - low) * across), bottom - round((y - base) * down))
        for x, y in zip(series.x, series.y, strict=True)
        if y is not None
    }
    for x, y in dots:
        canvas.dot(x, y, 0)


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
