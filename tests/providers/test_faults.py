"""What goes wrong on the way to a model, over real HTTP: the type, the words and the cure; and no key in them."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.errors import (
    AuthFailed,
    BadRequest,
    ConnectionLost,
    ContextOverflow,
    ModelNotFound,
    ProviderError,
    RateLimited,
    RequestRefused,
    ServerOverloaded,
    TransientError,
    UsageError,
)
from ba_tui.core.events import TextDelta
from ba_tui.core.messages import Message, user
from ba_tui.core.provider import ModelRequest
from ba_tui.providers.anthropic import AnthropicProvider
from ba_tui.providers.connection import Transfer
from ba_tui.providers.credentials import BoundKey
from ba_tui.providers.openai_compat import OpenAIProvider
from ba_tui.providers.scripted import ScriptedCall, Step
from tests.loopback import Answer, ModelServer, Raw, Status
from tests.loopback.replies import JSON, Pace
from tests.providers.conftest import CLAUDE, GPT, NOW, Connect, until_error

ASK = ModelRequest("", [user("Hello")], (NOW,))
START = Callable[..., ModelServer]
WORDS = "one two three four five six seven eight nine ten " * 40


async def fails(provider: Any) -> ProviderError:
    chunks, error = await until_error(provider.stream(ASK))
    assert error is not None
    assert not any(isinstance(chunk, Message) for chunk in chunks)
    assert "\n" not in str(error)
    assert "key-of-test-1234" not in f"{error}{error.hint}"
    return error


@pytest.mark.parametrize(
    ("status", "expected", "cure"),
    [
        (400, RequestRefused, "/model"),
        (401, AuthFailed, "/setup"),
        (402, BadRequest, "Top up"),
        (403, AuthFailed, "/setup"),
        (404, ModelNotFound, "/model"),
        (408, ServerOverloaded, "again"),
        (409, ServerOverloaded, "again"),
        (413, ContextOverflow, "/clear"),
        (422, RequestRefused, "/model"),
        (429, RateLimited, "Wait"),
        (500, ServerOverloaded, "again"),
        (503, ServerOverloaded, "again"),
        (529, ServerOverloaded, "again"),
    ],
)
async def test_each_status_has_its_type_and_cure(
    model_server: START, connect: Connect, vendor: str, status: int, expected: type[ProviderError], cure: str
) -> None:
    error = await fails(connect(vendor, model_server([Status(status)])))
    assert type(error) is expected
    assert cure in error.hint


async def test_the_name_of_a_missing_model_is_told(model_server: START, connect: Connect, vendor: str) -> None:
    provider = connect(vendor, model_server([Status(404)]))
    assert provider.model.name in str(await fails(provider))


async def test_without_a_key_the_variable_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))
    with pytest.raises(AuthFailed) as caught:
        AnthropicProvider(CLAUDE)
    assert "ANTHROPIC_API_KEY" in caught.value.hint
    monkeypatch.delenv("ANTHROPIC_CONFIG_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(AuthFailed) as caught:
        AnthropicProvider(CLAUDE)
    assert "ANTHROPIC_API_KEY" in caught.value.hint
    with pytest.raises(AuthFailed) as caught:
        OpenAIProvider(GPT)
    assert "OPENAI_API_KEY" in caught.value.hint


def make(vendor: str, key: str, url: str) -> AnthropicProvider | OpenAIProvider:
    if vendor == "anthropic":
        return AnthropicProvider(CLAUDE, api_key=BoundKey(key, url), base_url=url)
    return OpenAIProvider(GPT, api_key=BoundKey(key, url), base_url=url)


@pytest.mark.parametrize("url", ["localhost:1234", "ftp://x", "http://", "http://[bad", "http://h:99999", "nonsense"])
async def test_an_address_that_is_none_is_named(vendor: str, url: str) -> None:
    with pytest.raises(UsageError, match="is not a web address"):
        make(vendor, "k", url)


@pytest.mark.parametrize("key", ["ключ-ключ", "abc\ndef", "two words"])
async def test_a_key_that_can_be_none_is_not_sent_and_not_told(vendor: str, key: str) -> None:
    with pytest.raises(AuthFailed) as caught:
        make(vendor, key, "http://127.0.0.1:1")
    assert key not in str(caught.value)


async def test_a_proxy_that_is_none_is_told(vendor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "gopher://nowhere")
    with pytest.raises(UsageError) as caught:
        make(vendor, "k", "https://example.invalid")
    assert "HTTPS_PROXY" in caught.value.hint


async def test_a_key_of_the_environment_is_not_sent_elsewhere(
    model_server: START, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret-of-the-environment")
    monkeypatch.setenv("OPENAI_API_KEY", "secret-of-the-environment")
    server = model_server([Step(say="one"), Step(say="two")])
    for provider in (
        AnthropicProvider(CLAUDE, base_url=server.url),
        OpenAIProvider(GPT, base_url=server.openai_url),
    ):
        chunks, error = await until_error(provider.stream(ASK))
        await provider.close()
        assert error is None
        assert isinstance(chunks[-1], Message)
    assert len(server.requests) == 2
    assert not any("secret-of" in str(seen.headers) for seen in server.requests)


async def test_the_endpoint_of_the_environment_gets_its_key(
    model_server: START, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = model_server([Step(say="one"), Step(say="two")])
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret-of-the-environment")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "secret-of-the-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
    for provider in (AnthropicProvider(CLAUDE), OpenAIProvider(GPT)):
        _, error = await until_error(provider.stream(ASK))
        await provider.close()
        assert error is None
    assert all("secret-of-the-environment" in str(seen.headers) for seen in server.requests)


async def test_keys_in_a_servers_words_are_not_repeated(model_server: START, connect: Connect, vendor: str) -> None:
    words = "Incorrect API key provided: sk-proj-abcDEF1234567890. You sent key-of-test-1234 and AIzaSyA1234567890."
    error = await fails(connect(vendor, model_server([Status(401, words)])))
    assert "abcDEF" not in str(error)
    assert "AIzaSy" not in str(error)
    assert "Incorrect API key provided" in str(error)


@pytest.mark.parametrize(
    "words",
    [
        "prompt is too long: 215000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
        "the request exceeds the available context size, try increasing it",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "Please reduce the length of the messages or completion.",
        "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context "
        "length of only 4096 tokens",
        "Input is too long for requested model.",
        "Range of input length should be [1, 129024]",
        "Prompt exceeds max length",
    ],
)
async def test_a_prompt_that_is_too_long_is_known_in_many_words(
    model_server: START, connect: Connect, vendor: str, words: str
) -> None:
    assert isinstance(await fails(connect(vendor, model_server([Status(400, words)]))), ContextOverflow)


async def test_a_code_says_it_as_well(model_server: START, connect: Connect) -> None:
    server = model_server([Status(400, "No.", code="context_length_exceeded")])
    assert isinstance(await fails(connect("openai", server)), ContextOverflow)


@pytest.mark.parametrize(
    ("header", "seconds"), [("12", 12.0), ("0.5", 0.5), ("soon", None), ("", None), ("-3", None), ("nan", None)]
)
async def test_the_wait_that_was_asked_for_is_told(
    model_server: START, connect: Connect, vendor: str, header: str, seconds: float | None
) -> None:
    error = await fails(connect(vendor, model_server([Status(429, retry_after=header)])))
    assert isinstance(error, RateLimited)
    assert error.retry_after == seconds
    assert error.hint.startswith("Wait 12 s, " if header == "12" else "Wait, ")


async def test_a_wait_may_be_a_date_or_stand_in_the_words(model_server: START, connect: Connect, vendor: str) -> None:
    later = formatdate(time.time() + 3600, usegmt=True)
    words = "Rate limit reached. Please try again in 1.5s."
    provider = connect(vendor, model_server([Status(429, retry_after=later), Status(429, words)]))
    by_date, by_words = await fails(provider), await fails(provider)
    assert isinstance(by_date, TransientError)
    assert isinstance(by_words, TransientError)
    assert by_date.retry_after is not None
    assert 3500 < by_date.retry_after <= 3600
    assert by_words.retry_after == 1.5


async def test_advice_to_pay_more_is_still_a_rate_limit(model_server: START, connect: Connect, vendor: str) -> None:
    words = "Rate limit reached on tokens per min. Please try again in 60ms. Add a payment method at /account/billing."
    error = await fails(connect(vendor, model_server([Status(429, words)])))
    assert isinstance(error, RateLimited)
    assert error.retry_after == 0.06


async def test_no_credit_is_no_rate_limit(model_server: START, connect: Connect) -> None:
    server = model_server([Status(429, "You exceeded your current quota.", code="insufficient_quota")])
    error = await fails(connect("openai", server))
    assert type(error) is BadRequest
    assert "credit" in str(error)


@pytest.mark.parametrize(
    "raw",
    [
        Raw(b"<html><h1>502 Bad Gateway</h1></html>", 502, "text/html"),
        Raw(b"", 502, JSON),
        Raw(b'"just words"', 500, JSON),
        Raw(b"[]", 500, JSON),
        Raw(b'[{"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}]', 503, JSON),
        Raw(b'{"detail": "Service down"}', 500, JSON),
        Raw("{'not': json\x1b[31m\u202e}".encode() * 500, 500, "text/plain"),
    ],
)
async def test_errors_of_any_shape_are_one_short_line(
    model_server: START, connect: Connect, vendor: str, raw: Raw
) -> None:
    error = await fails(connect(vendor, model_server([raw])))
    assert isinstance(error, ServerOverloaded)
    assert len(str(error)) < 500
    assert "<" not in str(error)
    assert "Error code" not in str(error)


@pytest.mark.parametrize(
    "fault",
    [{"cut": 0.0}, {"cut": 0.5}, {"cut": 0.99}, {"silent": True}, {"malformed": True}],
    ids=["before the first byte", "half-way", "just before the end", "politely", "no JSON"],
)
async def test_a_broken_answer_is_a_lost_connection(
    model_server: START, connect: Connect, vendor: str, fault: dict[str, Any]
) -> None:
    answer = Answer(Step(say=WORDS, calls=(ScriptedCall("now"),)), **fault)
    provider = connect(vendor, model_server([answer, Step(say="Back.")]))
    assert isinstance(await fails(provider), ConnectionLost)
    chunks, error = await until_error(provider.stream(ASK))
    assert error is None
    assert chunks[-1].text == "Back."


async def test_what_came_before_a_malformed_line_is_shown(model_server: START, connect: Connect, vendor: str) -> None:
    provider = connect(vendor, model_server([Answer(Step(say=WORDS), malformed=True)]))
    chunks, _ = await until_error(provider.stream(ASK))
    said = "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))
    assert len(said) > 500
    assert WORDS.startswith(said)


@pytest.mark.parametrize("pace", [Pace(), Pace(piece=7), Pace(piece=1000)])
async def test_unknown_events_are_passed_over(model_server: START, connect: Connect, vendor: str, pace: Pace) -> None:
    step = Step(think="Hm.", say=WORDS, calls=(ScriptedCall("now", {"zone": "UTC"}),))
    chunks, error = await until_error(connect(vendor, model_server([Answer(step, noise=True, pace=pace)])).stream(ASK))
    assert error is None
    assert chunks[-1].text == WORDS
    assert chunks[-1].calls[0].input == {"zone": "UTC"}


async def test_an_error_within_the_stream_is_told(model_server: START, connect: Connect) -> None:
    start = b'event: message_start\ndata: {"type":"message_start","message":{"content":[]}}\n\n'
    broken = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
    error = await fails(connect("anthropic", model_server([Raw(start + broken)])))
    assert type(error) is ServerOverloaded
    sayings = [
        (b'data: {"error":{"message":"Too many","code":429}}\n\n', RateLimited),
        (b'data: {"error":{"message":"Rate limited","type":"rate_limit_exceeded"}}\n\n', RateLimited),
        (
            b'event: error\ndata: {"error":{"message":"bad","type":"invalid_request_error"}}\n\n',
            RequestRefused,
        ),
        (
            b'data: {"choices":[{"finish_reason":"error","error":{"code":502,"message":"x"}}]}\n\n',
            ServerOverloaded,
        ),
        (b'data: {"error":"the engine stopped"}\n\n', ServerOverloaded),
    ]
    provider = connect("openai", model_server([Raw(body) for body, _ in sayings]))
    for body, expected in sayings:
        assert type(await fails(provider)) is expected, body


async def test_nobody_at_the_address(vendor: str) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        is_anthropic = vendor == "anthropic"
        provider = AnthropicProvider(CLAUDE, base_url=url) if is_anthropic else OpenAIProvider(GPT, base_url=url)
        error = await fails(provider)
        await provider.close()
    assert isinstance(error, ConnectionLost)
    assert "Nothing answers" in str(error)
    assert "Start the model server" in error.hint


async def test_an_answer_that_never_comes(model_server: START, connect: Connect, vendor: str) -> None:
    held = threading.Event()
    server = model_server([Answer(Step(say=WORDS), pace=Pace(hold=held))])
    error = await fails(connect(vendor, server, transfer=Transfer(0.2)))
    held.set()
    assert isinstance(error, ConnectionLost)
    assert "in time" in str(error)


async def test_plain_http_where_tls_is_expected(vendor: str) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        provider = make(vendor, "k", url)
        error = await fails(provider)
        await provider.close()
    assert type(error) is BadRequest
    assert "http://" in error.hint


async def test_an_endpoint_that_is_none(model_server: START, connect: Connect, vendor: str) -> None:
    for raw in (
        Raw(b"{}", content_type=JSON),
        Raw(b"<html>hello</html>", content_type=JSON),
        Raw(b"<html>hello</html>"),
    ):
        error = await fails(connect(vendor, model_server([raw])))
        assert isinstance(error, BadRequest | ConnectionLost)
        assert isinstance(error, ConnectionLost) or "base_url" in error.hint


async def test_a_whole_answer_that_is_cut_is_a_lost_connection(
    model_server: START, connect: Connect, vendor: str
) -> None:
    body = b'{"content": [{"type": "text", "te'
    assert isinstance(await fails(connect(vendor, model_server([Raw(body, content_type=JSON)]))), ConnectionLost)


async def test_a_part_of_nothing_is_a_broken_answer(model_server: START, connect: Connect) -> None:
    lost = b'data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{}"}}\n\n'
    assert isinstance(await fails(connect("anthropic", model_server([Raw(lost)]))), ConnectionLost)


@pytest.mark.parametrize(("vendor", "field"), [("anthropic", "cache_control"), ("openai", "stream_options")])
async def test_a_server_that_refuses_an_extra_is_asked_without_it(
    model_server: START, connect: Connect, vendor: str, field: str
) -> None:
    server = model_server([Status(400, f"{field}: Extra inputs are not permitted"), Step(say="one"), Step(say="two")])
    provider = connect(vendor, server)
    for expected in ("one", "two"):
        chunks, error = await until_error(provider.stream(ASK))
        assert error is None
        assert chunks[-1].text == expected
    assert [field in seen.json for seen in server.requests] == [True, False, False]
