"""What a plan may not do: results that become commands, more than the main agent may, more than its budget."""

from __future__ import annotations

from pathlib import Path

import pytest

from ba_tui.assembly import connect
from ba_tui.core.events import Event, MemoryChanged, MessageDone, Notice, PlanChanged, SideRequest, SubTaskChanged
from ba_tui.core.messages import Message, Usage
from ba_tui.features.plans.engine.plan_run import PlanBounds, StepOutcome
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.providers.scripted import ScriptedCall, Step
from ba_tui.resources import open_places
from tests.loopback import ModelServer
from tests.planning.test_plan_run import World, found, plan, states, step
from tests.planning.test_session_plans import by_plan, latest, planned, session
from tests.planning.test_session_plans import step as submitted
from tests.remembering.world import Model, playing

USED = Usage(input=200_000)


@pytest.mark.parametrize("said", ["x; rm -rf .", "$(id)", "`id`", "a b", "--output=x", "a\nb", "'", "{b}", ""])
async def test_no_result_becomes_more_than_a_word_of_a_command(said: str):
    world = World(a=StepOutcome(said))
    run = step("b", "a", tool_name="shell", tool_args={"command": "cat 'notes/{a}'"})
    ended = await world.run(plan(step("a"), run), run=("shell",))
    assert (states(ended)["b"], world.args) == ("failed", {})
    assert "an agent does the step" in found(ended, "b").error


async def test_a_plain_word_joins_a_command_and_other_tools_get_all():
    world = World(a=StepOutcome("src/a-1.py"))
    args = {"command": "wc {a}"}
    await world.run(plan(step("a"), step("b", "a", tool_name="shell", tool_args=args)), run=("shell",))
    assert world.args["b"] == {"command": "wc src/a-1.py"}


@pytest.mark.parametrize(
    "spent",
    [SideRequest("plan", "m", USED, 2.0), MessageDone(Message("assistant", (), usage=USED), None)],
    ids=["planner", "no price"],
)
async def test_a_budget_counts_the_planner_and_holds_for_models_without_prices(spent: Event):
    world = World()
    world.branch.emit(spent)
    steps = plan(step("a", role="writer"), step("b", role="writer"))

    async def said() -> list[str]:
        world.branch.emit(spent)
        return []

    ended = await world.run(steps, PlanBounds(cost=1.5), said=said)
    assert sorted(states(ended).values()) == ["completed", "skipped"]
    assert "budget of $1.5" in "".join(each.error for each in ended.subtasks)


async def test_a_plan_does_no_more_than_the_main_agent_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder, model = tmp_path / "work", Model()
    (folder / ".ba" / "agents").mkdir(parents=True)
    (folder / ".ba" / "agents" / "looker.md").write_text(
        "---\nname: looker\ndescription: Looks.\npermissionMode: plan\n---\nYou look.\n"
    )
    trust_folder(folder)
    write = submitted("new", tool_name="write_file", tool_args={"path": "new.txt", "content": "mine"})
    model += [planned(write), Step(say="Nothing.")]
    with ModelServer(model, last=Step(say="Well.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        talk = session(folder, **{"agents.main": "looker", "permission_mode": "auto"})
        await by_plan(talk, "Write it")
        (ended,) = latest(talk).subtasks
        assert (ended.status, "limited to" in ended.error, (folder / "new.txt").exists()) == ("blocked", True, False)
        await talk.close()


async def test_no_secret_that_a_tool_read_is_in_the_plan_its_export_or_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    token = "ghp_" + "Zb7Q9xWm2LrT5vKc8NsD3fHj6PaY1eUg0RiO"
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "notes.txt").write_text(f"the key is {token}\n")
    (folder / "data.json").write_text(f'{{"key": "{token}"}}\n')
    trust_folder(folder)
    with playing(monkeypatch) as model:
        model += [
            planned(
                submitted("a", tool_name="read_file", tool_args={"path": "notes.txt"}),
                submitted("j", tool_name="shell", tool_args={"command": "cat data.json"}),
                submitted("f", tool_name="shell", tool_args={"command": "cat notes.txt; exit 3"}),
                submitted("b", "a", "j", critical=False),
            ),
            Step(calls=(ScriptedCall("read_file", {"path": "notes.txt"}),)),
            Step(say="There is a key in it."),
        ]
        talk = session(folder, permission_mode="auto")
        events = await by_plan(talk, "Look at the key")
        kept = [each for each in events if isinstance(each, PlanChanged | SubTaskChanged | MemoryChanged | Notice)]
        plan = latest(talk)
        assert plan.subtasks[0].status == "completed"
        assert token not in repr(kept)
        assert token not in repr(plan)
        assert not [each for each in model.server.requests if token in each.body.decode()]
        await talk.close()
    exported = (connect({}, folder).library.export(talk.id, format) for format in ("plan-json", "mermaid"))
    assert token not in "".join(map("".join, exported))
    # The journal holds what the user saw of the results.
    kept_in = [path for path in open_places().data.rglob("*") if path.is_file() and path.name != "events.jsonl"]
    assert not [path.name for path in kept_in if token.encode() in path.read_bytes()]
