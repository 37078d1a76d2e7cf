"""Leads one team of a session from its order to its answer: assessment, plan, work, archive."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ba_tui.core.agent import ChildResult
from ba_tui.core.errors import BaError, StopTurn, StorageError, UsageError
from ba_tui.core.events import Event, MessageDone, Notice, PlanChanged, SubTaskChanged, TeamChanged, TeamMessage
from ba_tui.core.messages import Message, Text, Usage
from ba_tui.core.ports.agents import Order
from ba_tui.core.ports.memory import Draft
from ba_tui.core.teamwork import AgentMessage, Plan, Role, Team, TeamOrder, conflict_facts
from ba_tui.core.text.wording import count, one_line
from ba_tui.core.turn import Branch
from ba_tui.features.teams.engine.bus import MessageBus
from ba_tui.features.teams.engine.desk import shared_before
from ba_tui.features.teams.engine.jobs import Assignment
from ba_tui.features.teams.engine.orchestrator import COORDINATOR, Orchestrator, TeamResult, formed, stated_before
from ba_tui.features.teams.engine.over_redis.bus import RedisBus
from ba_tui.features.teams.engine.over_redis.membership import open_bus
from ba_tui.features.teams.engine.over_redis.server import ServerAway
from ba_tui.features.teams.engine.over_redis.state import publish_revoked
from ba_tui.features.teams.engine.roles import Assessment, Roles, assessed
from ba_tui.features.teams.engine.seating import Seats, TeamScope
from ba_tui.features.teams.engine.team_work import TeamWork, agent_of
from ba_tui.settings.sections.agents import TeamSettings

SCHEMA = 1
MOST_TEXT = 2_000
SAID = {"completed": "reached its goal", "partial": "did a part of its goal", "failed": "failed"}


def archived(done: TeamResult, *, strategy: str) -> dict[str, Any]:
    """Return the team as JSON, for the session's results."""
    roles = {each.name: each.role for each in done.team.members}
    members: list[dict[str, Any]] = [
        {
            "name": name,
            "role": roles.get(name, ""),
            "tasks": [{"ok": each.ok, "seconds": round(each.seconds, 2), "error": each.error} for each in outcomes],
            "agents": [each.agent_id for each in outcomes if each.agent_id],
            "tokens": sum(each.tokens for each in outcomes),
            "seconds": round(sum(each.seconds for each in outcomes), 2),
        }
        for name, outcomes in done.by.items()
    ]
    return {
        "schema_version": SCHEMA,
        "team": done.team.id,
        "goal": done.team.goal,
        "pattern": done.team.pattern,
        "state": done.state,
        "seconds": round(done.seconds, 2),
        "members": members,
        "messages": dict(done.messages),
        "tokens": sum(each["tokens"] for each in members),
        "strategy": strategy,
        "conflicts": [conflict_facts(each) for each in done.conflicts],
        "missing": list(done.answer.missing),
    }


def summary(done: TeamResult) -> str:
    """Return one line about the team, for the user at its end."""
    tokens = sum(each.tokens for outcomes in done.by.values() for each in outcomes)
    parts = [
        count(len(done.by), "member"),
        count(sum(done.messages.values()), "message"),
        count(len(done.conflicts), "conflict"),
        count(tokens, "token"),
    ]
    return f"The team {SAID.get(done.state, done.state)} in {done.seconds:.0f} s: {', '.join(parts)}."


def outcome_text(done: TeamResult) -> str:
    """Return the memory entry: the goal, the members and pattern, and the outcome."""
    roles = ", ".join(dict.fromkeys(each.role for each in done.team.members if each.role != "lead"))
    text = (
        f"A team ({done.team.pattern}: {roles}) worked on: {one_line(done.team.goal, 300)}. It {SAID.get(done.state)}"
    )
    gaps = f"; missing: {_joined(done.answer.missing)}" if done.answer.missing else ""
    return one_line(f"{text} in {done.seconds:.0f} s{gaps}.", MOST_TEXT)


def _joined(texts: Sequence[str]) -> str:
    return "; ".join(one_line(text, 200) for text in texts[:5])


log = logging.getLogger(__name__)
NAME = "team"
"""The model name of a team's answers."""


class TeamFailed(BaError):
    """A team ended without any result."""

    kind = "team_failed"


class TeamIncomplete(StopTurn):
    """A team ended with a part of its goal missing."""

    kind = "team_incomplete"


class TeamLeader:
    """Leads the teams of one session. ``branch``: that of the working team."""

    def __init__(self, settings: TeamSettings, scope: TeamScope, seats: Seats) -> None:
        self._settings = settings
        self._scope = scope
        self._seats = seats
        self.branch: Branch | None = None

    def check(self, chosen: Sequence[Role]) -> None:
        """Raise UsageError if these roles make too large a team; without roles they are chosen later."""
        if chosen:
            formed(chosen, self._settings.max_members)

    def _roles(self) -> Roles:
        assert self._scope.files is not None
        return Roles(self._scope.files())

    async def run(self, order: TeamOrder, chosen: tuple[Role, ...], branch: Branch) -> None:
        known = tuple(await asyncio.to_thread(self._roles().usable))
        if not chosen:
            found = await assessed(order.goal, known, self._scope.ask, branch)
            if not found.team:
                await self._alone(order, found, branch)
                return
            names = ", ".join(role.name for role in found.roles)
            branch.emit(Notice(f"A team works on this: {names} ({found.why}).", "info"))
            chosen = found.roles
        assignment = Assignment(
            order.goal, chosen, known, order.pattern or self._settings.pattern,
            order.conflicts or self._settings.conflicts, order.deadline,
        )  # fmt: skip
        await self._lead(assignment, branch)

    async def _alone(self, order: TeamOrder, found: Assessment, branch: Branch) -> None:
        """Have one agent do it all."""
        role = found.roles[0]
        branch.emit(Notice(f"One agent works on this, {role.name}: {found.why}.", "info"))
        work = Order(await asyncio.to_thread(agent_of, role, self._scope), order.goal, deadline=order.deadline)
        result = await self._scope.agents.run(work, branch)
        text = result.message.text.strip()
        if result.status != "done" and not text:
            raise TeamFailed(f"The agent ended without a result: {_why(result)}")
        _answer(branch, text)
        if result.status != "done":
            raise TeamIncomplete(f"The agent did not finish: {_why(result)}")

    async def go_on(self, branch: Branch) -> None:
        events = await self._scope.history()
        team = next((event.team for event in reversed(events) if isinstance(event, TeamChanged)), None)
        if team is None:
            raise UsageError("This session has had no team.", "Start one: ba team run GOAL.")
        if team.state in {"completed", "failed"}:
            raise UsageError("The newest team of this session has ended.", "Start a new one: ba team run GOAL.")
        plan, messages = _left(events, team)
        names = list(dict.fromkeys(each.role for each in team.members if each.role not in {"lead", COORDINATOR}))
        numbers = {name: sum(each.role == name for each in team.members) for name in names}
        chosen = await asyncio.to_thread(self._roles().named, names)
        known = await asyncio.to_thread(self._roles().usable)
        assignment = Assignment(
            team.goal, tuple(replace(role, members=numbers[role.name]) for role in chosen), tuple(known), team.pattern,
            self._settings.conflicts, None, plan, stated_before(messages), shared_before(messages), team.id,
        )  # fmt: skip
        if plan:
            done = sum(each.status == "completed" for each in plan.subtasks)
            branch.emit(Notice(f"The team goes on: {done} of {count(len(plan.subtasks), 'subtask')} done.", "info"))
        await self._lead(assignment, branch)

    async def _lead(self, assignment: Assignment, branch: Branch) -> None:
        settings, scope = self._settings, self._scope

        def tell(text: str) -> None:
            branch.emit(Notice(text, "warning"))

        bus = await asyncio.to_thread(open_bus, settings, scope.redact, tell)
        await _reached(bus)
        work = TeamWork(settings, scope, self._seats, bus, assignment, branch)
        self.branch = branch
        try:
            done = await Orchestrator(work).run()
        finally:
            self.branch = None
            await bus.close()
        await self._archive(done, assignment, branch)

    async def _archive(self, done: TeamResult, assignment: Assignment, branch: Branch) -> None:
        """Store the team's work, and answer."""
        kept = ""
        try:
            text = json.dumps(archived(done, strategy=assignment.conflicts), ensure_ascii=False, default=str, indent=1)
            kept = (await asyncio.to_thread(self._scope.results.store, text, tool=NAME)).ref
        except StorageError as error:
            log.warning("the archive of the team was not kept: %s", error)
        if self._scope.remember and done.state != "failed":
            try:
                await self._scope.remember(Draft(outcome_text(done), "outcome", origin="assistant"))
            except BaError as error:
                log.info("memory did not keep the outcome: %s", error)
        branch.emit(Notice(summary(done), "info", f"Who did what: {kept}" if kept else ""))
        why = "; ".join(done.answer.missing[:3])
        if done.state == "failed":
            raise TeamFailed(f"The team has no result. {why or 'Every member failed.'}", "The transcripts say more.")
        _answer(branch, done.answer.text)
        if done.state == "partial":
            raise TeamIncomplete(f"The team did a part of its goal. Missing: {why}")


async def _reached(bus: MessageBus) -> None:
    """Check that the bus answers: a team without it would wait for unreachable members.

    Raises StorageError. A server that is lost later is waited for.
    """
    if not isinstance(bus, RedisBus):
        return
    try:
        await bus.reach(waits=False)
        await publish_revoked(bus)
    except StorageError as error:
        await bus.close()
        if not isinstance(error, ServerAway):
            raise
        raise StorageError(str(error), "Start the server, or remove the setting team.bus_url.") from error


def _why(result: ChildResult) -> str:
    return result.error.message if result.error else result.status


def _answer(branch: Branch, text: str) -> None:
    """Answer the turn. The members' costs are counted already."""
    message = Message("assistant", (Text(text),), usage=Usage(), stop="end_turn", model=NAME, origin="assistant")
    branch.emit(MessageDone(message, 0.0))


def _left(events: Sequence[Event], team: Team) -> tuple[Plan | None, Sequence[AgentMessage]]:
    """Return the newest plan that began after ``team`` was formed, and its members' messages."""
    plan: Plan | None = None
    messages: list[AgentMessage] = []
    begun = False
    for event in events:
        match event:
            case TeamChanged(team=Team(id=id)):
                if not begun and id == team.id:
                    begun = True
            case PlanChanged(plan=changed) if begun:
                plan = changed
            case SubTaskChanged(plan=id, subtask=subtask) if plan and id == plan.id:
                plan = plan.updated(subtask)
            case TeamMessage(message=message) if message.team == team.id:
                messages.append(message)
            case _:
                pass
    if plan is None:
        return None, messages
    again = tuple(replace(each, status="pending", error="") if each.status != "completed" else each
                  for each in plan.subtasks)  # fmt: skip
    return replace(plan, subtasks=again, state="approved"), messages
