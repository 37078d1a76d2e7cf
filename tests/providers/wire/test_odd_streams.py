"""Streams as proxies and servers of one's own send them: odd framing, odd ends, odd places for words and errors."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

import pytest

from ba_tui.core.errors import AuthFailed, ConnectionLost, ProviderError, RateLimited, RequestRefused, ServerOverloaded
from ba_tui.core.events import TextDelta, ToolInputDelta
from ba_tui.core.messages import Message, Text, Thinking, ToolUse, Usage, user
from ba_tui.core.provider import ModelRequest
from ba_tui.providers import anthropic, openai_compat
from ba_tui.providers.faults import ModelService, from_response
from ba_tui.providers.scripted import ScriptedCall, Step
from ba_tui.providers.shapes import decode
from ba_tui.providers.sse import EventDecoder, chunks
from tests.loopback import ModelServer, Raw, formats
from tests.loopback.replies import JSON
from tests.providers.conftest import CLAUDE, GPT, NOW, Connect, call, delta, until_error, whole_answer

ASK = ModelRequest("", [user("Hello")], (NOW,))
SERVICE = ModelService("Test", "KEY", "http://127.0.0.1", "m")
START = Callable[..., ModelServer]
STEP = Step(say="All of it.", calls=(ScriptedCall("now", {"zone": "UTC"}),))


def stream_of(vendor: str, step: Step = STEP) -> bytes:
    return b"".join(formats.stream("anthropic" if vendor == "anthropic" else "openai", step, "1"))


FRAMINGS: Mapping[str, Callable[[bytes], bytes]] = {
    "byte order mark": lambda body: b"\xef\xbb\xbf" + body,
    "carriage returns": lambda body: body.replace(b"\n", b"\r"),
    "both line ends": lambda body: body.replace(b"\n", b"\r\n"),
    "comments first": lambda body: b": PROCESSING\n\n: PROCESSING\n\n" + body,
    "blank lines first": lambda body: b"\n\r\n\n" + body,
    "empty data": lambda body: b"data:\n\ndata: \n\nretry: 3000\n\n" + body,
    "no blank line at the end": lambda body: body.rstrip(),
    "no space behind the colon": lambda body: body.replace(b"data: ", b"data:"),
}


async def read(vendor: str, body: bytes, piece: int = 0) -> tuple[list[Any], ProviderError | None]:
    """What a response with this body comes to, ``piece`` bytes at a time."""

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(body), piece or len(body)):
            yield body[at : at + (piece or len(body))]

    async def answer() -> AsyncIterator[Any]:
        assembly = assembly_of(vendor)
        async for chunk in chunks(pieces(), assembly, SERVICE, 30.0):
            yield chunk
        yield assembly.finish()

    return await until_error(answer())


def assembly_of(vendor: str) -> anthropic.AnthropicReply | openai_compat.OpenAIReply:
    claude = vendor == "anthropic"
    return anthropic.AnthropicReply(CLAUDE, SERVICE) if claude else openai_compat.OpenAIReply(GPT, SERVICE)


@pytest.mark.parametrize("framing", FRAMINGS.values(), ids=FRAMINGS)
@pytest.mark.parametrize("piece", [0, 1, 7])
async def test_framings(vendor: str, framing: Callable[[bytes], bytes], piece: int) -> None:
    got, error = await read(vendor, framing(stream_of(vendor)), piece)
    assert error is None
    assert got[-1].text == STEP.say
    assert [(use.name, use.input) for use in got[-1].calls] == [("now", {"zone": "UTC"})]
    assert got[-1].usage == formats.USAGE


async def test_the_body_and_not_its_label_says_whether_it_is_a_stream(
    model_server: START, connect: Connect, vendor: str
) -> None:
    whole = formats.whole("anthropic" if vendor == "anthropic" else "openai", STEP, "1")
    kinds = (JSON, "text/plain", "application/octet-stream", "text/html")
    bodies = [*(Raw(stream_of(vendor), content_type=kind) for kind in kinds), Raw(whole), Raw(b"\n \n" + whole)]
    provider = connect(vendor, model_server(bodies))
    for _ in bodies:
        got, error = await until_error(provider.stream(ASK))
        assert error is None
        assert (got[-1].text, len(got[-1].calls)) == (STEP.say, 1)


async def test_a_packed_stream_is_unpacked_and_a_torn_one_is_an_error(
    model_server: START, connect: Connect, vendor: str
) -> None:
    packed = gzip.compress(stream_of(vendor))
    headers = {"content-encoding": "gzip"}
    answers = [Raw(packed, headers=headers), Raw(packed[: len(packed) // 2], headers=headers)]
    answers.append(Raw(b"\x00" + packed, headers=headers))
    provider = connect(vendor, model_server(answers))
    got, error = await until_error(provider.stream(ASK))
    assert error is None
    assert got[-1].text == STEP.say
    for _ in answers[1:]:
        _, error = await until_error(provider.stream(ASK))
        assert isinstance(error, ConnectionLost)


ERRORS: list[tuple[bytes, type[ProviderError], str]] = [
    (b'{"error":{"message":"Engine is not running","code":503}}', ServerOverloaded, "Engine is not running"),
    (b'{"object":"error","message":"Token limit","type":"BadRequestError","code":400}', RequestRefused, "Token limit"),
    (b'{"error":{"message":"Slow down","code":"429"}}', RateLimited, "Slow down"),
    (b'{"error":{"message":"No such key","type":"AuthenticationError","code":null}}', AuthFailed, "No such key"),
    (b'{"error":{"message":"Go slower","code":"1302"}}', ServerOverloaded, "Go slower"),
    (b'{"error":{"message":"Odd number","code":40303,"type":"invalid_request_error"}}', RequestRefused, "Odd number"),
    (b'{"error":"over_capacity","x_groq":{"error":"over_capacity"}}', ServerOverloaded, "over_capacity"),
    (
        b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
        ServerOverloaded,
        "Overloaded",
    ),
]


@pytest.mark.parametrize(("body", "expected", "said"), ERRORS)
async def test_an_error_that_comes_as_a_success_is_told(vendor: str, body: bytes, expected: type, said: str) -> None:
    for form in (b"data: %b\n\n", b"event: error\ndata: %b\n\n", b"error: %b\n\n", b"%b", b"%b\n\n"):
        got, error = await read(vendor, form % body, 3)
        assert type(error) is expected, form
        assert said in str(error)
        assert not got


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"base_resp":{"status_code":1008,"status_msg":"no balance"},"choices":null}', "no balance"),
        (b'{"detail":"Method Not Allowed"}', "Method Not Allowed"),
        (b'{"detail":[{"loc":["body"],"msg":"field required"}]}', "field required"),
        (b'{"code":"x","msg":"wrong model"}', "wrong model"),
        (b'error: {"error": "context is full"}\n\n', "context is full"),
        (b"error: out of memory\n\n", "out of memory"),
    ],
)
async def test_what_a_server_says_instead_of_an_answer_is_told(vendor: str, body: bytes, said: str) -> None:
    _, error = await read(vendor, body)
    assert isinstance(error, ServerOverloaded if body.startswith(b"error") else RequestRefused)
    assert said in str(error)


@pytest.mark.parametrize("piece", [0, 7])
async def test_what_comes_after_the_end_is_not_of_the_answer(vendor: str, piece: int) -> None:
    late = b'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"late"}}\n\n'
    got, error = await read(vendor, stream_of(vendor) + late, piece)
    assert error is None
    assert got[-1].text == STEP.say


async def test_a_line_that_the_end_cut_is_told_as_a_cut(vendor: str) -> None:
    body = stream_of(vendor)
    _, error = await read(vendor, body[: body.index(b"All") + 1])
    assert isinstance(error, ConnectionLost)
    assert "cut off" in str(error)
    _, error = await read(vendor, b"data: {broken}\n\n" + body)
    assert isinstance(error, ConnectionLost)
    assert "not JSON" in str(error)
    assert "again" in error.hint


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            b"<html><head><style>p{a:b}</style><title>502: Bad\ngateway</title></head><p>x</p></html>",
            ": “502: Bad gateway.”",
        ),
        (b'data: {"error":{"message":"busy"}}\n\n', ": “busy.”"),
        (b"upstream connect error", ": “upstream connect error.”"),
        (b'{"message":"no healthy upstream"}', ": “no healthy upstream.”"),
    ],
)
def test_error_pages_are_told_in_their_own_words(body: bytes, said: str) -> None:
    assert str(from_response(SERVICE, 502, {}, body)).endswith(said)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [("Please retry after 6 seconds.", 6), ("try again in 2.5s", 2.5), ("Please wait 20 seconds", 20), ("later", None)],
)
def test_the_wait_that_a_body_asks_for(words: str, seconds: float | None) -> None:
    error = from_response(SERVICE, 429, {}, {"error": {"message": words}})
    assert isinstance(error, RateLimited)
    assert error.retry_after == seconds


def test_a_long_line_in_small_pieces_takes_no_longer() -> None:
    decoder = EventDecoder()
    body = b"data: " + b"x" * 3_000_000 + b"\n\n"
    events = [event for at in range(0, len(body), 200) for event in decoder.feed(body[at : at + 200])]
    assert [len(data) for _, data in events] == [3_000_000]


def answer(vendor: str, events: Iterable[Any]) -> tuple[Message, list[Any]]:
    """What an assembly makes of ``events``, and what it showed meanwhile."""
    assembly = assembly_of(vendor)
    shown = [chunk for event in events for chunk in assembly.feed("", decode(json.dumps(event)))]
    assembly.close()
    return assembly.finish(), shown


END = {"type": "message_stop"}


def opened(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def grown(index: int, **given: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": given}


def stopped(reason: str | None) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}}


def test_blocks_that_share_an_index_are_all_kept() -> None:
    message, shown = answer(
        "anthropic",
        [
            opened(0, type="text", text=""),
            grown(0, type="text_delta", text="One."),
            opened(0, type="tool_use", id="a", name="now", input={}),
            grown(0, type="input_json_delta", partial_json='{"zone": "UTC"}'),
            opened(0, type="tool_use", id="b", name="now", input={}),
            stopped("tool_use"),
            END,
        ],
    )
    assert message.blocks == (Text("One."), ToolUse("a", "now", {"zone": "UTC"}), ToolUse("b", "now", {}))
    assert "".join(chunk.text for chunk in shown if isinstance(chunk, TextDelta)) == "One."


def test_arguments_given_at_the_start_survive_an_empty_piece() -> None:
    message, _ = answer(
        "anthropic",
        [
            opened(0, type="tool_use", id="a", name="now", input={"zone": "UTC"}),
            grown(0, type="input_json_delta", partial_json=""),
            END,
        ],
    )
    assert message.calls == (ToolUse("a", "now", {"zone": "UTC"}),)


def test_a_character_split_over_two_pieces_of_arguments_is_whole_again(vendor: str) -> None:
    halves = ['{"zone": "\ud83d', '\ude00"}']
    if vendor == "anthropic":
        pieces = [grown(0, type="input_json_delta", partial_json=half) for half in halves]
        sent = [opened(0, type="tool_use", id="a", name="now", input={}), *pieces, stopped("tool_use"), END]
    else:
        sent = [delta(tool_calls=[call(half, "now", id="a", index=0)]) for half in halves] + [delta("tool_calls")]
    assert answer(vendor, sent)[0].calls == (ToolUse("a", "now", {"zone": "\N{GRINNING FACE}"}),)


@pytest.mark.parametrize("levels", [201, 500, 700, 5_000])
def test_arguments_that_are_nested_as_nobody_means_are_none(vendor: str, levels: int) -> None:
    deep = '{"a":' * levels + "1" + "}" * levels
    if vendor == "anthropic":
        grows = grown(0, type="input_json_delta", partial_json=deep)
        sent = [opened(0, type="tool_use", id="a", name="now", input={}), grows, stopped("tool_use"), END]
    else:
        sent = [delta(tool_calls=[call(deep, "now", id="a", index=0)]), delta("tool_calls")]
    use = answer(vendor, sent)[0].calls[0]
    assert (use.input, use.malformed) == ({}, deep)


@pytest.mark.parametrize("id", ["", None, "same"])
def test_calls_of_one_answer_can_be_told_apart(id: str | None) -> None:
    uses = [{"type": "tool_use", "id": id, "name": "now", "input": {}} for _ in range(2)]
    message, shown = answer("anthropic", [*(opened(at, **use) for at, use in enumerate(uses)), END])
    whole = whole_answer(anthropic.AnthropicReply(CLAUDE, SERVICE), {"content": uses})
    for calls in (message.calls, whole.calls):
        assert len({use.id for use in calls}) == 2
        assert all(use.id for use in calls)
    assert [chunk.call_id for chunk in shown if isinstance(chunk, ToolInputDelta)] == [use.id for use in message.calls]


def test_a_part_of_no_known_kind_is_a_broken_answer_and_no_crash() -> None:
    for kind in (["text_delta"], {}, None, 7):
        with pytest.raises(ConnectionLost):
            answer("anthropic", [grown(0, type=kind, text="x"), END])


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded", "refusal", "pause_turn"])
def test_a_call_that_was_cut_before_its_arguments_is_not_run(reason: str) -> None:
    message, _ = answer("anthropic", [opened(0, type="tool_use", id="a", name="now", input={}), stopped(reason), END])
    assert message.calls[0].malformed == ""


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("STOP", "end_turn"),
        ("stop_sequence", "stop_sequence"),
        ("eos_token", "end_turn"),
        ("MAX_TOKENS", "max_tokens"),
        ("sensitive", "refusal"),
        ("SAFETY", "refusal"),
        ("model_context_window_exceeded", "context_window"),
        ("a_new_reason", "end_turn"),
    ],
)
def test_reasons_of_many_servers(reason: str, stop: str) -> None:
    message, _ = answer("openai", [delta(content="x"), delta(reason)])
    assert message.stop == stop


@pytest.mark.parametrize("reason", ["insufficient_system_resource", "network_error", "abort", "error", "ERROR"])
def test_a_server_that_gave_up_has_not_answered(reason: str) -> None:
    with pytest.raises(ServerOverloaded):
        answer("openai", [delta(content="Half of"), delta(reason)])


def test_a_pause_after_a_compaction_is_gone_on_from() -> None:
    assert answer("anthropic", [opened(0, type="compaction", content="so far"), stopped("compaction"), END])[
        0
    ].stop == ("pause_turn")


def test_what_was_said_is_not_said_twice() -> None:
    whole = {"message": {"content": "Hello", "tool_calls": [call("{}", "now", id="1")]}, "index": 0}
    pieces = [delta(content="Hel"), delta(content="lo", tool_calls=[call("{}", "now", id="1", index=0)])]
    for last in ({}, {"delta": {}}, {"delta": {"content": ""}}):
        message, _ = answer("openai", [*pieces, {"choices": [{**whole, **last, "finish_reason": "stop"}]}])
        assert (message.text, len(message.calls)) == ("Hello", 1)
    for words in (["Hel", "Hello"], ["Hel", "lo"]):
        message, _ = answer(
            "openai", [*({"choices": [{"message": {"content": word}}]} for word in words), delta("stop")]
        )
        assert message.text == "Hello"


def test_words_may_come_as_one_part() -> None:
    message, _ = answer("openai", [delta(content={"type": "text", "text": "Yes"}), delta("stop")])
    assert message.text == "Yes"


def test_reasoning_that_comes_in_details_alone_is_shown_and_goes_back_merged() -> None:
    piece = {"type": "reasoning.text", "index": 0, "format": "f"}
    message, _ = answer(
        "openai",
        [
            delta(reasoning_details=[{**piece, "text": "H"}]),
            delta(reasoning_details=[{**piece, "text": "m"}]),
            delta(reasoning_details=[{**piece, "text": "", "signature": "s"}]),
            delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "e1"}]),
            delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "e2"}]),
            delta("stop", content="Yes"),
        ],
    )
    assert message.blocks[0] == Thinking("Hm")
    sent = json.loads(openai_compat.encode_message(message, GPT, "reasoning_content"))
    assert sent["reasoning_details"] == [
        {**piece, "text": "Hm", "signature": "s"},
        {"type": "reasoning.encrypted", "data": "e1"},
        {"type": "reasoning.encrypted", "data": "e2"},
    ]
    assert "reasoning_content" not in sent


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "thinking", "reasoning_text"])
def test_reasoning_has_many_names(key: str) -> None:
    message, _ = answer("openai", [delta(**{key: "Hm"}), delta(content="Yes"), delta("stop")])
    assert message.blocks == (Thinking("Hm"), Text("Yes"))


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([{"choices": [{"delta": {}, "usage": {"prompt_tokens": 3, "completion_tokens": 4}}]}], Usage(3, 4)),
        ([{"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1, "cached_tokens": 4}}], Usage(5, 1, 4)),
        (
            [
                {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1}},
                {"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}},
            ],
            Usage(9, 1),
        ),
        ([{"choices": [], "usage": None}, {"choices": None, "usage": []}], None),
    ],
)
def test_usage_stands_in_many_places(events: list[Any], expected: Usage | None) -> None:
    message, _ = answer("openai", [delta(content="x"), delta("stop"), *events])
    assert message.usage == expected


@pytest.mark.parametrize("name", ["", "read file", "functions.read_file", "läs", "x" * 200, "a/b:c"])
def test_a_name_that_no_vendor_takes_back_does_not_end_the_conversation(name: str) -> None:
    message = Message("assistant", (ToolUse("1", name, {}),))
    for sent in (
        json.loads(anthropic.encode_message(message, CLAUDE))["content"][0],
        json.loads(openai_compat.encode_message(message, GPT, "reasoning_content"))["tool_calls"][0]["function"],
    ):
        assert 1 <= len(sent["name"]) <= 64
        assert sent["name"].replace("_", "a").replace("-", "a").isalnum()
        assert sent["name"].isascii()
