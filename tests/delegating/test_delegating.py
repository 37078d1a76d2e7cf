"""Sub-agents by the tool: what they are told, what comes back, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from ba_tui.core.events import ToolFinished, TurnStarted
from ba_tui.core.events.teamwork import AgentStarted
from tests.delegating.house import AgentHouse, delegates
from tests.script import collect, says


@pytest.fixture
def house(tmp_path: Path, ba_home: Path) -> AgentHouse:
    return AgentHouse(tmp_path)


def results(events: object) -> list[str]:
    return [each.result.text for each in events if isinstance(each, ToolFinished) and each.agent == "main"]


async def test_an_agent_works_on_its_own_prompt_and_its_report_names_it(house: AgentHouse) -> None:
    house.main.steps = [delegates(("explore", "Find the parser.")), says("Done.")]
    house.plays(explore=[[says("It is in core/parse.py:3.")]])
    events = await collect(house.talk.say("Use an agent."))
    assert results(events) == ["It is in core/parse.py:3.\n\nagent_id: main/explore-1"]
    (finished,) = [each for each in events if isinstance(each, ToolFinished)]
    assert finished.result.meta == {"agent_id": "main/explore-1", "status": "done"}
    started = next(each for each in events if isinstance(each, AgentStarted))
    assert (started.agent, started.kind, started.call_id, started.model) == (
        *("main/explore-1", "explore", finished.call_id, "test/main"),
    )
    own = [each for each in events if each.agent == "main/explore-1"]
    assert isinstance(own[1], TurnStarted)
    assert [message.text for message in house.providers[0].requests[0].messages] == ["Find the parser."]
