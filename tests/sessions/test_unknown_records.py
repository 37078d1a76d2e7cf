"""Lines of a newer version of ba: reading, going on, forks, rewinds, compactions and exports keep them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ba_tui.core.events import Compressed, Event, Notice, Rewound, TurnStarted
from ba_tui.core.messages import user
from ba_tui.sessions.journal import JournalFile
from ba_tui.sessions.records import FILE
from tests.sessions.shelf import folder_of, library, stored, turn

ID = "20261121-120000-ab12"
TOMORROW = (
    '{"type": "from_tomorrow",  "agent":"main","at":2.50,"grüße":"日本", "n":1e3}'.encode(),
    b'{"type":"dream","agent":"main/explore-1","at":3,"text":"\\u202e \\n"}',
)


def between(home: Path, before: Sequence[Event], after: Sequence[Event]) -> Path:
    """A session of ``before``, lines of a newer ba, then ``after``."""
    file = stored(home, ID, before)
    file.write_bytes(file.read_bytes() + b"".join(line + b"\n" for line in TOMORROW))
    journal = JournalFile.open(file.parent)
    for event in after:
        journal.append(event)
    journal.close()
    return file


def unknown_lines(file: Path) -> list[bytes]:
    return [line for line in file.read_bytes().split(b"\n") if b"from_tomorrow" in line or b"dream" in line]


def test_reading_and_going_on_leave_them_where_they_are(tmp_path: Path) -> None:
    one, two = turn("one"), turn("two", at=10.0)
    file = between(tmp_path, one, two)
    journal = JournalFile.open(file.parent)
    events = journal.read()
    journal.close()
    assert [event for event in events if not isinstance(event, Notice)] == [*one, *two]
    assert [event.text for event in events if isinstance(event, Notice)] == [
        "2 entries are of a kind that this ba does not know."
    ]
    assert file.read_bytes().split(b"\n")[7:9] == list(TOMORROW)


def test_a_compaction_a_rewind_and_a_fork_keep_them(tmp_path: Path) -> None:
    compressed = Compressed((user("Everything so far."),), "summarize", 10, 5, at=8.0)
    after = [compressed, *turn("two", at=10.0), Rewound(turns=1, at=20.0), *turn("three", at=30.0)]
    between(tmp_path, turn("one"), after)
    copy = library(tmp_path).fork(ID)
    forked = folder_of(tmp_path, copy.id) / FILE
    assert unknown_lines(forked) == list(TOMORROW)
    assert forked.read_bytes().split(b"\n")[7:9] == list(TOMORROW)


def test_an_export_keeps_them_and_an_import_leaves_them_out(tmp_path: Path) -> None:
    file = between(tmp_path, turn("one"), turn("two", at=10.0))
    exported = tmp_path / "session.jsonl"
    exported.write_text("".join(library(tmp_path).export(ID, "jsonl")), encoding="utf-8")
    imported = library(tmp_path / "other").take_in(exported)
    taken = folder_of(tmp_path / "other", imported.info.id) / FILE
    assert unknown_lines(exported) == list(TOMORROW)
    assert "1 from_tomorrow, 1 dream" in imported.remarks[0]
    assert not set(TOMORROW) & set(taken.read_bytes().split(b"\n"))
    prompts = [event.prompt.text for event in JournalFile.peek(taken.parent) if isinstance(event, TurnStarted)]
    assert prompts == [event.prompt.text for event in JournalFile.peek(file.parent) if isinstance(event, TurnStarted)]


def test_an_export_hides_secrets_in_them(tmp_path: Path) -> None:
    file = between(tmp_path, turn("one"), [])
    key = "sk-ant-" + "a1B2" * 12
    line = f'{{"type":"from_tomorrow","at":5,"text":"{key}"}}\n'
    file.write_bytes(file.read_bytes() + line.encode())
    assert key not in "".join(library(tmp_path).export(ID, "jsonl"))
    assert line in "".join(library(tmp_path).export(ID, "jsonl", with_secrets=True))
