"""What a small model has to do next, in which order it reads, and how it is told of its tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from ba_tui.core.messages import Message, Text, ToolOutput, ToolUse, reminder, user
from ba_tui.core.provider import ModelInfo
from ba_tui.core.teamwork import Role, SubTask
from ba_tui.core.tool import Tool
from ba_tui.features.plans.engine.drafts import PlanResources, complaints, tidied, written
from ba_tui.features.plans.engine.planner import submit_tool
from ba_tui.features.teams.engine.jobs import answering, part_of
from ba_tui.providers.local_provider import (
    MOST_LINES,
    answer_due,
    call_grammar,
    call_needed,
    call_schema,
    examples,
    notes_first,
    read_lines,
    told_tools,
)
from ba_tui.resources import bundled
from ba_tui.settings import LocalSettings
from tests.providers.text_calls.tools import NOW, READ, SHELL, tool

MODEL = ModelInfo("local:m", "local", "m")


def results(*failed: bool) -> list[Message]:
    """Calls one after the other, with whether each failed."""
    messages: list[Message] = []
    for number, bad in enumerate(failed):
        use = ToolUse(f"c{number}", "shell", {"command": "ls"})
        messages += [
            Message("assistant", (use,), origin="assistant"),
            Message("user", (ToolOutput(use.id, "said", is_error=bad),), origin="tool"),
        ]
    return messages


@pytest.mark.parametrize(
    "prompt",
    [
        "Which port does server.toml set?",
        "What is in src/app?",
        "How many files are here?",
        "What is 12 * 7?",
        "Run the tests with `make`.",
        "Count the .csv files of the folder",
    ],
)
def test_a_prompt_about_files_commands_or_sums_needs_a_call_first(prompt: str) -> None:
    assert call_needed([user(prompt), reminder("It is Monday.")])
    assert not call_needed([user(prompt), *results(False)])


@pytest.mark.parametrize("prompt", ["hello", "What does recursion mean?", "Thanks, e.g. for that.", "Ask me@site.org."])
def test_other_prompts_may_be_answered_at_once(prompt: str) -> None:
    assert not call_needed([user(prompt), reminder("Files have changed: a.txt")])


def test_a_failed_call_is_followed_by_another_one_and_not_for_ever() -> None:
    prompt = user("hello")
    failures = [(True,), (False, True), (True, True), (True, True, True), (True, False)]
    assert [call_needed([prompt, *results(*failed)]) for failed in failures] == [True, True, False, False, False]


def test_notes_come_before_the_prompt_and_nothing_else_moves() -> None:
    first, note, call, result = user("a.txt?"), reminder("It is Monday."), *results(False)
    late = reminder("a.txt has changed.")
    assert notes_first([first, note, call, result, late]) == [note, first, call, result, late]
    assert notes_first([first, note])[0] is note, "what was rendered once is known again by its identity"


def test_a_needed_call_leaves_no_room_for_an_answer() -> None:
    needed, free = call_grammar([READ], needed=True), call_grammar([READ])
    assert ("Final Answer" in needed, "Final Answer" in free) == (False, True)
    assert "start: thought? call\n" in needed


def definitions() -> Mapping[str, Tool]:
    found: dict[str, Tool] = {}
    for name in LocalSettings().tools:
        raw: dict[str, Any] = yaml.safe_load((bundled("config") / "prompts/tools" / f"{name}.yaml").read_text("utf-8"))
        found[name] = Tool(name, raw["description"], raw["input_schema"], READ.run)
    return found


def test_every_tool_of_the_settings_is_told_in_few_words_and_its_calls_fit_the_real_one() -> None:
    real = definitions()
    told = {each.name: each for each in told_tools(list(real.values()))}
    assert told.keys() == real.keys()
    for name, each in told.items():
        whole = real[name].input_schema
        assert each.description != real[name].description
        assert each.input_schema["properties"].items() <= whole["properties"].items()
        assert set(whole.get("required", ())) <= set(each.input_schema["required"])
        for call in each.facts.examples:
            assert set(each.input_schema["required"]) <= call.keys() <= each.input_schema["properties"].keys()


def test_a_tool_that_needs_more_than_the_words_say_is_told_as_it_is() -> None:
    other = Tool("shell", "Run.", {"type": "object", "properties": {"script": {}}, "required": ["script"]}, READ.run)
    assert told_tools([other, NOW]) == [other, NOW]


def test_examples_use_the_tools_that_there_are() -> None:
    real = list(definitions().values())
    shown = examples("react", told_tools(real), MODEL)
    assert [message.role for message in shown] == ["user", "assistant"] * (len(shown) // 2)
    assert sum("(An example)" in message.text for message in shown) >= 3
    assert shown[-1].text.endswith("in all.")
    few = "".join(message.text for message in examples("react", [SHELL], MODEL))
    assert "grep -c" in few
    assert "query_data" not in few
    assert "edit_file" not in few
    assert isinstance(shown[0].blocks[0], Text)


EDIT = tool("edit_file", "Edit.", {"path": "string", "old_string": "string", "new_string": "string"})


def called(name: str, said: str, *, failed: bool = False, **args: str) -> list[Message]:
    use = ToolUse(f"{name}-{said}", name, args)
    output = ToolOutput(use.id, said, is_error=failed)
    return [Message("assistant", (use,), origin="assistant"), Message("user", (output,), origin="tool")]


def test_what_was_read_can_be_replaced_until_it_changes() -> None:
    a = called("read_file", "1\tport = 80\n2\t\n3\t  end\n4\t  end\n\nNote: more follows.", path="a.txt")
    b = called("read_file", " 9\tx\n10\ty", path="b.txt")
    assert read_lines([*a, *b]) == {"a.txt": ("port = 80",), "b.txt": ("x", "y")}
    assert read_lines([*a, *b, *called("edit_file", "Changed.", path="a.txt")]) == {"b.txt": ("x", "y")}
    assert read_lines([*a, *called("edit_file", "No.", path="a.txt", failed=True)]) == {"a.txt": ("port = 80",)}
    assert read_lines([*a, *called("shell", "ok", command="sed -i d a.txt")]) == {}
    long = "\n".join(f"{number}\tline {number}" for number in range(MOST_LINES + 1))
    assert read_lines(called("read_file", long, path="long.txt")) == {}


def test_an_edit_chooses_the_line_that_it_replaces() -> None:
    schema = Draft202012Validator(call_schema([READ, EDIT], {"a.txt": ("port = 80",), "b.txt": ('say "x"',)}))

    def fits(path: str, old: str) -> bool:
        args = {"path": path, "old_string": old, "new_string": "new"}
        return schema.is_valid({"tool": "edit_file", "args": args})

    assert [fits("a.txt", "port = 80"), fits("b.txt", 'say "x"')] == [True, True]
    assert [fits("a.txt", "port"), fits("b.txt", "port = 80"), fits("c.txt", "port = 80")] == [False] * 3
    assert schema.is_valid({"tool": "read_file", "args": {"path": "c.txt"}})


def test_an_answer_is_due_after_the_same_call_succeeded_twice() -> None:
    asked, other = user("Which towns?"), called("shell", "ok", command="ls")
    once, failed = called("grep", "Rome", pattern="R"), called("grep", "no such file", failed=True, pattern="R")
    assert answer_due([asked, *once, *once])
    assert answer_due([asked, *other, *once, *once])
    cases = [[asked], [asked, *once], [asked, *once, *other], [asked, *once, *other, *once]]
    cases += [[asked, *failed, *failed], [asked, *once, *failed], [*once, *once, asked], [*once, asked, *once]]
    assert [answer_due(each) for each in cases] == [False] * len(cases)


def test_the_words_around_a_members_part_ask_for_no_call() -> None:
    role, part = Role("writer", "Writes."), SubTask("tides", "Say why the sea has tides")
    assert not call_needed([user(part_of("Say why the sea has tides", role, part, "", ((), ())))])
    assert not call_needed([user(answering("Why does the sea have tides?", role))])


def test_a_planner_is_shown_a_plan_that_can_be_carried_out() -> None:
    (told,) = told_tools([submit_tool(may_ask=True)])
    assert list(told.input_schema["properties"]) == ["goal", "subtasks"]
    call = next(text for message in examples("react", [told], MODEL) if "submit_plan" in (text := message.text))
    args = json.loads(call.partition("Action: ")[2])["args"]
    assert Draft202012Validator(told.input_schema).is_valid(args)
    plan = tidied(written(args), PlanResources({}, {}))
    assert complaints(plan, PlanResources({}, {})) == []
    assert len({step.id for step in plan.subtasks if not step.dependencies}) > 1
    assert not any("submit_plan" in message.text for message in examples("react", [SHELL], MODEL))
