"""The view of a team, and the command that starts one."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest
from textual.widgets import Static

from ba_tui.core.errors import UsageError
from ba_tui.core.events import ConflictChanged, Event, MessageDone, TeamChanged, TeamMessage, TurnEnded, TurnStarted
from ba_tui.core.messages import user
from ba_tui.core.ports.agents import Work
from ba_tui.core.start import Start
from ba_tui.core.teamwork import EVERYBODY, AgentMessage, Claim, Conflict, Member, MessageType, Team, TeamOrder
from ba_tui.core.turn import Branch
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.features.agents.tui.screen import AgentScreen
from ba_tui.features.teams.session import TeamSession
from ba_tui.features.teams.tui.screen import TeamScreen, first_line, ordered
from tests.faces.tui.agents.story import said
from tests.faces.tui.conftest import running
from tests.faces.tui.fakes import World
from tests.faces.tui.sheets import lines, shown

A = "main/analyst-1"
CLAIMS = (Claim("analyst", 41, 0.9), Claim("checker", 44, 0.6))
MEMBERS = (
    Member("analyst", "analyst", "acting", "Adds up the orders", A, 90.0),
    Member("checker", "reviewer", "idle", where="host-2"),
)
STORY: list[Event] = [
    TurnStarted(user("Count the orders"), at=1.0),
    TeamChanged(Team("t1", "Count the orders", "committee", MEMBERS, "working")),
    TeamMessage(AgentMessage("lead:3fe7", "analyst", "task_request", {"task": "Add up\nall of them"}, "t1", id="m1")),
    TeamMessage(AgentMessage("analyst", EVERYBODY, "information_share", {"text": "41 orders"}, "t1", id="m2")),
    ConflictChanged("t1", Conflict("c1", "orders", CLAIMS, "majority")),
    ConflictChanged("t1", Conflict("c1", "orders", CLAIMS, "authority", CLAIMS[0], "It read the file.")),
    TeamChanged(Team("t1", "Count the orders", "committee", MEMBERS, "completed")),
    TurnEnded("done", at=30.0),
]


async def test_members_conflicts_and_messages_are_read_from_the_session(world: World):
    world.shelf.put("old", "Old", STORY)
    async with running(world, Start(resume="old"), size=(110, 40)) as hand:
        await hand.send("/team")
        await shown(hand, TeamScreen)
        await hand.until(lambda: "Messages (2)" in lines(hand))
        told = lines(hand)
        for words in ("Adds up the orders", "checker (reviewer) on host-2", "lead → analyst  Add up all of them",
                      "analyst → everybody  41 orders", "orders: settled by authority for analyst: 41"):  # fmt: skip
            assert words in told
        assert "lead:" not in told, "ids of inboxes are for programs"
        keys = str(hand.app.screen.query_one(".keys", Static).render())
        assert keys == "Enter open · Esc close", "a team that has ended can't be paused"
        await hand.press("enter")
        await shown(hand, AgentScreen)
        await hand.press("escape", "down", "down", "enter")
        await shown(hand, InspectorScreen)
        inspected = hand.app.screen
        assert isinstance(inspected, InspectorScreen)
        assert inspected.inspected.title == "Conflict on orders"


@pytest.mark.parametrize(
    ("type", "content", "line"),
    [
        ("context_request", {"kind": "capability"}, "who lends tools?"),
        ("context_request", {"kind": "question", "query": "shell", "task": "1"}, "may shell run?"),
        ("information_share", {"kind": "answer", "value": {"choice": "deny"}, "key": "x"}, "denied"),
        ("information_share", {"kind": "lenders", "value": ["ann"], "key": "lead:1"}, "tools to borrow at ann"),
        ("information_share", {"kind": "item", "key": "orders", "value": 412}, "orders: 412"),
        (
            "information_share",
            {"kind": "leases", "key": "5c", "value": {"step": "called", "borrower": "ben", "tool": "read_file",
                                                      "about": "a.txt", "reason": ""}},
            "runs read_file for ben: a.txt",
        ),
        ("information_share", {"kind": "leases", "key": "5c", "value": {"step": 1}}, "leases"),
    ],
)  # fmt: skip
def test_messages_say_what_they_are_about(type: MessageType, content: dict[str, Any], line: str):
    assert first_line(AgentMessage("ann", "lead:1", type, content)) == line


class Fake:
    """Teams that note what they are told."""

    def __init__(self) -> None:
        self.orders: list[TeamOrder] = []

    def paused(self) -> bool:
        return False

    def run(self, order: TeamOrder) -> Work:
        self.orders.append(order)

        async def work(branch: Branch) -> None:
            branch.emit(TeamChanged(Team("t1", order.goal, "market")))
            branch.emit(MessageDone(said("41 orders.")))

        return work


async def test_a_goal_starts_a_turn_that_the_team_answers(world: World):
    teams = Fake()
    world.brain.inventory = changed(world.brain.inventory, features={TeamSession: teams})  # pyright: ignore[reportArgumentType]
    async with running(world) as hand:
        await hand.send("/team --roles analyst,checker Count the orders")
        await hand.until(lambda: "41 orders." in hand.said() and not hand.chat.turns.busy)
        assert teams.orders == [TeamOrder("Count the orders", ("analyst", "checker"))]
        assert "Count the orders" in hand.said()


def test_options_come_before_the_goal_and_wrong_ones_are_named():
    order = ordered("--roles=a,b --pattern market --conflicts verifier Find -- it")
    assert order == TeamOrder("Find -- it", ("a", "b"), "market", "verifier")
    for words, match in (("--pattern x go", "no pattern 'x'"), ("--role a go", "roles"), ("--roles a", "needs a goal")):
        with pytest.raises(UsageError, match=match):
            ordered(words)
