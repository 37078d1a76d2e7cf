"""Teams from an order to an answer: patterns, conflicts, failures, going on."""

from __future__ import annotations

from pathlib import Path

from ba_tui.core.events import TeamChanged, TeamMessage, TurnEnded
from tests.script import says
from tests.team.house import TeamHouse, answer, settled


async def test_three_roles_work_one_after_the_other(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    house.plays(
        researcher=[[says("North has 412 orders.\n\nFacts:\n- north_orders: 412 (confidence 0.9)")]],
        writer=[[says("North had 390 orders.\n\nFacts:\n- north_orders: 390 (confidence 0.4)")]],
        editor=[[says("North had 412 orders.")]],
    )
    events = await house.team("Write about North", "researcher", "writer", "editor")
    for e in events:
        print(e)
    assert answer(events) == "North had 412 orders."
    (conflict,) = settled(events)
    assert conflict.winner and conflict.winner.value == "412"
    assert "412" in house.providers[2].requests[0].messages[0].text
    assert isinstance(events[-1], TurnEnded) and events[-1].reason == "done"
