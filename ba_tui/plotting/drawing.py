"""A chart as lines of text: title, legend, the drawing on its axes, and what is not shown."""

from __future__ import annotations

from collections.abc import Mapping

from ba_tui.core.displays.charts import Chart
from ba_tui.plotting.bars import bars_of, histogram_of
from ba_tui.plotting.canvas import ASCII, SERIES, UNICODE, Line, Role, Room, Run, Signs, fitted, safe, width_of
from ba_tui.plotting.cells import boxes_of, heatmap_of
from ba_tui.plotting.points import lines_of

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
