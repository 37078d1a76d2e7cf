"""Draw a chart as lines of text: title, legend, drawing with axes, and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise

from ba_tui.core.results import Box, Chart, ChartSeries
from ba_tui.core.text.cells import fit, has_few_characters, width_of
from ba_tui.core.text.wording import count
from ba_tui.plotting.canvas import (
    ASCII,
    SERIES,
    UNICODE,
    Canvas,
    DrawingArea,
    Line,
    Role,
    Run,
    Signs,
    canvas_for,
    framed,
    placed,
    safe,
)
from ba_tui.plotting.scales import Scale, nice_step, number_label, number_scale, time_scale, value_range_scale

LONGEST_NAME = 30
WIDEST_BAR = 12
"""Maximum columns of a vertical bar."""
LEAST_BARS = 8
"""Minimum rows of vertical bars."""


def bars_of(chart: Chart, area: DrawingArea, height: int) -> list[Line]:
    """Return the bars of all categories; vertical ones if their names fit below them."""
    if chart.kind == "pie":
        return _lying(chart, area, height, shares=True)
    slot = (area.width - 14) // max(1, len(chart.labels))
    longest = max((width_of(safe(each)) for each in chart.labels), default=1)
    thick = 1 if chart.request.stacked else len(chart.series)
    if height >= LEAST_BARS and slot >= max(longest + 1, thick + 1):
        return _upright(chart, area, height - 2)
    return _lying(chart, area, height)


def histogram_of(chart: Chart, area: DrawingArea, height: int) -> list[Line]:
    """Return a bar for each bin, without gaps, on an axis of numbers."""
    bins, counts = chart.series[0].x, [value or 0.0 for value in chart.series[0].y]
    scale = _values([counts], chart, max(2, height // 3))
    canvas = canvas_for(area, scale, height)
    thick = max(1, canvas.width // max(1, len(bins)))
    canvas = Canvas(min(canvas.width, max(thick * len(bins) + 1, 12)), height, area.signs)
    for number, value in enumerate(counts):
        for column in range(number * thick, min(canvas.width, (number + 1) * thick)):
            _rise(canvas, column, scale, (0.0, value))
    every = max(1, (len(bins) * 12) // canvas.width + 1)
    edges = [*bins, bins[-1] + chart.step]
    below = [(at * thick, number_label(edges[at], chart.step)) for at in range(0, len(edges), every)]
    return framed(canvas, scale, below)


def _values(series: Sequence[Sequence[float]], chart: Chart, count: int) -> Scale:
    """Return the value axis, which begins at zero unless it is logarithmic."""
    found = [value for each in series for value in each]
    low, high = min(found, default=0.0), max(found, default=0.0)
    positive = [value for value in found if value > 0]
    if chart.request.log and positive:
        return number_scale(min(positive) / 2, max(positive), count, log=True)
    return number_scale(min(0.0, low), max(0.0, high) or (0.0 if low < 0 else 1.0), count)


def _table(chart: Chart) -> list[list[float | None]]:
    """Return the value of each series at each label."""
    found: list[list[float | None]] = []
    for series in chart.series:
        known = dict(zip(series.x, series.y, strict=True))
        found.append([known.get(place) for place in range(len(chart.labels))])
    return found


def _extent(table: Sequence[Sequence[float | None]], *, stacked: bool) -> list[list[float]]:
    """Return the values that the axis must cover: each value, or the positive and negative sums of stacked bars."""
    if not stacked:
        return [[value for value in each if value is not None] for each in table]
    columns = [[value for value in each if value is not None] for each in zip(*table, strict=True)]
    return [[sum(v for v in each if v > 0), sum(v for v in each if v < 0)] for each in columns]


def _upright(chart: Chart, area: DrawingArea, height: int) -> list[Line]:
    table = _table(chart)
    stacked, several = chart.request.stacked and len(table) > 1, len(table) > 1
    scale = _values(_extent(table, stacked=stacked), chart, max(2, height // 3))
    canvas = canvas_for(area, scale, height)
    slot = canvas.width // max(1, len(chart.labels))
    thick = max(1, min(WIDEST_BAR, (slot - 1) // (1 if stacked else len(table))))
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
    _zero_line(canvas, scale)
    return framed(canvas, scale, below)


def _rise(canvas: Canvas, column: int, scale: Scale, extent: tuple[float, float], series: int | None = None) -> None:
    """Draw one column between the two values of ``extent``, up or down; in eighths of a cell without a ``series``."""
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


def _zero_line(canvas: Canvas, scale: Scale) -> None:
    """Draw a line at zero, in free cells, if there are negative bars."""
    if scale.log or scale.low >= 0:
        return
    row = canvas.height - 1 - round(scale.share(0.0) * canvas.height)
    canvas.underline(max(0, row), canvas.signs.flat)


def _lying(chart: Chart, area: DrawingArea, height: int, *, shares: bool = False) -> list[Line]:
    table = _table(chart)
    stacked = chart.request.stacked and len(table) > 1
    each = 1 if stacked else len(table)
    most = max(1, height // each)
    labels = chart.labels if area.grow or len(chart.labels) <= most else chart.labels[: max(1, (height - 1) // each)]
    names = [safe(label) for label in labels]
    size = min(LONGEST_NAME, max(8, area.width // 3), max(map(width_of, names), default=1))
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
            label = fit(name if not place else "", size, more=area.signs.more)
            lines.append(_bar((label, size), group, scale, area, total if shares else None))
    if left := len(chart.labels) - len(labels):
        lines.append((Run(f"{area.signs.more} {left:,} more", "dim"),))
    return lines


def _bar(
    label: tuple[str, int],
    group: Sequence[tuple[int, float | None]],
    scale: Scale,
    area: DrawingArea,
    total: float | None,
) -> Line:
    """Return one line: the name, the bar, and its value."""
    text, size = label
    known = [value for _, value in group if value is not None]
    words = number_label(sum(known)) if known else "-"
    if total:
        words = f"{sum(known) / total:.1%}  {words}"
    wide = max(4, area.width - size - 3 - max(10, width_of(words) + 1))
    cells: list[tuple[str, Role]] = [(" ", "text")] * wide
    zero = 0 if scale.log else round(max(0.0, min(1.0, scale.share(0.0))) * wide)
    ends = [zero, zero]
    for number, value in group:
        if not value:
            continue
        side = int(value < 0)
        length = abs(scale.share(value) - (0.0 if scale.log else scale.share(0.0))) * wide
        alone = len(group) == 1 and number == 0
        _fill(cells, (ends[side], side), length, None if alone else number, area.signs)
        ends[side] += round(length) * (-1 if side else 1)
    if zero:
        cells.insert(zero, (area.signs.upright, "dim"))
    shown = "".join(sign for sign, _ in cells).rstrip()
    runs: list[Run] = [Run(text), Run(f" {area.signs.upright}", "dim")]
    for sign, role in cells[: len(shown)]:
        if runs[-1].role == role and len(runs) > 2:
            runs[-1] = Run(runs[-1].text + sign, role)
        else:
            runs.append(Run(sign, role))
    return (*runs, Run(f" {words}", "text"))


def _fill(
    cells: list[tuple[str, Role]], place: tuple[int, int], length: float, series: int | None, signs: Signs
) -> None:
    """Fill cells from a position to the right or left; with a partial cell at the end without a ``series``."""
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


MARKS_EVERY = 10
"""Columns between the marks that distinguish lines."""
FEW_POINTS = 12


def lines_of(chart: Chart, area: DrawingArea, height: int) -> list[Line]:
    """Return lines and points on two axes."""
    values = value_axis(chart, height, zero=chart.kind == "area")
    canvas = canvas_for(area, values, height)
    places, below = place_axis(chart, canvas.width)
    if chart.kind == "area":
        _areas(canvas, chart, places, values)
    else:
        for number, series in enumerate(chart.series):
            _series(canvas, series, number, (places, values), chart)
    return framed(canvas, values, below)


def value_axis(chart: Chart, height: int, *, zero: bool) -> Scale:
    """Return the value axis; ``zero``: it begins at or includes zero."""
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


def place_axis(chart: Chart, width: int) -> tuple[Scale, list[tuple[int, str]]]:
    """Return the horizontal axis, and its labels by column."""
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
    """Return whether the positions are years, which have no thousands separators."""
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
    """Return the points in dot coordinates; a new list begins after each gap and each point out of bounds."""
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
    """Connect dots; the dots of one column, possibly many, form one stroke."""
    before: tuple[int, int] | None = None
    for column, group in groupby(dots, key=lambda dot: dot[0]):
        rows = [row for _, row in group]
        if before:
            canvas.segment(before, (column, rows[0]), number)
        canvas.upright(column, min(rows), max(rows), number)
        before = (column, rows[-1])


def _marks(canvas: Canvas, dots: Sequence[tuple[int, int]], number: int, *, every: bool) -> None:
    """Put the mark of a series on its points and at its end; if there are many points, only on some."""
    sign, role = canvas.signs.marks[number % len(canvas.signs.marks)], SERIES[number % len(SERIES)]
    last = -MARKS_EVERY
    for at, (x, y) in enumerate(dots):
        column, row = x // canvas.fine[0], y // canvas.fine[1]
        if every or column - last >= MARKS_EVERY or len(dots) <= FEW_POINTS or at == len(dots) - 1:
            canvas.put(column, row, sign, role)
            last = column


def stacked_values(chart: Chart) -> list[list[float]]:
    """Return the values of each series at all positions of the chart, 0 if missing."""
    places = sorted({x for each in chart.series for x in each.x})
    found: list[list[float]] = []
    for series in chart.series:
        known = dict(zip(series.x, series.y, strict=True))
        found.append([max(0.0, known.get(place) or 0.0) for place in places])
    return found


def _areas(canvas: Canvas, chart: Chart, places: Scale, values: Scale) -> None:
    at = sorted({x for each in chart.series for x in each.x})
    columns = [round(places.share(each) * (canvas.width - 1)) for each in at]
    stacks = [_by_column(columns, each, canvas.width) for each in stacked_values(chart)]
    single = len(stacks) == 1
    for column in range(canvas.width):
        total = filled = 0.0
        for number, series in enumerate(stacks):
            total += series[column]
            top = max(0.0, values.share(total)) * canvas.height if total else 0.0
            fill = canvas.signs.fills[number % len(canvas.signs.fills)]
            for row in range(round(filled), int(top) if single else round(top)):
                canvas.put(column, canvas.height - 1 - row, fill, SERIES[number % len(SERIES)])
            rest = top - int(top)
            if single and rest > 0:
                steps = canvas.signs.rising
                canvas.put(column, canvas.height - 1 - int(top), steps[round(rest * (len(steps) - 1))], SERIES[0])
            filled = top


def _by_column(columns: Sequence[int], series: Sequence[float], width: int) -> list[float]:
    """Return the interpolated value at each column."""
    found = [0.0] * width
    for column, value in zip(columns, series, strict=True):
        found[column] = value
    for place, (left, right) in enumerate(pairwise(columns)):
        for column in range(left + 1, right):
            share = (column - left) / (right - left)
            found[column] = series[place] + (series[place + 1] - series[place]) * share
    return found


GAP = 1
LEAST_AXIS = 12


def boxes_of(chart: Chart, area: DrawingArea, height: int) -> list[Line]:
    """Return a line for each box, above a common axis."""
    boxes = chart.boxes if area.grow or len(chart.boxes) <= height - 2 else chart.boxes[: max(1, height - 3)]
    names = [safe(each.label) for each in boxes]
    size = min(LONGEST_NAME, max(4, area.width // 4), max(map(width_of, names), default=1))
    ends = [f"n={each.count:,}" + (f", {count(each.outliers, 'outlier')}" if each.outliers else "") for each in boxes]
    behind = max(map(len, ends), default=0) + 1
    if area.width - size - 2 - behind < LEAST_AXIS:
        ends, behind = [""] * len(boxes), 1
    wide = max(LEAST_AXIS, area.width - size - 2 - behind)
    low, high = min(each.low for each in chart.boxes), max(each.high for each in chart.boxes)
    scale = number_scale(low, high, max(2, wide // 14), log=chart.request.log and low > 0)
    lines: list[Line] = []
    for name, box, end in zip(names, boxes, ends, strict=True):
        canvas = Canvas(wide, 1, area.signs)
        _box(canvas, box, [round(scale.share(each) * (wide - 1)) for each in _figures(box)])
        label = fit(name, size, more=area.signs.more)
        lines.append((Run(label), Run(f" {area.signs.upright}", "dim"), *canvas.lines()[0], Run(f" {end}", "dim")))
    if left := len(chart.boxes) - len(boxes):
        lines.append((Run(f"{area.signs.more} {left:,} more", "dim"),))
    ticks = [
        (round(scale.share(tick) * (wide - 1)), label) for tick, label in zip(scale.ticks, scale.labels, strict=True)
    ]
    below, columns = placed(ticks, wide)
    rule = "".join(area.signs.mark if at in columns else area.signs.flat for at in range(wide))
    lines.append((Run(f"{' ' * size} {area.signs.corner}{rule}", "dim"),))
    lines.append((Run(f"{' ' * (size + 2)}{below}", "dim"),))
    return lines


def _figures(box: Box) -> tuple[float, float, float, float, float]:
    return box.low, box.first, box.median, box.third, box.high


def _box(canvas: Canvas, box: Box, columns: list[int]) -> None:
    low, first, median, third, high = columns
    signs = canvas.signs
    left, body, middle, right = signs.box
    for column in range(low, high + 1):
        canvas.put(column, 0, signs.flat, "1")
    canvas.put(low, 0, signs.whiskers[0], "1")
    canvas.put(high, 0, signs.whiskers[1], "1")
    for column in range(first, third + 1):
        canvas.put(column, 0, signs.shades[1] if body == "█" else body, "1")
    if third > first:
        canvas.put(first, 0, left, "1")
        canvas.put(third, 0, right, "1")
    canvas.put(median, 0, middle, "text")


def heatmap_of(chart: Chart, area: DrawingArea, height: int) -> list[Line]:
    """Return a row of cells for each series, darker for larger values."""
    found = [value for each in chart.series for value in each.y if value is not None]
    low, high = min(found), max(found)
    labels = [safe(each) for each in chart.labels]
    names = [safe(each.name) for each in chart.series]
    size = min(LONGEST_NAME, max(4, area.width // 4), max(map(width_of, names), default=1))
    step = nice_step(high - low, 1_000) if high > low else 0.0
    figures = max(len(number_label(value, step)) for value in found)
    room_each = (area.width - size - 2) // max(1, len(labels)) - GAP
    wide = max(1, min(room_each, max(figures + 3, max(map(width_of, labels), default=1), 4)))
    shown = max(1, (area.width - size - 2) // (wide + GAP))
    rows = chart.series if area.grow or len(chart.series) <= height - 2 else chart.series[: max(1, height - 3)]
    lines: list[Line] = []
    for name, series in zip(names, rows, strict=False):
        runs = [Run(fit(name, size, more=area.signs.more)), Run(f" {area.signs.upright}", "dim")]
        known = dict(zip(series.x, series.y, strict=True))
        for at in range(min(shown, len(labels))):
            runs += _cell(known.get(at), (low, high, step), wide, area)
        lines.append(tuple(runs))
    if left := len(chart.series) - len(rows):
        lines.append((Run(f"{area.signs.more} {left:,} more rows", "dim"),))
    middle = [(at * (wide + GAP) + wide // 2, label) for at, label in enumerate(labels[:shown])]
    lines.append((Run(f"{' ' * (size + 2)}{placed(middle, area.width - size - 2)[0]}", "dim"),))
    ends = number_label(low, step), number_label(high, step)
    words = f"{area.signs.shades[0]} {ends[0]} to {area.signs.shades[-1]} {ends[1]}"
    right = f", {len(labels) - shown:,} more columns at the right" if len(labels) > shown else ""
    lines.append((Run(f"{' ' * (size + 2)}{words}{right}", "dim"),))
    return lines


def _cell(value: float | None, extent: tuple[float, float, float], wide: int, area: DrawingArea) -> list[Run]:
    if value is None:
        return [Run(" " * (wide + GAP))]
    low, high, step = extent
    share = (value - low) / (high - low) if high > low else 1.0
    shade = area.signs.shades[min(len(area.signs.shades) - 1, int(share * len(area.signs.shades)))]
    text = number_label(value, step)
    if wide >= len(text) + 2:
        return [Run(shade * (wide - len(text) - 1), "1"), Run(f" {text}" + " " * GAP)]
    return [Run(shade * wide, "1"), Run(" " * GAP)]


LEAST_HEIGHT = 3
USUAL_HEIGHT = 20
WIDEST = 160
"""Maximum width in cells: wider charts are not easier to read."""


def drawn(chart: Chart, area: DrawingArea) -> list[Line]:
    """Return the lines of a chart, none wider than the area; for an empty chart, one line with a message."""
    area = DrawingArea(
        max(24, min(WIDEST, area.width)), max(LEAST_HEIGHT, area.height), area.signs, area.grow, area.bare
    )
    head: list[Line] = []
    if not area.bare:
        head.append(_words(safe(chart.request.title) or _subject(chart), area, "title"))
    notes = [] if area.bare else [_words(safe(note), area, "dim") for note in chart.notes]
    if chart.empty:
        return [*head, (Run("No data to draw.", "dim"),), *notes]
    head += _legend(chart, area)
    titles = [_words(_subject(chart), area, "dim")] if chart.request.title and not area.bare else []
    height = max(LEAST_HEIGHT, area.height - len(head) - len(titles) - len(notes))
    return [*head, *_body(chart, area, height), *titles, *notes]


def text_of(chart: Chart, width: int = 76, signs: Signs = UNICODE) -> str:
    """Return the chart as plain text, for documents and the clipboard."""
    lines = drawn(chart, DrawingArea(width, USUAL_HEIGHT, signs, grow=True))
    return "\n".join("".join(run.text for run in line).rstrip() for line in lines)


def signs_for(environ: Mapping[str, str], encoding: str = "utf-8") -> Signs:
    """Return the characters that a terminal can show: ASCII on consoles without Braille and block characters."""
    return ASCII if has_few_characters(environ) or not encoding.lower().replace("-", "").startswith("utf") else UNICODE


def _body(chart: Chart, area: DrawingArea, height: int) -> list[Line]:
    match chart.kind:
        case "bar" | "pie":
            return bars_of(chart, area, height)
        case "histogram":
            return histogram_of(chart, area, max(1, height - 2))
        case "box":
            return boxes_of(chart, area, height)
        case "heatmap":
            return heatmap_of(chart, area, height)
        case _:
            return lines_of(chart, area, max(1, height - 2))


def _legend(chart: Chart, area: DrawingArea) -> list[Line]:
    """Return sign and name of each series, if there are several."""
    if len(chart.series) < 2 or chart.kind == "heatmap":
        return []
    signs = area.signs.marks if chart.kind in {"line", "scatter"} else area.signs.fills
    lines: list[list[Run]] = [[]]
    used = 0
    for number, series in enumerate(chart.series):
        name = safe(series.name)
        name = fit(name, min(width_of(name), 24), more=area.signs.more)
        size = width_of(name) + 4
        if used and used + size > area.width:
            lines.append([])
            used = 0
        role: Role = SERIES[number % len(SERIES)]
        lines[-1] += [Run(signs[number % len(signs)], role), Run(f" {name}  ")]
        used += size
    return [tuple(line) for line in lines]


def _subject(chart: Chart) -> str:
    """Return the subject with its unit."""
    unit = f" ({safe(chart.request.unit)})" if chart.request.unit else ""
    return f"{safe(chart.subject)}{unit}{', logarithmic' if chart.request.log else ''}"


def _words(text: str, area: DrawingArea, role: Role) -> Line:
    """Return a line of words, cut at the width of the area."""
    return (Run(fit(text, min(area.width, width_of(text)), more=area.signs.more), role),)
