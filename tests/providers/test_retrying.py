"""Further attempts: announced, spread, stopped at once by a cancel, and over real HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, cast

import pytest

from ba_tui.core.errors import AuthFailed, ConnectionLost, RateLimited, ServerOverloaded
from ba_tui.core.events import MessageRestarted, Retrying, TextDelta
from ba_tui.core.messages import Message, user
from ba_tui.core.provider import ModelRequest, Provider, ReplyChunk
from ba_tui.providers.pipeline import Backoff, FallbackModel, Retries
from ba_tui.providers.scripted import ScriptedProvider, ScriptFailure, Step
from tests.loopback import Answer, ModelServer, Status
from tests.providers.conftest import Connect, collect, until_error

ASK = ModelRequest("", [user("Hello")], ())
LONG = "word " * 200


class Clock:
    """Sleeps by writing down how long."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def persistent(*steps: Step, clock: Clock, backoff: Backoff | None = None) -> Retries:
    return Retries(ScriptedProvider(steps), backoff, sleep=clock.sleep, chance=lambda: 0.5)


async def test_passing_failures_are_announced_and_tried_again() -> None:
    clock = Clock()
    failing = Step(error=ScriptFailure("overloaded", "Too busy."))
    chunks = await collect(persistent(failing, failing, Step(say="Hi"), clock=clock).stream(ASK))
    assert [(c.reason, c.delay, c.attempt, c.attempts) for c in chunks[:2]] == [
        ("Too busy.", 0.5, 2, 6),
        ("Too busy.", 1.0, 3, 6),
    ]
    assert clock.slept == [0.5, 1.0]
    assert chunks[-1].text == "Hi"
    assert not any(isinstance(chunk, MessageRestarted) for chunk in chunks)


async def test_what_was_shown_is_taken_back_when_the_next_attempt_begins() -> None:
    broken = Step(say=LONG, error=ScriptFailure("connection_lost", after=5))
    chunks = await collect(persistent(broken, Step(say="Hi"), clock=Clock()).stream(ASK))
    kinds = [type(chunk) for chunk in chunks]
    assert kinds == [*[TextDelta] * 5, Retrying, MessageRestarted, TextDelta, Message]


async def test_the_wait_asked_for_is_kept_to() -> None:
    clock = Clock()
    await collect(
        persistent(Step(error=ScriptFailure("rate_limited", retry_after=7)), Step(say="Hi"), clock=clock).stream(ASK)
    )
    assert clock.slept == [7.5]


async def test_a_wait_beyond_all_patience_is_the_persons_to_decide() -> None:
    clock = Clock()
    _, error = await until_error(
        persistent(Step(error=ScriptFailure("rate_limited", retry_after=3600)), clock=clock).stream(ASK)
    )
    assert isinstance(error, RateLimited)
    assert clock.slept == []


async def test_after_the_last_attempt_its_error_is_raised() -> None:
    clock = Clock()
    failing = Step(error=ScriptFailure("overloaded"))
    chunks, error = await until_error(persistent(*[failing] * 9, clock=clock, backoff=Backoff(3)).stream(ASK))
    assert isinstance(error, ServerOverloaded)
    assert [type(chunk) for chunk in chunks] == [Retrying, Retrying]


BUSY, LIMITED = Step(error=ScriptFailure("overloaded", "Too busy.")), Step(error=ScriptFailure("rate_limited"))


@pytest.mark.parametrize(
    ("most", "steps", "attempts"),
    [
        (1, [BUSY], 1),
        (2, [BUSY, BUSY], 2),
        (2, [BUSY, LIMITED, BUSY, LIMITED, Step(say="Hi")], 0),
        (2, [BUSY, LIMITED, BUSY, BUSY], 4),
        (0, [*[BUSY] * 5, Step(say="Hi")], 0),
    ],
)
async def test_so_many_overloads_in_a_row_end_it(most: int, steps: list[Step], attempts: int) -> None:
    """``attempts``: how many are made before its error is raised; 0 when an answer comes."""
    provider = Retries(ScriptedProvider(steps), overloads=most, sleep=Clock().sleep)
    chunks, error = await until_error(provider.stream(ASK))
    waits = [chunk.attempt for chunk in chunks if isinstance(chunk, Retrying)]
    if attempts:
        assert (str(error), waits) == ("Too busy.", list(range(2, attempts + 1)))
    else:
        assert (error, chunks[-1].text, waits) == (None, "Hi", list(range(2, len(steps) + 1)))


async def test_words_that_were_taken_back_are_taken_back_once() -> None:
    broken = Step(say=LONG, error=ScriptFailure("connection_lost", after=1))
    chunks = await collect(persistent(broken, BUSY, broken, BUSY, Step(say="Hi"), clock=Clock()).stream(ASK))
    kinds = [type(chunk) for chunk in chunks]
    taken_back = [TextDelta, Retrying, MessageRestarted, Retrying]
    assert kinds == [*taken_back, *taken_back, TextDelta, Message]


class Endless(ScriptedProvider):
    """Answers without an end, and tells whether its stream was closed."""

    def __init__(self) -> None:
        super().__init__(())
        self.ended = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        try:
            while True:
                yield TextDelta("on ")
        finally:
            self.ended = True


@pytest.mark.parametrize(
    "wrapped",
    [Retries, lambda inner: FallbackModel(inner, "other", lambda name: inner)],
    ids=["retries", "fallback"],
)
async def test_who_reads_no_further_closes_the_stream_within(wrapped: Callable[[Provider], Provider]) -> None:
    inner = Endless()
    async with aclosing(cast("AsyncGenerator[ReplyChunk, None]", wrapped(inner).stream(ASK))) as chunks:
        await anext(chunks)
    assert inner.ended


async def test_what_will_not_pass_is_not_tried_again() -> None:
    clock = Clock()
    _, error = await until_error(
        persistent(Step(error=ScriptFailure("auth_failed")), Step(say="Hi"), clock=clock).stream(ASK)
    )
    assert isinstance(error, AuthFailed)
    assert clock.slept == []


async def test_a_cancel_ends_the_wait() -> None:
    async def forever(seconds: float) -> None:
        await asyncio.Event().wait()

    provider = Retries(ScriptedProvider([Step(error=ScriptFailure("overloaded"))]), sleep=forever)
    waiting = asyncio.Event()

    async def follow() -> None:
        async for chunk in provider.stream(ASK):
            assert isinstance(chunk, Retrying)
            waiting.set()

    task = asyncio.create_task(follow())
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_it_is_again_a_provider() -> None:
    inner = ScriptedProvider([Step(say="Hi")])
    outer = Retries(Retries(inner))
    assert outer.model is inner.model
    assert (await collect(outer.stream(ASK)))[-1].text == "Hi"


async def test_over_http_only_our_attempts_are_made(
    model_server: Callable[..., ModelServer], connect: Connect, vendor: str
) -> None:
    faults: list[Any] = [
        Status(529),
        Status(429, retry_after="3"),
        Status(500),
        Answer(Step(say=LONG), cut=0.5),
        Answer(Step(say=LONG), silent=True),
        Step(say="At last."),
    ]
    server, clock = model_server(faults), Clock()
    provider = Retries(connect(vendor, server), sleep=clock.sleep, chance=lambda: 0.0)
    chunks = await collect(provider.stream(ASK))
    assert chunks[-1].text == "At last."
    assert len(server.requests) == 6
    assert clock.slept == [0.0, 3.0, 0.0, 0.0, 0.0]
    assert [type(c) for c in chunks if not isinstance(c, TextDelta)].count(MessageRestarted) == 2
    assert len({seen.body for seen in server.requests}) == 1


async def test_the_last_error_over_http_is_raised(
    model_server: Callable[..., ModelServer], connect: Connect, vendor: str
) -> None:
    server, clock = model_server([Answer(Step(say=LONG), silent=True)] * 9), Clock()
    provider = Retries(connect(vendor, server), Backoff(3), sleep=clock.sleep)
    chunks, error = await until_error(provider.stream(ASK))
    assert isinstance(error, ConnectionLost)
    assert len(server.requests) == 3
    assert any(isinstance(chunk, TextDelta) for chunk in chunks)
