"""Codex's rollouts and OpenCode's exports become sessions, and no file is too large."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.events import (
    Compressed,
    Event,
    MessageDone,
    Notice,
    Steered,
    Titled,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import Usage
from ba_tui.core.results import CommandText
from ba_tui.core.transcript import Transcript
from ba_tui.sessions.imports.transcripts import ImportedTranscript, read_transcript
from ba_tui.sessions.records import JournalEntry, UnknownRecord
from tests.sessions.test_importing import valid

AT = "2026-11-23T06:50:{:02}.000Z"
Line = tuple[str, dict[str, Any]]


def lines(*records: Line) -> list[dict[str, Any]]:
    """A rollout, a second between its lines."""
    return [
        {"timestamp": AT.format(second), "type": kind, "payload": payload}
        for second, (kind, payload) in enumerate(records)
    ]


def said(role: str, text: str) -> Line:
    kind = "output_text" if role == "assistant" else "input_text"
    return "response_item", {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def call(id: str, name: str = "exec_command", **args: Any) -> Line:
    return "response_item", {"type": "function_call", "name": name, "arguments": json.dumps(args), "call_id": id}


def output(id: str, text: str, kind: str = "function_call_output") -> Line:
    return "response_item", {"type": kind, "call_id": id, "output": text}


def happened(kind: str, **fields: Any) -> Line:
    return "event_msg", {"type": kind, **fields}


def counted(whole: int, cached: int, out: int) -> Line:
    used = {"input_tokens": whole, "cached_input_tokens": cached, "output_tokens": out}
    return happened("token_count", info={"last_token_usage": used})


META: Line = ("session_meta", {"id": "019a", "cwd": "/w", "cli_version": "0.169.0"})
STARTED = happened("task_started")
ROLLOUT = lines(
    META,
    STARTED,
    said("developer", "<permissions instructions>"),
    said("user", "<environment_context>\n  <cwd>/w</cwd>"),
    ("turn_context", {"cwd": "/w", "model": "gpt-5"}),
    said("user", "Make a.txt"),
    ("response_item", {"type": "reasoning", "summary": [{"text": "hm"}]}),
    call("c1", cmd="echo hello"),
    output("c1", "Chunk ID: x\nProcess exited with code 0\nOutput:\nhello\n"),
    counted(100, 20, 10),
    said("assistant", "I edit."),
    ("response_item", {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch", "call_id": "c2"}),
    said("user", "also b.txt"),
    output("c2", '{"output": "no", "metadata": {"exit_code": 1}}', "custom_tool_call_output"),
    happened("agent_message", message="Done"),
    said("assistant", "Done."),
    counted(200, 0, 5),
    happened("task_complete"),
    STARTED,
    ("compacted", {"message": "We made a.txt."}),
    said("user", "and more"),
    happened("turn_aborted"),
)


def taken(folder: Path, records: Sequence[Any] | dict[str, Any], *, whole: bool = False) -> ImportedTranscript:
    path = folder / "rollout.jsonl"
    path.write_text(json.dumps(records, indent=2) if whole else "\n".join(map(json.dumps, records)))
    return read_transcript(path)


def known(entries: Iterable[JournalEntry]) -> list[Event]:
    return [entry for entry in entries if not isinstance(entry, UnknownRecord)]


def test_a_rollout_becomes_a_session(tmp_path: Path) -> None:
    found = taken(tmp_path, ROLLOUT)
    assert (found.source, found.cwd, found.model) == ("Codex 019a", "/w", "openai/gpt-5")
    assert found.created == 1795416600.0
    events = known(found.events)
    prompts = [event.prompt.text for event in events if isinstance(event, TurnStarted)]
    assert prompts == ["Make a.txt", "also b.txt", "and more"]
    answers = [event.message for event in events if isinstance(event, MessageDone)]
    assert [(message.text, [each.name for each in message.calls]) for message in answers] == [
        ("", ["exec_command"]),
        ("I edit.", ["apply_patch"]),
        ("Done.", []),
    ]
    assert [message.usage for message in answers] == [Usage(80, 10, 20, 0), None, Usage(200, 5, 0, 0)]
    (result,) = [event.result for event in events if isinstance(event, ToolFinished)]
    assert (result.text, result.is_error) == ("hello\n", False)
    assert isinstance(result.display, CommandText)
    assert result.display.command == "echo hello"
    assert [event.target for event in events if isinstance(event, ToolStarted)] == ["echo hello", "*** Begin Patch"]
    assert [event.reason for event in events if isinstance(event, TurnEnded)] == ["interrupted", "done", "cancelled"]
    assert [event.strategy for event in events if isinstance(event, Compressed)] == ["summarize"]
    assert valid(Transcript(events=events).messages)
    assert "1 result without its call" in found.remarks[0]
    assert "1 reasoning" in found.remarks[0]


def test_words_while_a_turn_runs_join_it_and_failures_are_failures(tmp_path: Path) -> None:
    records = lines(
        META,
        STARTED,
        said("user", "go"),
        call("c1", "shell", command=["bash", "-lc", "false"]),
        output("c1", '{"output": "bad", "metadata": {"exit_code": 1, "duration_seconds": 0.1}}'),
        said("user", "rather not"),
        happened("error", message="The stream broke."),
        said("assistant", "All right."),
    )
    events = known(taken(tmp_path, records).events)
    (result,) = [event.result for event in events if isinstance(event, ToolFinished)]
    assert (result.text, result.is_error) == ("bad", True)
    assert isinstance(result.display, CommandText)
    assert result.display.command == "false"
    assert [event.message.text for event in events if isinstance(event, Steered)] == ["rather not"]
    assert [event.text for event in events if isinstance(event, Notice)] == ["The stream broke."]
    assert len([event for event in events if isinstance(event, TurnStarted)]) == 1


def test_the_first_versions_wrote_items_without_an_envelope(tmp_path: Path) -> None:
    records = [
        {"id": "old", "timestamp": AT.format(0), "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "function_call", "name": "shell", "arguments": "{", "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
    ]
    found = taken(tmp_path, records)
    assert found.source == "Codex old"
    assert [type(event).__name__ for event in found.events] == [
        *("TurnStarted", "MessageDone", "ToolStarted", "ToolFinished", "TurnEnded")
    ]


EXPORT: dict[str, Any] = {
    "info": {"id": "ses_1", "title": "Greetings", "directory": "/w", "time": {"created": 1_795_416_600_000}},
    "messages": [
        {
            "info": {"role": "user", "time": {"created": 1_795_416_601_000}},
            "parts": [
                {"type": "text", "text": "hello"},
                {"type": "text", "text": "Called the Read tool", "synthetic": True},
                {"type": "file", "mime": "image/png", "url": "data:image/png;base64,aGk="},
            ],
        },
        {
            "info": {
                "role": "assistant",
                "providerID": "anthropic",
                "modelID": "claude-sonnet-4-5",
                "tokens": {"input": 5, "output": 7, "cache": {"read": 1, "write": 2}},
            },
            "parts": [
                {"type": "step-start"},
                {
                    "type": "tool",
                    "callID": "c1",
                    "tool": "bash",
                    "state": {"status": "completed", "input": {"command": "ls"}, "output": "a\n", "title": "List"},
                },
                {"type": "tool", "callID": "c2", "tool": "read", "state": {"status": "error", "error": "gone"}},
                {"type": "reasoning", "text": "hm"},
                {"type": "text", "text": "There it is."},
            ],
        },
    ],
}


@pytest.mark.parametrize("whole", [True, False])
def test_an_export_of_opencode_becomes_a_session(tmp_path: Path, whole: bool) -> None:
    found = taken(tmp_path, EXPORT if whole else [EXPORT], whole=whole)
    assert (found.source, found.cwd, found.model) == ("OpenCode ses_1", "/w", "anthropic/claude-sonnet-4-5")
    events = known(found.events)
    assert [type(event).__name__ for event in events] == [
        *("TurnStarted", "MessageDone", "ToolStarted", "ToolStarted", "ToolFinished", "ToolFinished", "MessageDone"),
        *("TurnEnded", "Titled"),
    ]
    prompt = next(event.prompt for event in events if isinstance(event, TurnStarted))
    assert (prompt.text, len(prompt.blocks)) == ("hello", 2)
    results = [event.result for event in events if isinstance(event, ToolFinished)]
    assert [(result.text, result.is_error) for result in results] == [("a\n", False), ("gone", True)]
    assert [event.title for event in events if isinstance(event, Titled)] == ["Greetings"]
    usages = [event.message.usage for event in events if isinstance(event, MessageDone)]
    assert usages == [None, Usage(5, 7, 1, 2)]
    assert valid(Transcript(events=events).messages)


def test_other_json_is_no_transcript(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="of no format that can be imported"):
        taken(tmp_path, {"info": 3, "messages": []}, whole=True)


def test_a_large_transcript_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    with path.open("w") as file:
        file.write(json.dumps({"type": "user", "uuid": "u", "message": {"role": "user", "content": "go"}}) + "\n")
        for number in range(100):
            before = f"r{number - 1}" if number else "u"
            use = {"type": "tool_use", "id": f"c{number}", "name": "Bash", "input": {"command": "cat"}}
            answer = {"type": "assistant", "uuid": f"a{number}", "parentUuid": before}
            file.write(json.dumps({**answer, "message": {"id": f"m{number}", "content": [use]}}) + "\n")
            result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "x" * 200_000}
            back = {"type": "user", "uuid": f"r{number}", "parentUuid": f"a{number}"}
            file.write(json.dumps({**back, "message": {"role": "user", "content": [result]}}) + "\n")
    tracemalloc.start()
    try:
        told = sum(1 for event in read_transcript(path).events if isinstance(event, ToolFinished))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert told == 100
    assert most < path.stat().st_size / 4


KEYS = st.sampled_from([0, 1, 5, 7, 8, 9, 11, "type", "payload", "content", "call_id", "info", "output", "messages"])
VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)


@given(st.lists(st.tuples(st.lists(KEYS, min_size=1, max_size=4), VALUES), max_size=8), st.booleans())
def test_values_of_any_shape_do_not_trip_us(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[list[Any], Any]], codex: bool
) -> None:
    records: Any = json.loads(json.dumps(ROLLOUT if codex else [EXPORT]))
    for (*way, last), value in changes:
        at = records
        try:
            for key in way:
                at = at[key]
            at[last] = value
        except (TypeError, IndexError, KeyError):
            continue
    try:
        events = known(taken(tmp_path_factory.mktemp("talk"), records).events)
    except BaError:
        return
    assert valid(Transcript(events=events).messages)
