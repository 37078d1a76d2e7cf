"""Where a session stands after rewinds, taken back or not; what was said and done is what the journal says."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.events import Checkpointed, Event, MessageDone, ModeChanged, Rewound, TurnEnded, TurnStarted
from ba_tui.core.messages import user
from ba_tui.core.ports.brain import Inventory
from ba_tui.core.ports.sessions import RestoreResult
from ba_tui.core.results import StateChange
from ba_tui.core.rewinding import turn_history
from ba_tui.core.transcript import Transcript
from tests.script import Memory, Mind, Script, collect, conversation, says, thinking


def turn(number: int, checkpoint: str = "") -> list[Event]:
    kept: list[Event] = [Checkpointed(checkpoint, number)] if checkpoint else []
    return [TurnStarted(user(f"p{number}")), *kept, MessageDone(says(f"a{number}")), TurnEnded("done")]


def standing(events: Sequence[Event]) -> list[int]:
    return [stop.number for stop in turn_history(events).stops]


def test_the_course_follows_rewinds_and_their_taking_back():
    events = [*turn(1), *turn(2, "c2"), *turn(3), *turn(4, "c4")]
    assert standing(events) == [1, 2, 3, 4]
    assert turn_history(events).files_before(1) == "c2"
    assert turn_history(events).files_before(3) == "c4"
    events.append(Rewound(turns=2, files="c4", undo="u"))
    assert standing(events) == [1, 2]
    assert turn_history(events).files_before(2) == "c2"
    events += turn(5, "c5")
    assert standing(events) == [1, 2, 5]
    assert turn_history(events).since(2) == [(2, "c2"), (5, "c5")]
    assert standing([*events, Rewound(turns=4)]) == [1, 2, 3, 4]
    assert standing([*events, Rewound(turns=0)]) == []
    assert standing([*events, Rewound(turns=0), Rewound(turns=5)]) == [1, 2, 5]
    assert standing([*events, Rewound(files="c2", undo="v")]) == [1, 2, 5]
    assert turn_history(events).first == "c2"
    with pytest.raises(UsageError, match="no turn 3"):
        turn_history(events).find(3)


def test_a_checkpoint_may_come_before_its_turn_begins():
    early = [*turn(1), Checkpointed("e2", 2)]
    assert turn_history([*early, *turn(2)]).files_before(2) == "e2"
    assert turn_history([*early, *turn(2, "c2")]).files_before(2) == "c2", "the newer one, after a restart or in a copy"
    assert turn_history([*early, *turn(2, "c2"), Checkpointed("d2", 2)]).files_before(2) == "c2"


class Files:
    """Checkpoints that only note what is restored."""

    def __init__(self) -> None:
        self.restored: list[str] = []
        self.broken = self.cut = False

    def begin(self, to: str) -> str:
        if self.broken:
            raise StorageError("The checkpoint is gone.")
        return f"undo-{len(self.restored) + 1}"

    def restore(self, to: str, undo: str) -> RestoreResult:
        if self.cut:
            raise StorageError("It was cut off.")
        self.restored.append(to)
        return RestoreResult(("a.txt",))


def talk(*events: Event) -> tuple[Any, Files, Memory]:
    journal, files = Memory(events), Files()
    mind = Mind(Script(says("new")))
    mind.inventory = Inventory(checkpoints=lambda: files)  # type: ignore[arg-type, return-value]
    made = thinking(mind, journal)
    return made, files, journal


async def test_a_rewind_is_one_more_event_and_replays_as_it_was_lived():
    made, files, journal = talk(*turn(1), ModeChanged("plan"), *turn(2, "c2"), *turn(3))
    outcome = await made.past.rewind(2)
    assert outcome.prompt.text == "p2"
    assert files.restored == ["c2"]
    assert outcome.event.turns == 1
    await made.history()
    assert [message.text for message in made.transcript.messages] == ["p1", "a1"]
    await collect(made.say("other"))
    assert [message.text for message in made.transcript.messages] == ["p1", "a1", "other", "new"]
    assert Transcript(events=journal.read()).messages == made.transcript.messages
    back = await made.past.rewind(None)
    assert files.restored == ["c2", "undo-1"]
    assert back.event.turns == 3
    assert [message.text for message in made.transcript.messages] == ["p1", "a1", "p2", "a2", "p3", "a3"]
    again = await made.past.rewind(None)
    assert again.event.turns == 4
    assert files.restored[-1] == "undo-2"
    assert [message.text for message in made.transcript.messages] == ["p1", "a1", "other", "new"]
    await made.close()


async def test_conversation_or_files_alone():
    made, files, journal = talk(*turn(1), *turn(2, "c2"))
    outcome = await made.past.rewind(2, "files")
    assert files.restored == ["c2"]
    assert outcome.event.turns is None
    assert standing(journal.read()) == [1, 2]
    await made.past.rewind(1, "conversation")
    assert files.restored == ["c2"]
    assert list(made.transcript.messages) == []
    assert journal.read()[-1].type == "rewound"
    with pytest.raises(UsageError, match="no turn 2"):
        await made.past.rewind(2)
    await made.close()


async def test_state_comes_back_too():
    todos = StateChange(cwd="/srv/deep")
    made, _, _ = talk(*turn(1), *turn(2), Rewound((), todos, 0), *turn(3))
    await made.past.rewind(None)
    assert made.transcript.cwd == "/srv"
    assert [message.text for message in made.transcript.messages] == ["p1", "a1", "p2", "a2"]
    await made.close()


async def test_nothing_changes_when_files_cannot_be_restored():
    made, files, journal = talk(*turn(1, "c1"), *turn(2))
    files.broken = True
    before = list(journal.lines)
    with pytest.raises(StorageError, match="gone"):
        await made.past.rewind(1)
    assert journal.lines == before
    assert not made.busy
    await made.close()


async def test_a_conversation_without_checkpoints_rewinds_alone():
    made = conversation(Script(says("new")), journal=Memory([*turn(1, "c1"), *turn(2)]))
    with pytest.raises(StorageError, match="no checkpoints"):
        await made.past.rewind(1)
    with pytest.raises(UsageError, match="No file was changed"):
        await made.past.rewind(2, "files")
    await made.past.rewind(1, "conversation")
    with pytest.raises(UsageError, match="No file was changed"):
        await made.past.rewind(None, "files")
    await made.close()


async def test_one_at_a_time_and_never_beside_a_turn():
    made, _, journal = talk(*turn(1), *turn(2))
    first = asyncio.create_task(made.past.rewind(2))
    await asyncio.sleep(0)
    with pytest.raises(UsageError, match="A turn or a rewind is running"):
        await made.past.rewind(1)
    with pytest.raises(UsageError, match="running"):
        made.say("hello")
    # Whoever waits for it may go: it is done and written down all the same.
    first.cancel()
    await made.past.wait()
    assert standing(journal.read()) == [1]
    await made.close()


async def test_a_rewind_that_was_cut_off_can_be_taken_back():
    made, files, journal = talk(*turn(1, "c1"), *turn(2))
    files.cut = True
    with pytest.raises(StorageError, match="cut off"):
        await made.past.rewind(1)
    assert standing(journal.read()) == [1, 2]
    files.cut = False
    outcome = await made.past.rewind(None)
    assert files.restored == ["undo-1"]
    assert outcome.event.turns is None
    assert standing(journal.read()) == [1, 2]
    await made.close()
