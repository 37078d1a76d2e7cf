"""``ba plan``: plans of sessions listed, shown and exported; carried out, with an exit code that says how it went."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ba_tui.core.errors import UsageError
from ba_tui.core.events import MessageDone, PlanChanged, SubTaskChanged
from ba_tui.core.messages import Message, Text
from ba_tui.core.ports.agents import Work
from ba_tui.core.services import Services
from ba_tui.core.start import Start
from ba_tui.core.teamwork import PlanState
from ba_tui.core.turn import Branch
from ba_tui.faces.headless import Printer
from ba_tui.features.plans.cli.commands import app, carry_out
from ba_tui.plotting.plan_exports import plan_of
from tests.faces.test_headless import Ready, Shelf
from tests.faces.tui.plan.course import TRIP, course
from tests.script import Script, conversation
from tests.sessions.shelf import library, stored, turn

A, B = "20261121-120000-ab12", "20261121-130000-cd34"
Ba = Callable[..., Result]


@pytest.fixture
def ba(tmp_path: Path) -> Ba:
    """Runs ``ba plan …`` over two sessions, of which one has a plan."""
    secret = replace(TRIP.subtasks[0], description="Log in with sk-ant-api03-" + "a1B2" * 20)
    plan = TRIP.updated(secret)
    stored(tmp_path, A, [*turn("Plan a trip"), *course("hotel", executing="food", plan=plan)])
    stored(tmp_path, B, turn("Something else"))
    shelf = library(tmp_path)

    def invoke(*args: str) -> Result:
        return CliRunner().invoke(app, args, obj=shelf)

    return invoke


def test_the_plans_of_sessions_are_listed_and_shown(ba: Ba) -> None:
    listed = ba("list")
    assert listed.stdout.splitlines() == [f"{A}  1 of 7 steps    running       Plan three days in Lisbon"]
    rows = json.loads(ba("list", "--json").stdout)
    assert [(row["session_id"], row["steps"], row["completed"]) for row in rows] == [(A, 7, 1)]
    shown = ba("show").stdout
    assert "running, 1 of 7 steps done" in shown
    assert "├─ ✓ Find a hotel near the old town" in shown
    assert "sk-ant" not in shown
    assert "|- + Find a hotel" in ba("show", A, "--ascii").stdout
    assert "╭──" in ba("show", "--graph").stdout
    assert len(plan_of(json.loads(ba("show", "--json").stdout)).subtasks) == 7
    refused = ba("show", B)
    assert isinstance(refused.exception, UsageError)
    assert "has no plan" in str(refused.exception)


def test_a_plan_is_exported_without_secrets(ba: Ba, tmp_path: Path) -> None:
    chart = ba("export", A).stdout
    assert chart.startswith('---\ntitle: "Plan three days in Lisbon"\n---\nflowchart TD\n')
    assert "sk-ant" not in chart
    file = tmp_path / "plan.json"
    assert ba("export", "-o", str(file)).exit_code == 0
    assert plan_of(json.loads(file.read_text())).find("food").status == "executing"  # type: ignore[union-attr]


def work(state: PlanState) -> Work:
    async def carried(branch: Branch) -> None:
        branch.emit(PlanChanged(replace(TRIP, state="running")))
        done = replace(TRIP.subtasks[0], status="completed", result="TP 571")
        branch.emit(SubTaskChanged(TRIP.id, replace(done, status="executing")))
        branch.emit(SubTaskChanged(TRIP.id, done))
        branch.emit(PlanChanged(replace(TRIP.updated(done), state=state)))
        branch.emit(MessageDone(Message("assistant", (Text("Here it is."),), stop="end_turn", origin="assistant")))

    return carried


@pytest.mark.parametrize(("state", "code"), [("completed", 0), ("partial", 2), ("rejected", 2)])
async def test_the_exit_code_says_whether_all_is_done(state: PlanState, code: int) -> None:
    out, err = io.StringIO(), io.StringIO()
    talk = conversation(Script())
    services = Services(Shelf(talk), None, Ready())  # type: ignore[arg-type]
    assert await carry_out(services, Start("/plan trip"), Printer("json", out, err), lambda _: work(state)) == code
    report = json.loads(out.getvalue())
    assert report["result"] == "Here it is."
    assert plan_of(report["plan"]).state == state
    said = err.getvalue()
    assert "Step 1 of 7 executing: Find flights to Lisbon." in said
    assert "Step 1 of 7 completed after" in said
