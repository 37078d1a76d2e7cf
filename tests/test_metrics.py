"""Agreed definitions in a session: the model is told of them, a prompt mentions one, a query uses one or departs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ba_tui.assembly import connect
from ba_tui.core.conversation import Conversation
from ba_tui.core.events import Event, ToolFinished
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.providers.scripted import ScriptedCall, Step
from tests.loopback import ModelServer
from tests.script import collect

SALES = "region,units\nNorth,12\nSouth,30\nNorth,-5\n"
SOLD = "sql: sum(units) FILTER (WHERE units > 0)\nfrom: \"'sales.csv'\"\nunit: pieces\nsynonyms: [turnover]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    (work / ".ba" / "metrics").mkdir(parents=True)
    (work / "sales.csv").write_text(SALES)
    (work / ".ba" / "metrics" / "sold.yaml").write_text(SOLD)
    return work


def opened(folder: Path) -> Conversation:
    return connect({"model": "openai/any"}, folder).library.create()


def described(request: Any) -> str:
    tools = json.loads(request.body)["tools"]
    return next(tool["function"]["description"] for tool in tools if tool["function"]["name"] == "query_data")


async def test_a_definition_is_told_mentioned_and_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trust_folder(folder)
    steps = [
        Step(calls=(ScriptedCall("query_data", {"sql": "FROM metric('turnover', 'region') ORDER BY ALL"}),)),
        Step(calls=(ScriptedCall("query_data", {"sql": "SELECT sum(units) AS sold FROM sales"}),)),
        Step(calls=(ScriptedCall("analyse_data", {"operation": "profile", "table": "sales"}),)),
        Step(say="Done."),
    ]
    with ModelServer(steps) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        talk = opened(folder)
        mentions = talk.inventory.mentions
        assert mentions
        offered = await mentions.search("sol")
        assert [(each.kind, each.text) for each in offered if each.kind == "metric"] == [("metric", "sold")]
        events: list[Event] = await collect(talk.say("How much is @sold by region?"))
        await talk.close()
        assert "sold in pieces (also turnover)" in described(server.requests[0])
        assert "sql: sum(units) FILTER (WHERE units > 0)" in server.requests[0].body.decode()
    used, other, profile = [event.result for event in events if isinstance(event, ToolFinished)]
    assert used.text.endswith("North,12\nSouth,30")
    assert other.summary == "R2 · 1 row · sold is not computed as agreed"
    assert "Note: sold is not computed as agreed. The query computes it as SUM(units); agreed is" in other.text
    assert profile.text.startswith("Table sales: ")


async def test_a_folder_that_is_not_trusted_defines_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer([Step(say="Hello.")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        talk = opened(folder)
        await collect(talk.say("hello"))
        await talk.close()
        assert "metric(" not in described(server.requests[0])
