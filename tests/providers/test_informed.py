"""A model that its server tells of: asked beside the first answer, used from the next request on."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ba_tui.assembly import connect
from ba_tui.core.conversation import Conversation
from ba_tui.core.events import Event, MessageDone, Notice
from ba_tui.core.messages import Usage
from ba_tui.providers.model_facts import FILE
from ba_tui.providers.pipeline import LEARNING
from ba_tui.providers.scripted import Step
from ba_tui.resources import places
from tests.loopback import ModelServer, Status
from tests.loopback.replies import JSON, Pace, Raw
from tests.script import collect

Serve = Callable[..., ModelServer]
USED = Usage(1_000, 100)


def page(value: object) -> Raw:
    return Raw(json.dumps(value).encode(), content_type=JSON)


def listing(**entry: Any) -> Mapping[str, Raw]:
    return {"/v1/models": page({"data": [{"id": "some-model", **entry}]})}


def talk(folder: Path, server: ModelServer, **flags: Any) -> Conversation:
    address = {"providers.loop.kind": "openai", "providers.loop.base_url": server.openai_url}
    return connect({"model": "loop/some-model", **address, **flags}, folder).library.create()


async def said(conversation: Conversation, *prompts: str) -> list[Event]:
    events: list[Event] = []
    for prompt in prompts:
        events += await collect(conversation.say(prompt))
        asking = [task for task in asyncio.all_tasks() if task.get_name() == LEARNING]
        await asyncio.gather(*asking)
    return events


def notices(events: list[Event]) -> list[Notice]:
    return [event for event in events if isinstance(event, Notice)]


async def test_window_and_price_count_from_the_second_request_on(tmp_path: Path, model_server: Serve) -> None:
    pages = listing(context_length=32_768, pricing={"prompt": "0.000002", "completion": "0.00001"})
    server = model_server([Step(say="One.", usage=USED), Step(say="Two.", usage=USED)], pages=pages)
    conversation = talk(tmp_path, server)
    assert conversation.model_info().window == 8_192
    events = await said(conversation, "first", "second")
    await conversation.close()
    assert conversation.model_info().window == 32_768
    assert [event.cost for event in events if isinstance(event, MessageDone)] == [None, pytest.approx(0.003)]
    assert notices(events) == []
    assert (places().cache / FILE).exists()
    again = talk(tmp_path, server)
    assert again.model_info().window == 32_768
    await again.close()


async def test_a_model_that_is_asked_for_without_its_tag_is_known_under_that_name(
    tmp_path: Path, model_server: Serve
) -> None:
    server = model_server([Step(say="One.")], pages=listing(id="some-model:latest", context_length=16_384))
    conversation = talk(tmp_path, server)
    await said(conversation, "first")
    await conversation.close()
    assert conversation.model_info().window == 16_384


async def test_a_window_that_nobody_tells_is_small_and_said_once(tmp_path: Path, model_server: Serve) -> None:
    server = model_server([Step(say=f"{number}.") for number in range(3)], pages=listing())
    conversation = talk(tmp_path, server)
    (notice,) = notices(await said(conversation, "first", "second", "third"))
    await conversation.close()
    assert "8,192 tokens" in notice.text
    assert "some-model" in notice.hint
    assert "models.yaml" in notice.hint


@pytest.mark.parametrize(
    ("pages", "told"),
    [
        (listing(max_model_len=0), "invalid window"),
        (listing(max_model_len=-5), "invalid window"),
        (listing(max_model_len=10**15), "invalid window"),
        (listing(max_model_len=4096, pricing={"prompt": "dear", "completion": "1"}), "invalid price"),
    ],
)
async def test_what_is_wrong_in_an_answer_is_one_line(
    tmp_path: Path, model_server: Serve, pages: Mapping[str, Raw], told: str
) -> None:
    server = model_server([Step(say="One."), Step(say="Two.")], pages=pages)
    conversation = talk(tmp_path, server)
    lines = [notice.text for notice in notices(await said(conversation, "first", "second"))]
    await conversation.close()
    assert sum(told in line for line in lines) == 1


async def test_a_server_without_a_list_changes_nothing(tmp_path: Path, model_server: Serve) -> None:
    html = {"/v1/models": Raw(b"<html>Welcome", content_type="text/html")}
    server = model_server([Step(say="One."), Step(say="Two.")], pages=html)
    conversation = talk(tmp_path, server)
    events = await said(conversation, "first", "second")
    await conversation.close()
    assert [event.message.text for event in events if isinstance(event, MessageDone)] == ["One.", "Two."]
    assert not (places().cache / FILE).exists()


async def test_the_fallback_model_answers_and_is_in_the_record(tmp_path: Path, model_server: Serve) -> None:
    busy = Status(529, retry_after="0")
    server = model_server([busy, Step(say="Hi from the other.")], pages=listing(max_model_len=32_768))
    conversation = talk(tmp_path, server, fallback_model="loop/other-model", fallback_after=1)
    events = await said(conversation, "hello")
    await conversation.close()
    (done,) = [event for event in events if isinstance(event, MessageDone)]
    assert (done.message.model, done.message.text) == ("loop/other-model", "Hi from the other.")
    assert [request.json["model"] for request in server.requests] == ["some-model", "other-model"]
    assert any("overloaded" in notice.text for notice in notices(events))


async def test_temperature_and_effort_are_sent(tmp_path: Path, model_server: Serve) -> None:
    server = model_server([Step(say="One.")])
    conversation = talk(tmp_path, server, temperature=0.25, effort="low")
    await said(conversation, "hello")
    await conversation.close()
    (sent,) = server.requests
    assert (sent.json["temperature"], sent.json["reasoning_effort"]) == (0.25, "low")


async def test_plan_mode_asks_the_reasoning_model_with_its_own_effort(tmp_path: Path, model_server: Serve) -> None:
    server = model_server([Step(say="One."), Step(say="Two.")])
    slot = {"reasoning.model": "loop/thinker", "reasoning.effort": "high", "effort": "low"}
    conversation = talk(tmp_path, server, permission_mode="plan", **slot)
    await said(conversation, "plan it")
    conversation.set_mode("default")
    await said(conversation, "do it")
    await conversation.close()
    asked = [(request.json["model"], request.json["reasoning_effort"]) for request in server.requests]
    assert asked == [("thinker", "high"), ("some-model", "low")]


async def test_who_leaves_meanwhile_waits_for_no_server(tmp_path: Path, model_server: Serve) -> None:
    never = threading.Event()
    held = Raw(b'{"data": []}', content_type=JSON, pace=Pace(hold=never))
    server = model_server([Step(say="One.")], pages={"/v1/models": held})
    conversation = talk(tmp_path, server)
    await collect(conversation.say("hello"))
    await conversation.close()
    never.set()
    assert not [task for task in asyncio.all_tasks() if task.get_name() == LEARNING]
