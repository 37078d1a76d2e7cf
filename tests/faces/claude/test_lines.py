"""The lines that go out: pieces of an answer, sub-agents, questions of the model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

from ba_tui.core.events import (
    AgentStarted,
    Compressed,
    Event,
    MessageDone,
    MessageRestarted,
    Retrying,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolStarted,
    TurnStarted,
)
from ba_tui.core.messages import Message, Text, Thinking, ToolUse, Usage, user
from ba_tui.core.provider import ModelRequest, ReplyChunk
from ba_tui.core.questions import Option, Question
from ba_tui.core.results import ToolResult
from ba_tui.features.compat.host import HostQuestion
from ba_tui.features.compat.lines import ClaudeLines, ClaudeWords
from tests.faces.claude.program import Program, hosted, prompt
from tests.script import says


def test_a_question_of_the_model_is_one_of_claude_code():
    question = Question("choice", "Which?", "c1", "ask_user", options=(Option("blue"), Option("red", "warm")))
    put = HostQuestion(question, ClaudeWords(Path("/srv")), {})
    request = put.request()
    assert request["tool_name"] == "AskUserQuestion"
    assert [each["label"] for each in request["input"]["questions"][0]["options"]] == ["blue", "red"]
    allowed = {"behavior": "allow", "updatedInput": {"answers": {"Which?": "blue"}}}
    assert put.reply(allowed).text == "blue"
    assert put.reply({"behavior": "allow"}).choice == "deny"


async def test_pieces_come_in_the_order_of_the_messages_api():
    thought = Message(
        "assistant", (Thinking("hm", "sig"), Text("Done."), ToolUse("c", "none", {})), Usage(1, 2), "tool_use"
    )

    async def streamed(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        yield ThinkingDelta("wrong")
        yield MessageRestarted()
        yield ThinkingDelta("h")
        yield ThinkingDelta("m")
        yield TextDelta("Done.")
        yield Retrying("busy", 2.0, 1, 3)
        yield Compressed((), "truncate", 900, 300)
        yield thought

    program = Program()
    program.send(prompt())
    ran = await hosted(program, streamed, says("End."), partial=True)
    told = [line["event"] for line in ran.program.of("stream_event")]
    told = told[next(at for at, each in reversed(list(enumerate(told[:8]))) if each["type"] == "message_start") :]
    assert [each["type"].removeprefix("content_block_") for each in told[:14]] == [
        *("message_start", "start", "delta", "delta", "stop"),
        *("start", "delta", "stop"),
        *("start", "delta", "stop"),
        *("message_delta", "message_stop", "message_start"),
    ]
    assert [each["index"] for each in told[:11] if "index" in each] == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    whole = [line["message"]["content"][0]["type"] for line in ran.program.of("assistant")]
    assert whole == ["thinking", "text", "tool_use", "text"]
    assert ran.program.of("system", "api_retry")[0]["retry_delay_ms"] == 2000
    assert ran.program.of("system", "compact_boundary")[0]["compact_metadata"] == {"trigger": "auto", "pre_tokens": 900}


def test_what_sub_agents_do_names_the_call_that_started_them():
    lines = ClaudeLines("s", "test/model", ClaudeWords(Path("/srv")))
    starts = [ToolUse("t1", "task", {}), ToolUse("t2", "task", {})]
    events: list[Event] = [MessageDone(Message("assistant", tuple(starts))), *(ToolStarted(each) for each in starts)]
    # They begin in another order than their calls.
    for name, call_id in (("main/explore-2", "t2"), ("main/explore-1", "t1")):
        call = ToolUse(f"{name}-r", "read_file", {"path": "a"})
        events += [AgentStarted("explore", call_id=call_id, agent=name), TurnStarted(user("look"), agent=name)]
        events += [MessageDone(Message("assistant", (call,)), agent=name), ToolStarted(call, agent=name)]
        events += [ToolFinished(call.id, ToolResult("x"), agent=name)]
    events += [ToolFinished("t2", ToolResult("done"))]
    told = [line for event in events for line in lines.apply(event)]
    parents = [line["parent_tool_use_id"] for line in told]
    assert parents == [None, None, "t2", "t2", "t1", "t1", None]
    assert lines.calls, "the turn of a sub-agent begins no turn"
