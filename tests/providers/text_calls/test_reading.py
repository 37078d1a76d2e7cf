"""Replies read: every form that calls are written in, what is refused, and what is no call at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_tui.providers.text_calls.known_tools import RequestTools
from ba_tui.providers.text_calls.replies import FAKED, NO_ACTION, UNCLEAR, ParsedReply, Stance, read
from tests.providers.text_calls.replies import EXPLAINED, LABELLED, MARKED, ONE, PROSE, SPOKEN_OF
from tests.providers.text_calls.tools import KNOWN, TOOLS, tool
from tests.providers.wire.test_text_calls import ANSWERS
from tests.providers.wire.test_text_calls import CALLS as ENDINGS
from tests.providers.wire.test_text_calls import TOOLS as ENDING_TOOLS

STANCES: tuple[Stance, ...] = ("asked", "watching", "trusting")


def made(found: ParsedReply) -> list[tuple[str, Any]]:
    """The calls that can be made."""
    return [(call.name, call.arguments) for call in found.calls if not call.problem]


@pytest.mark.parametrize("form", MARKED)
@pytest.mark.parametrize("stance", STANCES)
def test_calls_behind_marks_are_read_from_every_model(form: str, stance: Stance) -> None:
    text, calls = MARKED[form]
    found = read(f"I look into it.\n\n{text}", KNOWN, stance)
    assert (made(found), found.prose) == (calls, "I look into it.")


@pytest.mark.parametrize("form", LABELLED)
def test_other_forms_are_read_unless_the_model_is_known_to_call_by_its_api(form: str) -> None:
    text, calls = LABELLED[form]
    assert made(read(text, KNOWN, "asked")) == calls
    if form != "react, flat":
        assert made(read(text, KNOWN, "watching")) == calls
    assert read(text, KNOWN, "trusting") == ParsedReply(text)


@pytest.mark.parametrize("form", ENDINGS)
def test_a_call_at_the_end_of_a_reply_is_read_in_every_style(form: str) -> None:
    known = RequestTools(ENDING_TOOLS)
    assert made(read(ENDINGS[form], known, "asked" if form == "flat" else "watching"))


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_ordinary_answer_is_no_call_for_a_model_that_was_not_asked(kind: str) -> None:
    assert read(ANSWERS[kind], RequestTools(ENDING_TOOLS), "watching") == ParsedReply(ANSWERS[kind])


@pytest.mark.parametrize("kind", SPOKEN_OF)
@pytest.mark.parametrize("stance", STANCES)
def test_a_call_that_is_only_spoken_of_is_none(kind: str, stance: Stance) -> None:
    assert made(read(SPOKEN_OF[kind], KNOWN, stance)) == []


@pytest.mark.parametrize("kind", EXPLAINED)
@pytest.mark.parametrize("stance", STANCES[1:])
def test_a_call_amid_an_explanation_is_none(kind: str, stance: Stance) -> None:
    assert read(EXPLAINED[kind], KNOWN, stance) == ParsedReply(EXPLAINED[kind])


@pytest.mark.parametrize("kind", PROSE)
def test_prose_and_examples_are_no_calls(kind: str) -> None:
    for stance in STANCES:
        assert made(read(PROSE[kind], KNOWN, stance)) == []
    for stance in ("watching", "trusting"):
        assert read(PROSE[kind], KNOWN, stance) == ParsedReply(PROSE[kind])


@pytest.mark.parametrize(
    "text",
    [
        "- Action: John writes the report\n- Action: now we wait",
        "Thought: it is easy.\nFinal Answer: 3",
        "Observation: it rained.",
        "Tool: a hammer\nInput: a nail",
    ],
)
def test_labels_that_people_use_too_stay_prose_for_models_that_were_not_asked(text: str) -> None:
    assert read(text, KNOWN, "watching") == ParsedReply(text)


def test_what_a_model_writes_in_a_tools_place_is_cut() -> None:
    call = 'Action: read_file\nAction Input: {"path": "a.txt"}\n'
    for made_up in (
        "Observation: it is empty\nThought: next\nAction: now\nAction Input: {}",
        "User: Observation: it is empty\nFinal Answer: It is empty.",
        'Final Answer: It is empty.\nAction: {"tool": "now", "args": {}}',
        'Thought: and then the time\nAction: {"tool": "now", "args": {}}',
    ):
        found = read(call + made_up, KNOWN)
        assert (made(found), found.prose, found.thought) == (ONE, "", "")
    marked = '<tool_call>{"name": "read_file", "arguments": {"path": "a.txt"}}</tool_call>\n'
    found = read(f'{marked}<tool_response>empty</tool_response>\n<tool_call>{{"name": "now"}}</tool_call>', KNOWN)
    assert made(found) == ONE


def test_an_observation_without_a_call_is_refused() -> None:
    (call,) = read("Thought: I know it.\nObservation: the sum is 300", KNOWN).calls
    assert call.problem == FAKED


def test_words_before_a_call_are_prose_and_a_thought_is_told_apart() -> None:
    found = read("I look.\nThought: It is\nin the file.\nAction: now", KNOWN)
    assert (found.prose, found.thought, made(found)) == ("I look.", "It is\nin the file.", [("now", {})])


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Thought: I know.\nFinal Answer: It is **3**.\n\n- a\n- b", "It is **3**.\n\n- a\n- b"),
        ("I know it now\nFinal Answer: 3", "3"),
        ("```\nThought: I know.\nFinal Answer: 3\n```", "3"),
        ("**Final Answer:** 3", "3"),
        ('{"action": "Final Answer", "action_input": "3"}', "3"),
        ("Action: Finish[3]", "3"),
        ('Final Answer: to do it write\nAction: {"tool": "now", "args": {}}', None),
    ],
)
def test_a_final_answer_is_what_stands_behind_its_label(text: str, answer: str | None) -> None:
    found = read(text, KNOWN)
    assert (found.calls, found.final) == ((), True)
    assert answer is None or found.prose == answer


def test_a_thought_that_came_to_nothing_is_the_answer() -> None:
    assert read("Thought: It is 3.", KNOWN) == ParsedReply("It is 3.")


@pytest.mark.parametrize(
    ("text", "name", "problem"),
    [
        (
            '<tool_call>{"name": "read_fil", "arguments": {"path": "a"}}</tool_call>',
            "read_fil",
            "did you mean 'read_file'",
        ),
        ("Action: calculate\nAction Input: 3", "calculate", "There is no tool"),
        ('<tool_call>{"name": "read_file", "arguments": {"path": "a</tool_call>', "", "breaks off"),
        ('Action: read_file\nAction Input: {"path": "a', "read_file", "breaks off"),
        ("<function=write_file><parameter=path>a</parameter><parameter=content>x", "write_file", "break"),
        ("Action: write_file\nAction Input: a.txt", "write_file", "must be a JSON object with path, content"),
        ("Action Input: a.txt", "", NO_ACTION),
        ("Action: read_file Final Answer:\nAction Input: a.txt", "", "in one line"),
        ("<tool_call>\nI would read it\n</tool_call>", "", "no call"),
        ("[TOOL_CALLS] and so on", "", "no call"),
        ('<tool_call>{"path": "a.txt"}</tool_call>', "", "names no tool"),
        ("```tool_call\nread it\n```", "", "no call"),
        ("read_file(*paths)", "", ""),
        ('```json\n{"name": "read_file", "arguments": {"path": "a"}}\n```\nThat reads it.', "", UNCLEAR),
    ],
)
def test_what_can_not_be_read_is_refused_with_a_reason(text: str, name: str, problem: str) -> None:
    found = read(text, KNOWN)
    assert made(found) == []
    if problem:
        assert (found.calls[0].name, problem in found.calls[0].problem) == (name, True)


def test_a_model_that_was_not_asked_hears_of_what_was_meant_as_a_call_of_a_tool_that_there_is() -> None:
    broken = (
        '<tool_call>{"name": "write_file", "arguments": {"path": "a"}}</tool_call>\n'
        '<function=read_file>{"path": </function>'
    )
    found = read(broken, KNOWN, "watching")
    assert [bool(call.problem) for call in found.calls] == [False, True]
    assert read(broken, KNOWN, "trusting").calls == ()
    labelled = "Thought: I look.\nAction: read_file\nAction Input: {'path': a"
    assert [bool(call.problem) for call in read(labelled, KNOWN, "watching").calls] == [True]
    assert read(f"{labelled}\nObservation: b\n\nSo it goes on.", KNOWN, "trusting").calls == ()
    assert read("Action: read_file is what you want.", KNOWN, "watching").calls == ()


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"path": "a", "limit": "5"}, {"path": "a", "limit": 5}),
        ({"path": "a", "limit": 5.0}, {"path": "a", "limit": 5}),
        ({"path": 7}, {"path": "7"}),
        ({"path": "a", "limit": None}, {"path": "a"}),
        ({"path": "a", "limit": "five"}, {"path": "a", "limit": "five"}),
        ({"path": "a", "limit": "007"}, {"path": "a", "limit": "007"}),
        ({"path": "a", "limit": 5.5}, {"path": "a", "limit": 5.5}),
        ({"path": "a", "more": "5"}, {"path": "a", "more": "5"}),
    ],
)
def test_arguments_are_fitted_only_where_nothing_is_lost(given: dict[str, Any], meant: dict[str, Any]) -> None:
    text = f"<tool_call>{json.dumps({'name': 'read_file', 'arguments': given})}</tool_call>"
    assert made(read(text, KNOWN)) == [("read_file", meant)]


def test_lists_and_truths_that_were_written_as_text_are_what_the_schema_says() -> None:
    text = (
        '<function=todo_write><parameter=items>[{"content": "a"}]</parameter></function>'
        "<function=grep><parameter=pattern>12</parameter><parameter=ignore_case>True</parameter></function>"
    )
    assert made(read(text, KNOWN)) == [
        ("todo_write", {"items": [{"content": "a"}]}),
        ("grep", {"pattern": "12", "ignore_case": True}),
    ]


@pytest.mark.parametrize("name", ["Read_File", "read-file", "functions.read_file", "readFile", "`read_file`"])
def test_a_name_may_be_decorated(name: str) -> None:
    text = f'<tool_call>{{"name": "{name}", "arguments": {{"path": "a.txt"}}}}</tool_call>'
    assert made(read(text, KNOWN)) == ONE


def test_content_with_marks_and_labels_in_it_stays_whole() -> None:
    content = 'x = "</tool_call>"\n\nObservation: none\n```\nAction: now\n<tool_call>\n'
    for text in (
        f"<tool_call>{json.dumps({'name': 'write_file', 'arguments': {'path': 'a', 'content': content}})}</tool_call>",
        f"Action: {json.dumps({'tool': 'write_file', 'args': {'path': 'a', 'content': content}})}",
    ):
        assert made(read(text, KNOWN)) == [("write_file", {"path": "a", "content": content})]


@settings(max_examples=80)
@given(
    st.dictionaries(
        st.sampled_from(["path", "content"]), st.text(st.characters(codec="utf-8"), max_size=40), min_size=2
    ),
    st.sampled_from(
        ["Action: {tool}", "<tool_call>{name}</tool_call>", "[TOOL_CALLS][{name}]", "```tool_call\n{name}\n```"]
    ),
)
def test_whatever_the_arguments_hold_comes_back(arguments: dict[str, str], form: str) -> None:
    said = json.dumps({"name": "write_file", "arguments": arguments}, ensure_ascii=False)
    assert made(read(form.replace("{name}", said).replace("{tool}", said), KNOWN)) == [("write_file", arguments)]


def test_without_tools_every_name_will_do() -> None:
    found = read("Action: Add image\nAction Input: {'url': 'x'}", RequestTools(None))
    assert made(found) == [("Add image", {"url": "x"})]


def test_hundreds_of_calls_are_not_all_made() -> None:
    text = '<tool_call>{"name": "now", "arguments": {}}</tool_call>\n' * 500
    assert len(read(text, KNOWN).calls) == 32


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "piece",
    [
        '<tool_call>{"name": "read_file", "arguments": {"path": "',
        '<invoke name="read_file"><parameter name="path">',
        "<|python_tag|>read_file(",
        '\nAction: read_file\nAction Input: {"path": "',
        "<tool_call>read_file<arg_key>path</arg_key><arg_value>",
        "<tool_call>[",
        "`<tool_call>",
        '\n{"name": "read_file"',
        "\n```",
        "\n",
    ],
)
def test_no_reply_of_a_million_characters_holds_it_up(piece: str) -> None:
    """How long it takes is measured by tests.bench."""
    read(piece * (1_000_000 // len(piece)), KNOWN, "watching")


def test_a_tool_with_a_schema_that_says_nothing_takes_what_it_is_given() -> None:
    known = RequestTools([*TOOLS, tool("any", "Takes anything.", {})])
    assert made(read('Action: {"tool": "any", "args": {"a": ["1", 2]}}', known)) == [("any", {"a": ["1", 2]})]
