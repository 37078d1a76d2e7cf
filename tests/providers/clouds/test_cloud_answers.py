"""Answers of clouds over real HTTP: whole, broken off, given up, or an error."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from ba_tui.core.errors import AuthFailed, BadRequest, BaError, ConnectionLost, RateLimited
from ba_tui.core.provider import Provider
from ba_tui.providers.scripted import ScriptedCall, Step
from tests.loopback import Answer, ModelServer, Raw, formats
from tests.loopback.replies import JSON, Pace, Status
from tests.providers.clouds.conftest import ASKED, CLAUDE, FRAMES, MODELS, there
from tests.providers.conftest import collect, until_error
from tests.providers.recorder import recording


@pytest.mark.parametrize("kind", MODELS)
async def test_answers_come_whole(
    kind: str,
    model_server: Callable[..., ModelServer],
    set_up: Callable[[str, str], None],
    connect: Callable[[str, str], Provider],
) -> None:
    call = ScriptedCall("now", {"zone": "Europe/Kyiv — ünïcödé"})
    steps = [Step(think="Hm.", say="Let me see. " * 50, calls=(call,)), Answer(Step(say="Noon."), pace=Pace(piece=7))]
    async with recording() as tokens:
        set_up(kind, tokens.url)
        server = model_server(steps)
        provider = connect(kind, there(kind, server))
        first = (await collect(provider.stream(ASKED)))[-1]
        second = (await collect(provider.stream(ASKED)))[-1]
    assert first.text == "Let me see. " * 50
    assert [(use.name, use.input) for use in first.calls] == [(call.tool, call.args)]
    assert second.text == "Noon."


async def test_an_error_within_the_frames_of_bedrock_is_told(
    model_server: Callable[..., ModelServer],
    set_up: Callable[[str, str], None],
    connect: Callable[[str, str], Provider],
) -> None:
    set_up("bedrock", "")
    headers = {"message-type": "exception", "exception-type": "throttlingException"}
    whole = formats.framed(b'data: {"type": "ping"}\n\n')
    server = model_server([
        Raw(whole + formats.frame(headers, b'{"message": "Too many tokens."}'), content_type=FRAMES),
        Raw(whole[:-4] + b"....", content_type=FRAMES),
        Raw(b"<html>Sign in</html>", content_type="text/html"),
        Raw(b'{"message": "The security token included in the request is expired"}', 403, JSON),
    ])  # fmt: skip
    provider = connect("bedrock", server.url)
    errors = [(await until_error(provider.stream(ASKED)))[1] for _ in range(4)]
    assert [type(error) for error in errors] == [RateLimited, BadRequest, BadRequest, AuthFailed]
    assert "Too many tokens." in str(errors[0])
    assert "token included in the request is expired" in str(errors[3])
    assert isinstance(errors[3], BaError)
    assert "AWS_PROFILE" in errors[3].hint


async def test_marks_for_the_cache_stay_on_blocks_where_a_cloud_knows_no_others(
    model_server: Callable[..., ModelServer],
    set_up: Callable[[str, str], None],
    connect: Callable[[str, str], Provider],
) -> None:
    set_up("foundry", "")
    refusals = [f"{place}: Extra inputs are not permitted" for place in ("cache_control", "system.0.cache_control")]
    server = model_server([*(Status(400, refusal) for refusal in refusals), Step(say="Noon.")])
    assert (await collect(connect("foundry", server.url).stream(ASKED)))[-1].text == "Noon."
    sent = [seen.json for seen in server.requests]
    assert ["cache_control" in body for body in sent] == [True, False, False]
    assert ["cache_control" in body["system"][0] for body in sent] == [True, True, False]


@pytest.mark.parametrize("kind", CLAUDE)
async def test_an_answer_that_breaks_off_is_told(
    kind: str,
    model_server: Callable[..., ModelServer],
    set_up: Callable[[str, str], None],
    connect: Callable[[str, str], Provider],
) -> None:
    async with recording() as tokens:
        set_up(kind, tokens.url)
        server = model_server([Answer(Step(say="word " * 300), cut=0.5), Answer(Step(say="word " * 9), silent=True)])
        provider = connect(kind, server.url)
        errors = [(await until_error(provider.stream(ASKED)))[1] for _ in range(2)]
    assert [type(error) for error in errors] == [ConnectionLost, ConnectionLost]


@pytest.mark.parametrize("kind", MODELS)
async def test_a_request_that_is_given_up_leaves_no_connection(
    kind: str,
    model_server: Callable[..., ModelServer],
    set_up: Callable[[str, str], None],
    connect: Callable[[str, str], Provider],
    held: threading.Event,
) -> None:
    async with recording() as tokens:
        set_up(kind, tokens.url)
        server = model_server([Answer(Step(say="word " * 300), pace=Pace(hold=held)), Step(say="Again.")])
        provider = connect(kind, there(kind, server))
        begun = asyncio.Event()

        async def follow() -> None:
            async for _ in provider.stream(ASKED):
                begun.set()

        task = asyncio.create_task(follow())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await collect(provider.stream(ASKED)))[-1].text == "Again."
