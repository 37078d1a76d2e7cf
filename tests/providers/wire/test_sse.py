"""Events from bytes: the same in whatever pieces the bytes come, and however slowly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_tui.core.events import TextDelta
from ba_tui.core.messages import Message, Text
from ba_tui.core.provider import ReplyChunk
from ba_tui.providers.faults import ModelService
from ba_tui.providers.wire.sse import Decoder, chunks

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
    body = end.join(["event: one", "data: 1", "", ": hm", "data:2", "data: 3", "", "event: none", "", "data: 4"])
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
