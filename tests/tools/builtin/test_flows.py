"""Workflows as tools: their steps pass the guards one by one, in a context of their own."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from ba_tui.core.questions import Reply
from ba_tui.core.results import StateChange, Table
from ba_tui.core.tool import Effect, Tool
from ba_tui.features.plans.engine.flow_run import flow_tools
from ba_tui.features.plans.engine.workflows import Flow
from ba_tui.permissions.policy import Allow, Ask
from ba_tui.permissions.verdicts import JudgedCall
from ba_tui.settings.document import Problem
from ba_tui.tools.guards.permission import GuardVerdict
from ba_tui.tools.guards.pipeline import guarded
from tests.planning.stage import parse_flow
from tests.tools.conftest import Harness


def flows(*texts: str) -> dict[str, Flow]:
    found: dict[str, Flow] = {}
    for text in texts:
        flow, problems = parse_flow(Path("flow.yaml"), dedent(text))
        assert flow, list(map(str, problems))
        found[flow.name] = flow
    return found


def _open(tool: Tool) -> Tool:
    return tool


def equipped(harness: Harness, *texts: str) -> list[Problem]:
    """Give the harness these workflows as tools; what was wrong with them."""
    made, problems = flow_tools(flows(*texts), harness.tools, lambda: harness.tools)
    harness.tools |= {tool.name: guarded(tool, _open, _open) for tool in made}
    return problems


COPY = """
name: copy
description: Copies a file.
version: 1.1
parameters:
  type: object
  properties: {source: {type: string}, target: {type: string, default: copy.txt}}
  required: [source]
steps:
- {id: read, tool: shell, args: {command: "cat {{ source }}"}, save_as: text}
- {id: write, tool: write_file, args: {path: "{{ target }}", content: "{{ text }}"}}
output: "Copied to {{ target }}"
"""


async def test_a_workflow_is_a_tool_like_any_other(harness: Harness):
    assert equipped(harness, COPY) == []
    harness.write("a.txt", "hello")
    tool = harness.tools["copy"]
    assert (tool.effect, tool.facts.version, tool.timeout) == (Effect.WRITE, "1.1", None)
    assert tool.target({"source": "a.txt"}) == "a.txt"
    result = await harness.run("copy", source="a.txt")
    assert not result.is_error, result.text
    assert result.text.startswith("Copied to copy.txt\n")
    assert "hello" in (harness.root / "copy.txt").read_text()
    assert isinstance(result.display, Table)
    wrong = await harness.run("copy", sauce="a.txt")
    assert "did you mean 'source'?" in wrong.text


async def test_each_step_is_judged_and_asked_about_on_its_own(harness: Harness):
    def judge(request: JudgedCall) -> GuardVerdict:
        return Ask("It changes files.", None) if request.tool.name == "write_file" else Allow()

    harness.equip(judge)
    equipped(harness, COPY)
    harness.write("a.txt", "hello")
    harness.answer = lambda question: Reply("deny", "not that")
    result = await harness.run("copy", source="a.txt")
    assert result.error
    assert result.error.kind == "permission_denied"
    assert "not that" in result.text
    (question,) = harness.asked
    assert (question.tool, question.args["path"]) == ("write_file", "copy.txt")
    assert question.reason == "Step write of copy. It changes files."
    assert not (harness.root / "copy.txt").exists()
    harness.answer = lambda question: Reply("once")
    assert not (await harness.run("copy", source="a.txt")).is_error
    assert (harness.root / "copy.txt").exists()


async def test_the_folder_of_a_workflow_is_its_own(harness: Harness):
    equipped(
        harness,
        """
        name: inside
        description: Looks into a folder.
        steps:
        - {tool: shell, args: {command: cd sub}}
        - {tool: shell, args: {command: pwd}, save_as: here}
        output: "{{ here }}"
        """,
    )
    harness.write("sub/x", "")
    result = await harness.run("inside")
    assert str(harness.root / "sub") in result.text
    assert harness.branch.transcript.cwd is None


async def test_a_list_that_a_step_changes_is_changed_for_the_session(harness: Harness):
    equipped(
        harness,
        """
        name: begin
        description: Makes a list.
        steps: [{tool: todo_write, args: {items: [{content: First, status: pending}]}}, {tool: todo_read}]
        """,
    )
    result = await harness.run("begin")
    assert isinstance(result.changes, StateChange)
    assert [todo.content for todo in harness.branch.transcript.todos] == ["First"]


async def test_the_same_call_in_many_rounds_is_no_going_in_circles(harness: Harness):
    equipped(
        harness,
        """
        name: again
        description: Counts.
        steps:
        - for_each: [1, 2, 3, 4]
          steps: [{tool: calculator, args: {expression: "1 + 1"}, save_as: two}]
          save_as: all
        output: "{{ all }}"
        """,
    )
    result = await harness.run("again")
    assert result.text.count("1 + 1 = 2") == 4
    assert "output" not in result.meta["flow"]
    assert harness.asked == []


async def test_the_effect_is_the_worst_of_all_steps_also_through_others(harness: Harness):
    equipped(
        harness,
        "{name: look, description: d, steps: [{tool: glob, args: {pattern: '*'}}]}",
        "{name: change, description: d, steps: [{tool: shell, args: {command: ls}}]}",
        "{name: both, description: d, steps: [{flow: look}, {flow: change}]}",
    )
    assert [harness.tools[name].effect.value for name in ("look", "change", "both")] == ["read", "write", "write"]


async def test_a_workflow_hands_its_output_as_data_to_the_one_around_it(harness: Harness):
    equipped(
        harness,
        "{name: inner, description: d, steps: [{tool: now}], output: {a: [1, 2]}}",
        "{name: outer, description: d, steps: [{flow: inner, save_as: it}], output: '{{ it.a | sum }}'}",
    )
    assert (await harness.run("outer")).text.startswith("3\n")


async def test_broken_ones_are_left_out_with_what_uses_them(harness: Harness):
    problems = equipped(
        harness,
        "{name: glob, description: d, steps: [{tool: now}]}",
        "{name: good, description: d, steps: [{tool: now}]}",
        "{name: bad, description: d, steps: [{tool: nwo}]}",
        "{name: uses_bad, description: d, steps: [{flow: bad}]}",
        "{name: ring, description: d, steps: [{flow: ring}]}",
    )
    told = "\n".join(map(str, problems))
    assert "flow.yaml:1: name: there is a tool 'glob' already; expected another name" in told
    assert "there is no tool 'nwo'; did you mean 'now'?" in told
    assert "there is no workflow 'bad'" in told
    assert "calls itself: ring → ring" in told
    assert "good" in harness.tools
    assert not {"bad", "uses_bad", "ring"} & set(harness.tools)


async def test_a_tool_that_went_away_stops_the_workflow_before_its_first_step(harness: Harness):
    equipped(harness, COPY)
    harness.write("a.txt", "hello")
    del harness.tools["write_file"]
    result = await harness.run("copy", source="a.txt")
    assert "No step was run" in result.text
    assert "there is no tool 'write_file'" in result.text
