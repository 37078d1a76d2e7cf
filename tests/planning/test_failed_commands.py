"""A plan is not done where a command of it failed, whatever its agents say."""

from __future__ import annotations

from pathlib import Path

import pytest

from ba_tui.core.events import MemoryChanged
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.providers.scripted import ScriptedCall, Step
from tests.planning.test_session_plans import by_plan, latest, planned, session, step
from tests.remembering.world import of, playing

PIPE = "sh -c 'echo 3 failed; exit 1' | tail -5"


@pytest.mark.parametrize("by_agent", [False, True])
async def test_a_failed_part_of_a_pipe_fails_the_step_the_plan_and_what_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_agent: bool
) -> None:
    trust_folder(tmp_path)
    ran = Step(calls=(ScriptedCall("shell", {"command": PIPE}),))
    tests = step("tests") if by_agent else step("tests", tool_name="shell", tool_args={"command": PIPE}, critical=True)
    with playing(monkeypatch) as model:
        model += [planned(tests), *(3 * [ran, Step(say="All tests pass.")] if by_agent else ())]
        model += [Step(say="No plan."), Step(say="No plan."), Step(say="All is well.")]
        talk = session(tmp_path)
        events = await by_plan(talk, "Run the tests")
        plan = latest(talk)
        assert plan.state == "partial"
        assert [each.status for each in plan.subtasks] == ["failed"]
        assert "`sh` exited 1" in plan.subtasks[0].error
        stored = [line.text for event in of(MemoryChanged, events) for line in event.stored]
        assert ["Failed: " in text and "Worked" not in text for text in stored] == [True]
        await talk.close()
