"""Plans that were cut off: what is finished stays, what changed nothing runs again, the user decides about the rest."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.effects import Effect
from ba_tui.core.events import (
    AgentStarted,
    Asked,
    Judged,
    MessageDone,
    PlanChanged,
    SubTaskChanged,
    ToolFinished,
    ToolStarted,
    TurnEnded,
)
from ba_tui.core.messages import Message, Text, ToolUse
from ba_tui.core.questions import Question
from ba_tui.core.results import ToolResult, failure
from ba_tui.core.teamwork import Plan, PlanTask, SubTask
from ba_tui.core.tool import Tool
from ba_tui.features.plans.engine.carrying import traces
from ba_tui.providers.scripted import ScriptedCall, Step
from tests.loopback import Answer, ModelServer
from tests.loopback.replies import Pace, Reply
from tests.planning.test_session_plans import READ, planned, step
from tests.program import Program

TOOL = {"tool_name": "read_file", "tool_args": {"path": "a.txt"}}
LOOK = Step(calls=(ScriptedCall("read_file", {"path": "a.txt"}),))
WRITE = Step(calls=(ScriptedCall("write_file", {"path": "b.txt", "content": "x"}),))


def test_a_plan_goes_on_after_a_kill(tmp_path: Path) -> None:
    """Killed while an agent that only read waits for its model; then as if while one that wrote does."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("the train leaves at nine\n")
    (tmp_path / "ba").mkdir()
    (tmp_path / "ba" / "config.yaml").write_text("memory: {embedder: 'off', summaries: false}\n")
    waits, end = threading.Event(), threading.Event()

    def replies() -> Iterator[Reply]:
        yield planned(READ, step("look", "times"), step("again", "look", **TOOL), step("change", "again"))
        yield LOOK
        waits.set()
        yield Answer(Step(say="Too late."), pace=Pace(hold=end))
        yield from (LOOK, Step(say="At nine."), WRITE, Step(say="Written."), Step(say="All of it."))

    with ModelServer(replies(), last=Step(say="Well.")) as server:
        ba = Program(tmp_path / "work", tmp_path, {"OPENAI_BASE_URL": server.openai_url})
        flags = ("-m", "openai/any", "--permission-mode", "accept-edits")
        running = ba.start("plan", "run", "Plan my trip", *flags)
        waited = waits.wait(30)
        running.kill()
        running.communicate()
        end.set()
        assert waited
        first = ba.here("plan", "resume", *flags, "--output-format", "json")
        asked = len(server.requests)
        # The journal ends where the agent had written its file, as if ba had been killed then.
        (journal,) = ba.journals()
        lines = journal.read_bytes().splitlines(keepends=True)
        at = max(number for number, line in enumerate(lines) if b"write_file" in line and b"tool_started" in line)
        journal.write_bytes(b"".join(lines[: at + 1]))
        shutil.rmtree(tmp_path / "ba" / "memory")
        second = ba.here("plan", "resume", *flags, "--output-format", "json")
    report = json.loads(first.stdout)
    assert (first.returncode, report["result"], report["plan"]["state"]) == (0, "All of it.", "completed")
    # Planner and two requests before the kill; four of the agents and the answer. The first step ran no second time.
    assert (asked, [call["name"] for call in report["tool_calls"]]) == (8, ["read_file", "read_file", "write_file"])
    assert "blocked" not in first.stderr
    report = json.loads(second.stdout)
    (change,) = (each for each in report["plan"]["subtasks"] if each["id"] == "change")
    why = "Interrupted after calls that may have changed something: write_file b.txt."
    assert (second.returncode, report["plan"]["state"], report["tool_calls"]) == (2, "cancelled", [])
    assert (change["status"], change["error"]) == ("blocked", why)
    assert f"is blocked. {why}" in second.stderr
    assert "Decide in the app: ba -c, then /plan resume." in second.stderr
    kept = [path for path in (tmp_path / "ba").rglob("*") if path.is_file() and path.name != "events.jsonl"]
    assert not [path for path in kept if b"Plan for: Plan my trip" in path.read_bytes()]


PLAN = Plan("plan-1", PlanTask("t", "Go"), (SubTask("a", "change it"), SubTask("b", "look", tool_name="write_file")))
AGENT = "main/general-1"
TOOLS = {
    "read_file": Tool("read_file", "", {}, None, Effect.READ),  # type: ignore[arg-type]
    "write_file": Tool("write_file", "", {}, None, Effect.WRITE),  # type: ignore[arg-type]
    "bash": Tool("bash", "", {}, None, Effect.EXECUTE),  # type: ignore[arg-type]
}
BEGAN = SubTaskChanged("plan-1", SubTask("a", "change it", status="executing", attempts=1))
STARTED = AgentStarted("general", "change it", "plan-1", agent=AGENT)


def started(name: str, agent: str = AGENT, id: str = "c1") -> ToolStarted:
    return ToolStarted(ToolUse(id, name, {}), "b.txt", agent=agent)


def allowed(profile: str = "") -> Judged:
    return Judged("c1", "bash", "allow", "mode", profile=profile, agent=AGENT)


@pytest.mark.parametrize(
    ("events", "changes"),
    [
        ([], ""),
        ([started("read_file")], ""),
        ([started("write_file")], "write_file b.txt"),
        ([started("write_file", f"{AGENT}/explore-1")], "write_file b.txt"),
        ([started("write_file", "main/general-2")], ""),
        ([started("write_file"), ToolFinished("c1", failure("permission_denied", "No."), agent=AGENT)], ""),
        ([started("write_file"), ToolFinished("c1", failure("timeout", "Late."), agent=AGENT)], "write_file b.txt"),
        ([started("write_file"), Asked("q", Question("permission", "?", call_id="c1"), agent=AGENT)], ""),
        (
            [started("bash"), allowed("reading"), Asked("q", Question("permission", "?", call_id="c1"), agent=AGENT)],
            "",
        ),
        ([started("bash")], "bash b.txt"),
        ([started("bash"), allowed("working")], "bash b.txt"),
        ([started("bash"), allowed("reading"), allowed("working")], "bash b.txt"),
        ([started("gone_tool")], "gone_tool b.txt"),
        ([started("gone_tool"), ToolFinished("c1", failure("not_found", "No tool."), agent=AGENT)], ""),
        (
            [started("write_file", id=f"c{number}") for number in range(5)],
            "write_file b.txt; write_file b.txt; write_file b.txt; and 2 more",
        ),
    ],
)
def test_a_call_counts_as_a_change_unless_it_is_certain_that_it_made_none(events: list[Any], changes: str) -> None:
    trace = traces([PlanChanged(PLAN), BEGAN, STARTED, *events], PLAN)["a"]
    assert trace.changes(TOOLS.get) == changes


def test_only_the_newest_try_counts_and_results_that_came_are_found() -> None:
    def said(text: str) -> MessageDone:
        return MessageDone(Message("assistant", (Text(text),)), agent=AGENT)

    again = SubTaskChanged("plan-1", SubTask("a", "change it", status="executing", attempts=2))
    events = [PlanChanged(PLAN), BEGAN, STARTED, started("write_file"), again, STARTED, said("Done.")]
    assert traces(events, PLAN)["a"].changes(TOOLS.get) == ""
    assert not traces(events, PLAN)["a"].ended
    assert traces([*events, TurnEnded("done", agent=AGENT)], PLAN)["a"].ended == {AGENT: "Done."}
    begun = SubTaskChanged("plan-1", SubTask("b", "look", tool_name="write_file", status="executing", attempts=1))
    call = started("write_file", "main", "plan-1.b.1")
    trace = traces([begun, call], PLAN)["b"]
    assert (trace.result, trace.changes(TOOLS.get)) == (None, "write_file b.txt")
    result = ToolResult("written")
    assert traces([begun, call, ToolFinished("plan-1.b.1", result)], PLAN)["b"].result == result
    assert traces([], PLAN) == {}
