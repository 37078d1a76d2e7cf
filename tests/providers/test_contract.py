"""One contract for every provider: same script in, same chunks and message out."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest

from ba_tui.core.errors import AuthFailed, ConnectionLost, ContextOverflow, ModelNotFound, RateLimited, ServerOverloaded
from ba_tui.core.events import TextDelta, ThinkingDelta, ToolInputDelta
from ba_tui.core.messages import Message, Text, Thinking, ToolOutput, ToolUse, Usage, user
from ba_tui.core.provider import ModelRequest, Provider
from ba_tui.providers.scripted import ModelScript, ScriptedCall, ScriptFailure, Step
from tests.loopback import ModelServer, Raw, formats
from tests.providers.conftest import NOW, READ, Connect, collect, until_error

Play = Callable[[ModelScript], Provider]
ASK = ModelRequest("Be brief.", [user("Hello")], (READ, NOW))
LONG = "A line of **Markdown** with ünïcödé, 中文 and 🎉.\n" * 300


def text_of(chunks: list[Any], kind: type[TextDelta] | type[ThinkingDelta]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, kind))


async def test_words_come_as_deltas_and_then_as_one_message(play: Play) -> None:
    provider = play(ModelScript((Step(say=LONG, usage=Usage(10, 20, 30, 40)),)))
    chunks = await collect(provider.stream(ASK))
    message = chunks[-1]
    assert [type(chunk) for chunk in chunks].count(Message) == 1
    assert text_of(chunks, TextDelta) == LONG
    assert message.blocks == (Text(LONG),)
    assert message.role == "assistant"
    assert message.origin == "assistant"
    assert message.model == provider.model.id
    assert message.stop == "end_turn"
    assert message.usage == Usage(10, 20, 30, 40)


async def test_thinking_comes_before_the_words(play: Play) -> None:
    chunks = await collect(play(ModelScript((Step(think="Let me see.\nYes.", say="Done."),))).stream(ASK))
    kinds = [type(chunk) for chunk in chunks]
    assert kinds.index(ThinkingDelta) < kinds.index(TextDelta)
    thought, said = chunks[-1].blocks
    assert isinstance(thought, Thinking)
    assert thought.thinking == text_of(chunks, ThinkingDelta) == "Let me see.\nYes."
    assert said == Text("Done.")


async def test_parallel_calls_keep_their_order_and_arguments(play: Play) -> None:
    hard = {"path": 'a "quoted" \\ pâth\n', "deep": {"list": [1, 2.5, None, True, "🎉"]}}
    step = Step(say="Two.", calls=(ScriptedCall("read_file", hard, "id-1"), ScriptedCall("now", {}, "id-2")))
    chunks = await collect(play(ModelScript((step,))).stream(ASK))
    message = chunks[-1]
    assert message.calls == (ToolUse("id-1", "read_file", hard), ToolUse("id-2", "now", {}))
    assert message.stop == "tool_use"
    writing = [chunk for chunk in chunks if isinstance(chunk, ToolInputDelta)]
    assert {chunk.call_id for chunk in writing} == {"id-1", "id-2"}
    assert {chunk.name for chunk in writing} == {"read_file", "now"}
    assert max(chunk.size for chunk in writing) > 40


async def test_calls_without_ids_in_the_script_get_different_ones(play: Play) -> None:
    step = Step(calls=(ScriptedCall("now"), ScriptedCall("now")))
    provider = play(ModelScript((step, step)))
    answers = [(await collect(provider.stream(ASK)))[-1] for _ in range(2)]
    ids = [call.id for answer in answers for call in answer.calls]
    assert len(set(ids)) == 4


@pytest.mark.parametrize("streamed", [True, False])
async def test_an_id_of_the_conversation_is_not_given_again(
    model_server: Callable[..., ModelServer], connect: Connect, vendor: str, streamed: bool
) -> None:
    step = Step(calls=(ScriptedCall("now", {}, "call_0"), ScriptedCall("now", {"zone": "UTC"}, "call_1")))
    whole = Raw(formats.whole("anthropic" if vendor == "anthropic" else "openai", step, "1"))
    server = model_server(ModelScript((step,) * 4) if streamed else [whole] * 4)
    provider, messages = connect(vendor, server), list(ASK.messages)
    for _ in range(3):
        answer = (await collect(provider.stream(ModelRequest("", tuple(messages), (NOW,)))))[-1]
        assert [use.input for use in answer.calls] == [{}, {"zone": "UTC"}]
        results = tuple(ToolOutput(use.id, "12:00") for use in answer.calls)
        messages += [answer, Message("user", results, origin="tool")]
    ids = [use.id for message in messages for use in message.calls]
    assert ids[:2] == ["call_0", "call_1"]
    # What was compressed away happened all the same.
    answer = (await collect(provider.stream(ModelRequest("", (user("So far: all done."),), (NOW,)))))[-1]
    assert len({*ids, *(use.id for use in answer.calls)}) == 8


@pytest.mark.parametrize("stop", ["max_tokens", "refusal", "end_turn"])
async def test_the_reason_to_stop_is_told(play: Play, stop: Any) -> None:
    chunks = await collect(play(ModelScript((Step(say="So far", stop=stop),))).stream(ASK))
    assert chunks[-1].stop == stop


async def test_no_stream_of_an_answer_stays_open(play: Play) -> None:
    left: list[Any] = []
    provider = play(ModelScript((Step(calls=(ScriptedCall("now"),)),)))
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(finalizer=left.append)
    try:
        await collect(provider.stream(ASK))
    finally:
        sys.set_asyncgen_hooks(*hooks)
    assert left == []


async def test_steps_follow_each_other(play: Play) -> None:
    provider = play(ModelScript((Step(say="one"), Step(say="two")), last=Step(say="rest")))
    answers = [(await collect(provider.stream(ASK)))[-1].text for _ in range(4)]
    assert answers == ["one", "two", "rest", "rest"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("auth_failed", AuthFailed),
        ("model_not_found", ModelNotFound),
        ("context_overflow", ContextOverflow),
        ("overloaded", ServerOverloaded),
        ("connection_lost", ConnectionLost),
    ],
)
async def test_failures_are_ours(play: Play, kind: str, expected: type[Exception]) -> None:
    provider = play(ModelScript((Step(say=LONG, error=ScriptFailure(kind)), Step(say="Better."))))
    with pytest.raises(expected):
        await collect(provider.stream(ASK))
    assert (await collect(provider.stream(ASK)))[-1].text == "Better."


async def test_a_rate_limit_says_how_long_to_wait(play: Play) -> None:
    with pytest.raises(RateLimited) as caught:
        await collect(play(ModelScript((Step(error=ScriptFailure("rate_limited", retry_after=7)),))).stream(ASK))
    assert caught.value.retry_after == 7


async def test_a_broken_answer_leaves_its_deltas_and_no_message(play: Play) -> None:
    provider = play(ModelScript((Step(say=LONG, error=ScriptFailure("connection_lost", after=20)),)))
    chunks, error = await until_error(provider.stream(ASK))
    assert isinstance(error, ConnectionLost)
    said = text_of(chunks, TextDelta)
    assert said
    assert LONG.startswith(said)
    assert not any(isinstance(chunk, Message) for chunk in chunks)


async def test_leaving_early_is_clean(play: Play) -> None:
    provider = play(ModelScript((Step(say=LONG, again=False), Step(say="Again."))))
    stream: Any = provider.stream(ASK)
    await anext(stream)
    await stream.aclose()
    assert (await collect(provider.stream(ASK)))[-1].text == "Again."


async def test_cancelling_in_the_stream_stops_at_once(play: Play) -> None:
    provider = play(ModelScript((Step(say=LONG * 20, delay=0.01, again=False), Step(say="Again."))))
    begun = asyncio.Event()

    async def follow() -> None:
        async for _ in provider.stream(ASK):
            begun.set()
            await asyncio.sleep(0)

    task = asyncio.create_task(follow())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await collect(provider.stream(ASK)))[-1].text == "Again."
