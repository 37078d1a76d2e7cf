"""Claude Code's transcripts as its versions wrote them: what is the user's stays theirs, and no shape trips us."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ba_tui.core.errors import BaError
from ba_tui.core.events import Event, MessageDone, Notice, Steered, Titled, ToolFinished, TurnStarted
from ba_tui.core.messages import Document, Image, Opaque, Text, ToolUse
from ba_tui.core.results import Diff
from ba_tui.core.transcript import Transcript
from ba_tui.sessions.imports.transcripts import read_transcript
from ba_tui.sessions.records import UnknownRecord
from tests.sessions.test_importing import call, entry, output, read_story, text, valid

Record = dict[str, Any]
PROMPT = entry(1, "user", "look", parent=None)


def messages_of(records: Sequence[Record]) -> list[list[Any]]:
    found = Transcript(events=read_story(records).events).messages
    assert valid(found)
    return [
        [block for block in message.blocks if not (isinstance(block, Text) and not block.text)] for message in found
    ]


def events_of(records: Sequence[Record], kind: type[Event]) -> list[Any]:
    return [event for event in read_story(records).events if isinstance(event, kind)]


def test_a_command_is_a_prompt_whatever_stands_before_its_name() -> None:
    words = "<command-message>init is analyzing</command-message>\n<command-name>/init</command-name>"
    prompts = events_of([entry(1, "user", words, parent=None), entry(2, "user", "the steps", isMeta=True)], TurnStarted)
    assert [prompt.prompt.text for prompt in prompts] == ["/init"]
    told_alone = events_of([PROMPT, entry(2, "user", "<command-message>x</command-message>")], Notice)
    assert [notice.text for notice in told_alone] == ["x"]


@pytest.mark.parametrize("words", ["and the south", [{"type": "text", "text": "and the south"}]])
def test_what_was_typed_meanwhile_is_kept_as_the_persons_words(words: Any) -> None:
    queued = {"type": "queued_command", "prompt": words, "commandMode": "prompt"}
    between = {"type": "attachment", "uuid": "u3", "parentUuid": "u2", "attachment": queued, "isSidechain": False}
    records = [
        PROMPT,
        entry(2, "assistant", call("t1")),
        between,
        entry(4, "user", output("t1")),
        entry(5, "assistant", text("so")),
    ]
    (steered,) = events_of(records, Steered)
    assert (steered.message.text, steered.message.hidden, steered.message.origin) == ("and the south", False, "steer")
    kinds = [[type(block).__name__ for block in blocks] for blocks in messages_of(records)]
    assert kinds == [["Text"], ["ToolUse"], ["ToolOutput", "Text"], ["Text"]]
    assert read_story(records).skipped == {}


def test_a_note_between_a_call_and_its_result_does_not_part_them() -> None:
    records = [
        PROMPT,
        entry(2, "assistant", call("t1")),
        entry(3, "user", "a note", isMeta=True),
        entry(4, "user", output("t1", "the result")),
        entry(5, "assistant", text("so")),
    ]
    answered = messages_of(records)[2]
    assert [block.content if hasattr(block, "content") else block.text for block in answered] == [
        "the result",
        "a note",
    ]


def test_a_reminder_within_a_prompt_is_hidden() -> None:
    reminder = {"type": "text", "text": "<system-reminder>\nbe brief\n</system-reminder>"}
    records = [entry(1, "user", [reminder, *text("look")], parent=None), entry(2, "user", [reminder])]
    assert [prompt.prompt.text for prompt in events_of(records, TurnStarted)] == ["look"]
    assert all(steered.message.hidden for steered in events_of(records, Steered))
    assert len(events_of(records, Steered)) == 2


def test_a_reminder_within_the_words_of_a_prompt_is_parted_from_them() -> None:
    words = "fix the login\n<system-reminder>\na.py changed\n</system-reminder>\nand the tests"
    records = [entry(1, "user", words, parent=None)]
    assert [prompt.prompt.text for prompt in events_of(records, TurnStarted)] == ["fix the login\nand the tests"]
    (note,) = events_of(records, Steered)
    assert (note.message.hidden, "a.py changed" in note.message.text) == (True, True)


def test_words_of_the_program_are_no_answer() -> None:
    synthetic = entry(2, "assistant", text("API Error: 529"), message={"model": "<synthetic>"}, isApiErrorMessage=True)
    story = read_story([PROMPT, synthetic, entry(3, "assistant", text("so"))])
    assert [event.message.text for event in story.events if isinstance(event, MessageDone)] == ["so"]
    assert [(event.text, event.level) for event in story.events if isinstance(event, Notice)] == [
        ("API Error: 529", "error")
    ]
    assert story.model == "claude-opus-4-1"


def test_an_answer_that_was_written_down_as_it_grew_is_there_once() -> None:
    grown = {"id": "msg_x"}
    records = [
        PROMPT,
        entry(2, "assistant", [*text("I look."), *call("t1")], message=grown),
        entry(3, "assistant", call("t1"), message=grown),
        entry(4, "user", output("t1")),
        entry(5, "assistant", [*call("t2"), *call("t2")]),
        entry(6, "user", output("t2")),
    ]
    assert [block.id for blocks in messages_of(records) for block in blocks if isinstance(block, ToolUse)] == [
        "t1",
        "t2",
    ]


def test_ids_that_are_used_again_after_their_answer_are_calls_of_their_own() -> None:
    records = [PROMPT]
    for number in (2, 4):
        records += [entry(number, "assistant", call("call_0", n=number)), entry(number + 1, "user", output("call_0"))]
    assert [block.input["n"] for blocks in messages_of(records) for block in blocks if isinstance(block, ToolUse)] == [
        2,
        4,
    ]


PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
WORDS_FILE = {"type": "document", "title": "n", "source": {"type": "text", "media_type": "text/plain", "data": "é"}}


@pytest.mark.parametrize(
    ("content", "words", "beside"),
    [
        ([*text("one"), PICTURE, *text("two")], "one\ntwo", (Image("image/png", "AA=="),)),
        ([WORDS_FILE], "", (Document("text/plain", base64.b64encode("é".encode()).decode(), "n"),)),
        ([{"type": "tool_reference", "tool_name": "grep"}], '{"type": "tool_reference", "tool_name": "grep"}', ()),
        ({"type": "text", "text": "alone"}, "alone", ()),
        (None, "", ()),
        (7, "", ()),
    ],
)
def test_results_of_every_shape(content: Any, words: str, beside: tuple[Any, ...]) -> None:
    (finished,) = events_of(
        [PROMPT, entry(2, "assistant", call("t1")), entry(3, "user", output("t1", content))], ToolFinished
    )
    assert (finished.result.text, finished.result.attachments) == (words, beside)


@pytest.mark.parametrize(
    ("result", "diff"),
    [
        ({"type": "update", "filePath": "/a", "content": "y", "originalFile": "x"}, Diff("/a", "x", "y")),
        ({"type": "create", "filePath": "/a", "content": "y", "originalFile": None}, Diff("/a", None, "y")),
        (
            {
                "filePath": "/a",
                "originalFileContents": "x x z",
                "edits": [
                    {"old_string": "x", "new_string": "y", "replace_all": True},
                    {"old_string": "z", "new_string": ""},
                ],
            },
            Diff("/a", "x x z", "y y "),
        ),
        ({"filePath": "/a", "originalFile": None, "oldString": "x", "newString": "y"}, None),
        ("words", None),
        ([{"type": "text", "text": "x"}], None),
    ],
)
def test_what_a_result_shows(result: Any, diff: Diff | None) -> None:
    records = [PROMPT, entry(2, "assistant", call("t1", "Write")), entry(3, "user", output("t1"), toolUseResult=result)]
    assert events_of(records, ToolFinished)[0].result.display == diff


def test_the_title_is_the_most_telling_of_this_session() -> None:
    other = {"type": "summary", "summary": "Another session", "leafUuid": "elsewhere"}
    mine = {"type": "summary", "summary": "This one", "leafUuid": "u1"}
    assert events_of([other, PROMPT], Titled) == []
    assert [event.title for event in events_of([mine, other, PROMPT], Titled)] == ["This one"]
    named = {"type": "custom-title", "customTitle": "Named"}
    assert [event.title for event in events_of([named, PROMPT, mine], Titled)] == ["Named"]


@pytest.mark.parametrize(
    ("block", "kept"),
    [
        ({"type": "tool_use", "id": "t1", "name": "Bash", "input": "ls"}, ToolUse("t1", "Bash", {}, '"ls"')),
        ({"type": "tool_use", "id": "", "name": "Bash", "input": {}}, None),
        ({"type": "tool_use", "id": "t1", "input": {}}, None),
        ({"type": "text", "text": None}, None),
        ({"text": "no type"}, None),
        ({"type": "hologram", "n": 1}, Opaque({"type": "hologram", "n": 1}, "anthropic")),
    ],
)
def test_a_damaged_block_is_left_out_and_an_unknown_one_kept(block: Record, kept: Any) -> None:
    records = [PROMPT, entry(2, "assistant", [*text("so"), block])]
    assert messages_of(records)[1] == [Text("so"), *([kept] if kept else [])]
    assert bool(read_story(records).skipped) == (kept is None)


SHAPES = st.sampled_from(
    [None, 5, True, "x", [], {}, [1], {"a": 1}, "u1", ["u1"], -1, 1e300, "0001-01-01T00:00:00+23:59"]
)
SESSION = [
    PROMPT,
    entry(2, "assistant", [*text("I look."), *call("t1")]),
    entry(3, "user", output("t1", [*text("r"), PICTURE]), toolUseResult={"filePath": "/a", "originalFile": "x"}),
    {
        "type": "attachment",
        "uuid": "u4",
        "parentUuid": "u3",
        "attachment": {"type": "queued_command", "prompt": "more"},
    },
    {"type": "system", "subtype": "compact_boundary", "uuid": "u5", "parentUuid": None, "logicalParentUuid": "u4"},
    entry(6, "user", "in short", isCompactSummary=True),
    entry(7, "assistant", text("done"), isSidechain=True),
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


@given(st.lists(st.tuples(st.sampled_from(places(SESSION)[1:]), SHAPES), min_size=1, max_size=3))
@example([((1, "message", "content", 0, "type"), [])])
def test_values_of_any_shape_anywhere_do_not_trip_us(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[tuple[Any, ...], Any]]
) -> None:
    records: Any = json.loads(json.dumps(SESSION))
    for (*way, last), value in changes:
        at = records
        try:
            for key in way:
                at = at[key]
            at[last] = value
        except (TypeError, IndexError, KeyError):
            continue
    path = tmp_path_factory.mktemp("talk") / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    try:
        events = [each for each in read_transcript(path).events if not isinstance(each, UnknownRecord)]
    except BaError:
        return
    assert valid(Transcript(events=events).messages)
