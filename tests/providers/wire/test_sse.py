"""Events from bytes: the same in whatever pieces the bytes come, and however slowly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_tui.core.errors import ConnectionLost, Overloaded, ProviderError
from ba_tui.core.events import TextDelta
from ba_tui.core.messages import Message, Text
from ba_tui.core.provider import ReplyChunk
from ba_tui.providers.faults import ModelService
from ba_tui.providers.wire.sse import SILENCES, Decoder, chunks
from tests.providers.conftest import until_error

LINES = st.lists(
    st.sampled_from(["data: {}", "data:x", "data: ", "event: ping", ": comment", "id: 3", "", "data: äöü 🎉"]),
    max_size=30,
)


def decoded(body: bytes, size: int) -> list[tuple[str, str]]:
    decoder = Decoder()
    events = [event for start in range(0, len(body), size) for event in decoder.feed(body[start : start + size])]
    return events + decoder.close()


@settings(deadline=None)
@given(lines=LINES, end=st.sampled_from(["\n", "\r\n", "\r"]), size=st.integers(1, 9))
def test_pieces_do_not_matter(lines: list[str], end: str, size: int) -> None:
    body = "".join(line + end for line in lines).encode()
    assert decoded(body, size) == decoded(body, 10_000)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_events_have_names_and_data(end: str) -> None:
    body = end.join(["event:one", "data: 1", "", ": hm", "data:2", "data: 3", "", "event: none", "", "data: 4"])
    assert decoded(body.encode(), 3) == [("one", "1"), ("", "2\n3"), ("", "4")]


def test_bytes_that_are_no_utf8_do_not_stop_it() -> None:
    assert decoded(b"data: \xff\xc3\n\ndata: ok\n\n", 2)[1] == ("", "ok")


def test_line_separators_within_a_line_are_no_line_ends() -> None:
    assert decoded("data: a\u2028b\x0bc\x85d\n\n".encode(), 100) == [("", "a\u2028b\x0bc\x85d")]


class Words:
    """An answer of words, whole with an event that is no word."""

    def __init__(self) -> None:
        self.done = False
        self.text = ""

    def feed(self, name: str, data: dict[str, Any]) -> Iterable[ReplyChunk]:
        if "error" in data:
            raise Overloaded("The server is busy.")
        self.done = "word" not in data
        self.text += data.get("word", "")
        return [] if self.done else [TextDelta(data["word"])]

    def take(self, body: dict[str, Any]) -> None:
        self.text = body["word"]

    def close(self) -> None:
        self.done = True

    def finish(self) -> Message:
        return Message("assistant", (Text(self.text),))


async def test_words_that_trickle_are_looked_for_less_often_than_they_come() -> None:
    wire: asyncio.Queue[bytes] = asyncio.Queue()
    looks = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal looks
        while True:
            looks += wire.empty()
            yield await wire.get()

    loop = asyncio.get_running_loop()
    for at in range(40):
        loop.call_later(at * 0.004, wire.put_nowait, b'data: {"word": "on "}\n\n')
    loop.call_later(0.17, wire.put_nowait, b"data: {}\n\n")
    words = Words()
    came = [chunk async for chunk in chunks(body(), words, ModelService("Test", "KEY", "http://127.0.0.1", "m"))]
    assert words.text == "on " * 40 == "".join(chunk.text for chunk in came if isinstance(chunk, TextDelta))
    assert looks < 20


SERVICE = ModelService("Test", "KEY", "http://127.0.0.1", "m")
WORD = b'data: {"word": "on "}\n\n'


async def read(body: AsyncIterator[bytes], idle: float = 5.0) -> tuple[str, ProviderError | None]:
    """The words of an answer, and its error."""
    got, error = await until_error(chunks(body, Words(), SERVICE, idle))
    return "".join(chunk.text for chunk in got if isinstance(chunk, TextDelta)), error


@pytest.mark.parametrize(
    "pieces", [[WORD + WORD + b'data: {"error": 1}\n\n'], [WORD, WORD + b'data: {"error": 1}\n\n']]
)
async def test_words_just_before_an_error_of_the_server_are_heard(pieces: list[bytes]) -> None:
    async def body() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    text, error = await read(body())
    assert text == "on on "
    assert isinstance(error, Overloaded)


@pytest.mark.parametrize("cut", [httpx2.ReadError("cut"), None])
async def test_words_just_before_the_line_is_cut_are_heard(cut: Exception | None) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield WORD
        yield WORD.rstrip()
        if cut:
            raise cut

    text, error = await read(body())
    # A line without its end may be half of one, unless the server ended the answer there.
    assert text == ("on " if cut else "on on ")
    assert isinstance(error, ConnectionLost) == (cut is not None)


@pytest.mark.parametrize(
    ("sign", "waits"), [(b"x", 1), (b": still here\n", SILENCES), (b"data: ", 1)], ids=["no line", "no word", "no end"]
)
async def test_a_stream_that_trickles_without_words_is_given_up(sign: bytes, waits: int) -> None:
    """Bytes keep coming, so no single read is late."""
    sent = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal sent
        yield WORD
        while True:
            await asyncio.sleep(0.005)
            sent += 1
            yield sign

    loop = asyncio.get_running_loop()
    begun = loop.time()
    async with asyncio.timeout(20):
        text, error = await read(body(), idle=0.1)
    assert text == "on "
    assert isinstance(error, ConnectionLost)
    assert sent > 1
    assert loop.time() - begun >= 0.1 * waits


async def test_a_stream_that_goes_on_is_never_given_up() -> None:
    async def body() -> AsyncIterator[bytes]:
        for _ in range(7):
            await asyncio.sleep(0.1)
            yield WORD
        yield b"data: {}\n\n"

    assert await read(body(), idle=0.5) == ("on " * 7, None)


async def test_who_stops_a_stream_is_told_of_no_lost_connection() -> None:
    waiting = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield WORD
        waiting.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(read(body()))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
