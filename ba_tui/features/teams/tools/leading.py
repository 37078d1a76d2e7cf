"""Leads one team of a session from its order to its answer: assessed, led, archived."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ba_tui.core.agent_spec import AgentSpec
from ba_tui.core.effects import Effect
from ba_tui.core.errors import BaError, StopTurn, StorageError, UsageError
from ba_tui.core.events import Event, MessageDone, Notice, PlanChanged, SubTaskChanged, TeamChanged, TeamMessage
from ba_tui.core.messages import Message, Text, Usage
from ba_tui.core.ports.bus import MessageBus
from ba_tui.core.ports.delegation import Order
from ba_tui.core.ports.memory import Draft
from ba_tui.core.ports.teams import TeamOrder
from ba_tui.core.questions import Option, Question
from ba_tui.core.spawning import ChildResult
from ba_tui.core.teamwork.plans import Plan
from ba_tui.core.teamwork.teams import AgentMessage, Conflict, Role, Team, conflict_facts
from ba_tui.core.text.wording import count, one_line
from ba_tui.core.turn import Branch
from ba_tui.features.teams.engine.assignment import Assignment
from ba_tui.features.teams.engine.board import shared_before
from ba_tui.features.teams.engine.jobs import HandingOut
from ba_tui.features.teams.engine.leases import At, Lending
from ba_tui.features.teams.engine.member_spec import ASK_TEAM, BORROW, SHARE, member_spec
from ba_tui.features.teams.engine.messages import Content, TaskRequest, may_send
from ba_tui.features.teams.engine.open_bus import accepted_of, items_of, open_bus
from ba_tui.features.teams.engine.orchestrator import (
    COORDINATOR,
    Finished,
    Orchestrator,
    TeamMeans,
    TeamRules,
    formed,
    stated_before,
)
from ba_tui.features.teams.engine.over_redis.bus import RedisBus
from ba_tui.features.teams.engine.over_redis.server import ServerAway
from ba_tui.features.teams.engine.over_redis.state import publish_revoked
from ba_tui.features.teams.engine.prompts import continued
from ba_tui.features.teams.engine.roles import Roles
from ba_tui.features.teams.engine.seats import Seat
from ba_tui.features.teams.tools.approving import approved
from ba_tui.features.teams.tools.carrying import carrying, whole_reports
from ba_tui.features.teams.tools.escalating import asked
from ba_tui.features.teams.tools.forming import Assessment, assessed
from ba_tui.features.teams.tools.planned import planning, replanning
from ba_tui.features.teams.tools.scope import TeamScope
from ba_tui.features.teams.tools.seating import Seats
from ba_tui.settings.sections.team import TeamSettings

SCHEMA = 1
MOST_TEXT = 2_000
SAID = {"completed": "reached its goal", "partial": "did a part of its goal", "failed": "failed"}


def archived(done: Finished, *, strategy: str) -> dict[str, Any]:
    """The team as JSON, for the session's results."""
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


def summary(done: Finished) -> str:
    """The team in a line, as the person reads it at its end."""
    tokens = sum(each.tokens for outcomes in done.by.values() for each in outcomes)
    parts = [
        count(len(done.by), "member"),
        count(sum(done.messages.values()), "message"),
        count(len(done.conflicts), "conflict"),
        count(tokens, "token"),
    ]
    return f"The team {SAID.get(done.state, done.state)} in {done.seconds:.0f} s: {', '.join(parts)}."


def outcome_text(done: Finished) -> str:
    """What memory keeps: the goal, who worked on it how, and how it came out."""
    roles = ", ".join(dict.fromkeys(each.role for each in done.team.members if each.role != "lead"))
    text = (
        f"A team ({done.team.pattern}: {roles}) worked on: {one_line(done.team.goal, 300)}. It {SAID.get(done.state)}"
    )
    gaps = f"; missing: {_joined(done.answer.missing)}" if done.answer.missing else ""
    return one_line(f"{text} in {done.seconds:.0f} s{gaps}.", MOST_TEXT)


def _joined(texts: Sequence[str]) -> str:
    return "; ".join(one_line(text, 200) for text in texts[:5])


log = logging.getLogger(__name__)
AT_ONCE = 50
"""Subtasks that are handed out at the same time: how many agents work is limited elsewhere."""
AGAIN = "Run it again"
NAME = "team"
"""The model that an answer of a team names."""


class TeamFailed(BaError):
    """A team ended without any result."""

    kind = "team_failed"


class TeamIncomplete(StopTurn):
    """A team ended, and a part of its goal is missing."""

    kind = "team_incomplete"


class Leading:
    """The work of teams of one session. ``branch``: that of the team at work."""

    def __init__(self, settings: TeamSettings, scope: TeamScope, seats: Seats) -> None:
        self._settings = settings
        self._scope = scope
        self._seats = seats
        self.branch: Branch | None = None

    def check(self, chosen: Sequence[Role]) -> None:
        """Raise UsageError when these roles make too large a team; none may be chosen yet."""
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
        """One agent does it all."""
        role = found.roles[0]
        branch.emit(Notice(f"One agent works on this, {role.name}: {found.why}.", "info"))
        work = Order(await asyncio.to_thread(self._spec, role), order.goal, deadline=order.deadline)
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
        rules = TeamRules(
            HandingOut(settings.patience, settings.attempts, settings.deadline),
            settings.difference,
            min(settings.heartbeat, settings.patience / 3),
            settings.max_members,
            settings.bus_url is not None,
        )

        async def do(role: Role, request: TaskRequest, label: str, seat: Seat | None) -> ChildResult:
            spec = await asyncio.to_thread(self._spec, role)
            order = Order(spec, _told(request), label, deadline=settings.deadline, max_loops=request.max_loops,
                          budget=role.budget)  # fmt: skip
            with self._seats.taken(label, seat):
                return await self._scope.agents.run(order, branch)

        async def ask(conflict: Conflict) -> str | None:
            return await asked(conflict, assignment.goal, branch, self._scope.escalation)

        async def confirm(text: str) -> bool:
            options = (Option(AGAIN, "it may change the same things twice"), Option("Leave it", "its part is missing"))
            return (await branch.ask(Question("choice", text, options=options))).text.strip() == AGAIN

        async def at(work: Callable[[Branch], Awaitable[Content]]) -> Content:
            return await work(branch)

        # Each member of a committee answers once; there is nothing to plan.
        anew = None if assignment.pattern == "committee" else replanning(scope.requests, assignment.roles)
        means = TeamMeans(
            bus,
            do,
            scope.plan or planning(scope.requests),
            carrying(scope.results, AT_ONCE, anew),
            ask,
            scope.agents.running,
            self._reads,
            whole_reports(scope.results),
            confirm,
            items_of(bus, assignment.id, assignment.items),
            accepted_of(bus),
            lambda role: self.lending(role, rules.heartbeat, at),
            partial(approved, branch=branch),
        )
        self.branch = branch
        try:
            done = await Orchestrator(means, rules, assignment, branch).run()
        finally:
            self.branch = None
            await bus.close()
        await self._archive(done, assignment, branch)

    async def _archive(self, done: Finished, assignment: Assignment, branch: Branch) -> None:
        """Keep what the team did, and answer."""
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

    def _reads(self, role: Role) -> bool:
        """Whether a member of that role can change nothing, so that others may work beside it."""
        try:
            spec = self._spec(role)
            effect = self._scope.agents.effect(role.agent)
        except BaError:
            return False
        return effect is Effect.READ or spec.ceiling.effects <= {Effect.READ}

    def lending(self, role: Role, beat: float, at: At) -> Lending | None:
        """What members of a role lend; None for nothing. Reads files."""
        may = may_send(role, "bid") and may_send(role, "information_share")
        if not role.lends or not may:
            return None
        lent = tuple(name for name in role.lends if name not in {SHARE, ASK_TEAM, BORROW})
        return Lending(self._scope.tool, lent, self._spec(role).ceiling, at, beat)

    def _spec(self, role: Role) -> AgentSpec:
        """The agent of a member. Raises UsageError."""
        assert self._scope.files is not None
        return member_spec(role, self._scope.files())


def _told(request: TaskRequest) -> str:
    parts = [request.prompt]
    if request.attempt > 1:
        parts.append(
            "An earlier attempt did not finish. It may have changed something: look before you change it again."
        )
    if request.partial:
        parts.append(continued(request.partial))
    return "\n\n".join(parts)


async def _reached(bus: MessageBus) -> None:
    """Check that the bus answers: a team that begins without it would wait for members that nobody can reach.

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
    """The answer of the turn. Its members were paid for already."""
    message = Message("assistant", (Text(text),), usage=Usage(), stop="end_turn", model=NAME, origin="assistant")
    branch.emit(MessageDone(message, 0.0))


def _left(events: Sequence[Event], team: Team) -> tuple[Plan | None, Sequence[AgentMessage]]:
    """The newest plan that was begun after ``team`` was formed, and the messages of its members."""
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
