"""Events from bytes: the same in whatever pieces the bytes come, and however slowly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_tui.core.errors import AnswerTooLarge, BadRequest, ConnectionLost, ProviderError, ServerOverloaded
from ba_tui.core.events import TextDelta, ThinkingDelta, ToolInputDelta
from ba_tui.core.messages import Message, Text
from ba_tui.core.provider import ReplyChunk
from ba_tui.providers import sse
from ba_tui.providers.faults import ModelService
from ba_tui.providers.sse import LINE, EventDecoder, chunks
from tests.providers.conftest import until_error

LINES = st.lists(
    st.sampled_from(["data: {}", "data:x", "data: ", "event: ping", ": comment", "id: 3", "", "data: äöü 🎉"]),
    max_size=30,
)


def decoded(body: bytes, size: int) -> list[tuple[str, str]]:
    decoder = EventDecoder()
    events = [event for start in range(0, len(body), size) for event in decoder.feed(body[start : start + size])]
    return events + decoder.close()


@settings(deadline=None)
@given(lines=LINES, end=st.sampled_from(["\n", "\r\n", "\r"]), size=st.integers(1, 9))
def test_pieces_and_kinds_of_line_ends_do_not_matter(lines: list[str], end: str, size: int) -> None:
    plain, body = ("".join(line + each for line in lines).encode() for each in ("\n", end))
    assert decoded(body, size) == decoded(plain, 10_000)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_events_have_names_and_data(end: str) -> None:
    body = end.join(["event:one", "data: 1", "", ": hm", "data:2", "data: 3", "", "event: none", "", "data: 4"])
    assert decoded(body.encode(), 3) == [("one", "1"), ("", "2\n3"), ("", "4")]


def test_bytes_that_are_no_utf8_do_not_stop_it() -> None:
    assert decoded(b"data: \xff\xc3\n\ndata: ok\n\n", 2)[1] == ("", "ok")


def test_line_separators_within_a_line_are_no_line_ends() -> None:
    assert decoded("data: a\u2028b\x0bc\x85d\n\n".encode(), 100) == [("", "a\u2028b\x0bc\x85d")]


class Words:
    """An answer of words, thoughts and calls, whole with an empty event."""

    def __init__(self) -> None:
        self.done = False
        self.text = ""

    def feed(self, name: str, data: dict[str, Any]) -> Iterable[ReplyChunk]:
        if "error" in data:
            raise ServerOverloaded(f"The server is busy: {data['error']}")
        self.done = not data
        self.text += data.get("word", "")
        kinds: tuple[tuple[str, Callable[[str], ReplyChunk]], ...] = (
            ("word", TextDelta),
            ("thought", ThinkingDelta),
            ("call", lambda id: ToolInputDelta(id, "now", len(self.text))),
        )
        return [make(data[key]) for key, make in kinds if key in data]

    def take(self, body: dict[str, Any]) -> None:
        self.text = body["word"]

    def close(self) -> None:
        self.done = True

    def finish(self) -> Message:
        return Message("assistant", (Text(self.text),))


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
    assert isinstance(error, ServerOverloaded)


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


def test_what_waits_for_its_end_is_known_by_its_size() -> None:
    decoder = EventDecoder()
    sizes = [decoder.waiting]
    for data in (b"event: x\n", b"data", b": 123", b"\n: comment\ndata:", b"4\n", b"\nda", b"ta: 5\n\n"):
        decoder.feed(data)
        sizes.append(decoder.waiting)
    one, both = 9 + LINE, 9 + LINE + 6 + LINE
    assert sizes == [0, 0, 4, 9, one + 5, both, 2, 0]


async def pieces_of(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def event(**data: Any) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


async def test_events_that_are_no_object_say_nothing_but_an_error_does() -> None:
    plain = b'data: 5\n\nevent: note\ndata: "x"\n\ndata: [1]\n\ndata: null\n\n'
    assert await read(pieces_of(WORD + plain + WORD + event())) == ("on on ", None)
    for told in (b'event: error\ndata: "out of memory"\n\n', b"error:out of memory\n\n"):
        text, error = await read(pieces_of(WORD + told))
        assert (text, str(error)) == ("on ", "The server is busy: out of memory")
    text, error = await read(pieces_of(WORD + b"event: note\ndata: out of memory\n\n"))
    assert (text, type(error)) == ("on ", ConnectionLost)


WHOLE = b'{"word": "' + b"x" * 88 + b'"}'


@pytest.mark.parametrize(
    ("limit", "pieces", "exactly"),
    [
        ("EVENT", [WORD, b"data: " + b"x" * 20], 26),
        ("EVENT", [WORD, b"data: 1\n", b"data: 12\n"], 15 + 2 * LINE),
        ("EVENT", [WHOLE[:50], WHOLE[50:]], len(WHOLE)),
        ("RESPONSE", [WORD, b": ping\n\n", b": pong\n\n", event()], len(WORD) + 16 + 10),
    ],
    ids=["line", "lines", "object", "response"],
)
async def test_an_answer_of_just_the_largest_size_is_read(
    monkeypatch: pytest.MonkeyPatch, limit: str, pieces: list[bytes], exactly: int
) -> None:
    monkeypatch.setattr(sse, "ERROR", 10)
    monkeypatch.setattr(sse, limit, exactly)
    _, error = await read(pieces_of(*pieces))
    assert error is None or isinstance(error, ConnectionLost), "an event without its end is cut off, not too large"
    monkeypatch.setattr(sse, limit, exactly - 1)
    _, error = await read(pieces_of(*pieces))
    assert isinstance(error, AnswerTooLarge)
    assert "so ba stopped reading the answer" in str(error)


async def test_a_body_in_pieces_that_is_no_answer_is_read_no_further_than_an_error_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sse, "ERROR", 30)
    taken: list[bytes] = []

    async def page() -> AsyncIterator[bytes]:
        for piece in [b"<html>", *[b"<p>Hello"] * 9]:
            taken.append(piece)
            yield piece

    _, error = await read(page())
    assert isinstance(error, BadRequest)
    assert "not a model's answer" in str(error)
    assert len(taken) == 5
