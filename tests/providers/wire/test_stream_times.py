"""When a stream is given up, how often it is looked at, and that others have their turn; in seconds of a clock that
leaps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from ba_tui.core.errors import ConnectionLost, ProviderError
from ba_tui.core.events import TextDelta, ThinkingDelta, ToolInputDelta
from ba_tui.core.provider import ReplyChunk
from ba_tui.providers.faults import ModelService
from ba_tui.providers.shapes import SILENCES
from ba_tui.providers.sse import GRACE, PAUSE, REST, SLICE, SMALL, WAITED, chunks
from tests.providers.conftest import until_error
from tests.providers.wire.leaping import Leaping, LeapingLoop, leaping
from tests.providers.wire.test_sse import WORD, Words, event

__all__ = ["leaping"]
SERVICE = ModelService("Test", "KEY", "http://127.0.0.1", "m")
END = b"data: {}\n\n"
IDLE = 8.0
RESTED = round(REST + PAUSE, 6)
"""After so long a rest others have their turn as well."""


async def sent(*pieces: tuple[float, bytes], then: float | Exception = 0) -> AsyncIterator[bytes]:
    """Pieces, each so many seconds after the one before, however late they are read; then the body ends after ``then``
    seconds, or with that error."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    for seconds, data in pieces:
        due += seconds
        if due > loop.time():
            await asyncio.sleep(due - loop.time())
        yield data
    if isinstance(then, Exception):
        raise then
    await asyncio.sleep(then)


async def heard(body: AsyncIterator[bytes]) -> tuple[str, ProviderError | None]:
    got, error = await until_error(chunks(body, Words(), SERVICE, IDLE))
    return "".join(chunk.text for chunk in got if isinstance(chunk, TextDelta)), error


@pytest.mark.parametrize(
    ("sign", "every", "patience"),
    [
        (b"", 500.0, IDLE),
        (b"data: ", 1.0, IDLE),
        (b": still here\n", 1.0, SILENCES * IDLE),
        (b": still here\r", 1.0, SILENCES * IDLE),
        (b"\n", 7.875, SILENCES * IDLE),
        (b"\n", 8.125, IDLE),
        (WORD, 7.875, None),
        (b"data: {}", 1.0, IDLE),
    ],
    ids=["silence", "no end of a line", "comments", "carriage returns", "in time", "too late", "words", "no event"],
)
@pytest.mark.parametrize("first", [0.5, 6.0])
def test_a_stream_is_given_up_when_no_line_or_no_word_comes_for_too_long(
    leaping: Leaping, sign: bytes, every: float, patience: float | None, first: float
) -> None:
    text, error = leaping.run(heard(sent((first, WORD), *[(every, sign)] * 200, then=1_000)))
    if patience is None:
        # The last word is number 201; what never ends then is silent like any other.
        assert text == "on " * 201
        assert leaping.loop.now == pytest.approx(first + 200 * every + IDLE)
    else:
        assert text == "on "
        assert leaping.loop.now == pytest.approx(first + patience)
    assert isinstance(error, ConnectionLost)
    assert "did not answer in time" in str(error)


def test_a_stream_that_never_begins_is_given_up_as_well(leaping: Leaping) -> None:
    text, error = leaping.run(heard(sent(then=1_000)))
    assert (text, type(error), leaping.loop.now) == ("", ConnectionLost, IDLE)


def test_who_stops_a_stream_in_the_moment_in_which_it_is_given_up_is_stopped(leaping: Leaping) -> None:
    async def stopped(before: bool) -> None:
        loop = asyncio.get_running_loop()
        begin = loop.time()
        task = asyncio.create_task(heard(sent(then=1_000)))
        if not before:
            await asyncio.sleep(0)
        loop.call_at(begin + IDLE, task.cancel)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert loop.time() == begin + IDLE

    for before in (True, False):
        leaping.run(stopped(before))


def test_who_reads_after_a_cancel_is_told_when_a_stream_is_given_up(leaping: Leaping) -> None:
    async def after_a_cancel() -> tuple[str, ProviderError | None]:
        with pytest.raises(asyncio.CancelledError):
            await asyncio.Event().wait()
        return await heard(sent((1, WORD), then=1_000))

    async def stopped() -> None:
        task = asyncio.create_task(after_a_cancel())
        await asyncio.sleep(1)
        task.cancel()
        text, error = await task
        assert text == "on "
        assert isinstance(error, ConnectionLost)

    leaping.run(stopped())


def word_of(size: int) -> bytes:
    frame = len(b'data: {"word": ""}\n\n')
    return b'data: {"word": "%b"}\n\n' % (b"x" * (size - frame))


@pytest.mark.parametrize(
    ("pieces", "rests"),
    [
        ([(1.0, word_of(SMALL - 1))], [RESTED]),
        ([(1.0, word_of(SMALL))], [0]),
        ([(1.0, word_of(SMALL - 100)), (1.0, word_of(SMALL - 100))], [RESTED, RESTED]),
        ([(0.0, word_of(SMALL - 100)), (1.0, word_of(100))], [0, 0]),
        ([(0.0, word_of(SMALL)), (1.0, WORD), (1.0, WORD)], [0, 0, RESTED]),
        ([(1.0, WORD), (0.0, WORD)], [RESTED, 0]),
        ([(WAITED, WORD)], [0]),
        ([(2 * WAITED, WORD)], [RESTED]),
        ([(1.0, b": ping\n\n"), (1.0, b'data: {"silent": 1}\n\n')], [0, 0]),
    ],
)
def test_a_stream_is_left_alone_for_a_moment_after_a_few_words_that_were_waited_for(
    leaping: Leaping, pieces: list[tuple[float, bytes]], rests: list[float]
) -> None:
    rested: list[float] = []

    async def body() -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        for seconds, data in pieces:
            if seconds:
                await asyncio.sleep(seconds)
            before = loop.time()
            yield data
            rested.append(round(loop.time() - before, 6))
        yield END

    _, error = leaping.run(heard(body()))
    assert (error, rested) == (None, rests)


class Slow(Words):
    """An answer of which each event takes a while to work on."""

    WORK = 0.003

    def __init__(self, loop: LeapingLoop) -> None:
        super().__init__()
        self._loop = loop

    def feed(self, name: str, data: dict[str, Any]) -> Iterable[ReplyChunk]:
        self._loop.now += self.WORK
        return super().feed(name, data)


@pytest.mark.parametrize("pieces", [[WORD * 60 + END], [*[WORD] * 60, END], [*[WORD * 2] * 30, WORD.rstrip()]])
def test_others_have_their_turn_while_much_comes_at_once(leaping: Leaping, pieces: list[bytes]) -> None:
    loop, tick = leaping.loop, 0.001
    late: list[float] = []

    async def others() -> None:
        while True:
            due = loop.now + tick
            await asyncio.sleep(tick)
            late.append(loop.now - due)

    async def read() -> str:
        task = asyncio.create_task(others())
        await asyncio.sleep(0)
        words = Slow(loop)
        got, error = await until_error(chunks(sent(*((0, piece) for piece in pieces)), words, SERVICE, IDLE))
        task.cancel()
        assert error is None
        said = "".join(chunk.text for chunk in got if isinstance(chunk, TextDelta))
        assert said == words.text
        return said

    said = leaping.run(read())
    assert said.count("on ") >= 60
    # One event may be begun when the time is nearly up, and the rest of a piece in hand is not looked at anew.
    assert max(late) <= SLICE + 2 * Slow.WORK
    assert len(late) >= said.count("on ") * Slow.WORK / (SLICE + 2 * Slow.WORK)


def test_work_of_just_a_slice_is_not_interrupted(leaping: Leaping) -> None:
    for pieces in ([WORD + END], [WORD, END]):
        leaping.loop.now = 0.0
        words = Slow(leaping.loop)
        words.WORK = SLICE
        leaping.run(until_error(chunks(sent(*((0, piece) for piece in pieces)), words, SERVICE, IDLE)))
        assert leaping.loop.now == 2 * SLICE


@pytest.mark.parametrize(
    ("then", "ends"), [(0.25, 0.25), (1_000, GRACE), (httpx2.ReadError("cut"), 0)], ids=["soon", "never", "cut"]
)
def test_the_end_of_a_body_is_awaited_for_a_moment_once_the_answer_is_whole(
    leaping: Leaping, then: float | Exception, ends: float
) -> None:
    """A connection whose body was read to its end can be used again."""
    left: list[float] = []

    async def body() -> AsyncIterator[bytes]:
        try:
            async for piece in sent((1, WORD + END), (0, b": bye\n\n"), then=then):
                yield piece
        finally:
            left.append(leaping.loop.now)

    text, error = leaping.run(heard(body()))
    assert (text, error, left) == ("on ", None, [1 + ends])
    assert leaping.loop.now == 1 + ends


def test_neighbours_of_one_kind_that_arrive_together_come_as_one(leaping: Leaping) -> None:
    kinds = [{"thought": "hm"}, {"thought": "m"}, {"word": "on "}, *[{"call": "a"}] * 3, *[{"call": "b"}] * 2]
    kinds += [{"word": "and "}, {"word": "on "}, {"word": "and "}, {"thought": "m"}, {"silent": 1}, {"word": "x"}]
    events = [event(**each) for each in kinds]
    first = [ThinkingDelta("hmm"), TextDelta("on "), ToolInputDelta("a", "now", 3), ToolInputDelta("b", "now", 3)]
    wanted = [*first, TextDelta("and on and "), ThinkingDelta("m"), TextDelta("x")]
    for cut in (len(events), 8):
        body = sent((0, b"".join(events[:cut])), (0, b"".join(events[cut:]) + END))
        got, error = leaping.run(until_error(chunks(body, Words(), SERVICE, IDLE)))
        assert error is None
        assert [replace(chunk, at=0.0) for chunk in got] == [replace(chunk, at=0.0) for chunk in wanted]
