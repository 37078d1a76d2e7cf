"""Golden turns: a script in, the events out."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from ba_tui.core.errors import ConnectionLost, StopTurn
from ba_tui.core.events import (
    Asked,
    Event,
    MessageDone,
    MessageRestarted,
    Steered,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnEnded,
)
from ba_tui.core.messages import Message, ToolOutput, ToolUse, reminder
from ba_tui.core.provider import ModelRequest, ReplyChunk
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Effect, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from tests.script import Memory, Script, collect, conversation, kinds, says


def tool(name: str, run: Any, effect: Effect = Effect.READ) -> Tool:
    return Tool(name, f"The {name} tool.", {"type": "object"}, run, effect)


async def echo(args: Mapping[str, Any], call: Call) -> ToolResult:
    return ToolResult(f"echo {args.get('x')}")


def outputs(messages: Any) -> list[ToolOutput]:
    return [block for message in messages for block in message.blocks if isinstance(block, ToolOutput)]


def paired(messages: Any) -> bool:
    """Every call is answered once, in the next message; roles alternate; the first is the user's."""
    roles = [message.role for message in messages]
    if roles[:1] != ["user"] or any(a == b for a, b in itertools.pairwise(roles)):
        return False
    for message, following in zip(messages, [*messages[1:], None], strict=True):
        asked = [call.id for call in message.calls]
        given = [block.tool_use_id for block in following.blocks if isinstance(block, ToolOutput)] if following else []
        if asked != given:
            return False
    return True


async def test_an_answer_without_calls_ends_the_turn():
    talk = conversation(Script(says("Hello.")))
    events = await collect(talk.say("Hi"))
    assert kinds(events) == ["turn_started", "titled", "message_done", "turn_ended"]
    assert events[-1] == TurnEnded("done", at=events[-1].at)
    assert talk.title == "Hi"


async def test_calls_run_and_their_results_reach_the_next_request():
    provider = Script(says("Look", ("echo", {"x": 1}), ("echo", {"x": 2})), says("Done."))
    talk = conversation(provider, tool("echo", echo))
    events = await collect(talk.say("go"))
    assert kinds(events).count("tool_finished") == 2
    assert [block.content for block in outputs(provider.requests[1].messages)] == ["echo 1", "echo 2"]
    assert paired(talk.transcript.messages)


async def test_cost_comes_from_usage_and_prices():
    events = await collect(conversation(Script(says("Hello."))).say("Hi"))
    (done,) = [event for event in events if isinstance(event, MessageDone)]
    assert done.cost == pytest.approx((100 * 1 + 10 * 2) / 1e6)


async def test_reading_calls_run_together_and_keep_their_order():
    gate, running = asyncio.Event(), 0

    async def read(args: Mapping[str, Any], call: Call) -> ToolResult:
        nonlocal running
        running += 1
        if running == 3:
            gate.set()
        await gate.wait()
        return ToolResult(str(args["x"]))

    provider = Script(says("", *(("read", {"x": n}) for n in range(3))), says("ok"))
    await collect(conversation(provider, tool("read", read)).say("go"))
    assert [block.content for block in outputs(provider.requests[1].messages)] == ["0", "1", "2"]


async def test_a_writing_call_makes_all_run_one_after_the_other():
    active: list[int] = []

    async def work(args: Mapping[str, Any], call: Call) -> ToolResult:
        active.append(args["x"])
        await asyncio.sleep(0)
        assert active[-1] == args["x"]
        return ToolResult("")

    provider = Script(says("", ("read", {"x": 1}), ("write", {"x": 2}), ("read", {"x": 3})), says("ok"))
    talk = conversation(provider, tool("read", work), tool("write", work, Effect.WRITE))
    events = await collect(talk.say("go"))
    order = [event.type for event in events if isinstance(event, ToolStarted | ToolFinished)]
    assert order == ["tool_started", "tool_finished"] * 3
    assert not any(event.result.is_error for event in events if isinstance(event, ToolFinished))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (ToolUse("1", "ecco", {}), "Did you mean echo?"),
        (ToolUse("1", "echo", {}, malformed='{"x": '), "not a JSON object"),
        (ToolUse("1", "crash", {}), "ZeroDivisionError"),
        (ToolUse("1", "quit", {}), "SystemExit"),
    ],
)
async def test_whatever_goes_wrong_in_a_call_goes_back_to_the_model(call: ToolUse, expected: str):
    async def crash(args: Mapping[str, Any], call: Call) -> ToolResult:
        raise ZeroDivisionError("x")

    async def leave(args: Mapping[str, Any], call: Call) -> ToolResult:
        raise SystemExit(3)

    answer = Message("assistant", (call,), stop="tool_use", origin="assistant")
    provider = Script(answer, says("I see."))
    talk = conversation(provider, tool("echo", echo), tool("crash", crash), tool("quit", leave))
    events = await collect(talk.say("go"))
    (output,) = outputs(provider.requests[1].messages)
    assert output.is_error
    assert expected in output.content
    assert "\nTool Call ID: 1\n" in output.content
    assert events[-1].type == "turn_ended"
    assert paired(talk.transcript.messages)


async def test_each_request_extends_the_last_and_equals_the_refolded_journal():
    journal = Memory()
    steps = [says(f"step {n}", ("echo", {"x": n})) for n in range(5)]
    provider = Script(*steps, says("end"), *steps, says("end"))
    talk = conversation(provider, tool("echo", echo), journal=journal)
    await collect(talk.say("first"))
    await collect(talk.say("second"))
    for before, after in itertools.pairwise(provider.requests):
        assert tuple(after.messages[: len(before.messages)]) == tuple(before.messages)
    assert Transcript(events=journal.read()).messages == talk.transcript.messages


async def test_cancel_in_a_tool_leaves_its_output_and_every_call_paired():
    started = asyncio.Event()

    async def slow(args: Mapping[str, Any], call: Call) -> ToolResult:
        call.report("\x1b[31mhalf of it")
        started.set()
        await asyncio.Event().wait()
        return ToolResult("never")

    journal = Memory()
    provider = Script(says("", ("slow", {}), ("slow", {})), says("again"))
    talk = conversation(provider, tool("slow", slow, Effect.EXECUTE), journal=journal)
    turn = talk.say("go")
    events = await collect(turn, lambda event: turn.cancel() if isinstance(event, ToolProgress) else None)
    assert events[-1].type == "turn_ended"
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].reason == "cancelled"
    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    assert "half of it" in finished.result.text
    assert "\x1b" not in finished.result.text
    assert paired(talk.transcript.messages)
    await collect(talk.say("and now?"))
    assert paired(provider.requests[-1].messages)
    assert Transcript(events=journal.read()).messages == talk.transcript.messages


async def test_cancel_in_a_stream_keeps_the_words_and_drops_the_calls():
    async def halting(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        yield TextDelta("Half an ")
        yield TextDelta("answer")
        await asyncio.Event().wait()

    talk = conversation(Script(halting))
    turn = talk.say("go")
    events = await collect(turn, lambda event: turn.cancel() if event.type == "text_delta" else None)
    (kept,) = [event.message for event in events if isinstance(event, MessageDone)]
    assert kept.text.startswith("Half an ")
    assert kept.stop == "cancelled"
    assert kept.calls == ()


async def test_cancel_while_a_question_waits_withdraws_it():
    async def asks(args: Mapping[str, Any], call: Call) -> ToolResult:
        await call.ask(Question("choice", "Which?"))
        return ToolResult("never")

    talk = conversation(Script(says("", ("asks", {}))), tool("asks", asks))
    turn = talk.say("go")
    ids: list[str] = []

    def react(event: Event) -> None:
        if isinstance(event, Asked):
            ids.append(event.ask_id)
            turn.cancel()

    events = await collect(turn, react)
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].reason == "cancelled"
    assert not turn.answer(ids[0], Reply("once"))
    assert paired(talk.transcript.messages)


async def test_the_first_answer_wins():
    async def asks(args: Mapping[str, Any], call: Call) -> ToolResult:
        return ToolResult((await call.ask(Question("choice", "Which?"))).text)

    provider = Script(says("", ("asks", {})), says("ok"))
    talk = conversation(provider, tool("asks", asks))
    turn = talk.say("go")
    won: list[bool] = []

    def react(event: Event) -> None:
        if isinstance(event, Asked):
            won.extend([turn.answer(event.ask_id, Reply("text", "a")), turn.answer(event.ask_id, Reply("text", "b"))])

    await collect(turn, react)
    assert won == [True, False]
    assert outputs(provider.requests[1].messages)[0].content == "a"


async def test_steering_joins_between_steps_and_after_the_last_word():
    heard = asyncio.Event()

    async def last_word(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        yield TextDelta("do")
        await heard.wait()
        yield says("done")

    provider = Script(says("", ("echo", {"x": 1})), last_word, says("and that"))
    talk = conversation(provider, tool("echo", echo))
    turn = talk.say("go")
    steered: list[str] = []

    def react(event: Event) -> None:
        if isinstance(event, ToolStarted):
            turn.steer("use y instead")
        if isinstance(event, TextDelta):
            turn.steer("one more")
            heard.set()
        if isinstance(event, Steered):
            steered.append(event.message.text)

    await collect(turn, react)
    assert steered == ["use y instead", "one more"]
    assert "use y instead" in provider.requests[1].messages[-1].text
    assert provider.requests[2].messages[-1].text == "one more"
    assert not turn.steer("too late")


async def test_a_lost_stream_keeps_what_came_and_says_why():
    async def torn(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        yield TextDelta("It begins")
        raise ConnectionLost("The connection was lost.", "Check the network.")

    talk = conversation(Script(torn))
    events = await collect(talk.say("go"))
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].error
    assert events[-1].error.hint == "Check the network."
    assert talk.transcript.messages[-1].text == "It begins"


async def test_a_restarted_answer_replaces_its_first_words_but_a_final_failure_keeps_them():
    async def again(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        yield TextDelta("first try")
        yield MessageRestarted()
        raise ConnectionLost("lost")

    talk = conversation(Script(again))
    assert "message_restarted" in kinds(await collect(talk.say("go")))
    assert talk.transcript.messages[-1].text == "first try"


async def test_the_step_limit_asks_and_a_no_brings_the_best_answer_so_far():
    provider = Script(*(says(f"s{n}", ("echo", {"x": n})) for n in range(3)), says("So far: 3."))
    talk = conversation(provider, tool("echo", echo), max_loops=3)
    turn = talk.say("go")

    def react(event: Event) -> None:
        if isinstance(event, Asked):
            turn.answer(event.ask_id, Reply("deny"))

    events = await collect(turn, react)
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].reason == "limit"
    assert not provider.requests[-1].call_tools
    assert talk.transcript.messages[-1].text == "So far: 3."


async def test_the_step_limit_goes_on_when_the_person_says_so():
    provider = Script(*(says(f"s{n}", ("echo", {"x": n})) for n in range(4)), says("Done."))
    talk = conversation(provider, tool("echo", echo), max_loops=3)
    turn = talk.say("go")
    asked: list[Event] = []

    def react(event: Event) -> None:
        if isinstance(event, Asked):
            asked.append(event)
            turn.answer(event.ask_id, Reply("once"))

    events = await collect(turn, react)
    assert len(asked) == 1
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].reason == "done"


@pytest.mark.parametrize("closing", ["", "Enough of that."])
async def test_a_guard_that_stops_the_turn_gets_one_last_answer(closing: str):
    async def stops(args: Mapping[str, Any], call: Call) -> ToolResult:
        raise StopTurn("The same call was made three times.", closing=closing)

    provider = Script(says("", ("stops", {})), says("Best so far."))
    talk = conversation(provider, tool("stops", stops))
    events = await collect(talk.say("go"))
    assert isinstance(events[-1], TurnEnded)
    assert (events[-1].reason, events[-1].error and events[-1].error.message) == (
        "limit",
        "The same call was made three times.",
    )
    assert paired(talk.transcript.messages)
    assert talk.transcript.messages[-1].text == "Best so far."
    assert f"{closing or 'The same call was made three times.'} No tool" in provider.requests[-1].messages[-1].text


async def test_an_answer_cut_at_the_output_limit_is_continued():
    provider = Script(says("One, two", stop="max_tokens"), says(", three."))
    talk = conversation(provider)
    events = await collect(talk.say("count"))
    assert kinds(events).count("message_done") == 2
    assert "output limit" in provider.requests[1].messages[-1].text


@pytest.mark.parametrize("effect", [Effect.READ, Effect.WRITE])
async def test_what_joins_while_calls_run_waits_for_their_results(effect: Effect):
    async def chatty(args: Mapping[str, Any], call: Call) -> ToolResult:
        call.branch.post(reminder(f"left by {args['x']}"))
        call.branch.emit(Steered(reminder(f"said by {args['x']}")))
        await asyncio.sleep(0)
        return ToolResult(f"result of {args['x']}")

    provider = Script(says("", *(("chatty", {"x": number}) for number in range(3))), says("done"))
    await collect(conversation(provider, tool("chatty", chatty, effect)).say("go"))
    sent = provider.requests[1].messages
    assert paired(sent)
    assert [block.content for block in outputs(sent)] == [f"result of {number}" for number in range(3)]
    text = sent[-1].text
    assert [text.count(f"{how} by {number}") for number in range(3) for how in ("left", "said")] == [1] * 6
    assert text.index("left by 0") < text.index("said by 0")


async def test_an_agent_within_a_turn_does_not_take_the_words_of_another():
    turn = Turn()
    main = Branch(turn, Transcript())
    other = main.fork("main/other")
    turn.steer("for the first agent")
    other.post(reminder("for the other"))
    assert other.drain()
    assert main.drain()
    assert [message.text for message in main.transcript.messages] == ["for the first agent"]
    assert "for the other" in other.transcript.messages[0].text


async def test_a_note_after_the_last_word_makes_the_agent_go_on():
    class Once:
        done = False

        async def before(self, branch: Branch) -> None:
            return None

        async def after(self, reply: Message, branch: Branch) -> None:
            if not self.done:
                self.done = True
                branch.post(reminder("Two todos are open."))

    provider = Script(says("Finished."), says("Now really."))
    events = await collect(conversation(provider, interceptors=[Once()]).say("go"))
    assert kinds(events).count("message_done") == 2
