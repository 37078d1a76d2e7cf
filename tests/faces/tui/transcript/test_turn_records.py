"""Rewinds in the transcript: what was taken back goes, what is brought back stands where it stood."""

from __future__ import annotations

from ba_tui.core.events import Event, MessageDone, Notice, Rewound, TurnEnded, TurnStarted
from ba_tui.core.messages import Message, Text, user
from ba_tui.faces.tui.transcript.fold import RecordFold, fold
from ba_tui.faces.tui.transcript.records import NoticeRecord, Prompt, ProseRecord


def turn(name: str) -> list[Event]:
    answer = Message("assistant", (Text(f"{name}!"),))
    return [TurnStarted(user(name), at=1.0), MessageDone(answer, at=2.0), TurnEnded("done", at=3.0)]


def words(events: list[Event]) -> list[str]:
    return [record.text for record in fold(events) if isinstance(record, Prompt | ProseRecord | NoticeRecord)]


HERE = "Rewound to here."
TALK = [Notice("hello"), *turn("a"), *turn("b"), *turn("c")]


def test_turns_go_and_come_again():
    back = [*TALK, Rewound(turns=1)]
    assert words(back) == ["hello", "a", "a!", HERE]
    assert words([*back, *turn("d")]) == ["hello", "a", "a!", HERE, "d", "d!"]
    assert words([*back, Rewound(turns=3)]) == ["hello", "a", "a!", "b", "b!", "c", "c!", HERE]
    assert words([*back, *turn("d"), Rewound(turns=3)]) == ["hello", "a", "a!", "b", "b!", "c", "c!", HERE]
    forth = [*back, *turn("d"), Rewound(turns=3), Rewound(turns=4)]
    assert words(forth) == ["hello", "a", "a!", HERE, "d", "d!", HERE]
    assert words([*forth, Rewound(turns=0)]) == ["hello", HERE]


def test_files_alone_leave_the_turns():
    assert words([*TALK, Rewound(files="c", undo="u")])[-3:] == ["c", "c!", "The files were rewound."]
    assert words([*TALK, Rewound(turns=2, files="c", undo="u")])[-2:] == ["b!", "Rewound to here, files included."]


def test_only_what_stands_behind_the_cut_is_painted_anew():
    records = RecordFold()
    for event in TALK:
        records.apply(event)
    records.take_changes()
    records.apply(Rewound(turns=2))
    assert records.take_changes() == (5, set())
    assert isinstance(records.items[-1], NoticeRecord)


def test_a_part_of_the_history_keeps_what_it_has():
    assert words([*turn("late"), Rewound(turns=7)]) == ["late", "late!", HERE]
