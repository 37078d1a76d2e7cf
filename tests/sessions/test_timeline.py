"""A session that was rewound, compressed, judged: what lists, first paints and copies make of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Checkpointed, Compressed, Event, Judged, Notice, Rewound, TurnStarted
from ba_tui.core.messages import user
from ba_tui.core.rewinding import prefix, turn_history
from ba_tui.core.transcript import Transcript
from ba_tui.sessions.exports.document import Survey
from ba_tui.sessions.journal import JournalFile
from ba_tui.sessions.timeline import Timeline, current_events
from tests.sessions.shelf import folder_of, library, stored, turn

A = "20261121-120000-ab12"


def rewound(events: list[Event], turns: int) -> list[Event]:
    """``events`` and a rewind to after turn ``turns``, as a conversation writes it."""
    begins = [index for index, event in enumerate(events) if isinstance(event, TurnStarted)]
    messages, state = prefix(events, begins[turns] if turns < len(begins) else len(events), "/srv/project")
    return [*events, Rewound(messages, state, turns, at=50.0)]


def prompts(events: list[Event]) -> list[str]:
    return [event.prompt.text for event in events if isinstance(event, TurnStarted)]


THREE = [*turn("one"), *turn("two"), *turn("three")]
BACK = [*rewound(THREE, 1), *turn("four")]
UNDONE = [*BACK, Rewound(*prefix(BACK, len(THREE), "/srv/project"), 3)]


@pytest.mark.parametrize(
    ("events", "stand"),
    [
        (THREE, ["one", "two", "three"]),
        (rewound(THREE, 0), []),
        (rewound(THREE, 1), ["one"]),
        (BACK, ["one", "four"]),
        (UNDONE, ["one", "two", "three"]),
        ([*UNDONE, *turn("five")], ["one", "two", "three", "five"]),
        ([*THREE, Rewound(files="c", undo="d")], ["one", "two", "three"]),
    ],
)
def test_what_stands_is_the_same_for_lists_first_paints_and_exports(
    tmp_path: Path, events: list[Event], stand: list[str]
) -> None:
    stored(tmp_path, A, events)
    shelf = library(tmp_path)
    assert prompts([*current_events(events, Survey(events).timeline)]) == stand
    assert [stop.prompt.text for stop in turn_history(events).stops] == stand
    info = shelf.find(A)
    assert info.turns == len(stand)
    assert info.preview == (stand[-1] if stand else "")
    journal = JournalFile.peek(folder_of(tmp_path, A))
    assert prompts(journal.tail(1_000)) == stand
    assert journal.read() == events
    markdown = "".join(shelf.export(A, "md"))
    assert [prompt for prompt in ("one", "two", "three", "four", "five") if f"> {prompt}\n" in markdown] == stand


def test_a_first_paint_reaches_behind_what_was_taken_back(tmp_path: Path) -> None:
    long = [event for number in range(30) for event in turn(f"turn {number}")]
    stored(tmp_path, A, [*rewound(long, 5), *turn("last")])
    assert prompts(JournalFile.peek(folder_of(tmp_path, A)).tail(20)) == ["turn 3", "turn 4", "last"]


@pytest.mark.parametrize(("upto", "stand"), [(1, ["one"]), (2, ["one", "four"]), (None, ["one", "four"])])
def test_a_fork_counts_the_turns_that_stand(tmp_path: Path, upto: int | None, stand: list[str]) -> None:
    stored(tmp_path, A, BACK)
    shelf = library(tmp_path)
    copy = JournalFile.peek(folder_of(tmp_path, shelf.fork(A, upto).id)).read()
    assert prompts([*current_events(copy, Survey(copy).timeline)]) == stand
    said = [message.text for message in Transcript(events=copy).messages if message.role == "user" and message.text]
    assert said == stand
    with pytest.raises(UsageError, match="2 turns"):
        shelf.fork(A, 3)


def test_what_is_only_noted_does_not_count(tmp_path: Path) -> None:
    noted: list[Event] = []
    for number in range(40):
        call = f"call {number}"
        judged = [Judged(call, "cat", "allow", "rule", at=9e9) for _ in range(5)]
        noted += [*turn(f"turn {number}")[:-1], *judged, Checkpointed(f"c{number}", number + 1, at=9e9)]
        noted += turn(f"turn {number}")[-1:]
    stored(tmp_path, A, noted)
    info = library(tmp_path).find(A)
    assert (info.turns, info.updated) == (40, 6.0)
    assert len(prompts(JournalFile.peek(folder_of(tmp_path, A)).tail(60))) == 10


def test_the_price_of_a_compression_is_part_of_the_cost(tmp_path: Path) -> None:
    pressed = Compressed((user("What was said."),), "summarize", 9_000, 300, 0.25)
    stored(tmp_path, A, [*turn("one"), pressed, Notice("x")])
    assert library(tmp_path).find(A).cost == 1.25


def test_a_course_is_the_same_after_it_was_kept() -> None:
    turn_history = Timeline()
    for step in (0, 0, 0, 1, 0, 3, 0):
        if step:
            turn_history.rewind(step)
        else:
            turn_history.begin()
        turn_history = Timeline.load(turn_history.dump())
    assert (turn_history.numbers(), turn_history.begun) == ([1, 2, 3, 5], 5)
    assert Timeline.load("").numbers() == []
