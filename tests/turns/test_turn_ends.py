"""What begins and ends turns: other work in place of the agent, a turn that an earlier run left open, faults before
the first request, and what closing a conversation waits for and lets go of."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core import conversation as module
from ba_tui.core.agent import Agent
from ba_tui.core.conversation import Conversation
from ba_tui.core.effects import READ_ONLY
from ba_tui.core.errors import AuthFailed, PromptRefused, SessionNotSaved, StopTurn, UsageError
from ba_tui.core.events import (
    Checkpointed,
    Event,
    Notice,
    TextDelta,
    Titled,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import Image, Message, Text, user
from ba_tui.core.ports.brain import Inventory
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.provider import ModelInfo, ModelRequest, ReplyChunk
from ba_tui.core.results import ToolResult
from ba_tui.core.rewinding import RestoreResult
from ba_tui.core.tool import Call
from ba_tui.core.turn import Branch
from tests.script import Memory, Mind, Script, collect, conversation, kinds, says, thinking
from tests.turns.test_following import Watching
from tests.turns.test_loop import tool
from tests.turns.test_open_questions import ONE, Writer, killed_at_the_question

INFO = SessionInfo("20261121-120000-test", "", Path("/srv"), 0.0, 0.0, model="test/model")


async def never(branch: Branch) -> None:
    await asyncio.Event().wait()


async def nothing(branch: Branch) -> None:
    """Work that ends at once."""


def left_open() -> Memory:
    return Memory([TurnStarted(user("before"))])


async def ending(talk: Conversation, prompt: str = "go") -> TurnEnded:
    """The end of one turn."""
    *_, ended = await collect(talk.say(prompt))
    assert isinstance(ended, TurnEnded)
    return ended


class Kept(Memory):
    """A journal that notes all it is given, also what it does not keep, and whether it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[Event] = []
        self.closed = False

    def append(self, event: Event) -> None:
        self.given.append(event)
        super().append(event)

    def close(self) -> None:
        self.closed = True


async def test_a_turn_left_open_is_closed_once_when_other_work_begins():
    journal, heard = left_open(), list[Event]()
    mind = Mind(Script(says("Hello.")))
    mind.listeners = (heard.append,)
    talk = thinking(mind, journal)
    await talk.history()
    watching = Watching(talk)
    await collect(talk.beside(nothing))
    (closed,) = [event for event in journal.read() if isinstance(event, TurnEnded)]
    assert closed.reason == "interrupted"
    assert closed in heard
    await watching.until(closed)
    await collect(talk.beside(nothing))
    await ending(talk)
    reasons = [event.reason for event in journal.read() if isinstance(event, TurnEnded)]
    assert reasons == ["interrupted", "done"]
    await talk.close()
    await watching.task


async def test_other_work_answers_a_turn_within_what_the_main_agent_may_do():
    class Careful(Mind):
        def agent(self, model: str) -> Agent:
            return Agent(self.provider, (), "You are tested.", ceiling=READ_ONLY)

    seen: list[Any] = []

    async def work(branch: Branch) -> None:
        seen.append(branch.ceiling)

    script = Script(says("not wanted"))
    journal = Memory()
    talk = thinking(Careful(script), journal)
    await collect(talk.say("go", work))
    assert (seen, script.requests) == ([READ_ONLY], [])
    assert [event.type for event in journal.read()] == ["turn_started", "titled", "turn_ended"]


@pytest.mark.parametrize(
    ("error", "reason", "kind"),
    [
        (StopTurn("Enough."), "limit", "stopped"),
        (UsageError("No such thing."), "error", UsageError.kind),
        (RuntimeError("can't start new thread"), "error", "resource_error"),
        (KeyError("x"), "error", "internal_error"),
    ],
)
async def test_work_that_fails_ends_its_turn_with_the_reason(error: Exception, reason: str, kind: str):
    async def work(branch: Branch) -> None:
        raise error

    talk = conversation(Script(says("Hello.")))
    *_, ended = await collect(talk.say("go", work))
    assert isinstance(ended, TurnEnded)
    assert (ended.reason, ended.error and ended.error.kind) == (reason, kind)
    assert not talk.busy
    assert (await ending(talk)).reason == "done"


async def test_an_interrupted_turn_names_nobody_when_the_user_did_it():
    talk, journal = conversation(Script(), journal=(kept := Memory())), kept
    turn = talk.say("go", never)
    await anext(aiter(turn))
    turn.cancel()
    await turn.wait()
    ended = journal.read()[-1]
    assert isinstance(ended, TurnEnded)
    assert (ended.reason, ended.error) == ("cancelled", None)


async def test_a_prompt_that_a_hook_refuses_is_not_kept_and_the_next_one_is_sent():
    async def refuse(prompt: Message, branch: Branch) -> list[Message]:
        if "no" in prompt.text:
            raise PromptRefused("A hook says no.")
        return []

    journal = Memory()
    mind = Mind(Script(says("Hello.")))
    mind.admits = refuse
    talk = thinking(mind, journal)
    refused = await ending(talk, "no")
    assert (refused.reason, refused.error and refused.error.message) == ("error", "A hook says no.")
    assert (journal.read(), talk.title) == ([], "")
    assert (await ending(talk, "yes")).reason == "done"


async def test_a_question_can_be_asked_again_once_there_is_a_key():
    class Locked(Mind):
        locked = True

        def agent(self, model: str) -> Agent:
            if self.locked:
                raise AuthFailed("There is no key.")
            return super().agent(model)

    journal, writer = await killed_at_the_question(ONE), Writer()
    before = list(journal.lines)
    mind = Locked(Script(says("Done.")), [writer.tool])
    talk = thinking(mind, journal)
    await talk.history()
    watching = Watching(talk)
    turn = talk.go_on()
    assert turn
    (ended,) = await collect(turn)
    assert isinstance(ended, TurnEnded)
    assert (ended.reason, ended.error and ended.error.message) == ("error", "There is no key.")
    await watching.until(ended)
    assert journal.lines == before
    mind.locked = False
    assert talk.go_on() is not None
    assert talk.go_on() is None, "while the turn runs"
    await talk.close()
    await watching.task


@pytest.mark.parametrize(
    ("blocks", "sent"),
    [((Text(" \n"),), False), ((Text(""), Image("image/png", "eA==")), True), ((Text("look"),), True)],
)
async def test_a_picture_is_a_prompt_and_blanks_are_none(blocks: Any, sent: bool):
    script = Script(says("Hello."))
    talk = conversation(script)
    if sent:
        await collect(talk.say(Message("user", blocks)))
    else:
        with pytest.raises(UsageError, match="empty"):
            talk.say(Message("user", blocks))
    assert len(script.requests) == sent


async def test_the_first_prompt_names_a_session_that_has_no_name():
    journal = Memory()
    talk = conversation(Script(says("a"), says("b")), journal=journal)
    for prompt in ("First things\nfirst", "Second"):
        await ending(talk, prompt)
    assert talk.title == "First things"
    assert [event.title for event in journal.read() if isinstance(event, Titled)] == ["First things"]
    talk = Conversation(replace(INFO, title="Mine"), Memory(), Mind(Script(says("a"))))
    assert "titled" not in kinds(await collect(talk.say("First")))
    assert talk.title == "Mine"


async def test_a_new_name_is_short_and_kept():
    journal = Memory()
    talk = conversation(Script(), journal=journal)
    talk.rename(" " + "x" * 300)
    assert talk.title == "x" * 200
    (kept,) = journal.read()
    assert isinstance(kept, Titled)
    assert kept.title == talk.title


async def test_words_in_passing_are_no_business_of_the_journal():
    async def streams(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        yield TextDelta("Hel")
        yield says("Hello.")

    journal = Kept()
    events = await collect(conversation(Script(streams), journal=journal).say("go"))
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["Hel"]
    assert "text_delta" not in [event.type for event in journal.given]


async def test_a_journal_that_fails_between_turns_is_told_of_in_the_next_one():
    journal = Memory()
    talk = conversation(Script(says("a"), says("b")), journal=journal)
    turn = talk.say("go")
    await collect(turn)
    journal.full = SessionNotSaved("No space left on the disk", "Free some space.", "sessions")
    talk.rename("Other")
    assert turn.heard, "a turn that has ended hears nothing more"
    notices = [event for event in await collect(talk.say("go")) if isinstance(event, Notice)]
    assert [notice.hint for notice in notices] == ["Free some space."]


async def test_a_model_and_a_mode_are_kept_and_seen_by_all():
    class Named(Mind):
        def model(self, name: str) -> ModelInfo:
            if name == "none":
                raise UsageError("There is no such model.")
            return replace(self.provider.model, id=f"full/{name}")

    journal, heard = Memory(), list[Event]()
    mind = Named(Script())
    mind.listeners = (heard.append,)
    talk = thinking(mind, journal)
    assert talk.use_model("small").id == talk.model == "full/small"
    assert talk.model_info().id == "full/full/small"
    with pytest.raises(UsageError):
        talk.use_model("none")
    talk.set_mode("plan")
    assert (talk.model, mind.permissions.mode, talk.transcript.mode) == ("full/small", "plan", "plan")
    assert journal.read() == heard
    assert [event.type for event in heard] == ["model_changed", "mode_changed"]


async def test_a_reader_of_the_history_that_goes_away_disturbs_no_other():
    gate = threading.Event()

    class Slow(Memory):
        reads = 0

        def read(self) -> list[Event]:
            self.reads += 1
            gate.wait(10)
            return super().read()

    journal = Slow([Titled("one")])
    talk = conversation(Script(), journal=journal)
    first, second = asyncio.create_task(talk.history()), asyncio.create_task(talk.history())
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    gate.set()
    assert [event.type for event in await second] == ["titled"]
    assert await talk.history() == await second
    assert (first.cancelled(), journal.reads) == (True, 1)


async def test_the_file_of_another_process_is_looked_at_once_in_a_while(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "WATCH", 3_600.0)

    class Watched(Memory):
        looks = 0

        def later(self, place: int) -> tuple[list[Event], int]:
            self.looks += 1
            return super().later(place)

    journal = Watched([Titled("one")])
    talk = Conversation(replace(INFO, locked_by="ba 7"), journal, Mind(Script()))
    watching = Watching(talk)
    await watching.until(journal.read()[0])
    for _ in range(20):
        await asyncio.to_thread(int)
    assert journal.looks == 1
    watching.task.cancel()
    await asyncio.wait([watching.task])
    await talk.close()


async def test_nothing_is_made_ahead_beside_a_turn():
    class Counting(Mind):
        made = 0

        def agent(self, model: str) -> Agent:
            self.made += 1
            return super().agent(model)

    mind = Counting(Script())
    talk = thinking(mind)
    turn = talk.beside(never)
    await talk.warm()
    assert mind.made == 0
    turn.cancel()
    await turn.wait()
    await talk.warm()
    assert mind.made == 1


async def test_closing_waits_for_a_rewind_and_ends_commands_and_lets_go_of_all():
    begun, gate = threading.Event(), threading.Event()

    class Files:
        def begin(self, to: str) -> str:
            begun.set()
            gate.wait(10)
            return "undo"

        def restore(self, to: str, undo: str) -> RestoreResult:
            return RestoreResult(("a.txt",))

    running = asyncio.Event()

    async def command(args: Mapping[str, Any], call: Call) -> ToolResult:
        running.set()
        await asyncio.Event().wait()
        return ToolResult("never")

    class Ended(Mind):
        ended = False

        async def close(self) -> None:
            self.ended = True

    mind, journal = Ended(Script()), Kept()
    mind.inventory = Inventory(own_shell=tool("shell", command), checkpoints=Files)  # type: ignore[arg-type]
    for event in (TurnStarted(user("p1")), Checkpointed("c1", 1), TurnEnded("done")):
        journal.append(event)
    talk = thinking(mind, journal)
    shell = talk.shell.run("sleep 9", private=False)
    await running.wait()
    rewinding = asyncio.create_task(talk.past.rewind(1))
    await asyncio.to_thread(begun.wait)
    assert talk.busy
    watching = Watching(talk)
    closing = asyncio.create_task(talk.close())
    for _ in range(20):
        await asyncio.to_thread(int)
    assert (closing.done(), shell.ended, journal.closed) == (False, False, False)
    gate.set()
    await closing
    assert (await rewinding).event.turns == 0
    assert journal.read()[-1].type in {"rewound", "tool_finished"}
    assert shell.ended
    assert (mind.ended, journal.closed) == (True, True)
    await watching.task
