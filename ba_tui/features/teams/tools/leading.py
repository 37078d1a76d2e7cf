"""Leads one team of a session from its order to its answer: assessment, plan, work, archive."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from ba_tui.core.agent import ChildResult
from ba_tui.core.effects import Effect
from ba_tui.core.errors import BaError, StopTurn, StorageError, UsageError
from ba_tui.core.events import Event, MessageDone, Notice, PlanChanged, SubTaskChanged, TeamChanged, TeamMessage
from ba_tui.core.messages import Message, Text, Usage, clean_text
from ba_tui.core.ports.agents import Order
from ba_tui.core.ports.memory import Draft
from ba_tui.core.questions import Option, Question, Reply
from ba_tui.core.teamwork import (
    ASK_TEAM,
    BORROW,
    SHARE,
    AgentMessage,
    AgentSpec,
    Conflict,
    Plan,
    Role,
    SubTask,
    Team,
    TeamOrder,
    conflict_facts,
)
from ba_tui.core.text.wording import clipped, count, one_line, sentence
from ba_tui.core.turn import Branch
from ba_tui.features.teams.engine.approvals import approved
from ba_tui.features.teams.engine.bus import MessageBus
from ba_tui.features.teams.engine.conflicts import camps
from ba_tui.features.teams.engine.desk import shared_before
from ba_tui.features.teams.engine.jobs import Assignment, HandingOut, continued
from ba_tui.features.teams.engine.leases import At, LenderTools
from ba_tui.features.teams.engine.messages import Content, TaskRequest, cleaned, may_send
from ba_tui.features.teams.engine.open_bus import accepted_of, items_of, open_bus
from ba_tui.features.teams.engine.orchestrator import (
    COORDINATOR,
    Carrying,
    Orchestrator,
    Reading,
    TeamMeans,
    TeamResult,
    TeamRules,
    Working,
    formed,
    stated_before,
)
from ba_tui.features.teams.engine.over_redis.bus import RedisBus
from ba_tui.features.teams.engine.over_redis.server import ServerAway
from ba_tui.features.teams.engine.over_redis.state import publish_revoked
from ba_tui.features.teams.engine.roles import Roles, member_spec
from ba_tui.features.teams.engine.seats import Seat
from ba_tui.features.teams.tools.forming import Assessment, assessed, of_team, planned_in_a_row
from ba_tui.features.teams.tools.seating import ConflictEscalation, Seats, TeamScope
from ba_tui.processes.programs import BriefRun, run_in_thread
from ba_tui.sessions.artifacts import Artifacts
from ba_tui.settings.sections.agents import TeamSettings
from ba_tui.tools.toolbox import ModelRequests

if TYPE_CHECKING:
    from ba_tui.features.teams.engine.orchestrator import Planning


# Executes the plan of a team with the executor of plans; members do the steps.

KEPT = 4_000
"""Maximum characters of a report in its step; a longer one is stored, and the step refers to it."""
Replanning: TypeAlias = Callable[[Plan, str, Branch], Awaitable[Plan]]
"""Replaces a plan, for a reason; completed steps are kept. Raises BaError."""
NO_TOOLS = "The steps of a team are done by members; this one names a tool."


def carrying(results: Artifacts, at_once: int, replanning: Replanning | None = None) -> Carrying:
    """Return the function that executes plans, with at most ``at_once`` parallel read-only subtasks. ``replanning``
    replaces a plan with a failed subtask; None: subtasks that depend on it are skipped.
    """

    async def carry(plan: Plan, work: Working, reads: Reading, branch: Branch) -> Plan:
        from ba_tui.features.plans.engine.plan_run import PlanBounds, PlanMeans, PlanRun, StepOutcome  # noqa: PLC0415 - for teams alone

        async def do(step: SubTask, prompt: str, branch: Branch) -> StepOutcome:
            done = await work(step, prompt)
            if not done.ok:
                # The subtask was assigned several times already.
                return StepOutcome(error=done.error or "it failed", agent_id=done.agent_id, hopeless=True)
            artifact = done.artifact
            if len(done.report) > KEPT and not artifact:
                artifact = await _stored(done.report, results)
            text = clipped(done.report, KEPT) if artifact else done.report
            return StepOutcome(text, done.value, artifact, done.agent_id)

        async def call(step: SubTask, args: dict[str, Any], branch: Branch) -> StepOutcome:
            return StepOutcome(error=NO_TOOLS, hopeless=True)

        async def anew(plan: Plan, reason: str) -> Plan:
            assert replanning
            return await replanning(plan, reason, branch)

        means = PlanMeans(call, do, reads, anew if replanning else None, gate=branch.unpaused)
        return await PlanRun(plan, branch, means, PlanBounds(at_once)).run()

    return carry


async def _stored(report: str, results: Artifacts) -> str:
    """Return the reference of a stored report; empty if there is no room for it."""
    try:
        return (await asyncio.to_thread(results.store, report, tool="team")).ref
    except StorageError:
        return ""


def whole_reports(results: Artifacts) -> Callable[[SubTask], str]:
    """Return a function that returns the whole report of a subtask. Reads files."""

    def whole(step: SubTask) -> str:
        if not step.artifact:
            return step.result
        try:
            return results.path(step.artifact).read_text("utf-8", "replace")
        except (StorageError, OSError):
            return step.result

    return whole


# The plan of a team: made by the model, else a sequence of the roles; and its replacement.


def planning(requests: ModelRequests | None) -> Planning:
    """Return the function that makes plans with ``requests`` to the session's model; without any, roles work in
    sequence.
    """

    async def plan(goal: str, roles: Sequence[Role], branch: Branch) -> Plan:
        if requests is None or len(roles) == 1:
            return await planned_in_a_row(goal, roles, branch)
        from ba_tui.features.plans.engine.planner import Planner  # noqa: PLC0415 - for teams and plans alone

        try:
            draft = await Planner(partial(requests.ask, branch), described(roles)).create_plan(goal, (), may_ask=False)
        except StopTurn:
            raise
        except BaError as error:
            why = sentence(str(error))
            branch.emit(Notice(f"The roles work one after the other: no plan could be made. {why}", "info"))
            return await planned_in_a_row(goal, roles, branch)
        for text in (*draft.notes, *(f"Assumed: {each}" for each in draft.plan.task.assumptions)):
            branch.emit(Notice(sentence(text), "info"))
        if not draft.plan.subtasks:
            return await planned_in_a_row(goal, roles, branch)
        return replace(of_team(draft.plan), state="approved")

    return plan


def replanning(requests: ModelRequests | None, roles: Sequence[Role]) -> Replanning | None:
    """Return the function that replaces plans; None if no model can be asked."""
    if requests is None:
        return None

    async def replan(plan: Plan, reason: str, branch: Branch) -> Plan:
        from ba_tui.features.plans.engine.planner import Planner  # noqa: PLC0415 - see planning

        draft = await Planner(partial(requests.ask, branch), described(roles)).replan(plan, reason, ())
        branch.emit(Notice(sentence(f"The team's plan is made anew: {reason}"), "info"))
        return draft.plan

    return replan


def described(roles: Sequence[Role]) -> dict[str, str]:
    return {role.name: role.description or role.name for role in roles}


# Asks the user about a conflict, and runs the user's escalation command if there is no answer.

TIMEOUT = 600.0
"""Maximum seconds of the command."""
MOST = 65_536
LABEL = 120


async def asked(conflict: Conflict, goal: str, branch: Branch, escalation: ConflictEscalation) -> str | None:
    """Return the value that the user chose or typed, or that the command printed; None without an answer."""
    options = [(f"{camp[0].value}", ", ".join(each.member for each in camp)) for camp in camps(conflict.claims)]
    question = Question(
        "choice",
        f"Members disagree about {conflict.key}. Which value counts?",
        options=tuple(Option(one_line(value, LABEL), f"says {who}") for value, who in options),
    )

    async def meanwhile() -> Reply:
        await asyncio.sleep(escalation.after)
        if (said := await called(conflict, goal, escalation)) is not None:
            return Reply("text", said, by="hook")
        return await asyncio.Event().wait() and Reply("deny")  # pragma: no cover - the user is waited for

    reply = await branch.ask(question, meanwhile if escalation.command else None)
    if reply.choice == "deny" and reply.by == "nobody":
        # Without a user here, the command is the only way to ask.
        return await called(conflict, goal, escalation) if escalation.command else None
    text = reply.text.strip()
    if reply.choice == "deny" or not text:
        return None
    return next((value for value, _ in options if one_line(value, LABEL) == text), text)


async def called(conflict: Conflict, goal: str, escalation: ConflictEscalation) -> str | None:
    """Return the first line of the command's output if it is one of the values. Failures are logged."""
    facts = {
        "event": "conflict",
        "goal": goal,
        "session_id": escalation.session,
        "key": conflict.key,
        "question": f"Members disagree about {conflict.key}. Which value counts?",
        "claims": [asdict(claim) for claim in conflict.claims],
    }
    shell = shutil.which("bash") or "/bin/sh"
    run = BriefRun(
        (shell, "-c", escalation.command), TIMEOUT, escalation.folder, escalation.environment,
        json.dumps(cleaned(facts, escalation.redact), default=str).encode(), MOST,
    )  # fmt: skip
    try:
        done = await run_in_thread(run)
    except (OSError, ValueError) as error:
        log.warning("team.escalate could not be started: %s", error)
        return None
    if done.code != 0:
        log.warning("team.escalate failed (%s): %s", done.trouble or done.code, one_line(_text(done.errors), 200))
        return None
    lines = _text(done.output).strip().splitlines()
    values = {str(claim.value).strip().casefold(): str(claim.value) for claim in conflict.claims}
    return values.get(lines[0].strip().casefold()) if lines else None


def _text(data: bytes) -> str:
    return clean_text(data.decode("utf-8", "replace"))


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
AT_ONCE = 50
"""Maximum subtasks that are assigned in parallel; the number of working agents has its own limit."""
AGAIN = "Run it again"
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

        # Each member of a committee answers once; no plan is needed.
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

    def _reads(self, role: Role) -> bool:
        """Return whether members of that role are read-only, so that others may work in parallel."""
        try:
            spec = self._spec(role)
            effect = self._scope.agents.effect(role.agent)
        except BaError:
            return False
        return effect is Effect.READ or spec.ceiling.effects <= {Effect.READ}

    def lending(self, role: Role, beat: float, at: At) -> LenderTools | None:
        """Return what members of a role lend; None for nothing. Reads files."""
        may = may_send(role, "bid") and may_send(role, "information_share")
        if not role.lends or not may:
            return None
        lent = tuple(name for name in role.lends if name not in {SHARE, ASK_TEAM, BORROW})
        return LenderTools(self._scope.tool, lent, self._spec(role).ceiling, at, beat)

    def _spec(self, role: Role) -> AgentSpec:
        """Return the spec of a member's agent. Raises UsageError."""
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
