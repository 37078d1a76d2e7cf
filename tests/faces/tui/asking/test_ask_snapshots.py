"""Pictures of the approval panel: a command and a diff, small and large, dark and light."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.pilot import Pilot

from ba_tui.faces.tui.inspector.__main__ import Demo
from tests.faces.tui.asking.test_ask import settle

DARK, LIGHT = "textual-dark", "textual-light"


async def quiet(pilot: Pilot[None]) -> None:
    await settle(pilot)
    await settle(pilot)


@pytest.mark.parametrize(
    ("sample", "theme", "size"),
    [
        ("ask", DARK, (80, 24)),
        ("ask", DARK, (120, 36)),
        ("ask", LIGHT, (80, 24)),
        ("ask-diff", DARK, (80, 24)),
        ("ask-diff", DARK, (120, 36)),
        ("ask-diff", LIGHT, (80, 24)),
        ("ask-destructive", DARK, (40, 12)),
        ("diff", DARK, (120, 36)),
        ("command", LIGHT, (80, 24)),
        ("ask-danger", LIGHT, (80, 24)),
    ],
)
def test_picture(snap_compare: Callable[..., bool], sample: str, theme: str, size: tuple[int, int]) -> None:
    assert snap_compare(Demo(sample, theme), terminal_size=size, run_before=quiet)
