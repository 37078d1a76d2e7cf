"""Servers that send more than any answer needs, or so slowly that it never ends: the answer is broken off."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import httpx2
import pytest

from ba_tui.core.errors import AnswerTooLarge, BadRequest, ConnectionLost, RequestRefused, ServerOverloaded
from ba_tui.core.events import Retrying, TextDelta
from ba_tui.core.messages import user
from ba_tui.core.provider import ModelRequest
from ba_tui.providers import anthropic, openai_compat, shapes
from ba_tui.providers.connection import Transfer
from ba_tui.providers.faults import ModelService
from ba_tui.providers.http import ModelClient
from ba_tui.providers.pipeline import Retries
from ba_tui.providers.shapes import decode
from ba_tui.providers.sse import chunks
from tests.loopback.hostile import JSON, OK, SSE, HostileServer, Play, Repeated, answer, drip, endless
from tests.providers.conftest import CLAUDE, GPT, NOW, Connect, delta, until_error

ASK = ModelRequest("", [user("Hello")], (NOW,))
SERVICE = ModelService("Test", "KEY", "http://127.0.0.1", "m")
BAD = b"HTTP/1.1 400 Bad Request\r\n"
GZIP = b"content-encoding: gzip\r\n"


def event(data: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def block(index: int, **fields: Any) -> bytes:
    return event({"type": "content_block_start", "index": index, "content_block": fields})


def part(index: int, **fields: Any) -> bytes:
    return event({"type": "content_block_delta", "index": index, "delta": fields})


def spoken(vendor: str, text: str) -> bytes:
    return part(0, type="text_delta", text=text) if vendor == "anthropic" else event(delta(content=text))


def thought(vendor: str, text: str) -> bytes:
    if vendor == "anthropic":
        return part(0, type="thinking_delta", thinking=text)
    return event(delta(reasoning_content=text))


def begun(vendor: str) -> bytes:
    """An answer that has said Hello."""
    start = block(0, type="text", text="") if vendor == "anthropic" else b""
    return start + spoken(vendor, "Hello")


def called(vendor: str, number: int, arguments: Any = "{}") -> bytes:
    if vendor == "anthropic":
        start = block(number, type="tool_use", id=f"t{number}", name="now", input={})
        return start + part(number, type="input_json_delta", partial_json=arguments)
    function = {"name": "now", "arguments": arguments}
    return event(delta(tool_calls=[{"index": number, "id": f"t{number}", "function": function}]))


def more_arguments(vendor: str) -> bytes:
    if vendor == "anthropic":
        return part(1, type="input_json_delta", partial_json="1" * 9_000)
    return event(delta(tool_calls=[{"index": 1, "function": {"arguments": "1" * 9_000}}]))


def odd(vendor: str) -> bytes:
    if vendor == "anthropic":
        return block(1, type="odd", of="x" * 100)
    return event(delta(reasoning_details=[{"type": "odd", "of": "x" * 100}]))


FLOODS: dict[str, tuple[Callable[[str], bytes], str]] = {
    "text": (lambda vendor: spoken(vendor, "word " * 2_000), "4 MB of text"),
    "reasoning": (lambda vendor: thought(vendor, "hmm " * 2_000), "4 MB of text"),
    "letters beyond ASCII": (lambda vendor: spoken(vendor, "\N{GRINNING FACE}" * 4_000), "4 MB of text"),
    "arguments": (more_arguments, "2 MB for a call"),
    "blocks": (odd, "parts"),
    "one line": (lambda vendor: b"x" * 60_000, "an event of more than 16 MB"),
    "lines of one event": (lambda vendor: b"data: x\n", "an event of more than 16 MB"),
}


@pytest.mark.parametrize("flood", FLOODS)
async def test_what_came_before_a_flood_is_kept_and_the_server_is_not_asked_again(
    connect: Connect, vendor: str, flood: str
) -> None:
    make, said = FLOODS[flood]
    first = begun(vendor) + called(vendor, 1, "{") + (b"data: {" if flood == "one line" else b"")
    with HostileServer(answer(OK + SSE, Repeated(lambda: endless(make(vendor), first)))) as server:
        got, error = await until_error(Retries(connect(vendor, server)).stream(ASK))
    assert type(error) is AnswerTooLarge
    assert said in str(error)
    assert error.hint
    assert [chunk for chunk in got if isinstance(chunk, Retrying)] == []
    assert "".join(chunk.text for chunk in got if isinstance(chunk, TextDelta)).startswith("Hello")
    assert server.asked == 1


async def test_three_thousand_calls_are_no_answer(connect: Connect, vendor: str) -> None:
    calls = b"".join(called(vendor, number) for number in range(1, 3_000))
    with HostileServer(answer(OK + SSE, [begun(vendor) + calls])) as server:
        _, error = await until_error(connect(vendor, server).stream(ASK))
    assert type(error) is AnswerTooLarge
    assert f"{shapes.CALLS} tool calls" in str(error)


async def test_signs_of_life_end_as_well(connect: Connect, vendor: str) -> None:
    line = b": still here" * 1_000 + b"\n\n"
    packed = gzip.compress(line * (shapes.RESPONSE // len(line) + 1), 1)
    with HostileServer(answer(OK + GZIP + SSE, [packed])) as server:
        _, error = await until_error(connect(vendor, server).stream(ASK))
    assert type(error) is AnswerTooLarge
    assert "256 MB" in str(error)


async def test_one_json_object_has_an_end(connect: Connect, vendor: str) -> None:
    with HostileServer(answer(OK + JSON, Repeated(lambda: endless(b"x", b'{"choices": "')))) as server:
        _, error = await until_error(connect(vendor, server).stream(ASK))
    assert type(error) is AnswerTooLarge
    assert "16 MB" in str(error)


async def test_a_page_without_end_is_no_answer(connect: Connect, vendor: str) -> None:
    with HostileServer(answer(OK + JSON, Repeated(lambda: endless(b"<p>Hello</p>")))) as server:
        _, error = await until_error(connect(vendor, server).stream(ASK))
    assert type(error) is BadRequest


@pytest.mark.parametrize("head", [BAD + JSON, BAD + GZIP + JSON])
async def test_of_an_endless_error_the_beginning_is_read(connect: Connect, vendor: str, head: bytes) -> None:
    if GZIP in head:
        body: Iterable[bytes] = [gzip.compress(b"max_tokens is too high. " * 1_000_000, 1)]
    else:
        body = Repeated(lambda: endless(b"max_tokens is too high. "))
    with HostileServer(answer(head, body)) as server:
        _, error = await until_error(connect(vendor, server).stream(ASK))
    assert type(error) is RequestRefused
    assert "(400): “max_tokens is too high." in str(error)
    assert len(str(error)) < 500


async def test_an_error_that_breaks_off_is_still_the_error_it_is(connect: Connect, vendor: str) -> None:
    with HostileServer(answer(b"HTTP/1.1 503 Busy\r\ncontent-length: 99\r\n\r\n", [b"busy"])) as server:
        _, error = await until_error(connect(vendor, server).stream(ASK))
    assert type(error) is ServerOverloaded
    assert "busy" in str(error)


async def test_an_endless_redirect_is_followed_without_its_body(connect: Connect, vendor: str) -> None:
    head = b"HTTP/1.1 307 There\r\nlocation: /there\r\n\r\n"
    back = answer(head, Repeated(lambda: endless(b"x" * 1_000)))
    closing = block(0, type="text", text="Here.") + event({"type": "message_stop"})
    done = closing if vendor == "anthropic" else event(delta("stop", content="Here.")) + b"data: [DONE]\n\n"
    with HostileServer([back, answer(OK + SSE, [done])]) as server:
        got, error = await until_error(connect(vendor, server).stream(ASK))
    assert error is None
    assert got[-1].text == "Here."


@pytest.mark.parametrize("to", [b"http://[::bad", b"//"])
async def test_a_redirect_to_no_address_is_told(connect: Connect, vendor: str, to: bytes) -> None:
    head = b"HTTP/1.1 307 There\r\nconnection: close\r\ncontent-length: 0\r\n"
    with HostileServer(answer(head + b"location: " + to + b"\r\n\r\n")) as server:
        _, error = await until_error(connect(vendor, server).stream(ASK))
    assert type(error) is BadRequest
    assert "base_url" in error.hint


SLOW: dict[str, Callable[[str], Play]] = {
    "an event": lambda vendor: dripping(OK + SSE + begun(vendor), b'data: {"x": "' + b"y" * 500),
    "an object": lambda vendor: dripping(OK + JSON + b'{"x": "', b"y" * 500),
    "spaces": lambda vendor: dripping(OK + JSON, b" " * 500),
    "nothing": lambda vendor: dripping(OK + SSE + begun(vendor), b""),
    "signs of life": lambda vendor: dripping(OK + SSE + begun(vendor), b"\n" * 500),
}


def dripping(head: bytes, data: bytes) -> Play:
    slow = drip(data, 0.02)

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        await slow(reader, writer)

    return play


@pytest.mark.parametrize("what", SLOW)
async def test_a_body_that_drips_does_not_count_as_one_that_comes(connect: Connect, vendor: str, what: str) -> None:
    with HostileServer(SLOW[what](vendor)) as server:
        _, error = await until_error(connect(vendor, server, transfer=Transfer(0.2)).stream(ASK))
    assert type(error) is ConnectionLost
    assert "in time" in str(error)


async def test_an_answer_may_take_longer_than_the_time_for_a_line(connect: Connect, vendor: str) -> None:
    words = [spoken(vendor, f"{number} ") for number in range(30)]
    last = event({"type": "message_stop"}) if vendor == "anthropic" else event(delta("stop")) + b"data: [DONE]\n\n"

    async def body() -> AsyncIterator[bytes]:
        for word in words:
            yield word
            await asyncio.sleep(0.02)
        yield last

    with HostileServer(answer(OK + SSE + begun(vendor), body())) as server:
        got, error = await until_error(connect(vendor, server, transfer=Transfer(0.3)).stream(ASK))
    assert error is None
    assert got[-1].text.endswith("28 29 ")


@pytest.mark.parametrize("head", [OK, OK + b"x: ", b"HTTP/1.1 100 Continue\r\n\r\n"])
async def test_headers_that_drip_end_with_the_request(head: bytes) -> None:
    async with ModelClient(0.3, timeout=0.2) as client:
        with HostileServer(dripping(head, b"x" * 500)) as server, pytest.raises(httpx2.ReadTimeout):
            await client.post(server.url, content=b"{}")
    assert server.asked == 1


async def test_keys_have_their_turn_while_much_comes_at_once(vendor: str) -> None:
    text = spoken(vendor, "word ")
    assembly: Any = (anthropic.AnthropicReply if vendor == "anthropic" else openai_compat.OpenAIReply)(
        CLAUDE if vendor == "anthropic" else GPT, SERVICE
    )
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def body() -> AsyncIterator[bytes]:
        yield begun(vendor)
        # As a compressed body comes: all of it there, nothing to wait for.
        yield text * 10_000

    task = asyncio.create_task(others())
    await until_error(chunks(body(), assembly, SERVICE, 30.0))
    task.cancel()
    assert turns > 5


@pytest.mark.parametrize(
    "given",
    [
        [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        [{"type": "summary", "summary": "a"}, {"type": "summary", "index": 1, "summary": "b"}],
    ],
)
def test_pieces_of_reasoning_are_joined_as_they_come(given: list[dict[str, Any]]) -> None:
    assembly = openai_compat.OpenAIReply(GPT, SERVICE)
    for detail in given:
        list(assembly.feed("", delta(reasoning_details=[detail])))
    list(assembly.feed("", delta("stop", content="x")))
    (kept,) = [found.raw["reasoning_details"] for found in assembly.finish().blocks if found.type == "opaque"]
    joined = "".join(detail.get("text", "") + detail.get("summary", "") for detail in kept)
    assert joined == "ab"
    assert len(kept) == len({detail.get("index") for detail in given})


def test_figures_that_no_answer_needs_leave_room_for_those_that_it_does() -> None:
    load = shapes.Load("host")
    for _ in range(shapes.CALLS):
        load.call({"content": "x" * 10_000})
    load.words("y" * 1_000_000)
    for _ in itertools.repeat(None, 1_000):
        load.kept({"type": "web_search_tool_result", "content": [{"text": "a, b, c. " * 100}]})


@pytest.mark.parametrize("text", ["[" + "[]," * 110_000 + "[]]", "[" + "1," * 310_000 + "1]", "[" * 100_000])
def test_json_that_would_hold_everything_up_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"anybody means|too deep"):
        decode(text)


@pytest.mark.parametrize("text", ["a,b\n" * 400_000, "[{}]" * 100_000, '\\",[' * 200_000, "\\"])
def test_what_stands_in_a_string_is_no_value(text: str) -> None:
    assert decode(json.dumps({"content": text})) == {"content": text}


@pytest.mark.parametrize("text", ['"' + '\\"' * 1_000_000, '["' + "," * 400_000 + "\\", '"' * 999_999])
def test_a_string_without_an_end_is_refused_at_once(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(text + "," * 400_000)
