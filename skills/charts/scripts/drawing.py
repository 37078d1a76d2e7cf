"""The drawing itself: nice axes and SVG. Where the numbers come from is chart.py's. No script.

Colours keep apart for colour-blind eyes; text and lines follow the reader's light or dark setting.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from html import escape

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a6d3b", "#777777")
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.t{font-size:16px;font-weight:600}.g{stroke:#ddd}.a{stroke:#888}"
    "@media(prefers-color-scheme:dark){text{fill:#eee}.g{stroke:#444}.p{fill:#1b1b1b}}.p{fill:#fff}"
)
Scale = Callable[[float], float]
Shapes = Callable[[Scale, Scale], list[str]]


@dataclass
class Picture:
    """What to draw: (series, x, y) for each point."""

    kind: str
    points: list[tuple[str, str, float]]
    title: str
    labels: tuple[str, str]
    unit: str
    size: tuple[int, int]
    bins: int = 0
    zero: bool = True

    @property
    def series(self) -> list[str]:
        return list(dict.fromkeys(series for series, _, _ in self.points))

    @property
    def places(self) -> list[str]:
        return list(dict.fromkeys(x for _, x, _ in self.points))

    def of(self, series: str) -> list[tuple[str, float]]:
        return [(x, y) for name, x, y in self.points if name == series]

    def said(self) -> str:
        """For those who do not see it, and for the model."""
        low, high = min(self.points, key=lambda p: p[2]), max(self.points, key=lambda p: p[2])
        unit = f" {self.unit}" if self.unit else ""
        if self.kind == "hist":
            return f"Histogram of {len(self.points)} values from {short(low[2])} to {short(high[2])}{unit}."
        ends = (f"{p[1]}{f' ({p[0]})' if p[0] else ''}: {short(p[2])}{unit}" for p in (low, high))
        several = f" in {len(self.series)} series" if len(self.series) > 1 else ""
        what = f"{self.kind.title()} chart of {len(self.points)} values{several}"
        return f"{what}; lowest {next(ends)}, highest {next(ends)}."


def short(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.2f}"


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers from at or below the lowest to at or above the highest."""
    if low == high:
        low, high = (0.0, high) if high > 0 else (low, 0.0) if low < 0 else (0.0, 1.0)
    rough = (high - low) / most
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * times for times in (1, 2, 2.5, 5, 10) if unit * times >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [place * step for place in range(first, last + 1)]


def draw(picture: Picture) -> str:
    width, height = picture.size
    shapes, x_marks, ends = placed(picture)
    marks = ticks(*ends)
    left = 24 + max(len(short(mark)) for mark in marks) * 7 + (16 if picture.labels[1] else 0)
    longest = max(len(name[:24]) for _, name in x_marks)
    turned = picture.kind in {"bar", "line"} and longest * 7 * len(x_marks) > width - left
    bottom = height - (26 + (min(110, 6 * longest) if turned else 16))
    top = 20 + (26 if picture.title else 0) + (20 if len(picture.series) > 1 else 0)

    def across(share: float) -> float:
        return left + share * (width - left - 32)

    def down(value: float) -> float:
        return bottom - (value - marks[0]) / (marks[-1] - marks[0]) * (bottom - top)

    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    about = f"<title>{text(picture.title or picture.kind)}</title><desc>{text(picture.said())}</desc>"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">{about}<style>{STYLE}</style>']
    parts.append(f'<rect class="p" width="{width}" height="{height}"/>')
    for mark in marks:
        y, line = f"{down(mark):.1f}", "a" if mark == 0 else "g"
        parts.append(f'<line class="{line}" x1="{left}" x2="{width - 32}" y1="{y}" y2="{y}"/>')
        parts.append(label(left - 6, down(mark) + 4, short(mark), "end"))
    for place, name in thinned(x_marks, turned, width):
        parts.append(label(across(place), bottom + 16, name[:24], "end" if turned else "middle", -40 if turned else 0))
    return "\n".join([*parts, *shapes(across, down), *words(picture, left, bottom, top), "</svg>\n"])


def label(x: float, y: float, name: str, anchor: str, turn: int = 0) -> str:
    turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turned}>{text(name)}</text>'


def thinned(marks: list[tuple[float, str]], turned: bool, width: int) -> list[tuple[float, str]]:
    room = max(1, width // 18) if turned else len(marks)
    return marks[:: max(1, math.ceil(len(marks) / room))]


def words(picture: Picture, left: float, bottom: float, top: float) -> list[str]:
    """Title, axis names and legend."""
    width, height = picture.size
    said = [f'<text class="t" x="{left}" y="24">{text(picture.title)}</text>'] if picture.title else []
    x_name, y_name = picture.labels
    y_name = f"{y_name} ({picture.unit})" if picture.unit and y_name else y_name or picture.unit
    if x_name:
        said.append(label((left + width) / 2, height - 6, x_name, "middle"))
    if y_name:
        said.append(label(14, (top + bottom) / 2, y_name, "middle", -90))
    place = left
    for number, name in enumerate(picture.series if len(picture.series) > 1 else []):
        said.append(f'<rect x="{place:.0f}" y="{top - 22}" width="10" height="10" fill="{colour(number)}"/>')
        said.append(f'<text x="{place + 14:.0f}" y="{top - 13}">{text(name[:24])}</text>')
        place += 30 + 7 * len(name[:24])
    return said


def placed(
    picture: Picture,
) -> tuple[Shapes, list[tuple[float, str]], tuple[float, float]]:
    """The marks, as soon as the scales are known; the names along the x axis; the ends of the y axis."""
    if picture.kind == "hist":
        return histogram(picture)
    values = [y for _, _, y in picture.points]
    ends = (min(0.0, *values), max(0.0, *values)) if picture.zero else (min(values), max(values))
    if picture.kind == "bar":
        return columns(picture), steps(picture.places), ends
    position, marks = positions(picture)
    return (lines if picture.kind == "line" else dots)(picture, position), marks, ends


def steps(places: list[str]) -> list[tuple[float, str]]:
    return [((place + 0.5) / len(places), name) for place, name in enumerate(places)]


def positions(picture: Picture) -> tuple[dict[str, float], list[tuple[float, str]]]:
    """Numbers and days lie where they belong, so a gap in time is a gap; other names stand side by side."""
    read = next((read for read in (float, day) if all(readable(read, x) for x in picture.places)), None)
    if read is None:
        marks = steps(picture.places)
        return {name: share for share, name in marks}, marks
    values = {x: read(x) for x in picture.places}
    if read is day:
        low, high = min(values.values()), max(values.values())
        marks = [(share((low, high), value), x) for x, value in values.items()]
        return {x: place for place, x in marks}, marks[:: max(1, len(marks) // 10)]
    found = ticks(min(values.values()), max(values.values()), 8)
    ends = (found[0], found[-1])
    return {x: share(ends, value) for x, value in values.items()}, [(share(ends, mark), plain(mark)) for mark in found]


def plain(value: float) -> str:
    """Without separators: a year is not 2,024."""
    return f"{value:.10g}"


def share(ends: tuple[float, float], value: float) -> float:
    return 0.02 + 0.96 * (value - ends[0]) / (ends[1] - ends[0]) if ends[1] > ends[0] else 0.5


def day(name: str) -> float:
    return float(date.fromisoformat(name if len(name) > 7 else f"{name}-01").toordinal())


def readable(read: Callable[[str], float], name: str) -> bool:
    try:
        return math.isfinite(read(name))
    except ValueError:
        return False


def columns(picture: Picture) -> Shapes:
    def bars(across: Scale, down: Scale) -> list[str]:
        places, many = picture.places, len(picture.series)
        step, parts = 1 / len(places), list[str]()
        for number, series in enumerate(picture.series):
            for x, y in picture.of(series):
                start = (places.index(x) + 0.1 + 0.8 * number / many) * step
                left, right = across(start), across(start + 0.8 / many * step)
                top, foot = sorted((down(y), down(0)))
                box = f'x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{foot - top:.1f}"'
                parts.append(f'<rect {box} fill="{colour(number)}">{tip(series, x, y)}</rect>')
        return parts

    return bars


def lines(picture: Picture, position: dict[str, float]) -> Shapes:
    def strokes(across: Scale, down: Scale) -> list[str]:
        parts: list[str] = []
        for number, series in enumerate(picture.series):
            path = " ".join(f"{across(position[x]):.1f},{down(y):.1f}" for x, y in picture.of(series))
            parts.append(f'<polyline points="{path}" fill="none" stroke="{colour(number)}" stroke-width="2"/>')
        return parts + (dots(picture, position)(across, down) if len(picture.points) <= 200 else [])

    return strokes


def dots(picture: Picture, position: dict[str, float]) -> Shapes:
    def marks(across: Scale, down: Scale) -> list[str]:
        return [
            f'<circle cx="{across(position[x]):.1f}" cy="{down(y):.1f}" r="3" fill="{colour(number)}" '
            f'fill-opacity="0.8">{tip(series, x, y)}</circle>'
            for number, series in enumerate(picture.series)
            for x, y in picture.of(series)
        ]

    return marks


def histogram(
    picture: Picture,
) -> tuple[Shapes, list[tuple[float, str]], tuple[float, float]]:
    values = [y for _, _, y in picture.points]
    edges = ticks(min(values), max(values), picture.bins or min(30, max(5, math.ceil(math.log2(len(values)) + 1))))
    counts = [0] * (len(edges) - 1)
    for value in values:
        place = min(int((value - edges[0]) / (edges[1] - edges[0]) + 1e-9), len(counts) - 1)
        counts[place] += 1

    def bars(across: Scale, down: Scale) -> list[str]:
        parts: list[str] = []
        for place, count in enumerate(counts):
            left, right = across(place / len(counts)) + 0.5, across((place + 1) / len(counts)) - 0.5
            about = tip("", f"{plain(edges[place])} to {plain(edges[place + 1])}", count)
            box = f'x="{left:.1f}" y="{down(count):.1f}" width="{right - left:.1f}"'
            box += f' height="{down(0) - down(count):.1f}"'
            parts.append(f'<rect {box} fill="{colour(0)}">{about}</rect>')
        return parts

    every = max(1, len(edges) // 10)
    marks = [(place / len(counts), plain(edge)) for place, edge in enumerate(edges)][::every]
    return bars, marks, (0.0, float(max(counts)))


def tip(series: str, x: str, y: float) -> str:
    return f"<title>{text(f'{series} · {x}' if series else x)}: {text(short(y))}</title>"


def colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def text(words: str) -> str:
    """Safe in XML: control characters may not even stand there escaped."""
    return escape("".join(sign for sign in words if sign.isprintable() or sign == " "))
