"""A session that stopped at a question: the panel asks it again, and the conversation goes on in the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ba_tui.core.events import Asked, MessageDone, ToolStarted, TurnEnded, TurnStarted
from ba_tui.core.messages import ToolUse, user
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import ToolResult
from ba_tui.core.start import Start
from ba_tui.core.tool import Call, Tool
from ba_tui.faces.tui.transcript.records import End, ToolRow
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World, answer

CALL = ToolUse("c1", "shell", {"command": "make"})
QUESTION = Question("permission", "Run it?", "c1", "shell", {"command": "make"})
LEFT = [
    TurnStarted(user("build it")),
    MessageDone(answer("I run make.", CALL)),
    ToolStarted(CALL, "make"),
    Asked("q1", QUESTION),
]


@pytest.fixture
def left(world: World) -> World:
    async def shell(args: Mapping[str, Any], call: Call) -> ToolResult:
        return ToolResult((await call.ask(QUESTION)).choice)

    world.brain.tools = (Tool("shell", "Runs.", {}, shell),)
    world.shelf.put("aaaa1111", "Build", LEFT)
    return world


async def asked(hand: Hand) -> None:
    await hand.until(lambda: hand.chat.ask and hand.chat.ask.waiting)


def answer_it(hand: Hand, left: World) -> None:
    """A key would have to wait until the panel listens."""
    events = left.shelf.journals["aaaa1111"].events
    newest = [event for event in events if isinstance(event, Asked)][-1]
    assert hand.chat.turns.current
    assert hand.chat.turns.current.answer(newest.ask_id, Reply("once"))


async def test_it_is_asked_again_and_the_rows_go_on(left: World) -> None:
    async with running(left, Start(resume="aaaa")) as hand:
        await asked(hand)
        assert not left.script.requests
        assert "ba ended at a question. Your answer continues the turn." in hand.said()
        (row,) = (record for record in hand.chat.transcript.records if isinstance(record, ToolRow))
        assert row.state == "waiting"
        answer_it(hand, left)
        await hand.until(lambda: "Done." in hand.said())
        (row,) = (record for record in hand.chat.transcript.records if isinstance(record, ToolRow))
        assert row.state == "ok"
        (end,) = (record for record in hand.chat.transcript.records if isinstance(record, End))
        assert end.calls == 1


async def test_a_prompt_of_the_start_waits_for_the_answer(left: World) -> None:
    async with running(left, Start(prompt="and then?", resume="aaaa")) as hand:
        await asked(hand)
        assert list(hand.chat.turns.waiting) == ["and then?"]
        answer_it(hand, left)
        await hand.until(lambda: len(left.script.requests) == 2 and not hand.chat.turns.busy)
        assert "and then?" in hand.said()


async def test_a_session_opened_later_is_asked_about_as_well(left: World) -> None:
    async with running(left) as hand:
        await hand.send("/resume aaaa")
        await asked(hand)


async def test_leaving_again_keeps_the_question(left: World) -> None:
    async with running(left, Start(resume="aaaa")) as hand:
        await asked(hand)
        await hand.app.action_quit()
    events = left.shelf.journals["aaaa1111"].events
    assert isinstance(events[-1], Asked)
    assert not any(isinstance(event, TurnEnded) for event in events)
