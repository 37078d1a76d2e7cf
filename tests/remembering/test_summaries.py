"""What a session leaves, and what the user's words are proposed as."""

from __future__ import annotations

from pathlib import Path

import pytest

from ba_tui.assembly import connect
from ba_tui.context.compression.notes import Notes, written
from ba_tui.core.errors import UsageError
from ba_tui.core.events import (
    Compressed,
    MemoryChanged,
    MemoryProposed,
    Notice,
    TurnStarted,
)
from ba_tui.core.messages import Message, user
from ba_tui.features.memory.tools.summarizing import Course
from ba_tui.providers.scripted import Step
from tests.remembering.world import FISCAL, Model, heard, memory_of, of, opened, said


async def test_what_the_person_states_is_proposed_and_stored_with_their_yes(folder: Path, model: Model) -> None:
    talk = opened(folder)
    memory = memory_of(talk)
    events = await heard(talk, f"{FISCAL} I prefer bar charts. What is Q1?")
    (proposed,) = of(MemoryProposed, events)
    assert [line.text for line in proposed.proposals] == ["Our fiscal year starts in July", "I prefer bar charts"]
    assert await memory.listed() == []
    first, second = memory.proposals()
    await memory.accept(first.id)
    memory.dismiss(second.id)
    assert [entry.text for entry in await memory.listed()] == ["Our fiscal year starts in July"]
    assert (await memory.listed())[0].origin == "person"
    assert of(MemoryProposed, await heard(talk, f"{FISCAL} I prefer bar charts.")) == []
    with pytest.raises(UsageError):
        await memory.accept(first.id)
    await talk.close()


async def test_a_session_leaves_one_summary_that_is_shown_and_can_be_undone(folder: Path, model: Model) -> None:
    talk = opened(folder)
    events = await heard(talk, "Count the invoices of the bakery.")
    events += await heard(talk, "Add those of the florist.")
    assert of(MemoryChanged, events) == []
    model += [Step(say="Bakery and florist have 31 invoices.")]
    (changed,) = of(MemoryChanged, await heard(talk, "How many are there?"))
    (line,) = changed.stored
    assert line.kind == "summary"
    assert "invoices of the bakery" in line.text
    assert "31 invoices" in line.text
    assert of(MemoryChanged, await heard(talk, "Only those of May.")) == []
    await talk.close()
    again = opened(folder, talk.id)
    assert of(MemoryChanged, await heard(again, "And of June.")) == []
    (entry,) = await memory_of(again).listed()
    assert "Only those of May" in entry.text
    await memory_of(again).forget([entry.id])
    await again.close()
    look = opened(folder)
    assert await memory_of(look).listed() == []
    await look.close()


async def test_a_fork_has_a_summary_of_its_own(folder: Path, model: Model) -> None:
    talk = opened(folder)
    for prompt in ("Count the invoices.", "Add the florist.", "How many?"):
        await heard(talk, prompt)
    await talk.close()
    library = connect({"model": "openai/any", "memory.embedder": "off"}, folder).library
    fork = library.open(library.fork(talk.id).id)
    (changed,) = of(MemoryChanged, await heard(fork, "Now only those of June."))
    await fork.close()
    look = opened(folder)
    entries = {entry.session: entry.text for entry in await memory_of(look).listed()}
    await look.close()
    assert entries.keys() == {talk.id, fork.id}
    assert "June" in changed.stored[0].text
    assert "June" not in entries[talk.id]


async def test_summaries_can_be_switched_off(folder: Path, model: Model) -> None:
    events = await said(folder, "one thing", "two things", "three things", "four", **{"memory.summaries": False})
    assert of(MemoryChanged, events) == of(Notice, events) == []


async def test_a_summary_that_a_model_wrote_for_a_compression_is_kept() -> None:
    course = Course()
    course.apply(TurnStarted(user("Clean the customer table.")))
    notes = written(Notes(summary="Duplicates by email were merged; 12 rows wait for a decision."))
    course.apply(Compressed((Message("user", notes, origin="compaction"),), "summarize", 9_000, 2_000))
    assert course.worth
    assert "12 rows wait for a decision" in course.text()
    assert "Clean the customer table." in course.text()
