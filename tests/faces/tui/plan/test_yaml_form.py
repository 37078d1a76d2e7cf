"""A plan as YAML that a person edits: what is written is what comes back, and what is wrong names its line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ba_tui.features.plans.tui.editor import FormRefused, plan_form, read_plan, read_step, remarked, step_form
from tests.faces.tui.plan.course import TRIP


def test_an_unchanged_text_is_the_same_plan() -> None:
    assert read_plan(plan_form(TRIP), TRIP) == TRIP
    assert read_plan("# only remarks\n", TRIP) is TRIP
    for step in TRIP.subtasks:
        assert read_step(step_form(step), step) == step


def test_steps_that_are_done_stay_whatever_is_written() -> None:
    done = replace(TRIP.subtasks[0], status="completed", result="TP 571")
    plan = TRIP.updated(done)
    text = plan_form(plan)
    assert "# Done already, and kept: flights" in text
    assert "Find flights" not in text
    made = read_plan("steps:\n- id: stroll\n  does: Walk\n  after: flights\n  skip: true\n", plan)
    assert [step.id for step in made.subtasks] == ["flights", "stroll"]
    assert made.subtasks[0] == done
    assert (made.subtasks[1].dependencies, made.subtasks[1].status) == (("flights",), "skipped")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps:\n- id: a\n  does: One\n  after: [b]\n", "Line 4: after: there is no step b."),
        ("steps:\n- id: a\n  does: One\n  dose: x\n", "Line 4: dose: not known; did you mean 'does'?"),
        ("steps:\n- id: a\n  does: [x]\n", "Line 3: does: expected text."),
        ("steps:\n- id: a\n  does: One\n  args: 3\n", "Line 4: args: expected lines of `name: value`."),
        ("steps:\n- id: a\n  does: One\n  critical: maybe\n", "Line 4: critical: expected true or false."),
        ("steps:\n- id: a\n  does: 'One\n", "Line "),
        ("steps: none\n", "Line 1: steps: expected a list of steps."),
        ("steps:\n- id: a\n  does: One\n  after: b\n- id: b\n  does: Two\n  after: a\n", "wait for each other"),
    ],
)
def test_faults_name_their_line(text: str, said: str) -> None:
    with pytest.raises(FormRefused) as refused:
        read_plan(text, TRIP)
    assert said in str(refused.value)
    again = remarked(text, refused.value.found)
    # The faults stand in the text when it is opened again, and are no part of it.
    assert "#! " in again
    with pytest.raises(FormRefused, match=r"."):
        read_plan(again, TRIP)
