"""What programs print, as segments in their own colours; every other sequence is gone.

Reading the sequences is core.untrusted's business.
"""

from __future__ import annotations

from functools import lru_cache

from rich.color import Color
from rich.segment import Segment
from rich.style import Style

from ba_tui.core.text.ansi import Colour, Ink, inked_lines


def ansi_segments(text: str, ground: Style) -> list[list[Segment]]:
    """The lines of ``text`` over ``ground``, tabs expanded, progress lines as a terminal leaves them."""
    return [
        [Segment(words.replace("\n", "␤").expandtabs(8), ground + ink_style(ink)) for words, ink in runs]
        for runs in inked_lines(text)
    ]


@lru_cache(512)
def ink_style(ink: Ink) -> Style:
    """As rich knows it. Black and white without a ground of their own would vanish on some themes."""
    bare = {0: 8, 7: None, 15: None} if ink.bg is None and not ink.reverse else {}
    return Style(
        color=_colour(bare.get(ink.fg, ink.fg) if isinstance(ink.fg, int) else ink.fg),
        bgcolor=_colour(ink.bg),
        bold=ink.bold or None,
        dim=ink.dim or None,
        italic=ink.italic or None,
        underline=ink.underline or None,
        strike=ink.strike or None,
        reverse=ink.reverse or None,
    )


def _colour(colour: Colour) -> Color | None:
    if colour is None:
        return None
    return Color.from_ansi(colour) if isinstance(colour, int) else Color.from_rgb(*colour)
