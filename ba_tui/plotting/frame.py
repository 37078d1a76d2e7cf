"""The axes around a canvas: labels of values at the left, of places below."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.plotting.canvas import Canvas, Line, Room, Run, Signs, fitted, width_of
from ba_tui.plotting.scales import Scale

LEAST_WIDTH = 8
LABEL_WIDTH = 14


def label_width(scale: Scale) -> int:
    """Cells that the labels of values take."""
    return min(LABEL_WIDTH, max(map(width_of, scale.labels), default=1))


def row_of(scale: Scale, value: float, height: int) -> int:
    """The row from the top in which ``value`` lies."""
    return height - 1 - round(max(0.0, min(1.0, scale.share(value))) * (height - 1))


def canvas_for(room: Room, scale: Scale, height: int) -> Canvas:
    """A canvas beside the labels of ``scale``."""
    return Canvas(max(LEAST_WIDTH, room.width - label_width(scale) - 2), height, room.signs)


def framed(canvas: Canvas, scale: Scale, below: Sequence[tuple[int, str]], signs: Signs) -> list[Line]:
    """The canvas with its axes; ``below``: columns and their labels, which are left out where they overlap."""
    size = label_width(scale)
    rows: dict[int, str] = {}
    for tick, label in zip(scale.ticks, scale.labels, strict=True):
        rows.setdefault(row_of(scale, tick, canvas.height), label)
    lines: list[Line] = []
    for at, line in enumerate(canvas.lines()):
        label = fitted(rows.get(at, ""), size, right=True, more=signs.more)
        lines.append((Run(f"{label} {signs.tick if at in rows else signs.upright}", "dim"), *line))
    shown, columns = placed(below, canvas.width)
    rule = "".join(signs.mark if at in columns else signs.flat for at in range(canvas.width))
    lines.append((Run(f"{' ' * size} {signs.corner}{rule}", "dim"),))
    lines.append((Run(f"{' ' * (size + 2)}{shown}", "dim"),))
    return lines


def placed(labels: Sequence[tuple[int, str]], width: int) -> tuple[str, set[int]]:
    """Labels centred below their columns, and the columns that have one."""
    text, used, columns = "", 0, set[int]()
    for column, label in labels:
        size = width_of(label)
        start = max(0, min(width - size, column - size // 2))
        if size > width or (columns and start < used + 1):
            continue
        text += " " * (start - used) + label
        used = start + size
        columns.add(column)
    return text.rstrip(), columns
