"""Imports: Claude Code's transcripts, our own lines, results of older formats; each becomes an ordinary session."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.core.errors import NewerSchema, UsageError
from ba_tui.core.events import Compressed, MessageDone, Notice, Steered, ToolFinished, TurnEnded, TurnStarted
from ba_tui.core.messages import Image, Message, Thinking, ToolOutput, ToolUse, Usage
from ba_tui.core.results import CommandText, Diff
from ba_tui.core.transcript import Transcript
from ba_tui.sessions.imports.claude_code import PLACE, Story, skeleton, stream_story
from ba_tui.sessions.imports.transcripts import VERSIONS, read_transcript, result_of
from ba_tui.sessions.journal import JournalFile
from tests.sessions.shelf import WORK, folder_of, library, stored, turn

A = "20261121-120000-ab12"
Record = dict[str, Any]


def read_story(records: Sequence[Record]) -> Story:
    """Return a transcript that is in memory as a whole."""
    story = stream_story(
        [{**skeleton(record), PLACE: place} for place, record in enumerate(records)], records.__getitem__
    )
    story.events = list(story.events)
    return story


def entry(number: int, kind: str, content: Any, *, parent: int | None = -1, **more: Any) -> Record:
    """Entry ``number``, which goes back to the one before it."""
    before = number - 1 if parent == -1 else parent
    message: Record = {"role": kind, "content": content}
    if kind == "assistant":
        usage = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 3}
        message |= {"id": f"msg_{number}", "model": "claude-opus-4-1", "usage": usage}
    return {
        "type": kind,
        "uuid": f"u{number}",
        "parentUuid": f"u{before}" if before else None,
        "sessionId": "5e55-1011",
        "cwd": "/srv/gone",
        "timestamp": f"2026-11-20T10:{number // 60:02d}:{number % 60:02d}.000Z",
        "message": message | more.pop("message", {}),
        **more,
    }


def text(words: str) -> list[Record]:
    return [{"type": "text", "text": words}]


def call(id: str, name: str = "Bash", **given: Any) -> list[Record]:
    return [{"type": "tool_use", "id": id, "name": name, "input": given}]


def output(id: str, content: Any = "done", *, failed: bool = False) -> list[Record]:
    return [{"type": "tool_result", "tool_use_id": id, "content": content, "is_error": failed}]


def file(folder: Path, records: Iterable[Any], name: str = "5e55-1011.jsonl") -> Path:
    path = folder / name
    lines = (record if isinstance(record, str) else json.dumps(record) for record in records)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def valid(messages: Sequence[Message]) -> bool:
    """Roles alternate, the user begins, every call has its one output in the next message."""
    roles = [message.role for message in messages]
    if roles != [("user", "assistant")[index % 2] for index in range(len(roles))]:
        return False
    for message, following in zip(messages, [*messages[1:], Message("user", ())], strict=False):
        calls = [block.id for block in message.blocks if isinstance(block, ToolUse)]
        outputs = [block.tool_use_id for block in following.blocks if isinstance(block, ToolOutput)]
        if message.role == "assistant" and sorted(calls) != sorted(outputs):
            return False
    return True


SESSION: list[Record] = [
    {"type": "summary", "summary": "Totals of the north", "leafUuid": "u9"},
    {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}},
    entry(1, "user", "<local-command-caveat>as if</local-command-caveat>", parent=None, isMeta=True),
    entry(2, "user", "Why are the totals wrong?"),
    entry(3, "assistant", [{"type": "thinking", "thinking": "hm", "signature": "s1g"}]),
    entry(4, "assistant", text("I look."), message={"id": "msg_3"}),
    entry(5, "assistant", call("t1", command="cat totals.py", description="Look"), message={"id": "msg_3"}),
    entry(6, "assistant", call("t2", "Edit", file_path="/a.py"), message={"id": "msg_3", "stop_reason": "tool_use"}),
    entry(7, "user", output("t1", text("1\n2")), parent=5, toolUseResult={"stdout": "1\n2", "stderr": ""}),
    entry(
        8,
        "user",
        output("t2"),
        parent=6,
        toolUseResult={"filePath": "/a.py", "originalFile": "x = 1", "oldString": "1", "newString": "2"},
    ),
    {"type": "queue-operation", "operation": "enqueue", "uuid": "q1", "parentUuid": "u8"},
    entry(9, "assistant", text("Line 4 was wrong."), parent=None, logicalParentUuid="u8"),
]


async def test_a_transcript_becomes_a_session_that_goes_on(tmp_path: Path) -> None:
    shelf = library(tmp_path)
    taken = shelf.take_in(file(tmp_path, SESSION))
    assert taken.source == "Claude Code 5e55-1011"
    info = taken.info
    assert (info.title, info.turns, info.model) == ("Totals of the north", 1, "")
    assert (info.cwd, info.created) == (WORK, 1_795_168_801.0)
    assert "1 file-history-snapshot" in taken.remarks[0]
    assert "1 queue-operation" in taken.remarks[0]
    events = JournalFile.peek(folder_of(tmp_path, info.id)).read()
    answers = [event.message for event in events if isinstance(event, MessageDone)]
    assert [answer.text for answer in answers] == ["I look.", "Line 4 was wrong."]
    assert answers[0].blocks[0] == Thinking("hm", "s1g")
    assert [call.id for call in answers[0].calls] == ["t1", "t2"]
    assert answers[0].usage == Usage(10, 5, 3)
    displays = [event.result.display for event in events if isinstance(event, ToolFinished)]
    assert displays == [CommandText("cat totals.py", output="1\n2"), Diff("/a.py", "x = 1", "x = 2")]
    assert any(isinstance(event, Notice) and "Imported from Claude Code 5e55-1011" in event.text for event in events)
    assert [found.id for found in shelf.search("line 4 wrong")] == [info.id]
    conversation = shelf.open(info.id)
    await conversation.history()
    assert valid(conversation.transcript.messages)
    assert len(conversation.transcript.messages) == 4
    await conversation.close()


def test_the_same_transcript_is_imported_once(tmp_path: Path) -> None:
    shelf = library(tmp_path)
    first = shelf.take_in(file(tmp_path, SESSION)).info
    with pytest.raises(UsageError, match=f"before, as {first.id}"):
        shelf.take_in(file(tmp_path, SESSION, "copy.jsonl"))
    shelf.delete(first.id)
    shelf.take_in(file(tmp_path, SESSION))


def test_a_branch_that_was_gone_back_from_is_left_out_and_counted() -> None:
    story = read_story(
        [
            entry(1, "user", "one", parent=None),
            entry(2, "assistant", text("first")),
            entry(3, "user", "wrong way"),
            entry(4, "assistant", text("lost")),
            entry(5, "user", "right way", parent=2),
            entry(6, "assistant", text("kept")),
        ]
    )
    said = [message.text for message in Transcript(events=story.events).messages]
    assert said == ["one", "first", "right way", "kept"]
    assert story.abandoned == 2


def said_in(parents: Sequence[int | None]) -> list[str]:
    """What is taken in of entries 1, 2, 3 …, prompts and answers in turns, with these parents."""
    records = [
        {**entry(number, "user" if number % 2 else "assistant", text(f"say {number}"), parent=parent)}
        for number, parent in enumerate(parents, 1)
    ]
    return [message.text.removeprefix("say ") for message in Transcript(events=read_story(records).events).messages]


@pytest.mark.parametrize(
    ("parents", "left_out"),
    [
        ([None] * 8, ""),
        ([None, 1, 2, 3, None, 5, None, 7], ""),
        ([None, 1, None, 2, 4, 5, None, None], ""),
        ([None, 1, 2, 3, 4, 5, 6, None], ""),
        ([None, 1, 2, 3, 2, 5, None, 7], "34"),
        ([None, 1, None, 3, 4, 5, 4, 7], "56"),
    ],
)
def test_entries_without_a_parent_are_kept(parents: Sequence[int | None], left_out: str) -> None:
    assert said_in(parents) == [str(number) for number in range(1, 9) if str(number) not in left_out]


def test_what_stands_before_a_missing_entry_is_kept() -> None:
    records = [entry(number, "user" if number % 2 else "assistant", text(f"say {number}")) for number in range(1, 9)]
    del records[3]
    said = [message.text for message in Transcript(events=read_story(records).events).messages]
    assert said == ["say 1", "say 2", "say 3say 5", "say 6", "say 7", "say 8"]


def test_sub_agents_compactions_commands_and_interruptions() -> None:
    records = [
        entry(1, "user", "<command-name>/review</command-name>\n<command-args>all of it</command-args>", parent=None),
        entry(2, "assistant", call("t1", "Task", prompt="look")),
        entry(3, "user", "look", parent=None, isSidechain=True),
        entry(4, "assistant", text("found"), isSidechain=True),
        entry(5, "user", output("t1", "found"), parent=2),
        {"type": "system", "subtype": "compact_boundary", "uuid": "u6", "parentUuid": None, "logicalParentUuid": "u5"},
        entry(7, "user", "What was said: all.", isCompactSummary=True),
        entry(8, "user", "go on"),
        entry(9, "user", "[Request interrupted by user]"),
        entry(10, "user", "<local-command-stdout>Bye</local-command-stdout>"),
        entry(11, "user", [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}]),
    ]
    events = read_story(records).events
    prompts = [(event.agent, event.prompt.text) for event in events if isinstance(event, TurnStarted)]
    assert prompts == [("main", "/review all of it"), ("main/task-1", "look"), ("main", "go on"), ("main", "")]
    assert [event.reason for event in events if isinstance(event, TurnEnded) and event.agent == "main"] == [
        "done",
        "cancelled",
        "done",
    ]
    assert any(isinstance(event, Notice) and event.text == "Bye" for event in events)
    messages = Transcript(events=events).messages
    assert messages[0].text == "What was said: all.go on"
    assert isinstance(messages[0].blocks[-1], Image)
    assert any(isinstance(event, Compressed) for event in events)


def test_a_note_that_the_person_did_not_see_stays_hidden() -> None:
    records = [entry(1, "user", "one", parent=None), entry(2, "user", "a note", isMeta=True)]
    (note,) = [event.message for event in read_story(records).events if isinstance(event, Steered)]
    assert (note.hidden, note.text) == (True, "a note")


def test_a_long_result_goes_to_a_file(tmp_path: Path) -> None:
    long = "begin " + "x" * 300_000 + " end"
    records = [
        entry(1, "user", "one", parent=None),
        entry(2, "assistant", call("t1")),
        entry(3, "user", output("t1", long)),
    ]
    info = library(tmp_path).take_in(file(tmp_path, records)).info
    folder = folder_of(tmp_path, info.id)
    (result,) = [event.result for event in JournalFile.peek(folder).read() if isinstance(event, ToolFinished)]
    assert len(result.text) < 20_000
    assert result.text.startswith("begin")
    assert result.text.endswith("end")
    assert result.artifact
    assert (folder / result.artifact).read_text() == long


def test_our_own_lines_come_back_as_they_were(tmp_path: Path) -> None:
    events = [*turn("one"), *turn("two", ended=False)]
    stored(tmp_path, A, events)
    lines = "".join(library(tmp_path).export(A, "jsonl"))
    other = library(tmp_path / "other")
    taken = other.take_in(file(tmp_path, lines.splitlines()))
    back = JournalFile.peek(folder_of(tmp_path / "other", taken.info.id)).read()
    assert taken.source == f"ba {A}"
    prompts = [
        replace(event, prompt=replace(event.prompt, origin="imported")) if isinstance(event, TurnStarted) else event
        for event in events
    ]
    assert [event for event in back if event in prompts] == prompts
    assert taken.info.turns == 2
    ends = [event.reason for event in back if isinstance(event, TurnEnded)]
    assert ends == ["done", "interrupted"]
    newer = lines.replace('"schema_version": 1', '"schema_version": 99', 1)
    with pytest.raises(NewerSchema):
        other.take_in(file(tmp_path, newer.splitlines(), "newer.jsonl"))


@pytest.mark.parametrize("version", VERSIONS)
def test_results_of_every_published_version_are_read_by_one_function(version: str) -> None:
    record = {"schema_version": version, "observation": "Found 5 items", "success": True, "metadata": {"rows": 5}}
    if version != "1.4":
        record["output_level"] = "OutputLevel.BRIEF"
    result = result_of(record)
    assert (result.text, result.is_error, result.meta["rows"]) == ("Found 5 items", False, 5)
    assert result.meta["output_level"] == ("standard" if version == "1.4" else "brief")


def test_a_list_of_results_becomes_a_session(tmp_path: Path) -> None:
    records: list[Record] = [
        {"request_id": "r1", "tool_name": "query", "observation": "3 rows", "success": True, "duration_ms": 1500},
        {"request_id": "r1", "observation": "no", "success": False, "error_type": "TIMEOUT", "error_message": "slow"},
    ]
    path = tmp_path / "results.json"
    path.write_text(json.dumps(records, indent=2))
    info = library(tmp_path).take_in(path).info
    events = JournalFile.peek(folder_of(tmp_path, info.id)).read()
    assert valid(Transcript(events=events).messages)
    first, second = [event for event in events if isinstance(event, ToolFinished)]
    assert (first.duration, first.result.text) == (1.5, "3 rows")
    assert second.result.error
    assert (second.result.error.kind, second.result.error.message) == ("timeout", "slow")


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", "no format"),
        (b"plain words\n", "no format"),
        (b"\x00\xff\xfe" * 50, "no format"),
        (b"[1, 2, 3]", "no format"),
        (b"[" * 100_000, "no format"),
        (b'{"type":"user","message":{"role":"user","content":""}}\n', "no conversation"),
        (b'{"type":"session","id":"x","schema_version":1}\n{"type":"notice"}\n', "no conversation"),
    ],
)
def test_what_holds_no_conversation_is_refused(tmp_path: Path, data: bytes, error: str) -> None:
    path = tmp_path / "some.jsonl"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=error):
        library(tmp_path).take_in(path)
    assert not (tmp_path / "sessions").exists()


def test_damage_is_counted_and_the_rest_is_taken(tmp_path: Path) -> None:
    records = ["garbage", *SESSION[2:], '{"type":"user","mess', json.dumps({"type": "from-tomorrow", "data": 1}), "[]"]
    taken = read_transcript(file(tmp_path, records))
    assert list(taken.events)
    assert taken.damaged == 3
    assert taken.remarks[-1] == "Not readable: 3 entries."
    data = file(tmp_path, SESSION).read_text().encode("utf-16")
    (tmp_path / "wide.jsonl").write_bytes(data)
    plain = list(read_transcript(file(tmp_path, SESSION)).events)
    assert len(list(read_transcript(tmp_path / "wide.jsonl").events)) == len(plain)
    for wrong in (tmp_path / "nowhere.jsonl", tmp_path):
        with pytest.raises(UsageError, match="can't be read"):
            read_transcript(wrong)


WHO = st.sampled_from(["user", "assistant"])
BLOCKS = st.sampled_from([text("w"), text(" "), call("a"), call("b"), output("a"), output("b"), [{"type": "new"}], "s"])


STEPS = st.lists(st.tuples(WHO, BLOCKS, st.integers(0, 9), st.booleans(), st.integers(0, 59)), max_size=8)


@given(STEPS)
def test_any_order_of_entries_makes_a_valid_conversation(steps: list[tuple[str, Any, int, bool, int]]) -> None:
    records = [
        entry(number, kind, content, parent=min(parent, number - 1) or None, isSidechain=aside)
        | {"timestamp": f"2026-11-20T10:00:{second:02d}Z" if second else "yesterday"}
        for number, (kind, content, parent, aside, second) in enumerate(steps, 1)
    ]
    assert valid(Transcript(events=read_story(records).events).messages)
