"""Without colour: what a colour said is said by reverse, and all other attributes stay."""

from __future__ import annotations

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from ba_tui.faces.tui.themes import Colourless

GROUND = "#131518"


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("#d8dbe0 on #131518", ""),
        ("bold italic underline #d8dbe0 on #24282e", "bold italic underline"),
        ("red on #6fb3d2", "reverse"),
        ("bold reverse red on #6fb3d2", "bold not reverse"),
        ("bright_black", ""),
        ("default on default", ""),
        ("red on color(9)", "reverse"),
    ],
)
def test_a_background_that_stands_out_becomes_reverse(given: str, made: str) -> None:
    (segment,) = Colourless(lambda: GROUND).apply([Segment("x", Style.parse(given))], Color.parse(GROUND))
    assert segment.style == Style.parse(made)


def test_segments_without_a_style_stay_as_they_are() -> None:
    bare = [Segment("x"), Segment("y", None, [])]
    assert Colourless(lambda: None).apply(bare, Color.parse("white")) == bare
