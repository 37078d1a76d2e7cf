"""A question that was open when ba ended is asked again: the call had not run. The turn continues after the answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from ba_tui.core.agent import Agent, run_child
from ba_tui.core.effects import Effect
from ba_tui.core.events import (
    Answered,
    Asked,
    Event,
    Judged,
    MessageDone,
    Steered,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnResumed,
)
from ba_tui.core.messages import ToolOutput
from ba_tui.core.provider import ModelRequest, ReplyChunk
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.core.transcript import INTERRUPTED, OpenTurn
from ba_tui.core.turn import Turn
from tests.script import Memory, Mind, Script, conversation, says, thinking
from tests.turns.test_loop import tool


class Writer:
    """A tool that asks before it writes."""

    def __init__(self, kind: Any = "permission") -> None:
        self.kind = kind
        self.written: list[str] = []
        self.again: list[bool] = []

    @property
    def tool(self) -> Tool:
        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            self.again.append(call.again)
            reply = await call.ask(Question(self.kind, f"Write {args['path']}?", call.id, "write", dict(args)))
            if reply.choice == "deny":
                return ToolResult("no", is_error=True)
            self.written.append(args["path"])
            return ToolResult("written")

        return replace(tool("write", run), effect=Effect.WRITE)


def stopped(events: Sequence[Event], kind: type[Event] = Asked, times: int = 1) -> Memory:
    """The journal as it was when ba was killed, right behind the event of this ``kind``."""
    places = [place for place, event in enumerate(events, 1) if isinstance(event, kind)]
    return Memory(events[: places[times - 1]])


async def until(turn: Turn, kind: type[Event]) -> Any:
    async for event in turn:
        if isinstance(event, kind):
            return event
    raise AssertionError("the turn ended")


async def answered(turn: Turn, *choices: Any) -> list[Event]:
    """All events of ``turn``, its questions answered in order."""
    found: list[Event] = []
    replies = iter(choices)
    async for event in turn:
        found.append(event)
        if isinstance(event, Asked):
            turn.answer(event.ask_id, Reply(next(replies)))
    return found


async def killed_at_the_question(*calls: tuple[str, dict[str, Any]], answers: Sequence[Any] = ()) -> Memory:
    """The journal of a session that was killed while the next of ``calls`` waited for an answer."""
    journal = Memory()
    talk = conversation(Script(says("I write.", *calls)), Writer().tool, journal=journal)
    turn = talk.say("write it")
    for choice in answers:
        turn.answer((await until(turn, Asked)).ask_id, Reply(choice))
    await until(turn, Asked)
    left = Memory(journal.read())
    await talk.close()
    return left


ONE = ("write", {"path": "a"})
THREE = (("write", {"path": "a"}), ("write", {"path": "b"}), ("write", {"path": "c"}))


async def test_it_is_asked_again_and_the_turn_goes_on():
    journal, writer = await killed_at_the_question(ONE), Writer()
    script = Script(says("Done."))
    talk = conversation(script, writer.tool, journal=journal)
    await talk.history()
    turn = talk.go_on()
    assert turn
    assert not script.requests, "opening a session asks no model"
    events = await answered(turn, "once")
    assert writer.written == ["a"]
    assert writer.again == [True]
    assert isinstance(events[0], TurnResumed)
    assert events[-1] == TurnEnded("done", at=events[-1].at)
    assert [message.role for message in talk.transcript.messages] == ["user", "assistant", "user", "assistant"]
    again = conversation(Script(), journal=Memory(journal.read()))
    await again.history()
    assert again.transcript.messages == talk.transcript.messages
    assert again.go_on() is None


async def test_a_no_is_told_to_the_model():
    journal, writer = await killed_at_the_question(ONE), Writer()
    talk = conversation(Script(says("I leave it.")), writer.tool, journal=journal)
    await talk.history()
    turn = talk.go_on()
    assert turn
    await answered(turn, "deny")
    assert not writer.written
    assert talk.transcript.messages[-1].text == "I leave it."


async def test_calls_before_it_keep_their_results_and_those_behind_it_are_made():
    journal, writer = await killed_at_the_question(*THREE, answers=["once"]), Writer()
    talk = conversation(Script(says("Done.")), writer.tool, journal=journal)
    await talk.history()
    turn = talk.go_on()
    assert turn
    await answered(turn, "once", "once")
    assert writer.written == ["b", "c"]
    assert writer.again == [True, False]
    outputs = [block for block in talk.transcript.messages[2].blocks if isinstance(block, ToolOutput)]
    assert [output.content for output in outputs] == ["written"] * 3


async def test_a_call_that_was_allowed_stays_interrupted():
    journal = Memory()
    talk = conversation(Script(says("I write.", ONE), says("Done.")), Writer().tool, journal=journal)
    await answered(talk.say("write it"), "once")
    left = stopped(journal.read(), Answered)
    talk = conversation(Script(), Writer().tool, journal=left)
    await talk.history()
    assert talk.go_on() is None
    assert INTERRUPTED in str(talk.transcript.messages[-1])


async def test_a_second_question_of_a_call_that_has_begun_is_not_asked_again():
    """A command that ran in the sandbox and asks to leave it has had effects."""
    journal = await killed_at_the_question(ONE)
    asked = next(event for event in journal.read() if isinstance(event, Asked))
    before = [event for event in journal.read() if event != asked]
    allowed = Judged(asked.question.call_id, "write", "allow", "mode")
    talk = conversation(Script(), Writer().tool, journal=Memory([*before, allowed, asked]))
    await talk.history()
    assert talk.go_on() is None


@pytest.mark.parametrize("kind", ["choice", "plan"])
async def test_an_answer_that_the_model_asked_for_is_asked_for_again(kind: Any):
    journal = await killed_at_the_question(ONE)
    events = [
        Asked(event.ask_id, Question(kind, "Which?", event.question.call_id)) if isinstance(event, Asked) else event
        for event in journal.read()
    ]
    events.insert(-1, Judged(events[-1].question.call_id, "write", "allow", "mode"))  # type: ignore[union-attr]
    writer = Writer(kind)
    talk = conversation(Script(says("Done.")), writer.tool, journal=Memory(events))
    await talk.history()
    turn = talk.go_on()
    assert turn
    await answered(turn, "text")
    assert writer.again == [False], "a question of the model needs no approval"


async def test_closing_at_a_question_keeps_it_open():
    journal, writer = Memory(), Writer()
    talk = conversation(Script(says("I write.", ONE)), writer.tool, journal=journal)
    turn = talk.say("write it")
    await until(turn, Asked)
    await talk.close()
    assert not [event for event in journal.read() if isinstance(event, ToolFinished | TurnEnded)]
    talk = conversation(Script(says("Done.")), writer.tool, journal=journal)
    await talk.history()
    turn = talk.go_on()
    assert turn
    await answered(turn, "once")
    assert writer.written == ["a"]


class Delegating(Mind):
    """A Brain whose tool ``start`` starts an agent in the background, which is in the middle of its answer."""

    def __init__(self, provider: Script, *tools: Tool) -> None:
        super().__init__(provider, (tool("start", self.start), *tools))
        self.speaks = asyncio.Event()

    async def half(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        yield TextDelta("Half of the report.")
        self.speaks.set()
        await asyncio.Event().wait()

    async def start(self, args: Mapping[str, Any], call: Call) -> ToolResult:
        agent = Agent(Script(self.half), (), "You look.", ())
        self.work = asyncio.create_task(run_child(agent, call.branch.fork("explore"), "Look."))
        return ToolResult("started")

    async def close(self) -> None:
        self.work.cancel()
        await asyncio.wait([self.work])


async def test_closing_at_a_question_keeps_what_an_agent_and_another_call_have_received():
    async def ask(args: Mapping[str, Any], call: Call) -> ToolResult:
        await call.ask(Question("permission", "Read it?", call.id, "read", dict(args)))
        return ToolResult("read")

    async def look(args: Mapping[str, Any], call: Call) -> ToolResult:
        call.report("half of the list")
        await asyncio.Event().wait()
        return ToolResult("all of the list")

    journal, calls = Memory(), (("start", {}), ("list", {}), ("read", {}))
    mind = Delegating(Script(says("", *calls)), tool("list", look), tool("read", ask))
    talk = thinking(mind, journal)
    await until(talk.say("look and read"), Asked)
    await mind.speaks.wait()
    await talk.close()
    kept = journal.read()
    said = [event.message.text for event in kept if isinstance(event, MessageDone) and event.agent != "main"]
    assert said == ["Half of the report."]
    assert [(event.agent, event.reason) for event in kept if isinstance(event, TurnEnded)] == [
        ("main/explore-1", "cancelled")
    ]
    results = {event.call_id: event.result.text for event in kept if isinstance(event, ToolFinished)}
    assert list(results) == ["start-0-", "list-1-"]
    assert "half of the list" in results["list-1-"]
    talk = conversation(Script(says("Done.")), tool("read", ask), journal=journal)
    await talk.history()
    turn = talk.go_on()
    assert turn
    ending = (await answered(turn, "once"))[-1]
    assert ending == TurnEnded("done", at=ending.at)


async def test_closing_again_without_an_answer_keeps_it_open():
    journal = await killed_at_the_question(ONE)
    for _ in range(2):
        talk = conversation(Script(), Writer().tool, journal=journal)
        await talk.history()
        turn = talk.go_on()
        assert turn
        await until(turn, Asked)
        await talk.close()
    talk = conversation(Script(), Writer().tool, journal=journal)
    await talk.history()
    assert talk.go_on() is not None
    await talk.close()


async def test_an_interruption_is_an_answer():
    journal = await killed_at_the_question(ONE)
    talk = conversation(Script(), Writer().tool, journal=journal)
    await talk.history()
    turn = talk.go_on()
    assert turn
    await until(turn, Asked)
    turn.cancel()
    await turn.wait()
    ending = journal.read()[-1]
    assert ending == TurnEnded("cancelled", at=ending.at)
    assert talk.go_on() is None


async def test_another_prompt_instead_closes_the_turn():
    journal, writer = await killed_at_the_question(ONE), Writer()
    script = Script(says("Something else."))
    talk = conversation(script, writer.tool, journal=journal)
    await answered(talk.say("never mind"))
    endings = [event.reason for event in journal.read() if isinstance(event, TurnEnded)]
    assert endings == ["interrupted", "done"]
    assert not writer.written
    assert talk.go_on() is None
    roles = [message.role for message in script.requests[0].messages]
    assert roles == ["user", "assistant", "user"]


async def test_a_call_that_is_settled_without_a_question_ends_the_turn():
    """Nobody answered, so the model is not asked to go on."""

    async def refuse(args: Mapping[str, Any], call: Call) -> ToolResult:
        return ToolResult("this folder is read-only", is_error=True)

    journal = await killed_at_the_question(*THREE)
    script = Script(says("not wanted"))
    talk = conversation(script, tool("write", refuse), journal=journal)
    await talk.history()
    turn = talk.go_on()
    assert turn
    events = await answered(turn)
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].reason == "interrupted"
    assert not script.requests
    assert sum(isinstance(event, ToolStarted) for event in events) == 1


@pytest.mark.parametrize("agent", ["main/explore-1", "/review"])
def test_only_questions_of_the_main_agent_count(agent: str):
    open_turn = OpenTurn()
    open_turn.begun = True
    open_turn.apply(Asked("1", Question("permission", "?", "c"), agent=agent))
    open_turn.apply(Steered(says("x"), agent=agent))
    assert open_turn.waiting() is None
