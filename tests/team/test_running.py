"""Teams from an order to an answer: patterns, conflicts, failures, going on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.errors import ConnectionLost, UsageError
from ba_tui.core.events import (
    AgentPaused,
    Asked,
    Event,
    SubTaskChanged,
    TeamChanged,
    TeamMessage,
    TurnEnded,
)
from ba_tui.core.provider import ModelRequest, ReplyChunk
from ba_tui.core.questions import Reply
from ba_tui.core.teamwork import Claim, Conflict, Plan, PlanTask, SubTask, TeamOrder
from ba_tui.features.teams.engine.seating import ConflictEscalation
from ba_tui.features.teams.engine.team_work import called
from tests.script import collect, says
from tests.team.house import TeamHouse, answer, settled


def fact(key: str, value: object, sure: float = 0.5, words: str = "Done.") -> Any:
    return says(f"{words}\n\nFacts:\n- {key}: {value} (confidence {sure})")


def told(house: TeamHouse, number: int) -> str:
    """What the agent that was made as the ``number``-th was asked."""
    return house.providers[number].requests[0].messages[0].text


async def forever(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
    await asyncio.Event().wait()
    yield says("never")


def ending(events: list[Event]) -> TurnEnded:
    assert isinstance(events[-1], TurnEnded)
    return events[-1]


def plan_of(*subtasks: SubTask) -> Any:
    async def planned(goal: str, roles: Any, branch: Any) -> Plan:
        return Plan("p", PlanTask("t", goal, goal), subtasks, state="approved")

    return planned


async def test_three_roles_work_one_after_the_other(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    house.plays(
        researcher=[[fact("north_orders", 412, 0.9)]],
        writer=[[fact("north_orders", 390, 0.4)]],
        editor=[[says("North had 412 orders.")]],
    )
    events = await house.team("Write about North", "researcher", "writer", "editor")
    assert answer(events) == "North had 412 orders."
    assert ending(events).reason == "done"
    (conflict,) = settled(events)
    assert conflict.winner
    assert (conflict.winner.value, conflict.winner.member) == ("412", "researcher")
    assert "north_orders: 412" in told(house, 2)
    assert "390" not in told(house, 2).split("Settled facts")[1]
    states = [event.team.state for event in events if isinstance(event, TeamChanged)]
    assert (states[0], states[-1]) == ("working", "completed")
    kinds = {event.message.type for event in events if isinstance(event, TeamMessage)}
    assert kinds == {"task_request", "status_update", "task_response"}


async def test_an_archive_and_an_outcome_are_kept(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    await house.team("Write about North", "researcher", "writer")
    (kept,) = [path for path in (tmp_path / "data").iterdir() if not path.name.startswith(".") and not path.suffix]
    archive = json.loads(kept.read_text())
    assert [each["name"] for each in archive["members"]] == ["researcher", "writer"]
    assert archive["tokens"] == 220
    assert archive["messages"]["task_response"] == 2
    assert "Write about North" in house.remembered[0]


async def test_an_answer_that_was_overruled_is_written_again(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    house.plays(
        researcher=[[fact("north_orders", 412, 0.9)]],
        writer=[[fact("north_orders", 390, 0.4)]],
        coordinator=[[says("North had 412 orders.")]],
    )
    assert answer(await house.team("Write about North", "researcher", "writer")) == "North had 412 orders."


async def test_a_committee_votes(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    house.plays(analyst=[[fact("answer", 4)], [fact("answer", 5, 0.9)], [fact("answer", 4, 0.7, "It is four.")]])
    events = await house.team("How many?", "analyst*3", pattern="committee")
    assert answer(events) == "It is four.\n\nAnswer: 4 (2 of 3 members)"
    assert len(settled(events)) == 1


async def test_a_committee_without_values_has_its_answers_merged(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    house.plays(coordinator=[[says("Both agree.")]])
    assert answer(await house.team("What do you think?", "analyst", "reviewer", pattern="committee")) == "Both agree."
    assert "Report of analyst." in told(house, 2)
    assert "Report of reviewer." in told(house, 2)


async def test_in_a_market_the_best_bid_gets_the_work(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    house.teams._scope = replace(house.teams._scope, plan=plan_of(SubTask("a", "Proofread and shorten the letter")))
    events = await house.team("A letter", "researcher", "editor", pattern="market")
    sent = [event.message for event in events if isinstance(event, TeamMessage)]
    assert {each.sender for each in sent if each.type == "bid"} == {"researcher", "editor"}
    assert [each.receiver for each in sent if each.type == "task_request"] == ["editor"]


async def test_the_person_settles_a_conflict(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    house.plays(researcher=[[fact("orders", 412)]], analyst=[[fact("orders", 390)]])

    def choose(event: Event) -> None:
        if isinstance(event, Asked):
            assert [each.label for each in event.question.options] == ["412", "390"]
            house.talk._turn.answer(event.ask_id, Reply("text", "390"))  # type: ignore[union-attr]

    events = await house.team("Count", "researcher", "analyst", "writer", conflicts="person", react=choose)
    (conflict,) = settled(events)
    assert conflict.winner
    assert conflict.winner.value == "390"
    assert "you decided" in conflict.reason


@pytest.mark.parametrize(("prints", "value"), [("390", "390"), ("a riddle", "412")])
async def test_another_person_is_called_where_nobody_attends(tmp_path: Path, prints: str, value: str) -> None:
    house = TeamHouse(tmp_path, escalate=f"cat > called.json; echo {prints}")
    house.plays(researcher=[[fact("orders", 412, 0.9)]], analyst=[[fact("orders", 390)]])

    def deny(event: Event) -> None:
        if isinstance(event, Asked):
            house.talk._turn.answer(event.ask_id, Reply("deny", by="nobody"))  # type: ignore[union-attr]

    events = await house.team("Count", "researcher", "analyst", "writer", conflicts="person", react=deny)
    (conflict,) = settled(events)
    assert conflict.winner
    assert conflict.winner.value == value
    called = json.loads((tmp_path / "called.json").read_text())
    assert (called["key"], len(called["claims"])) == ("orders", 2)


async def test_the_command_that_calls_another_person_is_told_no_secret(tmp_path: Path) -> None:
    claims = (Claim("ann", "hunter2"), Claim("ben", "391"))
    escalation = ConflictEscalation(
        "cat > called.json; echo 391",
        0,
        tmp_path,
        {"PATH": "/usr/bin:/bin"},
        redact=lambda text: text.replace("hunter2", "-"),
    )
    assert await called(Conflict("c", "key", claims), "Count hunter2", escalation) == "391"
    assert "hunter2" not in (tmp_path / "called.json").read_text()


async def test_a_silent_person_has_another_one_called(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path, escalate="echo 390")
    house.plays(researcher=[[fact("orders", 412, 0.9)]], analyst=[[fact("orders", 390)]])
    (conflict,) = settled(await house.team("Count", "researcher", "analyst", "writer", conflicts="person"))
    assert conflict.winner
    assert conflict.winner.value == "390"


async def test_a_later_voice_turns_a_majority(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    house.plays(
        researcher=[[fact("orders", 412, 0.9)]], analyst=[[fact("orders", 390)]], reviewer=[[fact("orders", 391)]]
    )
    events = await house.team("Count", "researcher", "analyst", "reviewer", "writer")
    assert [each.winner and each.winner.value for each in settled(events)] == ["412", "390"]
    assert "orders: 390" in told(house, 3)


async def test_a_verifier_joins_and_decides(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    house.plays(
        researcher=[[fact("orders", 412)]], analyst=[[fact("orders", 390)]], verifier=[[fact("orders", 391, 1.0)]]
    )
    house.teams._scope = replace(
        house.teams._scope, plan=plan_of(SubTask("a", "x", role="researcher"), SubTask("b", "x", role="analyst"))
    )
    (conflict,) = settled(await house.team("Count", "researcher", "analyst", conflicts="verifier"))
    assert conflict.winner
    assert (conflict.winner.member, conflict.winner.value) == ("verifier", "391")


async def test_failed_work_is_handed_out_again_with_what_was_found(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    house.plays(
        writer=[
            [says("A half.", ("read_file", {})), ConnectionLost("Gone.")],
            [says("  ")],
            [says("The whole.")],
        ]
    )
    events = await house.team("Write", "writer", deadline=60)
    assert answer(events) == "The whole."
    assert "A half." in told(house, 1)


async def test_a_team_that_only_fails_ends_with_an_honest_line(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    house.plays(writer=[[ConnectionLost("No route to the model.")] for _ in range(9)])
    events = await house.team("Write", "writer")
    assert ending(events).reason == "error"
    error = ending(events).error
    assert error
    assert "no result" in error.message
    assert "No route to the model." in error.message


async def test_a_part_that_fails_is_named_and_the_rest_is_given(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    house.teams._scope = replace(
        house.teams._scope,
        plan=plan_of(
            SubTask("a", "x", role="researcher"), SubTask("b", "x", role="writer"),
            SubTask("c", "x", role="writer", dependencies=("b",)),
        ),
    )  # fmt: skip
    house.plays(
        researcher=[[says("A")]], writer=[[ConnectionLost("Gone.")] for _ in range(9)], coordinator=[[says("A alone.")]]
    )
    events = await house.team("Write", "researcher", "writer")
    assert answer(events) == "A alone."
    assert ending(events).reason == "limit"
    assert "b (x)" in told(house, -1)


async def test_a_member_that_never_ends_meets_the_deadline(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path, deadline=0.6, attempts=3)
    house.plays(writer=[[forever], [says("Done.")]])
    assert answer(await house.team("Write", "writer")) == "Done."


async def test_the_deadline_of_the_team_gives_what_there_is(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    house.plays(researcher=[[says("Found.")]], writer=[[forever]])
    events = await house.team("Write", "researcher", "writer", deadline=1.0)
    assert "Found." in answer(events)
    assert "deadline of 1 s" in answer(events)
    assert ending(events).reason == "limit"


async def test_critical_work_of_readers_is_done_twice_and_the_first_result_counts(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    house.teams._scope = replace(house.teams._scope, plan=plan_of(SubTask("a", "x", role="researcher", critical=True)))
    house.plays(researcher=[[forever], [says("First.")]])
    events = await house.team("Find", "researcher*2")
    assert answer(events) == "First."
    ended = [event.reason for event in events if isinstance(event, TurnEnded) and event.agent != "main"]
    assert sorted(ended) == ["cancelled", "done"]


async def test_a_large_team_has_leads_and_its_members_pull(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    steps = [SubTask(f"s{number}", "x", role="researcher") for number in range(40)]
    house.teams._scope = replace(house.teams._scope, plan=plan_of(*steps))
    events = await house.team("Find", "researcher*20")
    team = house.teams.latest()
    assert team
    assert [each.role for each in team.members].count("lead") == 3
    workers = {event.message.sender for event in events if isinstance(event, TeamMessage)
               and event.message.type == "task_response"}  # fmt: skip
    assert len(workers) > 10
    assert ending(events).reason == "done"
    assert sum(isinstance(event, TeamChanged) for event in events) < 60


async def test_an_interrupted_team_goes_on_where_it_was(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    house.plays(researcher=[[fact("orders", 412, 0.9)]], writer=[[forever]])

    def stop(event: Event) -> None:
        if isinstance(event, SubTaskChanged) and (event.subtask.id, event.subtask.status) == ("writer", "executing"):
            house.talk._turn.cancel()  # type: ignore[union-attr]

    events = await house.team("Write", "researcher", "writer", react=stop)
    assert ending(events).reason == "cancelled"
    team = house.teams.latest()
    assert team
    assert team.state == "cancelled"
    assert {each.activity for each in team.members} <= {"idle", "cancelled"}

    later = TeamHouse(tmp_path, journal=house.journal)
    later.plays(writer=[[says("Written.")]])
    events = await collect(later.talk.say("go on", later.teams.resume()))
    assert answer(events) == "Written."
    assert [spec.name for spec, _ in later.made] == ["writer"]
    assert "orders: 412" in told(later, 0)


async def test_a_small_goal_needs_no_team(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    events = await house.team("Fix the typo")
    assert not [event for event in events if isinstance(event, TeamChanged)]
    assert answer(events).startswith("Report of")


async def test_a_goal_with_several_parts_gets_the_roles_that_fit(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    events = await house.team("Research our orders, then write a report about them, and proofread the text at the end")
    first = next(event.team for event in events if isinstance(event, TeamChanged))
    assert {each.role for each in first.members} >= {"researcher", "writer", "editor"}


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (TeamOrder("x", ("wrter",)), "no role 'wrter'"),
        (TeamOrder("  "), "goal is empty"),
        (TeamOrder("x", deadline=0), "deadline"),
        (TeamOrder("x", ("writer*50", "editor*50")), "too large"),
    ],
)
def test_a_wrong_order_is_refused_before_anything_runs(tmp_path: Path, order: TeamOrder, said: str) -> None:
    house = TeamHouse(tmp_path)
    with pytest.raises(UsageError, match=said):
        house.teams.run(order)


async def test_members_have_no_more_than_their_roles_allow(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    house.role("clerk", "---\nname: clerk\ntools: [read_file, nothing]\nmodel: test/other\n---\nRead only.\n")
    await house.team("Read", "clerk")
    spec = house.made[0][0]
    assert spec.tools == ("read_file", "nothing", "share", "ask_team", "borrow_tool")
    assert spec.ceiling.tools == frozenset({"read_file", "nothing", "share", "ask_team", "borrow_tool"})
    assert spec.prompt.endswith("Read only.")
    assert house.made[0][1] == "test/other"


async def test_nothing_goes_on_where_no_team_was(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    ended = ending(await collect(house.talk.say("go on", house.teams.resume())))
    assert ended.error
    assert "has had no team" in ended.error.message


async def test_a_paused_team_stands_still_and_goes_on(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    assert not house.teams.pause(on=True)

    def react(event: Event) -> None:
        if isinstance(event, SubTaskChanged) and (event.subtask.id, event.subtask.status) == (
            "researcher",
            "completed",
        ):
            assert house.teams.pause(on=True)
        elif isinstance(event, AgentPaused) and event.paused:
            assert [spec.name for spec, _ in house.made] == ["researcher"]
            assert house.teams.pause(on=False)

    events = await house.team("Write", "researcher", "writer", react=react)
    assert [event.paused for event in events if isinstance(event, AgentPaused)] == [True, False]
    assert ending(events).reason == "done"
