"""Running workflows: values between steps, choices and loops, failures and taking back, gates, cancelling."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.questions import Reply
from ba_tui.core.results import Table, ToolResult
from ba_tui.core.tool import Call, Effect, Tool
from ba_tui.features.plans.engine.flow_run import run_flow
from ba_tui.sessions.artifacts import Artifacts
from tests.planning.stage import Stage

UNDO = """
steps:
- {tool: say, args: {text: a}, undo: {tool: say, args: {text: not a}}}
- for_each: [x, y]
  as: letter
  steps: [{tool: say, args: {text: "{{ letter }}"}, save_as: said, undo: {tool: say, args: {text: "not {{ said }}"}}}]
- {tool: say, args: {text: last}}
"""


async def test_values_go_from_step_to_step_with_their_type(stage: Stage):
    result = await stage.run(
        """
        steps:
        - {id: get, tool: give, args: {value: {n: 3, items: [b, a]}}, save_as: found}
        - {tool: give, args: {value: "{{ found.n + 1 }}"}, save_as: more}
        - {tool: say, args: {text: "{{ found.items | sort | join('-') }} {{ more }} {{ steps.get.ok }}"}, save_as: said}
        output: {more: "{{ more }}", items: "{{ found.items }}", said: "{{ said }}"}
        """
    )
    assert result.meta["flow"]["output"] == {"more": 4, "items": ["b", "a"], "said": "a-b 4 True"}
    assert stage.log == ["give:{'n': 3, 'items': ['b', 'a']}", "give:4", "say:a-b 4 True"]
    assert isinstance(result.display, Table)
    assert [row[:3] for row in result.display.rows] == [("get", "give", "ok"), ("2", "give", "ok"), ("3", "say", "ok")]
    assert result.summary == "3 steps"


async def test_what_a_tool_said_is_never_a_template(stage: Stage):
    result = await stage.run(
        """
        parameters: {type: object, properties: {word: {type: string}}}
        steps:
        - {tool: say, args: {text: "{{ word }}"}, save_as: said}
        - {tool: say, args: {text: "<{{ said }}>"}}
        """,
        word="{{ 7 * 7 }}",
    )
    assert not result.is_error
    assert stage.log == ["say:{{ 7 * 7 }}", "say:<{{ 7 * 7 }}>"]


async def test_parameters_have_defaults_and_are_checked(stage: Stage):
    flow = stage.flow(
        """
        parameters:
          type: object
          properties: {word: {type: string, default: hello}, times: {type: integer}}
        steps: [{tool: say, args: {text: "{{ word }} {{ times is none }}"}}]
        """
    )
    assert not (await stage.perform(flow)).is_error
    assert stage.log == ["say:hello True"]
    wrong = await stage.perform(flow, wrod="x", times="many")
    assert wrong.error
    assert wrong.error.kind == "invalid_parameters"
    assert "did you mean 'word'?" in wrong.text
    assert 'times: expected integer, got string "many"' in wrong.text
    assert len(stage.log) == 1


async def test_a_schema_is_never_fetched(stage: Stage):
    flow = stage.flow(
        "parameters: {type: object, properties: {a: {$ref: 'http://127.0.0.1:9/x'}}}\nsteps: [{approval: x}]"
    )
    assert "the schema refers to http://127.0.0.1:9/x, which is not in it" in (await stage.perform(flow, a=1)).text


async def test_nothing_runs_when_the_workflow_is_wrong(stage: Stage):
    result = await stage.run("steps:\n- {tool: say, args: {text: x}}\n- {tool: sya}")
    assert result.is_error
    assert "one.yaml:5: steps[2].tool: there is no tool 'sya'" in result.text
    assert stage.log == []


@pytest.mark.parametrize(("value", "said"), [("[1]", "yes"), ("[]", "no"), ("0", "no"), ("true", "yes")])
async def test_choices(stage: Stage, value: str, said: str):
    result = await stage.run(
        f"""
        steps:
        - {{tool: give, args: {{value: {value}}}, save_as: it}}
        - if: it
          then: [{{tool: say, args: {{text: "yes"}}, save_as: said}}]
          else: [{{tool: say, args: {{text: "no"}}, save_as: said}}]
        output: "{{{{ said }}}}"
        """
    )
    assert result.text.startswith(said)


async def test_loops_collect_what_their_last_step_saves(stage: Stage):
    result = await stage.run(
        """
        steps:
        - for_each: "{{ range(3) }}"
          as: n
          steps: [{tool: give, args: {value: "{{ n * 2 }}"}, save_as: twice}]
          save_as: all
        output: "{{ all }}"
        """
    )
    assert result.meta["flow"]["output"] == [0, 2, 4]


async def test_a_long_result_is_handed_on_whole_or_not_at_all(stage: Stage, tmp_path: Path):
    whole = json.dumps(["ä" * 1000] * 2000, ensure_ascii=False)
    artifacts = Artifacts(tmp_path)
    ref = artifacts.store(whole, kind="json").ref

    async def long(args: Mapping[str, Any], call: Call) -> ToolResult:
        return ToolResult(whole[:100], artifact=ref, kind="json")

    stage.tools["give"] = replace(stage.tools["give"], run=long)
    text = "steps: [{tool: give, args: {value: 1}, save_as: it}]\noutput: '{{ it | map(\"length\") | sum }}'"
    result = await stage.run(text)
    assert "It ran, but its whole result can't be passed on: it is too long for one result" in result.text
    stage.results = artifacts
    assert (await stage.run(text)).meta["flow"]["output"] == 2_000_000


async def test_the_note_of_a_remembered_result_is_no_part_of_it(stage: Stage):
    async def remembered(args: Mapping[str, Any], call: Call) -> ToolResult:
        return ToolResult("abc\n(From memory: the same call, 3 s ago.)", meta={"cached_s": 3})

    stage.tools["say"] = replace(stage.tools["say"], run=remembered)
    result = await stage.run("steps: [{tool: say, args: {text: x}, save_as: it}]\noutput: '{{ it }}'")
    assert result.meta["flow"]["output"] == "abc"


async def test_what_is_handed_on_is_asked_for_in_full(stage: Stage):
    asked: list[Mapping[str, Any]] = []

    async def note(args: Mapping[str, Any], call: Call) -> ToolResult:
        asked.append(args)
        return ToolResult("x")

    schema = {"type": "object", "properties": {"output_level": {"type": "string"}}}
    stage.tools["say"] = replace(stage.tools["say"], run=note, input_schema=schema)
    await stage.run(
        "steps: [{tool: say, save_as: it}, {tool: say}, {tool: say, args: {output_level: brief}, save_as: b}]"
    )
    assert asked == [{"output_level": "full"}, {}, {"output_level": "brief"}]


async def test_a_loop_over_text_says_how_to_make_a_list(stage: Stage):
    result = await stage.run(
        "steps:\n- {tool: say, args: {text: abc}, save_as: it}\n- {for_each: it, steps: [{tool: say, args: {text: x}}]}"
    )
    assert "for_each needs a list" in result.text
    assert "| lines" in result.text


async def test_a_failed_step_stops_and_what_was_done_is_undone_in_reverse(stage: Stage):
    stage.failures["last"] = 9
    result = await stage.run(UNDO)
    assert result.is_error
    assert result.error
    assert result.error.kind == "execution_error"
    assert "Step 3 of one (one.yaml:9) failed: last went wrong" in result.text
    assert stage.log == [f"say:{text}" for text in ("a", "x", "y", "last", "not y", "not x", "not a")]
    assert "- undo of 1 (say): ok" in result.text


async def test_an_undo_that_fails_does_not_stop_the_others(stage: Stage):
    stage.failures |= {"last": 9, "not y": 9}
    result = await stage.run(UNDO)
    assert stage.log[-3:] == ["say:not y", "say:not x", "say:not a"]
    assert "Could not be undone: 2.steps.1." in result.text


async def test_a_failure_may_be_passed_over(stage: Stage):
    stage.failures["a"] = 9
    result = await stage.run(
        """
        steps:
        - {id: a, tool: say, args: {text: a}, on_error: continue, save_as: it}
        - {tool: say, args: {text: "{{ it is none }} {{ steps.a.ok }} {{ steps.a.error }}"}}
        """
    )
    assert not result.is_error
    assert stage.log[-1] == "say:True False a went wrong"


@pytest.mark.parametrize(("failures", "ok"), [(0, True), (2, True), (3, False)])
async def test_a_failure_may_be_tried_again(stage: Stage, failures: int, ok: bool):
    stage.failures["a"] = failures
    result = await stage.run("steps: [{tool: say, args: {text: a}, on_error: retry(2)}]")
    assert result.is_error is not ok
    assert len(stage.log) == min(failures, 2) + 1


async def test_what_was_denied_is_not_tried_again(stage: Stage):
    result = await stage.run("steps: [{tool: deny, args: {text: a}, on_error: retry(5)}]")
    assert result.error
    assert result.error.kind == "permission_denied"
    assert stage.log == ["deny"]


async def test_other_steps_may_take_the_place_of_a_failed_one(stage: Stage):
    stage.failures["a"] = 9
    result = await stage.run(
        """
        steps:
        - id: a
          tool: say
          args: {text: a}
          save_as: it
          on_error:
          - {tool: say, args: {text: "instead of {{ steps.a.error }}"}, save_as: other}
        output: "{{ it }}"
        """
    )
    assert result.text.startswith("instead of a went wrong\n")


async def test_a_gate_waits_for_a_yes(stage: Stage):
    text = "steps:\n- {id: out, tool: say, args: {text: out}, approval: 'Send {{ 1 + 1 }}?'}"
    assert not (await stage.run(text)).is_error
    (question,) = stage.asked
    assert (question.kind, question.text, question.call_id) == ("continue", "Send 2?", "call-1")
    stage.answer = lambda question: Reply("deny", "not today")
    result = await stage.run(text)
    assert result.error
    assert result.error.kind == "permission_denied"
    assert "“Send 2?” was not approved. They said: not today" in result.text
    assert stage.log == ["say:out"]


async def test_a_denied_gate_takes_back_what_was_done(stage: Stage):
    stage.answer = lambda question: Reply("deny")
    await stage.run(
        "steps:\n- {tool: say, args: {text: a}, undo: [{tool: say, args: {text: not a}}]}\n- {approval: Go on}"
    )
    assert stage.log == ["say:a", "say:not a"]


async def test_a_question_of_a_step_names_the_step_and_belongs_to_the_workflows_call(stage: Stage):
    await stage.run("steps: [{id: check, tool: ask, args: {text: x}}]")
    (question,) = stage.asked
    assert question.call_id == "call-1"
    assert question.reason == "Step check of one. It must."


async def test_reading_steps_without_mutual_needs_run_at_once(stage: Stage):
    result = await stage.run(
        """
        steps:
        - {id: a, tool: look, args: {text: a}}
        - {id: b, tool: look, args: {text: b}, needs: []}
        - {id: c, tool: look, args: {text: c}, needs: []}
        - {id: d, tool: say, args: {text: d}, needs: [a, b, c]}
        """
    )
    assert not result.is_error
    assert stage.most_at_once == 3
    assert stage.log[-1] == "say:d"


async def test_changing_steps_run_one_at_a_time(stage: Stage):
    stage.tools["look"] = replace(stage.tools["look"], effect=Effect.WRITE)
    await stage.run("steps: [{tool: look, args: {text: a}}, {tool: look, args: {text: b}, needs: []}]")
    assert stage.most_at_once == 1


async def test_cancelling_stops_the_step_and_runs_no_other_and_undoes_nothing(stage: Stage):
    task = asyncio.create_task(
        stage.run(
            """
            steps:
            - {tool: say, args: {text: a}, undo: {tool: say, args: {text: not a}}}
            - {tool: hang, args: {text: x}, on_error: continue}
            - {tool: say, args: {text: b}}
            """
        )
    )
    await stage.entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stage.log == ["say:a"]
    assert "one was stopped. Nothing is undone. Done: 1." in stage.reported


async def test_cancelling_leaves_no_parallel_step_behind(stage: Stage):
    text = "steps: [{tool: hang, args: {text: x}, needs: []}, {tool: look, args: {text: b}, needs: []}]"
    before = asyncio.all_tasks()
    task = asyncio.create_task(stage.run(text))
    await stage.entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == before
    assert stage.log == []


async def test_workflows_within_workflows(stage: Stage):
    stage.flow(
        """
        parameters: {type: object, properties: {n: {type: integer}}, required: [n]}
        steps: [{tool: give, args: {value: "{{ n + 1 }}"}, save_as: more}]
        output: "{{ more }}"
        """,
        "two",
    )
    result = await stage.run(
        "steps: [{flow: two, args: {n: 1}, save_as: a}, {tool: two, args: {n: '{{ a }}'}, save_as: b}]\n"
        "output: '{{ b }}'"
    )
    assert result.meta["flow"]["output"] == 3


async def test_a_ring_that_was_not_known_before_is_refused_when_it_runs(stage: Stage):
    """Through a tool that is not known as a workflow."""
    flow = stage.flow("steps: [{tool: around, args: {}}]")

    async def around(args: object, call: Call) -> ToolResult:
        return await run_flow(flow, {}, call, stage.runtime)

    stage.tools["around"] = Tool("around", "", {"type": "object"}, around)
    result = await stage.perform(flow)
    assert "The workflow one calls itself: one → one." in result.text


async def test_an_output_must_fit_its_schema(stage: Stage):
    result = await stage.run(
        "steps: [{tool: say, args: {text: a}, save_as: it}]\noutput: '{{ it }}'\noutput_schema: {type: integer}"
    )
    assert result.error
    assert 'its output does not fit its schema: it: expected integer, got string "a"' in result.error.message


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__ }}",
        "{{ it.append(1) }}",
        "{{ 'a' * 10 ** 9 }}",
        "{{ 9 ** 999 }}",
        "{{ it.nothing }}",
        "{{ 1 / 0 }}",
        "{{ it.index }}",
    ],
)
async def test_a_template_cant_break_out_or_blow_up(stage: Stage, template: str):
    result = await stage.run(
        f'steps:\n- {{tool: give, args: {{value: [1]}}, save_as: it}}\n- {{tool: say, args: {{text: "{template}"}}}}'
    )
    assert result.error
    assert result.error.kind == "validation_error"
    assert len(stage.log) == 1
