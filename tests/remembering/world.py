"""Sessions with a scripted model, whose memory is searched by words: no helper starts."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ba_tui.assembly import connect
from ba_tui.core.conversation import Conversation
from ba_tui.core.events import (
    Asked,
    Event,
    TurnEnded,
)
from ba_tui.core.ports.memory import Draft, Memory
from ba_tui.core.questions import Reply
from ba_tui.providers.scripted import ScriptedCall, Step
from tests.loopback import ModelServer

FISCAL = "Our fiscal year starts in July."
YES, NO = Reply("once"), Reply("deny")


class Model(list[Step]):
    """Replies in order; more may be added while the server runs. ``server`` has the requests."""

    server: ModelServer

    def __next__(self) -> Step:
        if not self:
            raise StopIteration
        return self.pop(0)

    def __iter__(self) -> Model:
        return self

    def sent(self) -> str:
        """The newest request, as it went out."""
        return self.server.requests[-1].body.decode()


@contextmanager
def playing(monkeypatch: pytest.MonkeyPatch) -> Generator[Model]:
    """A model that plays a script, for sessions that ``opened`` opens."""
    steps = Model()
    with ModelServer(steps, last=Step(say="Well.")) as server:
        steps.server = server
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        yield steps


def opened(folder: Path, resume: Any = "", **flags: Any) -> Conversation:
    library = connect({"model": "openai/any", "memory.embedder": "off", **flags}, folder).library
    return library.open(resume) if resume else library.create()


def memory_of(talk: Conversation) -> Memory:
    memory = talk.inventory.feature(Memory)
    assert memory
    return memory


async def heard(talk: Conversation, prompt: str, reply: Reply | None = None) -> list[Event]:
    turn = talk.say(prompt)
    events: list[Event] = []
    async for event in turn:
        events.append(event)
        if isinstance(event, Asked) and reply:
            turn.answer(event.ask_id, reply)
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].reason == "done", events[-1]
    return events


async def said(folder: Path, *prompts: str, **flags: Any) -> list[Event]:
    """The events of a session of its own with these prompts."""
    talk = opened(folder, **flags)
    try:
        return [event for prompt in prompts for event in await heard(talk, prompt)]
    finally:
        await talk.close()


def of(kind: type[Any], events: list[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def remember(text: str, **more: Any) -> Step:
    return Step(calls=(ScriptedCall("remember", {"text": text, **more}),))


async def store(folder: Path, *texts: str, **more: Any) -> list[str]:
    talk = opened(folder)
    ids = [(await memory_of(talk).remember(Draft(text, **more))).entry.id for text in texts]
    await talk.close()
    return ids
