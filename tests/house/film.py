"""Screenshots put together into one SVG that moves: no script, no font and no address from outside.

Each row of the screen is written once, however many frames show it. Where nothing moves, the still frame is seen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from xml.etree import ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"
RULE = re.compile(r"\.terminal-\d+-(r\d+) \{ ([^}]*) \}")
BLANK = "\xa0 \n"
FONT = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace'
LINE, CELL, FIRST = 24.4, 12.2, 20.0
"""Height of a row, width of a cell, and where the text of the first row stands, in the units of a screenshot."""
SIZE = 20.26
"""With this size the cells of most fonts are CELL wide."""
EDGE = 18.0
Rows = tuple[str, ...]


@dataclass
class Frame:
    rows: Rows
    seconds: float


@dataclass
class Film:
    """``size``: columns and rows. ``still`` is the number of the frame that is seen where nothing moves."""

    size: tuple[int, int]
    frames: list[Frame] = field(default_factory=list[Frame])
    still: int = 0
    colour: str = ""
    _styles: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def seconds(self) -> float:
        return sum(frame.seconds for frame in self.frames)

    def add(self, screenshot: str, seconds: float) -> None:
        """One more frame; one like the newest makes that one longer."""
        rows = self._read(screenshot)
        if self.frames and self.frames[-1].rows == rows:
            self.frames[-1].seconds += seconds
        else:
            self.frames.append(Frame(rows, seconds))

    def _read(self, screenshot: str) -> Rows:
        styles = {name: self._style(css) for name, css in RULE.findall(screenshot)}
        matrix = next(group for group in ET.fromstring(screenshot).iter(f"{SVG}g") if group.get("clip-path"))
        rows: list[list[str]] = [[] for _ in range(self.size[1])]
        for shape in matrix.iter():
            y = float(shape.get("y", "0"))
            if shape.tag == f"{SVG}rect":
                rows[int(y / LINE)].append(self._ground(shape))
            elif shape.tag == f"{SVG}text" and (shape.text or "").strip(BLANK):
                rows[round((y - FIRST) / LINE)].append(_words(shape, styles))
        return tuple("".join(row) for row in rows)

    def _ground(self, shape: ET.Element) -> str:
        """A coloured background; what covers most of the first screen is the colour of the whole."""
        colour = shape.get("fill", "")
        self.colour = self.colour or colour
        if colour == self.colour:
            return ""
        x, width = float(shape.get("x", "0")), float(shape.get("width", "0"))
        return f'<rect x="{x:g}" y="1.5" width="{width:g}" height="24.65" fill="{colour}"/>'

    def _style(self, css: str) -> str:
        """A short class for ``css``."""
        return self._styles.setdefault(css.strip().rstrip(";"), f"s{len(self._styles)}")

    def svg(self, title: str) -> str:
        """The whole picture."""
        columns, lines = self.size
        width, height = columns * CELL + 2 * EDGE, lines * LINE + 2 * EDGE
        names = {row: f"r{number}" for number, row in enumerate(dict.fromkeys(self._all_rows()))}
        ground = f'<rect width="{width:.1f}" height="{height:.1f}" rx="8" fill="{self.colour}"/>'
        defined = "".join(f'<g id="{name}">{row}</g>' for row, name in names.items() if row)
        moving = "".join(
            f'<g class="f" id="f{number}">{ground}{_placed(frame.rows, names)}</g>'
            for number, frame in enumerate(self.frames)
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.1f} {height:.1f}" role="img">'
            f"<title>{escape(title)}</title><style>{self._css()}</style><defs>{defined}</defs>"
            f"{ground}{_placed(self.frames[self.still].rows, names)}{moving}</svg>\n"
        )

    def _all_rows(self) -> Sequence[str]:
        return [row for frame in self.frames for row in frame.rows]

    def _css(self) -> str:
        whole, at = self.seconds, 0.0
        css = [f"text{{font:{SIZE}px {FONT};white-space:pre}}"]
        css += [f".{name}{{{style}}}" for style, name in self._styles.items()]
        css.append(f".f{{visibility:hidden;animation:{whole:.2f}s step-end infinite}}")
        for number, frame in enumerate(self.frames):
            first, last = 100 * at / whole, 100 * (at + frame.seconds) / whole
            before = "0%{visibility:hidden}" if number else ""
            after = f"{last:.2f}%{{visibility:hidden}}" if number < len(self.frames) - 1 else ""
            css.append(f"@keyframes k{number}{{{before}{first:.2f}%{{visibility:visible}}{after}}}")
            css.append(f"#f{number}{{animation-name:k{number}}}")
            at += frame.seconds
        css.append("@media (prefers-reduced-motion:reduce){.f{animation:none}}")
        return "".join(css)


def _words(shape: ET.Element, styles: Mapping[str, str]) -> str:
    """A run of text. Blanks at its ends go: programs do not agree on whether they have a length."""
    words = (shape.text or "").strip("\n")
    begun = words.lstrip(BLANK)
    x = float(shape.get("x", "0")) + (len(words) - len(begun)) * CELL
    length = float(shape.get("textLength", "0")) - (len(words) - len(words.strip(BLANK))) * CELL
    style, shown = styles.get(shape.get("class", "").rpartition("-")[2], ""), escape(begun.rstrip(BLANK), quote=False)
    return f'<text class="{style}" x="{x:g}" y="{FIRST:g}" textLength="{length:g}">{shown}</text>'


def _placed(rows: Rows, names: Mapping[str, str]) -> str:
    return "".join(
        f'<use href="#{names[row]}" x="{EDGE:g}" y="{EDGE + number * LINE:.4g}"/>'
        for number, row in enumerate(rows)
        if row
    )
