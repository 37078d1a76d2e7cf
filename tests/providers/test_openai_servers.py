"""Chat Completions as its many servers really speak it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ba_tui.core.errors import ConnectionLost
from ba_tui.core.events import PromptProgress, ToolInputDelta
from ba_tui.core.messages import (
    Text,
    Thinking,
    ToolUse,
    Usage,
    user,
)
from ba_tui.core.provider import ModelRequest
from ba_tui.providers import openai_compat
from ba_tui.providers.faults import ModelService
from tests.loopback import ModelServer
from tests.providers.conftest import GPT, NOW, Connect, call, collect, delta, events, until_error, whole_answer

ASK = ModelRequest("", [user("Hello")], (NOW,))
SERVICE = ModelService("Test", "KEY", "http://127.0.0.1", "m")
START = Callable[..., ModelServer]
A, B = ("read_file", {"path": "a"}), ("now", {})


def test_what_a_server_adds_to_a_call_goes_back_with_it() -> None:
    raw = {
        "id": "c1",
        "type": "function",
        "function": {"name": "now", "arguments": "{}"},
        "extra_content": {"google": {"thought_signature": "abc"}},
    }
    answer = {"choices": [{"message": {"tool_calls": [raw]}, "finish_reason": "tool_calls"}]}
    message = whole_answer(openai_compat.OpenAIReply(GPT, SERVICE), answer)
    assert message.calls == (ToolUse("c1", "now", {}),)
    sent = json.loads(openai_compat.encode_message(message, GPT, "reasoning_content"))
    assert sent["tool_calls"] == [raw]


PIECES: list[tuple[str, list[Any], list[tuple[str, dict[str, Any]]]]] = [
    ("whole", [delta(tool_calls=[call('{"path": "a"}', "read_file", id="1", index=0)])], [A]),
    ("an object", [delta(tool_calls=[call({"path": "a"}, "read_file", id="1", index=0)])], [A]),
    ("twice encoded", [delta(tool_calls=[call(json.dumps('{"path": "a"}'), "read_file", id="1", index=0)])], [A]),
    ("no arguments", [delta(tool_calls=[call(None, "now", id="1", index=0)])], [B]),
    (
        "interleaved",
        [
            delta(tool_calls=[call("", "read_file", id="1", index=0), call("", "now", id="2", index=1)]),
            delta(tool_calls=[call('{"pa', index=0)]),
            delta(tool_calls=[call("{", index=1), call('th": "a"}', index=0)]),
            delta(tool_calls=[call("}", index=1)]),
        ],
        [A, B],
    ),
    (
        "no index",
        [
            delta(tool_calls=[call('{"path":', "read_file", id="1")]),
            delta(tool_calls=[call(' "a"}')]),
            delta(tool_calls=[call("{}", "now", id="2")]),
        ],
        [A, B],
    ),
    (
        "no index and no id",
        [delta(tool_calls=[call('{"path": "a"}', "read_file")]), delta(tool_calls=[call("{}", "now")])],
        [A, B],
    ),
    (
        "one index for all",
        [
            delta(tool_calls=[call('{"path": "a"}', "read_file", id="1", index=0)]),
            delta(tool_calls=[call("{}", "now", id="2", index=0)]),
        ],
        [A, B],
    ),
    (
        "one id for all",
        [delta(tool_calls=[call('{"path": "a"}', "read_file", id="x", index=0), call("{}", "now", id="x", index=1)])],
        [A, B],
    ),
    (
        "empty ids",
        [delta(tool_calls=[call('{"path": "a"}', "read_file", id="", index=0), call("{}", "now", id="", index=1)])],
        [A, B],
    ),
    (
        "the name again with each piece",
        [
            delta(tool_calls=[call('{"path":', "read_file", id="1", index=0)]),
            delta(tool_calls=[call(' "a"}', "read_file", id="1", index=0)]),
        ],
        [A],
    ),
    ("the old field", [delta(function_call={"name": "now", "arguments": "{}"})], [B]),
    (
        "the name after the id",
        [delta(tool_calls=[call("", id="1", index=0)]), delta(tool_calls=[call("{}", "now", index=0)])],
        [B],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("pieces", "expected"), [case[1:] for case in PIECES], ids=[case[0] for case in PIECES])
async def test_calls_as_servers_send_them(
    model_server: START, connect: Connect, pieces: list[Any], expected: list[tuple[str, dict[str, Any]]]
) -> None:
    server = model_server([events(*pieces, delta("tool_calls"), "[DONE]"), events(*pieces, delta("stop"))])
    for _ in range(2):
        chunks = await collect(connect("openai", server).stream(ASK))
        message = chunks[-1]
        assert [(use.name, use.input) for use in message.calls] == expected
        assert message.stop == "tool_use"
        given_ids = [use.id for use in message.calls]
        assert all(given_ids)
        assert len(set(given_ids)) == len(given_ids)
        assert {chunk.call_id for chunk in chunks if isinstance(chunk, ToolInputDelta)} == set(given_ids)


async def test_content_may_be_a_list_of_parts(model_server: START, connect: Connect) -> None:
    raw = events(
        delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]),
        delta(content=[{"type": "text", "text": "Hel"}, "lo", {"type": "reference", "ids": [1]}]),
        delta("stop", content=""),
        "[DONE]",
    )
    server = model_server([raw, raw])
    provider = connect("openai", server)
    message = (await collect(provider.stream(ASK)))[-1]
    assert message.blocks == (Thinking("Hm"), Text("Hello"))
    await collect(provider.stream(ModelRequest("", [user("Hi"), message, user("And?")], ())))
    assert server.requests[1].json["messages"][1]["content"] == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]},
        {"type": "text", "text": "Hello"},
    ]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_goes_back_where_it_came_from(model_server: START, connect: Connect, field: str) -> None:
    raw = events(delta(**{field: "Hm"}), delta(content="Yes"), delta("stop"), "[DONE]")
    server = model_server([raw, raw])
    provider = connect("openai", server)
    message = (await collect(provider.stream(ASK)))[-1]
    await collect(provider.stream(ModelRequest("", [user("Hi"), message, user("And?")], ())))
    assert server.requests[1].json["messages"][1] == {"role": "assistant", "content": "Yes", field: "Hm"}


async def test_a_refusal_is_shown_and_told(model_server: START, connect: Connect) -> None:
    raw = events(delta(refusal="I can't "), delta(refusal="help."), delta("stop"), "[DONE]")
    message = (await collect(connect("openai", model_server([raw])).stream(ASK)))[-1]
    assert (message.text, message.stop) == ("I can't help.", "refusal")


async def test_a_missing_reason_is_forgiven_when_the_end_mark_came(model_server: START, connect: Connect) -> None:
    good = events(delta(content="All of it"), "[DONE]")
    bad = events(delta(tool_calls=[call('{"pa', "read_file", id="1", index=0)]), "[DONE]")
    server = model_server([good, bad, events("[DONE]"), events(delta(content="Half"))])
    provider = connect("openai", server)
    assert (await collect(provider.stream(ASK)))[-1].text == "All of it"
    for _ in range(3):
        _, error = await until_error(provider.stream(ASK))
        assert isinstance(error, ConnectionLost)


async def test_other_choices_are_left_alone(model_server: START, connect: Connect) -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "stop"}]}
    raw = events(delta(content="mine"), other, delta("stop"), "[DONE]")
    assert (await collect(connect("openai", model_server([raw])).stream(ASK)))[-1].text == "mine"


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        ({"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 60}}, Usage(40, 0, 60)),
        ({"prompt_tokens": 100, "completion_tokens": 5, "prompt_cache_hit_tokens": 70}, Usage(30, 5, 70)),
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 40}, Usage(10, 30)),
        ({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9}}, Usage(0, 0, 5)),
        ({"prompt_tokens": None, "completion_tokens": "many", "total_tokens": 1e400}, Usage()),
        ({"prompt_tokens": -4, "prompt_tokens_details": None}, Usage()),
        ({}, Usage()),
    ],
)  # fmt: skip
def test_usage_counts_each_token_once(wire: dict[str, Any], expected: Usage) -> None:
    assert openai_compat.usage_from_wire(wire) == expected


async def test_usage_may_come_in_an_extra_of_groq(model_server: START, connect: Connect) -> None:
    last = {**delta("stop"), "x_groq": {"usage": {"prompt_tokens": 3, "completion_tokens": 4}}}
    raw = events(delta(content="x"), last, "[DONE]")
    assert (await collect(connect("openai", model_server([raw])).stream(ASK)))[-1].usage == Usage(3, 4)


async def test_how_far_a_server_has_read_the_prompt_is_passed_on(connect: Connect, model_server: START) -> None:
    told = [(12_000, 4_000, 4_000, 0), (12_000, 4_000, 6_000, 3_000), (12_000, 4_000, 12_000, 12_000)]
    keys = ("total", "cache", "processed", "time_ms")
    reading = [{**delta(role="assistant"), "prompt_progress": dict(zip(keys, row, strict=True))} for row in told]
    server = model_server([events(*reading, delta(content="Hello"), delta("stop"), "[DONE]")])
    chunks = await collect(connect("openai", server).stream(ASK))
    progress = [(each.total, each.done, each.left) for each in chunks if isinstance(each, PromptProgress)]
    assert progress == [(12_000, 4_000, None), (12_000, 6_000, 9.0), (12_000, 12_000, 0.0)]
    assert chunks[-1].text == "Hello"


@pytest.mark.parametrize("reading", [7, [], {"total": "many"}, {"total": -1, "processed": 9}, {"processed": 1e300}])
async def test_progress_that_makes_no_sense_harms_nothing(
    connect: Connect, model_server: START, reading: object
) -> None:
    odd = {**delta(role="assistant"), "prompt_progress": reading}
    server = model_server([events(odd, delta("stop", content="Hello"), "[DONE]")])
    chunks = await collect(connect("openai", server).stream(ASK))
    assert chunks[-1].text == "Hello"
    assert all(each.left is None and each.done == 0 for each in chunks if isinstance(each, PromptProgress))
