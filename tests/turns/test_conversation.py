"""What a conversation keeps from turn to turn: its agent, its mode, its observers, and what others write."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core import conversation as module
from ba_tui.core.agent import Agent
from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import UsageError
from ba_tui.core.events import Event, ModeChanged, ModelChanged, Rewound, Titled, TurnEnded
from ba_tui.core.messages import Message, reminder
from ba_tui.core.ports.brain import AdmittedPrompt
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.turn import Branch
from tests.script import Memory, Mind, Script, collect, conversation, says, thinking


def info(**more: Any) -> SessionInfo:
    return SessionInfo("20261121-120000-test", "", Path("/srv"), 0.0, 0.0, model="test/model", **more)


class Counting(Mind):
    """Makes an agent with a provider of its own each time; ``chosen``: the model that the next prompt names."""

    def __init__(self) -> None:
        super().__init__(Script())
        self.made: list[tuple[str, Script]] = []
        self.chosen = ""

    async def admit(self, prompt: Message, branch: Branch) -> AdmittedPrompt:
        return AdmittedPrompt((reminder("a note of a hook"),), self.chosen)

    def agent(self, model: str) -> Agent:
        provider = Script(*[says(f"by {model}")] * 9)
        self.made.append((model, provider))
        return Agent(provider, (), "You are tested.")


async def test_an_agent_lasts_until_another_model_is_chosen():
    mind, journal = Counting(), Memory()
    mind.notes = [reminder("a reminder")]
    talk = thinking(mind, journal)
    await talk.warm()
    for _ in range(2):
        await collect(talk.say("go"))
    assert [name for name, _ in mind.made] == ["test/model"]
    asked = mind.made[0][1].requests[0].messages[0].text
    assert asked.index("go") < asked.index("a reminder") < asked.index("a note of a hook")
    talk.use_model("test/model")
    assert isinstance(journal.read()[-1], ModelChanged)
    await collect(talk.say("go"))
    assert [(name, provider.closed) for name, provider in mind.made] == [("test/model", True), ("test/model", False)]
    mind.chosen = "test/other"
    await collect(talk.say("go"))
    assert talk.transcript.messages[-1].text == "by test/other"
    mind.chosen = ""
    await collect(talk.say("go"))
    assert talk.transcript.messages[-1].text == "by test/model"
    await talk.close()
    assert [provider.closed for _, provider in mind.made] == [True] * 4


@pytest.mark.parametrize(
    ("kept", "imported", "chosen", "mode"),
    [
        ("plan", False, None, "plan"),
        ("plan", True, None, "default"),
        ("plan", False, "auto", "auto"),
        ("bypass", False, None, "default"),
    ],
)
async def test_the_mode_of_a_session_comes_back(kept: Any, imported: bool, chosen: Any, mode: str):
    mind = Mind(Script())
    journal = Memory([ModeChanged(kept)])
    talk = Conversation(info(imported=imported), journal, mind)
    if chosen:
        talk.set_mode(chosen)
    assert [event.mode for event in journal.read() if isinstance(event, ModeChanged)][1:] == (
        [chosen] if chosen else []
    )
    await talk.history()
    assert mind.permissions.mode == mode
    await talk.close()


async def test_an_observer_that_fails_disturbs_nobody(caplog: pytest.LogCaptureFixture):
    heard: list[str] = []

    def fails(event: Event) -> None:
        heard.append(event.type)
        raise ValueError("broken")

    mind = Mind(Script(says("Hello.")))
    mind.listeners = (fails,)
    talk = thinking(mind)
    talk.rename("  A\nname ")
    *_, ended = await collect(talk.say("go"))
    assert isinstance(ended, TurnEnded)
    assert ended.reason == "done"
    assert heard[:2] == ["titled", "turn_started"]
    assert "observer failed" in caplog.text
    await talk.close()


async def test_work_beside_the_turns_hears_no_words_and_is_not_kept():
    journal, gate = Memory(), asyncio.Event()
    talk = conversation(Script(says("Hello.")), journal=journal)

    async def work(branch: Branch) -> None:
        await gate.wait()

    turn = talk.beside(work)
    assert (talk.busy, turn.steer("more")) == (True, False)
    with pytest.raises(UsageError, match="running"):
        talk.beside(work)
    gate.set()
    (ended,) = await collect(turn)
    assert (ended.type, talk.busy, journal.read()) == ("turn_ended", False, [])


async def test_why_a_session_closes_is_the_end_of_its_turn():
    journal, begun = Memory(), asyncio.Event()
    talk = conversation(Script(), journal=journal)

    async def work(branch: Branch) -> None:
        begun.set()
        await asyncio.Event().wait()

    turn = talk.beside(work)
    following = asyncio.create_task(collect(turn))
    await begun.wait()
    await talk.close("The disk is gone.")
    (ended,) = await following
    assert isinstance(ended, TurnEnded)
    assert ended.error
    assert (ended.reason, ended.error.kind, ended.error.message) == ("cancelled", "interrupted", "The disk is gone.")


async def test_what_another_process_writes_is_followed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "WATCH", 0.01)
    journal = Memory([Titled("one")])
    talk = Conversation(info(locked_by="ba 7"), journal, Mind(Script()))
    assert [event.type for event in await talk.history()] == ["titled"]
    seen: list[Event] = []

    async def until(count: int) -> Sequence[Event]:
        async with asyncio.timeout(20):
            while len(seen) < count:
                seen.append(await anext(events))
        return seen

    async with aclosing(talk.follow()) as events:
        await until(1)
        journal.append(Titled("two"))
        await until(2)
        assert len(await talk.history()) == 1, "as it was when the session was opened"
        journal.append(Rewound(turns=0))
        await until(3)
        assert list(seen) == journal.read() == await talk.history()
    await talk.close()
