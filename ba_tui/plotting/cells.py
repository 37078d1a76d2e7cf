"""Box plots and heatmaps."""

from __future__ import annotations

from ba_tui.core.displays.charts import Box, Chart
from ba_tui.core.text.wording import count
from ba_tui.plotting.bars import LONGEST_NAME
from ba_tui.plotting.canvas import Canvas, Line, Room, Run, fitted, safe, width_of
from ba_tui.plotting.frame import placed
from ba_tui.plotting.scales import nice_step, number_label, number_scale

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
