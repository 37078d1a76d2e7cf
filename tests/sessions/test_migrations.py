"""Schema versions: ours and older ones are read, through one step a version; newer ones are refused.

The older and newer versions are made up: ours plays version 3 of a chain, and the file on disk one of 1 or 2.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ba_tui.core.errors import NewerSchema
from ba_tui.core.events import Event, Titled, TurnEnded, TurnStarted
from ba_tui.core.messages import user
from ba_tui.sessions.index import digest
from ba_tui.sessions.journal import JournalFile
from ba_tui.sessions.records import FILE, OURS, SCHEMA_VERSION, Header, Record, Schema
from tests.sessions.shelf import turn


def _prompts_named_their_text(record: Record) -> Record:
    """Version 1 wrote a prompt as plain text, ``said``."""
    if record.get("type") != "turn_started":
        return record
    said = {"role": "user", "blocks": [{"type": "text", "text": record["said"]}]}
    return {**{key: value for key, value in record.items() if key != "said"}, "prompt": said}


def _titles_were_names(record: Record) -> Record:
    """Version 2 wrote ``named`` with a ``name``."""
    if record.get("type") != "named":
        return record
    return {"type": "titled", "agent": record["agent"], "at": record["at"], "title": record["name"]}


CHAIN = Schema(3, {1: _prompts_named_their_text, 2: _titles_were_names})
FIRST = [
    {"type": "turn_started", "agent": "main", "at": 1.0, "said": "How many rows?"},
    {"type": "named", "agent": "main", "at": 2.0, "name": "Rows"},
    {"type": "turn_ended", "agent": "main", "at": 3.0, "reason": "done"},
]


def written(folder: Path, version: int, records: list[Record]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    header = Header(folder.name, "/srv", 1.0, schema_version=version).line()
    lines = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    (folder / FILE).write_bytes(header + lines)
    return folder


def told(events: list[Event]) -> list[str]:
    return [word(event) for event in events]


def word(event: Event) -> str:
    match event:
        case TurnStarted(prompt=prompt):
            return prompt.text
        case Titled(title=title):
            return title
        case TurnEnded(reason=reason):
            return reason
        case _:
            return event.type


def test_there_is_a_step_for_every_older_version() -> None:
    assert sorted(OURS.steps) == list(range(1, SCHEMA_VERSION))


def test_a_record_of_today_is_not_changed() -> None:
    assert OURS.migrate({"type": "titled", "title": "x"}, SCHEMA_VERSION) == {"type": "titled", "title": "x"}


def test_the_first_version_is_read_through_every_step_and_left_as_it_is(tmp_path: Path) -> None:
    folder = written(tmp_path / "old", 1, FIRST)
    before = (folder / FILE).read_bytes()
    journal = JournalFile.peek(folder, schema=CHAIN)
    assert told(journal.read()) == told(journal.tail(10)) == ["How many rows?", "Rows", "done"]
    known = digest(folder / FILE, schema=CHAIN)
    assert (known.title, known.turns, known.preview) == ("Rows", 1, "How many rows?")
    assert (folder / FILE).read_bytes() == before


def test_a_version_between_takes_the_later_steps_alone(tmp_path: Path) -> None:
    folder = written(tmp_path / "middle", 2, [_prompts_named_their_text(FIRST[0]), *FIRST[1:]])
    assert told(JournalFile.peek(folder, schema=CHAIN).read()) == ["How many rows?", "Rows", "done"]


def test_what_is_added_to_an_older_session_is_of_our_version(tmp_path: Path) -> None:
    folder = written(tmp_path / "old", 1, FIRST)
    before = (folder / FILE).read_bytes()
    for prompt in ("And columns?", "And sheets?"):
        journal = JournalFile.open(folder, CHAIN)
        for event in (TurnStarted(user(prompt), at=4.0), TurnEnded("done", at=5.0)):
            journal.append(event)
        journal.close()
    data = (folder / FILE).read_bytes()
    assert data.startswith(before)
    assert data.count(b'"schema_version": 3') == 1
    expected = ["How many rows?", "Rows", "done", "And columns?", "done", "And sheets?", "done"]
    journal = JournalFile.peek(folder, schema=CHAIN)
    assert told(journal.read()) == expected
    assert told(journal.tail(2))[-2:] == ["And sheets?", "done"]
    known = digest(folder / FILE, schema=CHAIN)
    assert (known.turns, known.schema) == (3, 3)


def test_a_newer_version_is_refused_at_the_first_line_or_further_down(tmp_path: Path) -> None:
    OURS.check(SCHEMA_VERSION, "20261121-120000-ab12")
    with pytest.raises(NewerSchema, match="20261121-120000-ab12"):
        OURS.check(SCHEMA_VERSION + 1, "20261121-120000-ab12")
    folder = written(tmp_path / "old", 1, FIRST)
    JournalFile.open(folder, CHAIN).close()
    before = (folder / FILE).read_bytes()
    older = Schema(2, {1: _prompts_named_their_text})
    with pytest.raises(NewerSchema, match="schema 3"):
        JournalFile.open(folder, older)
    with pytest.raises(NewerSchema):
        JournalFile.peek(folder, schema=older).read()
    assert digest(folder / FILE, schema=older).preview == "Written by a newer ba."
    assert (folder / FILE).read_bytes() == before


def test_an_older_digest_goes_on_where_it_stopped(tmp_path: Path) -> None:
    folder = written(tmp_path / "old", 1, FIRST)
    first = digest(folder / FILE, schema=CHAIN)
    journal = JournalFile.open(folder, CHAIN)
    for event in turn("And columns?"):
        journal.append(event)
    journal.close()
    assert digest(folder / FILE, first, CHAIN) == digest(folder / FILE, schema=CHAIN)
