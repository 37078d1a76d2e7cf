"""A request that is given up while a server keeps us waiting: over at once, and the next one works."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any, cast

import pytest

from ba_tui.core.messages import user
from ba_tui.core.provider import ModelRequest
from ba_tui.providers.connection import Transfer
from ba_tui.providers.scripted import Step
from tests.loopback import Answer, ModelServer, Raw
from tests.loopback.hostile import OK, SSE, HostileServer
from tests.loopback.replies import Pace
from tests.providers.conftest import Connect, collect, until_error
from tests.providers.test_bounds import begun

ASK = ModelRequest("", [user("Hello")], ())


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """What the server waits for; set at the end, so that it can stop."""
    event = threading.Event()
    yield event
    event.set()


async def cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    async with asyncio.timeout(30):
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_while_the_answer_stands_still(
    model_server: Callable[..., ModelServer], connect: Connect, vendor: str, held: threading.Event
) -> None:
    server = model_server([Answer(Step(say="word " * 300), pace=Pace(hold=held)), Step(say="Again.")])
    provider = connect(vendor, server)
    begun = asyncio.Event()

    async def follow() -> None:
        async for _ in provider.stream(ASK):
            begun.set()

    task = asyncio.create_task(follow())
    await begun.wait()
    await cancelled(task)
    assert (await collect(provider.stream(ASK)))[-1].text == "Again."


async def test_before_anything_has_come(
    model_server: Callable[..., ModelServer], connect: Connect, vendor: str, held: threading.Event
) -> None:
    server = model_server([Raw(b": please wait\n\n", pace=Pace(piece=1, hold=held)), Step(say="Again.")])
    provider = connect(vendor, server)

    async def follow() -> None:
        async for _ in provider.stream(ASK):
            pass

    task = asyncio.create_task(follow())
    assert await asyncio.to_thread(server.arrived, 1)
    await cancelled(task)
    assert (await collect(provider.stream(ASK)))[-1].text == "Again."


async def test_a_paced_answer_comes_whole(
    model_server: Callable[..., ModelServer], connect: Connect, vendor: str
) -> None:
    text = "Letters come as slowly as they are written. " * 10
    server = model_server([Answer(Step(say=text), pace=Pace(rate=200_000))])
    assert (await collect(connect(vendor, server).stream(ASK)))[-1].text == text


class Recording:
    """core.ports.sessions.Recorder and its one Exchange."""

    def __init__(self) -> None:
        self.data = b""
        self.ended = 0

    def sent(self, body: bytes, kept: int, tail: int) -> Recording:
        return self

    def received(self, data: bytes) -> None:
        assert not self.ended
        self.data += data

    def end(self) -> None:
        self.ended += 1


@pytest.mark.parametrize("end", [b"", b'data: {"error": {"message": "busy"}}\n\n'], ids=["unread", "failed"])
async def test_a_connection_whose_answer_is_read_no_further_is_closed_at_once(
    connect: Connect, vendor: str, end: bytes
) -> None:
    """A model would write on for nobody, and a server of one's own has few places."""
    left, recording = threading.Event(), Recording()

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK + SSE + begun(vendor) + end)
        await writer.drain()
        await reader.read()
        left.set()

    with HostileServer(play) as server:
        provider = connect(vendor, server, transfer=Transfer(30.0, recording))
        stream = cast("AsyncGenerator[Any, None]", provider.stream(ASK))
        if end:
            _, error = await until_error(stream)
            assert "busy" in str(error)
        else:
            async with contextlib.aclosing(stream) as answer:
                await anext(answer)
        assert (recording.data, recording.ended) == (begun(vendor) + end, 1)
        assert await asyncio.to_thread(left.wait, 20)
