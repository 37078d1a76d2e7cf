"""What one team does in its session: runs its members' agents, plans, carries the plan out, asks the user."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ba_tui.core.agent import ChildResult
from ba_tui.core.effects import Effect
from ba_tui.core.errors import BaError, StopTurn, StorageError
from ba_tui.core.events import Notice
from ba_tui.core.messages import clean_text
from ba_tui.core.ports.agents import Order
from ba_tui.core.questions import Option, Question, Reply
from ba_tui.core.teamwork import ASK_TEAM, BORROW, SHARE, TEAM_PLAN, AgentSpec, Conflict, Plan, PlanTask, Role, SubTask
from ba_tui.core.text.wording import clipped, one_line, sentence
from ba_tui.core.turn import Branch
from ba_tui.features.teams.engine.approvals import approved
from ba_tui.features.teams.engine.bus import MessageBus
from ba_tui.features.teams.engine.conflicts import camps
from ba_tui.features.teams.engine.jobs import Assignment, HandingOut, JobOutcome, continued
from ba_tui.features.teams.engine.leases import At, LenderTools
from ba_tui.features.teams.engine.local_members import Seat
from ba_tui.features.teams.engine.messages import Content, TaskRequest, cleaned, may_send
from ba_tui.features.teams.engine.over_redis.membership import accepted_of, items_of
from ba_tui.features.teams.engine.roles import member_spec
from ba_tui.features.teams.engine.seating import ConflictEscalation, Seats, TeamScope
from ba_tui.processes.programs import BriefRun, run_in_thread
from ba_tui.settings.sections.agents import TeamSettings

if TYPE_CHECKING:
    from ba_tui.features.plans.engine.planner import Planner

log = logging.getLogger(__name__)
KEPT = 4_000
"""Maximum characters of a report in its step; a longer one is stored, and the step refers to it."""
AT_ONCE = 50
"""Maximum subtasks that are assigned in parallel; the number of working agents has its own limit."""
NO_TOOLS = "The steps of a team are done by members; this one names a tool."
AGAIN = "Run it again"
TIMEOUT = 600.0
"""Maximum seconds of the user's escalation command."""
MOST = 65_536
LABEL = 120


class TeamWork:
    """The ``assignment`` of one team on ``branch``, over ``bus``."""

    def __init__(
        self,
        settings: TeamSettings,
        scope: TeamScope,
        seats: Seats,
        bus: MessageBus,
        assignment: Assignment,
        branch: Branch,
    ) -> None:
        self.settings = settings
        self.bus = bus
        self.assignment = assignment
        self.branch = branch
        self.items = items_of(bus, assignment.id, assignment.items)
        self.accepted = accepted_of(bus)
        self.handing_out = HandingOut(settings.patience, settings.attempts, settings.deadline)
        self.heartbeat = min(settings.heartbeat, settings.patience / 3)
        self.running = scope.agents.running
        self.attending = partial(approved, branch=branch)
        self._scope = scope
        self._seats = seats

    async def do(self, role: Role, request: TaskRequest, label: str, seat: Seat | None) -> ChildResult:
        """Run an agent of ``role`` on a request; ``label`` describes it in lists. Raises UsageError if there is no such
        agent.
        """
        spec = await asyncio.to_thread(agent_of, role, self._scope)
        order = Order(spec, _told(request), label, deadline=self.settings.deadline, max_loops=request.max_loops,
                      budget=role.budget)  # fmt: skip
        with self._seats.taken(label, seat):
            return await self._scope.agents.run(order, self.branch)

    def reads(self, role: Role) -> bool:
        """Return whether members of that role are read-only: only these work in parallel, and do critical work twice.
        Reads files.
        """
        try:
            spec = agent_of(role, self._scope)
            effect = self._scope.agents.effect(role.agent)
        except BaError:
            return False
        return effect is Effect.READ or spec.ceiling.effects <= {Effect.READ}

    def lending(self, role: Role) -> LenderTools | None:
        """Return what members of a role lend; None for nothing. Reads files."""

        async def at(work: Callable[[Branch], Awaitable[Content]]) -> Content:
            return await work(self.branch)

        return lent_by(role, self._scope, self.heartbeat, at)

    # The plan of the team: made by the model, else a sequence of the roles; and its replacement.

    async def plan(self, roles: Sequence[Role]) -> Plan:
        """Return a plan for the goal with these roles. Without a model to ask, they work one after the other."""
        goal, branch = self.assignment.goal, self.branch
        if self._scope.plan:
            return await self._scope.plan(goal, roles, branch)
        if self._scope.requests is None or len(roles) == 1:
            return planned_in_a_row(goal, roles)
        try:
            draft = await self._planner(roles).create_plan(goal, (), may_ask=False)
        except StopTurn:
            raise
        except BaError as error:
            why = sentence(str(error))
            branch.emit(Notice(f"The roles work one after the other: no plan could be made. {why}", "info"))
            return planned_in_a_row(goal, roles)
        for text in (*draft.notes, *(f"Assumed: {each}" for each in draft.plan.task.assumptions)):
            branch.emit(Notice(sentence(text), "info"))
        if not draft.plan.subtasks:
            return planned_in_a_row(goal, roles)
        return replace(draft.plan, id=f"{TEAM_PLAN}{draft.plan.id}", state="approved")

    async def _replan(self, plan: Plan, reason: str) -> Plan:
        draft = await self._planner(self.assignment.roles).replan(plan, reason, ())
        self.branch.emit(Notice(sentence(f"The team's plan is made anew: {reason}"), "info"))
        return draft.plan

    def _planner(self, roles: Sequence[Role]) -> Planner:
        from ba_tui.features.plans.engine.planner import Planner  # noqa: PLC0415 - for teams and plans alone

        assert self._scope.requests
        purposes = {role.name: role.description or role.name for role in roles}
        return Planner(partial(self._scope.requests.ask, self.branch), purposes)

    async def carry(
        self, plan: Plan, work: Callable[[SubTask, str], Awaitable[JobOutcome]], reads: Callable[[SubTask], bool]
    ) -> Plan:
        """Execute ``plan`` and emit its events; completed subtasks are not repeated.

        ``work`` has a member do a subtask, given its description with the results that it refers to. Without a planner,
        subtasks that depend on a failed one are skipped.
        """
        from ba_tui.features.plans.engine.plan_run import PlanBounds, PlanMeans, PlanRun, StepOutcome  # noqa: PLC0415 - for teams alone

        async def do(step: SubTask, prompt: str, branch: Branch) -> StepOutcome:
            done = await work(step, prompt)
            if not done.ok:
                # The subtask was assigned several times already.
                return StepOutcome(error=done.error or "it failed", agent_id=done.agent_id, hopeless=True)
            artifact = done.artifact
            if len(done.report) > KEPT and not artifact:
                artifact = await self._stored(done.report)
            text = clipped(done.report, KEPT) if artifact else done.report
            return StepOutcome(text, done.value, artifact, done.agent_id)

        async def call(step: SubTask, args: dict[str, Any], branch: Branch) -> StepOutcome:
            return StepOutcome(error=NO_TOOLS, hopeless=True)

        # Each member of a committee answers once; no plan is needed.
        planned = self._scope.requests and self.assignment.pattern != "committee"
        means = PlanMeans(call, do, reads, self._replan if planned else None, gate=self.branch.unpaused)
        return await PlanRun(plan, self.branch, means, PlanBounds(AT_ONCE)).run()

    async def _stored(self, report: str) -> str:
        """Return the reference of a stored report; empty if there is no room for it."""
        try:
            return (await asyncio.to_thread(self._scope.results.store, report, tool="team")).ref
        except StorageError:
            return ""

    def whole(self, step: SubTask) -> str:
        """Return the whole report of a subtask. Reads files."""
        if not step.artifact:
            return step.result
        try:
            return self._scope.results.path(step.artifact).read_text("utf-8", "replace")
        except (StorageError, OSError):
            return step.result

    # Questions to the user.

    async def confirm(self, text: str) -> bool:
        """Ask whether to repeat work that may have changed something before its member vanished."""
        options = (Option(AGAIN, "it may change the same things twice"), Option("Leave it", "its part is missing"))
        return (await self.branch.ask(Question("choice", text, options=options))).text.strip() == AGAIN

    async def ask(self, conflict: Conflict) -> str | None:
        """Return the value that the user chose or typed, or that the escalation command printed; None without an
        answer.
        """
        goal, escalation = self.assignment.goal, self._scope.escalation
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

        reply = await self.branch.ask(question, meanwhile if escalation.command else None)
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


def agent_of(role: Role, scope: TeamScope) -> AgentSpec:
    """Return the spec of a member's agent. Reads files. Raises UsageError."""
    assert scope.files is not None
    return member_spec(role, scope.files())


def lent_by(role: Role, scope: TeamScope, beat: float, at: At) -> LenderTools | None:
    """Return what members of a role lend of the session's tools; None for nothing. Reads files. Raises UsageError."""
    may = may_send(role, "bid") and may_send(role, "information_share")
    if not role.lends or not may:
        return None
    lent = tuple(name for name in role.lends if name not in {SHARE, ASK_TEAM, BORROW})
    return LenderTools(scope.tool, lent, agent_of(role, scope).ceiling, at, beat)


def planned_in_a_row(goal: str, roles: Sequence[Role]) -> Plan:
    """Return the plan in which each role continues the previous one's work, such as research, write, edit."""
    subtasks = list[SubTask]()
    for role in roles:
        before = tuple(each.id for each in subtasks)
        given = " ".join(f"{{{id}}}" for id in before)
        told = f"Do your part of the goal: {role.description or role.name}"
        words = f"{told} Go on from what those before you found: {given}" if before else told
        subtasks.append(SubTask(role.name.replace(":", "-"), words, dependencies=before, role=role.name))
    id = uuid.uuid4().hex[:8]
    return Plan(f"{TEAM_PLAN}{id}", PlanTask(id, goal, goal), tuple(subtasks), state="approved")


def _told(request: TaskRequest) -> str:
    parts = [request.prompt]
    if request.attempt > 1:
        parts.append(
            "An earlier attempt did not finish. It may have changed something: look before you change it again."
        )
    if request.partial:
        parts.append(continued(request.partial))
    return "\n\n".join(parts)
