"""A chart as lines of text: title, legend, the drawing on its axes, and what is not shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise

from ba_tui.core.displays.charts import Box, Chart, ChartSeries
from ba_tui.core.text.wording import count
from ba_tui.plotting.bars import LONGEST_NAME, bars_of, histogram_of
from ba_tui.plotting.canvas import ASCII, SERIES, UNICODE, Canvas, Line, Role, Room, Run, Signs, fitted, safe, width_of
from ba_tui.plotting.frame import canvas_for, framed, placed
from ba_tui.plotting.scales import Scale, nice_step, number_label, number_scale, time_scale, value_range_scale

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


GAP = 1
LEAST_AXIS = 12


def boxes_of(chart: Chart, room: Room, height: int) -> list[Line]:
    """A line for each box, above one axis."""
    boxes = chart.boxes if room.grow or len(chart.boxes) <= height - 2 else chart.boxes[: max(1, height - 3)]
    names = [safe(each.label) for each in boxes]
    size = min(LONGEST_NAME, max(4, room.width // 4), max(map(width_of, names), default=1))
    ends = [f"n={each.count:,}" + (f", {count(each.outliers, 'outlier')}" if each.outliers else "") for each in boxes]
    behind = max(map(len, ends), default=0) + 1
    if room.width - size - 2 - behind < LEAST_AXIS:
        ends, behind = [""] * len(boxes), 1
    wide = max(LEAST_AXIS, room.width - size - 2 - behind)
    low, high = min(each.low for each in chart.boxes), max(each.high for each in chart.boxes)
    scale = number_scale(low, high, max(2, wide // 14), log=chart.request.log and low > 0)
    lines: list[Line] = []
    for name, box, end in zip(names, boxes, ends, strict=True):
        canvas = Canvas(wide, 1, room.signs)
        _box(canvas, box, [round(scale.share(each) * (wide - 1)) for each in _figures(box)])
        label = fitted(name, size, more=room.signs.more)
        lines.append((Run(label), Run(f" {room.signs.upright}", "dim"), *canvas.lines()[0], Run(f" {end}", "dim")))
    if left := len(chart.boxes) - len(boxes):
        lines.append((Run(f"{room.signs.more} {left:,} more", "dim"),))
    ticks = [
        (round(scale.share(tick) * (wide - 1)), label) for tick, label in zip(scale.ticks, scale.labels, strict=True)
    ]
    below, columns = placed(ticks, wide)
    rule = "".join(room.signs.mark if at in columns else room.signs.flat for at in range(wide))
    lines.append((Run(f"{' ' * size} {room.signs.corner}{rule}", "dim"),))
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


def heatmap_of(chart: Chart, room: Room, height: int) -> list[Line]:
    """A row of cells for each series, darker where the value is larger."""
    found = [value for each in chart.series for value in each.y if value is not None]
    low, high = min(found), max(found)
    labels = [safe(each) for each in chart.labels]
    names = [safe(each.name) for each in chart.series]
    size = min(LONGEST_NAME, max(4, room.width // 4), max(map(width_of, names), default=1))
    step = nice_step(high - low, 1_000) if high > low else 0.0
    figures = max(len(number_label(value, step)) for value in found)
    room_each = (room.width - size - 2) // max(1, len(labels)) - GAP
    wide = max(1, min(room_each, max(figures + 3, max(map(width_of, labels), default=1), 4)))
    shown = max(1, (room.width - size - 2) // (wide + GAP))
    rows = chart.series if room.grow or len(chart.series) <= height - 2 else chart.series[: max(1, height - 3)]
    lines: list[Line] = []
    for name, series in zip(names, rows, strict=False):
        runs = [Run(fitted(name, size, more=room.signs.more)), Run(f" {room.signs.upright}", "dim")]
        known = dict(zip(series.x, series.y, strict=True))
        for at in range(min(shown, len(labels))):
            runs += _cell(known.get(at), (low, high, step), wide, room)
        lines.append(tuple(runs))
    if left := len(chart.series) - len(rows):
        lines.append((Run(f"{room.signs.more} {left:,} more rows", "dim"),))
    middle = [(at * (wide + GAP) + wide // 2, label) for at, label in enumerate(labels[:shown])]
    lines.append((Run(f"{' ' * (size + 2)}{placed(middle, room.width - size - 2)[0]}", "dim"),))
    ends = number_label(low, step), number_label(high, step)
    words = f"{room.signs.shades[0]} {ends[0]} to {room.signs.shades[-1]} {ends[1]}"
    right = f", {len(labels) - shown:,} more columns at the right" if len(labels) > shown else ""
    lines.append((Run(f"{' ' * (size + 2)}{words}{right}", "dim"),))
    return lines


def _cell(value: float | None, extent: tuple[float, float, float], wide: int, room: Room) -> list[Run]:
    if value is None:
        return [Run(" " * (wide + GAP))]
    low, high, step = extent
    share = (value - low) / (high - low) if high > low else 1.0
    shade = room.signs.shades[min(len(room.signs.shades) - 1, int(share * len(room.signs.shades)))]
    text = number_label(value, step)
    if wide >= len(text) + 2:
        return [Run(shade * (wide - len(text) - 1), "1"), Run(f" {text}" + " " * GAP)]
    return [Run(shade * wide, "1"), Run(" " * GAP)]


LEAST_HEIGHT = 3
USUAL_HEIGHT = 20
WIDEST = 160
"""Cells, beyond which a chart is not easier to read."""


def drawn(chart: Chart, room: Room) -> list[Line]:
    """Return the lines of a chart, none wider than the room; those of an empty one say so."""
    room = Room(max(24, min(WIDEST, room.width)), max(LEAST_HEIGHT, room.height), room.signs, room.grow, room.bare)
    head: list[Line] = []
    if not room.bare:
        head.append(_words(safe(chart.request.title) or _subject(chart), room, "title"))
    notes = [] if room.bare else [_words(safe(note), room, "dim") for note in chart.notes]
    if chart.empty:
        return [*head, (Run("No data to draw.", "dim"),), *notes]
    head += _legend(chart, room)
    titles = [_words(_subject(chart), room, "dim")] if chart.request.title and not room.bare else []
    height = max(LEAST_HEIGHT, room.height - len(head) - len(titles) - len(notes))
    return [*head, *_body(chart, room, height), *titles, *notes]


def text_of(chart: Chart, width: int = 76, signs: Signs = UNICODE) -> str:
    """The chart as plain text, for documents and the clipboard."""
    lines = drawn(chart, Room(width, USUAL_HEIGHT, signs, grow=True))
    return "\n".join("".join(run.text for run in line).rstrip() for line in lines)


def signs_for(environ: Mapping[str, str], encoding: str = "utf-8") -> Signs:
    """The characters that a terminal shows: ASCII on consoles without Braille and block characters."""
    plain = environ.get("TERM", "") in {"linux", "dumb", "vt100", "vt102", "vt220"}
    return ASCII if plain or not encoding.lower().replace("-", "").startswith("utf") else UNICODE


def _body(chart: Chart, room: Room, height: int) -> list[Line]:
    match chart.kind:
        case "bar" | "pie":
            return bars_of(chart, room, height)
        case "histogram":
            return histogram_of(chart, room, max(1, height - 2))
        case "box":
            return boxes_of(chart, room, height)
        case "heatmap":
            return heatmap_of(chart, room, height)
        case _:
            return lines_of(chart, room, max(1, height - 2))


def _legend(chart: Chart, room: Room) -> list[Line]:
    """Sign and name of each series, where there are several."""
    if len(chart.series) < 2 or chart.kind == "heatmap":
        return []
    signs = room.signs.marks if chart.kind in {"line", "scatter"} else room.signs.fills
    lines: list[list[Run]] = [[]]
    used = 0
    for number, series in enumerate(chart.series):
        name = safe(series.name)
        name = fitted(name, min(width_of(name), 24), more=room.signs.more)
        size = width_of(name) + 4
        if used and used + size > room.width:
            lines.append([])
            used = 0
        role: Role = SERIES[number % len(SERIES)]
        lines[-1] += [Run(signs[number % len(signs)], role), Run(f" {name}  ")]
        used += size
    return [tuple(line) for line in lines]


def _subject(chart: Chart) -> str:
    """What is on the axes, with its unit."""
    unit = f" ({safe(chart.request.unit)})" if chart.request.unit else ""
    return f"{safe(chart.subject)}{unit}{', logarithmic' if chart.request.log else ''}"


def _words(text: str, room: Room, role: Role) -> Line:
    """A line of words, cut where the room ends."""
    return (Run(fitted(text, min(room.width, width_of(text)), more=room.signs.more), role),)
