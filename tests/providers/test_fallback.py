"""Another model while the main one is overloaded: after so many answers in a row, said, and for a while."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ba_tui.core.errors import RateLimited, ServerOverloaded, UsageError
from ba_tui.core.events import MessageRestarted, Notice, Retrying
from ba_tui.core.messages import user
from ba_tui.core.provider import ModelInfo, ModelRequest, Provider
from ba_tui.providers.pipeline import REST, FallbackModel, Retries
from ba_tui.providers.scripted import ScriptedProvider, ScriptFailure, Step
from tests.providers.conftest import collect, until_error

ASK = ModelRequest("", [user("Hello")], ())
BUSY = Step(error=ScriptFailure("overloaded", "Too busy."))
OTHER = ModelInfo("test/other", "test", "other", family="scripted")


async def no_sleep(_: float) -> None:
    """Waits are for test_retrying."""


class World:
    def __init__(self, own: Sequence[Step], other: Sequence[Step] = (), after: int = 3) -> None:
        self.now = 0.0
        self.made: list[str] = []
        self.other = other
        main = Retries(ScriptedProvider(own), overloads=after, sleep=no_sleep)
        self.provider = FallbackModel(main, "test/other", self.make, lambda: self.now)

    def make(self, name: str) -> Provider:
        self.made.append(name)
        if not self.other:
            raise UsageError(f"There is no model {name!r}.")
        return ScriptedProvider(self.other, OTHER)


async def test_after_three_overloads_in_a_row_the_other_model_answers_and_is_named():
    world = World([BUSY, BUSY, BUSY, Step(say="Never.")], [Step(say="Hi")])
    chunks = await collect(world.provider.stream(ASK))
    assert [type(chunk) for chunk in chunks[:3]] == [Retrying, Retrying, Notice]
    assert "overloaded" in chunks[2].text
    assert "test/other" in chunks[2].text
    assert chunks[-1].text == "Hi"
    assert chunks[-1].model == "test/other"
    assert world.provider.model.id == "test/other"


async def test_two_overloads_and_an_answer_change_nothing():
    world = World([BUSY, BUSY, Step(say="Hi")])
    chunks = await collect(world.provider.stream(ASK))
    assert chunks[-1].text == "Hi"
    assert world.made == []


async def test_other_failures_are_tried_again_as_ever():
    limited = Step(error=ScriptFailure("rate_limited"))
    world = World([BUSY, limited, BUSY, limited, BUSY, Step(say="Hi")])
    assert (await collect(world.provider.stream(ASK)))[-1].text == "Hi"
    _, error = await until_error(World([limited] * 9).provider.stream(ASK))
    assert isinstance(error, RateLimited)


async def test_the_main_model_rests_and_is_then_asked_again():
    world = World([BUSY, Step(say="Main again")], [Step(say="One"), Step(say="Two")], after=1)
    assert (await collect(world.provider.stream(ASK)))[-1].text == "One"
    world.now = REST - 1
    assert [chunk.text for chunk in await collect(world.provider.stream(ASK))][-1] == "Two"
    world.now = REST + 1
    first, *rest = await collect(world.provider.stream(ASK))
    assert isinstance(first, Notice)
    assert rest[-1].text == "Main again"
    assert world.made == ["test/other"]


async def test_what_the_main_model_had_shown_is_taken_back():
    broken = Step(say="word " * 50, error=ScriptFailure("overloaded", after=3))
    world = World([broken], [Step(say="Hi")], after=1)
    chunks = await collect(world.provider.stream(ASK))
    kinds = [type(chunk) for chunk in chunks]
    assert kinds.index(MessageRestarted) > kinds.index(Notice)


async def test_a_fallback_that_cannot_be_asked_leaves_the_first_error():
    world = World([BUSY] * 3)
    _, error = await until_error(world.provider.stream(ASK))
    assert isinstance(error, ServerOverloaded)
    assert "Too busy" in str(error)
    assert "test/other" in error.hint


async def test_connections_are_closed():
    world = World([BUSY] * 3, [Step(say="Hi")])
    await collect(world.provider.stream(ASK))
    await world.provider.close()


@pytest.mark.parametrize("after", [1, 2])
async def test_how_many_is_a_setting(after: int):
    world = World([BUSY] * 3, [Step(say="Hi")], after=after)
    chunks = await collect(world.provider.stream(ASK))
    assert sum(isinstance(chunk, Retrying) for chunk in chunks) == after - 1
