"""Long conversations in the house as it is put together, against a model server that counts and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ba_tui.assembly import connect
from ba_tui.core.conversation import Conversation, compact, undo_compact
from ba_tui.core.events import Compressed, Event, MessageDone, Notice, TurnEnded
from ba_tui.core.messages import Usage
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.providers.scripted import Step
from ba_tui.resources import places
from tests.loopback import ModelServer, Status
from tests.script import collect

START = Callable[..., ModelServer]
WORDS = "The rows of part {0} were read; src/part_{0}.py is sound. " * 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    (work / ".git").mkdir(parents=True)
    (work / "AGENTS.md").write_text("Use tabs.")
    trust_folder(work)
    # Nobody asks the model server how large its window is.
    places().config.mkdir(parents=True, exist_ok=True)
    (places().config / "models.yaml").write_text("models: [{match: [some-model], window: 200000, output: 8192}]")
    return work


def flags_of(server: ModelServer) -> Mapping[str, object]:
    address = {"providers.loop.kind": "openai", "providers.loop.base_url": f"{server.url}/v1"}
    return {"model": "loop/some-model", **address}


def talk(folder: Path, server: ModelServer, **flags: Any) -> Conversation:
    return connect({**flags_of(server), **flags}, folder).library.create()


async def said(conversation: Conversation, count: int) -> list[Event]:
    events: list[Event] = []
    for number in range(count):
        events += await collect(conversation.say(f"Look at part {number}. {WORDS.format(number)}"))
    return events


async def test_a_server_that_refuses_a_long_prompt_gets_a_shorter_one(folder: Path, model_server: START) -> None:
    refusal = Status(400, "This model's maximum context length is 16384 tokens. However, you requested 20000 tokens.")
    steps = [*(Step(say=f"Part {number} is read.") for number in range(8)), refusal, Step(say="Now it fits.")]
    server = model_server(steps)
    conversation = talk(folder, server)
    await said(conversation, 8)
    events = await collect(conversation.say("And now?"))
    (done,) = [event for event in events if isinstance(event, Compressed)]
    refused, sent = server.requests[-2].body, server.requests[-1].body
    assert len(sent) < 0.75 * len(refused)
    assert done.after < done.before
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].reason == "done"
    assert conversation.transcript.messages[-1].text == "Now it fits."
    roles = [message["role"] for message in json.loads(sent)["messages"][1:]]
    assert all(one != other for one, other in pairwise(roles))
    await conversation.close()


async def test_what_the_server_counts_compresses_in_time_and_instructions_stay(
    folder: Path,
    model_server: START,
) -> None:
    counted = [*range(10_000, 170_000, 10_000), 40_000]
    server = model_server([Step(say="It is read.", usage=Usage(tokens, 10)) for tokens in counted])
    conversation = talk(folder, server)
    events = await said(conversation, 17)
    (done,) = [event for event in events if isinstance(event, Compressed)]
    assert done.strategy == "extract"
    assert done.after <= 0.5 * 200_000
    assert "Use tabs." in "".join(message.text for message in conversation.transcript.messages)
    await conversation.close()


async def test_compact_and_undo_survive_opening_the_session_again(folder: Path, model_server: START) -> None:
    server = model_server([Step(say=f"Part {number} is read.") for number in range(9)])
    conversation = talk(folder, server)
    await said(conversation, 8)
    before = [message.id for message in conversation.transcript.messages]
    await collect(compact(conversation, "part 3"))
    shorter = [message.id for message in conversation.transcript.messages]
    assert shorter != before
    await conversation.close()
    library = connect(flags_of(server), folder).library
    again = library.open(library.sessions()[0].id)
    await again.history()
    assert [message.id for message in again.transcript.messages] == shorter
    await collect(undo_compact(again))
    assert [message.id for message in again.transcript.messages] == before
    await again.close()


def tools_of(server: ModelServer) -> list[list[str]]:
    """The names of the tools in each request."""
    bodies = [json.loads(request.body) for request in server.requests]
    return [[tool["function"]["name"] for tool in body["tools"]] for body in bodies]


async def test_recall_is_listed_from_the_first_compression_on(folder: Path, model_server: START) -> None:
    refusal = Status(400, "This model's maximum context length is 16384 tokens. However, you requested 20000 tokens.")
    steps = [Step(say=f"Part {number} is read.") for number in range(8)]
    server = model_server([*steps, refusal, *steps, *steps])
    conversation = talk(folder, server)
    await said(conversation, 9)
    await collect(compact(conversation))
    await said(conversation, 1)
    await conversation.close()
    # Opened again, as with -c or -r.
    library = connect(flags_of(server), folder).library
    again = library.open(library.sessions()[0].id)
    await said(again, 1)
    await again.close()
    listed = tools_of(server)
    assert ["recall" in names for names in listed] == [False] * 9 + [True] * (len(listed) - 9)
    for names, later in pairwise(listed):
        assert later[: len(names)] == names or len(later) == len(names)
    assert "recall(round=N)" in server.requests[-1].body.decode()


async def test_limits_stop_a_session(folder: Path, model_server: START) -> None:
    server = model_server([Step(say="One.", usage=Usage(900, 200)), Step(say="Two.")])
    conversation = talk(folder, server, max_tokens=1_000)
    events = await said(conversation, 2)
    endings = [event for event in events if isinstance(event, TurnEnded)]
    assert [ending.reason for ending in endings] == ["done", "limit"]
    assert len([event for event in events if isinstance(event, MessageDone)]) == 1
    await conversation.close()


async def test_what_has_no_price_counts_by_its_tokens_under_a_cost_limit(folder: Path, model_server: START) -> None:
    server = model_server([Step(say="One.", usage=Usage(90_000, 4_000)), Step(say="Two.")])
    conversation = talk(folder, server, max_cost=1.0)
    events = await said(conversation, 2)
    (notice,) = [event for event in events if isinstance(event, Notice)]
    assert "prices of loop/some-model are unknown" in notice.text
    assert "models.yaml" in notice.hint
    end = events[-1]
    assert isinstance(end, TurnEnded)
    assert end.reason == "limit"
    assert len(server.requests) == 1
    await conversation.close()


def same(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


async def test_without_compression_each_request_is_the_last_with_more_behind_it(
    folder: Path, model_server: START
) -> None:
    counted = [Usage(30_000 * number, 10) for number in (1, 2, 3, 4, 4, 4)]
    server = model_server([Step(say="It is read.", usage=usage) for usage in counted])
    conversation = talk(folder, server)
    await said(conversation, 6)
    for earlier, later in pairwise(request.body for request in server.requests):
        front = same(earlier, later)
        back = same(earlier[::-1], later[::-1])
        assert front + back >= len(earlier)
        assert front > 0.9 * len(earlier)
    await conversation.close()
