"""A plan of a trip, and a fake of the port Plans that plays it step by step on the turn of a test."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from ba_tui.core.events import Event, MessageDone, PlanChanged, SubTaskChanged
from ba_tui.core.messages import Message, Text
from ba_tui.core.ports.agents import Work
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import PlanGraph
from ba_tui.core.teamwork import Plan, PlanTask, SubTask
from ba_tui.core.turn import Branch
from ba_tui.plotting.plan_exports import plan_of

TRIP = Plan(
    "plan-1",
    PlanTask("task-1", "Plan three days in Lisbon", "Plan three days in Lisbon"),
    (
        SubTask("flights", "Find flights to Lisbon", "Times and prices", role="explore"),
        SubTask("hotel", "Find a hotel near the old town", "Three hotels with prices", role="explore"),
        SubTask("food", "Collect vegetarian restaurants", tool_name="web_search", tool_args={"query": "vegetarian"}),
        SubTask("book", "Hold the cheapest hotel {hotel}", dependencies=("flights", "hotel"), critical=True),
        SubTask("day1", "Plan day 1: Alfama", dependencies=("book", "food")),
        SubTask("day2", "Plan day 2: Belém", dependencies=("book", "food")),
        SubTask("write", "Write the itinerary with costs", dependencies=("day1", "day2", "flights")),
    ),
)


def course(*done: str, executing: str = "", state: str = "running", plan: Plan = TRIP) -> list[Event]:
    """The events of a plan of which some steps are completed."""
    events: list[Event] = [PlanChanged(replace(plan, state=state), at=1_000.0)]  # type: ignore[arg-type]
    for number, id in enumerate(done, 1):
        step = plan.find(id)
        assert step
        at = 1_000.0 + number * 10
        events.append(SubTaskChanged(plan.id, replace(step, status="executing"), at=at))
        finished = replace(step, status="completed", result=f"Result of {id}.")
        events.append(SubTaskChanged(plan.id, finished, at=at + 4.2))
    if executing and (step := plan.find(executing)):
        events.append(SubTaskChanged(plan.id, replace(step, status="executing"), at=2_000.0))
    return events


class Plans:
    """Asks about TRIP and carries it out, a step whenever ``go`` lets it."""

    def __init__(self, plan: Plan = TRIP) -> None:
        self.first = plan
        self.goals: list[str] = []
        self.resumed: list[str] = []
        self.stopped = ""
        """What it says of a plan that was interrupted."""
        self.replies: list[Reply] = []
        self.carried: Sequence[str] = ()
        self.go = asyncio.Semaphore(0)

    def plan(self, goal: str) -> Work:
        self.goals.append(goal)

        async def work(branch: Branch) -> None:
            plan = self.first
            branch.emit(PlanChanged(plan))
            reply = await branch.ask(Question("plan", "Carry out this plan?", preview=PlanGraph(plan, ("A note.",))))
            self.replies.append(reply)
            if reply.choice == "deny":
                branch.emit(PlanChanged(replace(plan, state="rejected"), reason=reply.text))
                self._say(branch, "The plan was rejected.")
                return
            await self._carry_out(plan_of(reply.edited) if reply.edited else plan, branch)

        return work

    def resume(self, plan: str) -> Work:
        self.resumed.append(plan)

        async def work(branch: Branch) -> None:
            await self._carry_out(self.first, branch)

        return work

    def interrupted(self) -> str:
        return self.stopped

    def latest(self) -> Plan | None:
        return None

    async def _carry_out(self, plan: Plan, branch: Branch) -> None:
        branch.emit(PlanChanged(replace(plan, state="running")))
        for id in plan.execution_order:
            step = plan.find(id)
            assert step
            if step.status != "pending":
                continue
            branch.emit(SubTaskChanged(plan.id, replace(step, status="executing", attempts=1)))
            await self.go.acquire()
            done = replace(step, status="completed", result=f"Result of {id}.", attempts=1)
            plan = plan.updated(done)
            branch.emit(SubTaskChanged(plan.id, done))
        self.carried = plan.execution_order
        branch.emit(PlanChanged(replace(plan, state="completed")))
        self._say(branch, "All done.")

    def _say(self, branch: Branch, words: str) -> None:
        branch.emit(MessageDone(Message("assistant", (Text(words),), origin="assistant", stop="end_turn")))
