"""Lines without any colour, for NO_COLOR: marks, bold and reverse say what colours said.

Textual's own filter turns colours into greys, which are colours as well.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

STANDS_OUT = 60.0
"""How far a background is from that of the app, as a distance of RGB values, when it marks what is chosen."""
REVERSED = Style(reverse=True)
UPRIGHT = Style(reverse=False)


class Colourless(LineFilter):
    """Takes colours away and reverses what stood on a background that stands out. ``ground`` tells the app's own."""

    def __init__(self, ground: Callable[[], str | None]) -> None:
        super().__init__()
        self._ground = ground

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        ground = _rgb(self._ground() or "black")
        return [Segment(text, style and _plain(style, ground), control) for text, style, control in segments]


@lru_cache(8)
def _rgb(color: str) -> tuple[int, int, int]:
    return Color.parse(color).rgb


@lru_cache(2_048)
def _plain(style: Style, ground: tuple[int, int, int]) -> Style:
    marked = _stands_out(style.bgcolor, ground)
    return style.without_color + (UPRIGHT if marked and style.reverse else REVERSED if marked else Style.null())


def _stands_out(color: RichColor | None, ground: tuple[int, int, int]) -> bool:
    if color is None or color.is_default:
        return False
    found = color.get_truecolor()
    return sum((one - other) ** 2 for one, other in zip(found, ground, strict=True)) > STANDS_OUT**2
