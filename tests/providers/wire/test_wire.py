"""The two wire formats: blocks there and back, and answers as odd servers send them."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_tui.core.errors import ProviderError
from ba_tui.core.events import TextDelta
from ba_tui.core.messages import (
    Block,
    Document,
    Image,
    Message,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolOutput,
    ToolUse,
    Usage,
    user,
)
from ba_tui.core.provider import ModelRequest
from ba_tui.providers import anthropic, openai_compat
from ba_tui.providers.faults import ModelService
from ba_tui.providers.scripted import Step
from tests.loopback import ModelServer, Raw, formats
from tests.providers.conftest import CLAUDE, GPT, NOW, Connect, call, collect, delta, events, whole_answer

ASK = ModelRequest("", [user("Hello")], (NOW,))
SERVICE = ModelService("Test", "KEY", "http://127.0.0.1", "m")
START = Callable[..., ModelServer]

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40)
said = words.filter(lambda text: bool(text.strip()))
ids = st.text("abcXYZ019_-", min_size=1, max_size=40)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(words, plain, max_size=3)
data = st.binary(max_size=20).map(lambda raw: base64.b64encode(raw).decode())
media = st.builds(Image, st.just("image/png"), data) | st.builds(Document, st.just("application/pdf"), data, words)
calls = st.builds(ToolUse, ids, ids, objects)
outputs = st.builds(ToolOutput, ids, said, st.booleans(), st.lists(media, max_size=2).map(tuple))
anthropic_blocks: st.SearchStrategy[Block] = st.one_of(
    st.builds(Text, said),
    st.builds(Thinking, words, said),
    st.builds(RedactedThinking, words),
    media,
    calls,
    outputs,
    objects.map(lambda raw: Opaque({**raw, "type": "server_tool_use"}, "anthropic")),
)


@settings(deadline=None)
@given(answers=st.lists(outputs, min_size=1, max_size=3), text=st.lists(said, max_size=2))
def test_completion_observations_come_back_the_same(answers: list[ToolOutput], text: list[str]) -> None:
    message = Message("user", (*answers, *map(Text, text)))
    sent = json.loads(b"[" + openai_compat.encode_message(message, GPT, "reasoning_content") + b"]")
    told = [wire for wire in sent if wire["role"] == "tool"]
    assert [(wire["tool_call_id"], wire["content"]) for wire in told] == [(a.tool_use_id, a.content) for a in answers]
    rest = sent[len(told) :]
    assert [wire["role"] for wire in rest] == (["user"] if text or any(a.attachments for a in answers) else [])
    assert all(words in json.dumps(rest, ensure_ascii=False) for words in map(_quoted, text))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


@settings(deadline=None)
@given(block=anthropic_blocks)
def test_messages_blocks_come_back_the_same(block: Block) -> None:
    wire = anthropic.block_to_wire(block, own=True, model=CLAUDE)
    assert wire is not None
    assert anthropic.block_from_wire(json.loads(json.dumps(wire))) == block


def back_from_openai(body: bytes) -> Message:
    """What an answer would be that says exactly what we sent."""
    sent = json.loads(body)
    answer = {"choices": [{"index": 0, "message": sent, "finish_reason": "stop"}]}
    return whole_answer(openai_compat.OpenAIReply(GPT, SERVICE), answer)


@settings(deadline=None)
@given(
    thinking=st.lists(st.builds(Thinking, words), max_size=1),
    text=st.lists(st.builds(Text, said), max_size=1),
    uses=st.lists(calls, max_size=3, unique_by=lambda call: call.id),
    field=st.sampled_from(["reasoning_content", "reasoning", "content"]),
)
def test_completion_answers_come_back_the_same(
    thinking: list[Thinking], text: list[Text], uses: list[ToolUse], field: openai_compat.ReasoningField
) -> None:
    blocks = (*thinking, *text, *uses)
    body = openai_compat.encode_message(Message("assistant", blocks, model=GPT.id), GPT, field)
    if not text and not uses:
        assert body == b""
    else:
        assert back_from_openai(body).blocks == blocks


@pytest.mark.parametrize(
    "arguments", ["{", "[1]", "nonsense", '"text"', "NaN", '{"a": NaN}', '{"a": 1e999}', "[" * 100_000]
)
async def test_arguments_that_are_no_object_are_malformed(
    model_server: START, connect: Connect, vendor: str, arguments: str
) -> None:
    if vendor == "openai":
        raw = events(delta(tool_calls=[call(arguments, "now", id="1", index=0)]), delta("tool_calls"), "[DONE]")
    else:
        raw = events(
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "tool_use", "id": "1", "name": "now"},
            },
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": arguments},
            },
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
            {"type": "message_stop"},
        )
    message = (await collect(connect(vendor, model_server([raw])).stream(ASK)))[-1]
    assert message.calls == (ToolUse("1", "now", {}, arguments),)


async def test_a_call_cut_before_its_first_argument_is_not_one_without(
    model_server: START, connect: Connect, vendor: str
) -> None:
    if vendor == "openai":
        raw = events(delta(tool_calls=[call("", "now", id="1", index=0)]), delta("length"), "[DONE]")
    else:
        raw = events(
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "tool_use", "id": "1", "name": "now"},
            },
            {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}},
            {"type": "message_stop"},
        )
    message = (await collect(connect(vendor, model_server([raw])).stream(ASK)))[-1]
    assert message.calls[0].malformed is not None


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("pause_turn", "pause_turn"),
        ("model_context_window_exceeded", "context_window"),
        ("refusal", "refusal"),
        ("stop_sequence", "stop_sequence"),
        ("a_new_reason", "end_turn"),
    ],
)
async def test_reasons_of_the_messages_api(model_server: START, connect: Connect, reason: str, stop: str) -> None:
    raw = events(
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}},
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    )
    chunks = await collect(connect("anthropic", model_server([raw])).stream(ASK))
    assert chunks[-1].stop == stop
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta)) == "Hi"


async def test_blocks_and_deltas_of_tomorrow_are_kept_and_sent_back(model_server: START, connect: Connect) -> None:
    start = {"type": "hologram", "id": "h", "label": "", "frames": [1], "depth": None}
    deltas = [
        {"type": "hologram_delta", "label": "Hel", "frames": [2]},
        {"type": "hologram_delta", "label": "lo", "frames": [3], "depth": {"m": 2}},
        {"type": "input_json_delta", "partial_json": '{"a":'},
        {"type": "input_json_delta", "partial_json": " 1}"},
    ]
    raw = events(
        {"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 7}}},
        {"type": "content_block_start", "index": 0, "content_block": start},
        *({"type": "content_block_delta", "index": 0, "delta": item} for item in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    )
    server = model_server([raw, raw])
    provider = connect("anthropic", server)
    message = (await collect(provider.stream(ASK)))[-1]
    kept = {"type": "hologram", "id": "h", "label": "Hello", "frames": [1, 2, 3], "depth": {"m": 2}, "input": {"a": 1}}
    assert message.blocks == (Opaque(kept, "anthropic"),)
    assert message.usage == Usage(7, 3)
    await collect(provider.stream(ModelRequest("", [user("Hi"), message, user("And?")], ())))
    assert server.requests[1].json["messages"][1]["content"] == [kept]


async def test_citations_are_kept(model_server: START, connect: Connect) -> None:
    cited = {"type": "char_location", "cited_text": "x"}
    raw = events(
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "", "citations": []}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "As said"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": cited}},
        {"type": "message_stop"},
    )
    message = (await collect(connect("anthropic", model_server([raw])).stream(ASK)))[-1]
    assert message.blocks == (Text("As said", (cited,)),)


async def test_halves_of_a_character_become_one_again(model_server: START, connect: Connect, vendor: str) -> None:
    if vendor == "openai":
        rest = '{"choices":[{"delta":{"content":"\\ude00\\u0000"},"finish_reason":"stop"}]}'
        raw = events('{"choices":[{"delta":{"content":"\\ud83d"}}]}', rest)
    else:
        head = '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":'
        start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        raw = events(start, head + '"\\ud83d"}}', head + '"\\ude00\\u0000"}}', {"type": "message_stop"})
    chunks = await collect(connect(vendor, model_server([raw])).stream(ASK))
    assert chunks[-1].text == "\U0001f600\ufffd"
    assert all(chunk.text.encode() for chunk in chunks if isinstance(chunk, TextDelta))


async def test_a_whole_answer_instead_of_a_stream_is_read(model_server: START, connect: Connect, vendor: str) -> None:

    step = Step(say="Hello", think="Hm")
    body = formats.whole("anthropic" if vendor == "anthropic" else "openai", step, "1")
    server = model_server([Raw(body, content_type="application/json; charset=utf-8")])
    message = (await collect(connect(vendor, server).stream(ASK)))[-1]
    assert message.text == "Hello"
    assert isinstance(message.blocks[0], Thinking)
    assert message.usage == formats.USAGE


@settings(deadline=None)
@given(wire=st.dictionaries(words, plain, max_size=4) | st.fixed_dictionaries({"type": words, "delta": plain}))
def test_events_of_any_shape_do_not_trip_us(wire: dict[str, Any]) -> None:
    for kind in ("message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop"):
        assembly = anthropic.AnthropicReply(CLAUDE, SERVICE)
        with contextlib.suppress(ProviderError):
            list(assembly.feed(kind, {**wire, "type": kind}))
            list(assembly.feed(kind, {"type": "content_block_start", "content_block": wire}))
            list(assembly.feed(kind, {"type": "message_stop"}))
            assert isinstance(anthropic.encode_message(assembly.finish(), CLAUDE), bytes)
    if "error" not in wire:
        reply = openai_compat.OpenAIReply(GPT, SERVICE)
        chunks = list(reply.feed("", {"choices": [wire, {"delta": wire, "finish_reason": "stop"}]}))
        message = reply.finish()
        assert message.text == "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))
        body = openai_compat.encode_message(message, GPT, "reasoning_content")
        assert body == b"" or json.loads(body)["role"] == "assistant"
