"""Turns that can't be saved, can't begin, or hold what no file takes; and the end of a conversation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.agent import LANES
from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import SessionLocked, SessionNotSaved, StorageError, UsageError
from ba_tui.core.events import Notice, ThinkingDelta, ToolFinished, TurnEnded
from ba_tui.core.messages import Message, Text, ToolOutput, ToolUse
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.provider import ModelRequest, ReplyChunk
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Effect, ToolFacts
from ba_tui.core.turn import Branch
from tests.script import Memory, Mind, Script, collect, conversation, says, thinking
from tests.turns.test_loop import tool


async def test_a_journal_that_fails_is_said_once_and_the_work_goes_on():
    journal = Memory()

    async def fill(args: Mapping[str, Any], call: Call) -> ToolResult:
        journal.full = SessionNotSaved("No space left on the disk", "Free some space.", "sessions")
        return ToolResult("ok")

    talk = conversation(Script(says("", ("fill", {})), says("Done.")), tool("fill", fill), journal=journal)
    events = await collect(talk.say("go"))
    (notice,) = [event for event in events if isinstance(event, Notice)]
    assert (notice.level, notice.hint) == ("error", "Free some space.")
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].reason == "done"
    assert talk.transcript.messages[-1].text == "Done."


async def test_an_empty_prompt_and_a_second_turn_are_refused():
    talk = conversation(Script(says("Hello.")))
    with pytest.raises(UsageError, match="empty"):
        talk.say(" \n")
    turn = talk.say("Hi")
    with pytest.raises(UsageError, match="running"):
        talk.say("again")
    with pytest.raises(UsageError, match="running"):
        await talk.past.rewind(1, "conversation")
    await collect(turn)


async def test_a_fault_of_ours_ends_the_turn_as_one():
    talk = conversation(Script(ZeroDivisionError("oh"), says("Hello.")))
    *_, ended = await collect(talk.say("go"))
    assert isinstance(ended, TurnEnded)
    assert ended.reason == "error"
    assert ended.error
    assert (ended.error.kind, ended.error.message) == ("internal_error", "ZeroDivisionError: oh")
    assert "log" in ended.error.hint
    *_, ended = await collect(talk.say("again"))
    assert isinstance(ended, TurnEnded)
    assert ended.reason == "done"


async def test_nul_and_lone_surrogates_in_a_prompt_do_not_lose_it():
    journal = Memory()
    talk = conversation(Script(says("ok")), journal=journal)
    await collect(talk.say("a\0b\ud800c"))
    assert journal.read()[0].prompt.text == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c"  # type: ignore[union-attr]


async def test_a_call_cut_at_the_output_limit_is_answered_with_the_reason():
    cut = Message("assistant", (ToolUse("1", "fill", {}, '{"text": "It was'),), stop="max_tokens", origin="assistant")
    provider = Script(cut, says("In parts, then."))

    async def fill(args: Mapping[str, Any], call: Call) -> ToolResult:
        raise AssertionError

    await collect(conversation(provider, tool("fill", fill)).say("go"))
    output, *notes = provider.requests[1].messages[-1].blocks
    assert isinstance(output, ToolOutput)
    assert output.is_error
    assert "output limit" in "".join(note.text for note in notes if isinstance(note, Text))


@pytest.mark.parametrize("steps", range(3))
async def test_a_turn_that_is_stopped_before_it_opens_gives_the_prompt_back(steps: int):
    journal, waits = Memory(), asyncio.Event()

    async def admit(prompt: Message, branch: Branch) -> Sequence[Message]:
        await waits.wait()
        return ()

    mind = Mind(Script(says("Hello.")))
    mind.admits = admit
    talk = thinking(mind, journal)
    turn = talk.say("go")
    for _ in range(steps):
        await asyncio.sleep(0)
    turn.cancel()
    (ended,) = await collect(turn)
    assert isinstance(ended, TurnEnded)
    assert ended.reason == "cancelled"
    assert ended.error
    assert ended.error.kind == "prompt_refused"
    assert journal.read() == []
    waits.set()
    await collect(talk.say("go"))
    assert talk.transcript.messages[-1].text == "Hello."


async def test_a_fault_before_a_turn_opens_is_told_as_what_it_is():
    async def admit(prompt: Message, branch: Branch) -> Sequence[Message]:
        raise StorageError("approvals.yaml can't be read.")

    journal = Memory()
    mind = Mind(Script())
    mind.admits = admit
    talk = thinking(mind, journal)
    turn = talk.say("go")
    (ended,) = await collect(turn)
    assert isinstance(ended, TurnEnded)
    assert ended.error == StorageError("approvals.yaml can't be read.").info()
    assert not turn.opened
    assert journal.read() == []


async def test_closing_lets_go_of_the_connection():
    provider = Script(says("Hello."))
    talk = conversation(provider)
    await collect(talk.say("Hi"))
    await talk.close()
    assert provider.closed


@pytest.mark.parametrize("end", ["close", "cancel"])
async def test_a_call_that_is_stopped_says_by_whom(end: str):
    begun = asyncio.Event()

    async def slow(args: Mapping[str, Any], call: Call) -> ToolResult:
        begun.set()
        await asyncio.Event().wait()
        return ToolResult("never")

    talk = conversation(Script(says("", ("slow", {}))), tool("slow", slow))
    turn = talk.say("go")
    following = asyncio.create_task(collect(turn))
    await begun.wait()
    if end == "cancel":
        turn.cancel()
        await turn.wait()
    await talk.close()
    (result,) = [event.result.text for event in await following if isinstance(event, ToolFinished)]
    assert ("the session was closed" in result, "by the user" in result) == (end == "close", end == "cancel")


def impossible(*ids: str) -> Message:
    uses = [ToolUse(id, "ecco", {"x": 1}) for id in ids]
    return Message("assistant", tuple(uses), stop="tool_use", origin="assistant")


@pytest.mark.parametrize(
    "answers",
    [
        [impossible("a"), impossible("b"), impossible("c")],
        [impossible("a", "b", "c")],
        [impossible("a"), impossible("a", "b")],
        [impossible("a"), says("", ("other", {})), impossible("a"), impossible("a")],
    ],
)
async def test_the_same_impossible_call_ends_the_turn_at_its_third_time(answers: Sequence[Message]):
    talk = conversation(Script(*answers, says("I give up.")))
    events = await collect(talk.say("go"))
    results = [event.result.text for event in events if isinstance(event, ToolFinished)]
    told = ["the same impossible call of 'ecco' was made 3 times" in result for result in results]
    assert told == [False] * (len(results) - 1) + [True]
    assert ["There is no tool" in result for result in results] == [not each for each in told]
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].reason == "limit"


async def test_a_session_that_another_process_writes_is_left_as_it_is():
    journal = Memory()
    info = SessionInfo("20261121-120000-test", "", Path("/srv"), 0.0, 0.0, model="test/model", locked_by="ba 7")
    talk = Conversation(info, journal, Mind(Script()))

    async def work(branch: Branch) -> None:
        raise AssertionError

    for change in (
        lambda: talk.say("go"),
        lambda: talk.beside(work),
        lambda: talk.use_model("test/model"),
        lambda: talk.set_mode("plan"),
        lambda: talk.rename("Other"),
    ):
        with pytest.raises(SessionLocked, match="open in ba 7"):
            change()
    with pytest.raises(SessionLocked):
        await talk.past.rewind(1, "conversation")
    assert (talk.go_on(), talk.busy, talk.title, journal.read()) == (None, False, "", [])
    assert talk.permissions.mode == "default"
    await talk.close()


async def test_a_turn_that_has_ended_is_on_the_disk():
    class Synced(Memory):
        synced = 0

        def sync(self) -> None:
            self.synced = len(self.lines)

    journal = Synced()
    turn = conversation(Script(says("Hello.")), journal=journal).say("go")
    await collect(turn)
    await turn.wait()
    assert journal.synced == len(journal.lines) > 0


async def test_so_many_calls_read_at_once_beside_those_that_start_agents():
    running: set[str] = set()
    most = 0
    full = asyncio.Event()

    async def work(args: Mapping[str, Any], call: Call) -> ToolResult:
        nonlocal most
        running.add(call.id)
        most = max(most, len(running))
        if most == LANES + 3:
            full.set()
        await full.wait()
        running.remove(call.id)
        return ToolResult("ok")

    delegate = replace(tool("delegate", work), facts=ToolFacts(below=lambda args: Effect.READ))
    calls = [*[("delegate", {})] * 3, *[("read", {})] * (LANES + 4)]
    talk = conversation(Script(says("", *calls), says("Done.")), tool("read", work), delegate)
    events = await collect(talk.say("go"))
    assert most == LANES + 3
    assert len([event for event in events if isinstance(event, ToolFinished)]) == LANES + 7


async def test_what_a_model_thinks_goes_out():
    async def thinks(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        yield ThinkingDelta("Hm.")
        yield says("Hello.")

    events = await collect(conversation(Script(thinks)).say("go"))
    assert [event.text for event in events if isinstance(event, ThinkingDelta)] == ["Hm."]


async def test_a_call_for_which_no_thread_starts_has_a_result_and_ends_the_turn():
    async def work(args: Mapping[str, Any], call: Call) -> ToolResult:
        raise RuntimeError("can't start new thread")

    events = await collect(conversation(Script(says("", ("work", {}))), tool("work", work)).say("go"))
    (finished,) = [event.result for event in events if isinstance(event, ToolFinished)]
    assert finished.error
    assert finished.error.kind == "resource_error"
    assert "ulimit" in finished.text
    ended = events[-1]
    assert isinstance(ended, TurnEnded)
    assert (ended.reason, ended.error and ended.error.kind) == ("error", "resource_error")
