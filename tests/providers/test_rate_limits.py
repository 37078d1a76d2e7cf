"""Token buckets: what a minute allows goes at once, the rest waits; and waits are announced like those of a retry."""

from __future__ import annotations

import asyncio

import pytest

from ba_tui.core.events import Retrying
from ba_tui.core.messages import Usage, user
from ba_tui.core.provider import ModelRequest
from ba_tui.providers.access import RateLimit, RateLimits
from ba_tui.providers.pipeline import Retries
from ba_tui.providers.scripted import ScriptedProvider, Step
from ba_tui.settings import ModelProfile
from tests.providers.conftest import collect

ASK = ModelRequest("", [user("Hello")], ())


class Clock:
    """Time passes only where somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def limit(clock: Clock, requests: int | None = None, tokens: int | None = None) -> RateLimit:
    return RateLimit("mine", ModelProfile(requests_per_minute=requests, tokens_per_minute=tokens), clock)


def test_without_limits_nothing_waits():
    rate = limit(Clock())
    assert all(rate.next() is None for _ in range(100))


def test_requests_beyond_those_of_a_minute_wait_for_their_turn():
    clock = Clock()
    rate = limit(clock, requests=3)
    assert [rate.next() for _ in range(3)] == [None] * 3
    wait = rate.next()
    assert wait
    assert wait.seconds == pytest.approx(20)
    assert "3 requests a minute" in wait.reason
    clock.now = 20
    assert rate.next() is None
    clock.now = 1_000
    assert [rate.next() for _ in range(3)] == [None] * 3
    assert rate.next()


def test_tokens_that_were_used_beyond_the_limit_are_owed():
    clock = Clock()
    rate = limit(clock, tokens=6_000)
    assert rate.next() is None
    rate.used(Usage(8_000, 1_000))
    wait = rate.next()
    assert wait
    assert wait.seconds == pytest.approx(30, abs=0.1)
    assert "6,000 tokens a minute" in wait.reason
    rate.used(None)
    clock.now = 31
    assert rate.next() is None


def test_the_limit_that_waits_longest_is_named_and_a_request_that_waits_is_not_counted():
    clock = Clock()
    rate = limit(clock, requests=2, tokens=60)
    assert [rate.next(), rate.next()] == [None, None]
    rate.used(Usage(60, 9))
    for now, seconds, what in ((0, 30, "2 requests"), (25, 5, "2 requests"), (30, 0, "")):
        clock.now = now
        wait = rate.next()
        assert (wait.seconds if wait else 0) == pytest.approx(seconds)
        assert what in (wait.reason if wait else "")
    rate.used(Usage(80, 10))
    clock.now = 60
    wait = rate.next()
    assert wait
    assert (wait.seconds, wait.reason) == (pytest.approx(40), "mine is limited to 60 tokens a minute in the settings.")


async def test_a_wait_is_announced_and_then_the_request_goes():
    clock = Clock()
    rate = limit(clock, requests=1)
    provider = Retries(ScriptedProvider([Step(say="One."), Step(say="Two.")]), rate=rate, sleep=clock.sleep)
    await collect(provider.stream(ASK))
    waiting, *answer = await collect(provider.stream(ASK))
    assert isinstance(waiting, Retrying)
    assert (waiting.attempt, waiting.attempts, waiting.delay) == (0, 0, pytest.approx(60))
    assert answer[-1].text == "Two."
    assert clock.slept == [pytest.approx(60)]


async def test_the_tokens_of_an_answer_count():
    clock = Clock()
    rate = limit(clock, tokens=100)
    steps = [Step(say="One.", usage=Usage(150, 0)), Step(say="Two.")]
    provider = Retries(ScriptedProvider(steps), rate=rate, sleep=clock.sleep)
    await collect(provider.stream(ASK))
    await collect(provider.stream(ASK))
    assert clock.slept == [pytest.approx(30.6)]


async def test_a_wait_ends_with_a_cancel():
    rate = limit(Clock(), requests=1)
    provider = Retries(ScriptedProvider([Step(say="One."), Step(say="Two.")]), rate=rate)
    await collect(provider.stream(ASK))
    waiting = asyncio.ensure_future(collect(provider.stream(ASK)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


def test_all_that_ask_one_provider_share_its_limit():
    limits, profile = RateLimits(), ModelProfile(requests_per_minute=1)
    assert limits.of("mine", profile).next() is None
    assert limits.of("mine", profile).next()
    assert limits.of("other", profile).next() is None
