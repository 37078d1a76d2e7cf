"""Leads a team from its goal to its answer: forms it, assigns work, settles conflicts, combines results.

Planning and plan execution are passed in as callables. Members in this process and on other machines use the same bus.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, TypeAlias

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.agents import RunningAgent
from ba_tui.core.teamwork import AgentMessage, Claim, Conflict, Member, MessageType, Plan, Role, SubTask, Team
from ba_tui.core.text.patterns import regex
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.features.teams.engine.approvals import Attending, Requests, nobody
from ba_tui.features.teams.engine.bus import AcceptedResults, MemoryAccepted, MessageBus
from ba_tui.features.teams.engine.conflicts import DIFFERENCE, Claims, ConflictSettler, Judges, differ
from ba_tui.features.teams.engine.desk import Board, Confirming, DeskMeans, LeadDesk, no
from ba_tui.features.teams.engine.facts import StatedFact
from ba_tui.features.teams.engine.jobs import (
    Assignment,
    HandingOut,
    JobOutcome,
    TeamJob,
    facts_of,
    part_of,
    synthesizing,
    verifying,
)
from ba_tui.features.teams.engine.leases import Borrower, Lender, LenderTools
from ba_tui.features.teams.engine.local_members import LocalMember, RunTask, Seat
from ba_tui.features.teams.engine.messages import LEAD, lead_of, may_send
from ba_tui.features.teams.engine.patterns import Answer, awarded, committee, hierarchical
from ba_tui.features.teams.engine.roles import best_role
from ba_tui.features.teams.engine.shared_context import Items, MemoryItems, SharedContext
from ba_tui.features.teams.engine.watching import TeamState, TeamWatch

VERIFIER, COORDINATOR = "verifier", "coordinator"
SUBTASKS = 1_000
"""Maximum subtasks of one plan."""
SPAN = 8
"""Members that one lead watches; a larger team has sub-orchestrators."""
_REFERENCE = regex(r"\{([\w.-]+)\}")

Working: TypeAlias = Callable[[SubTask, str], Awaitable[JobOutcome]]
"""Has a member do a subtask; the text is its description with the results that it refers to."""
Reading: TypeAlias = Callable[[SubTask], bool]
"""Whether a subtask is read-only, so that other subtasks may run at the same time."""
Carrying: TypeAlias = Callable[[Plan, Working, Reading, Branch], Awaitable[Plan]]
"""Executes a plan and emits its events; completed subtasks are not repeated."""
Planning: TypeAlias = Callable[[str, Sequence[Role], Branch], Awaitable[Plan]]
"""Makes the plan for a goal with the given roles."""


@frozen
class TeamRules:
    """``difference``: see ``conflicts``; ``heartbeat`` in seconds; ``members``: maximum size of one team. ``shared``:
    other teams use the same bus, so names must include the team's id.
    """

    handing_out: HandingOut = HandingOut()
    difference: float = DIFFERENCE
    heartbeat: float = 5.0
    members: int = 50
    shared: bool = False


@frozen
class TeamMeans:
    """Callbacks of a team. ``ask`` asks the user about a conflict; None without a user. ``running``: the agents of the
    session. ``reads``: whether members of a role are read-only: only these do critical work twice, and work in
    parallel. ``whole`` returns the whole report of a subtask; both may read files. ``confirm`` and ``accepted``: see
    DeskMeans. ``items``: the store of shared items. ``lending``: what members of a role lend, None for nothing.
    ``attending`` shows the user questions from workers on other machines.
    """

    bus: MessageBus
    do: RunTask
    plan: Planning
    carry: Carrying
    ask: Callable[[Conflict], Awaitable[str | None]]
    running: Callable[[], Sequence[RunningAgent]] = tuple
    reads: Callable[[Role], bool] = lambda role: True
    whole: Callable[[SubTask], str] = lambda step: step.result
    confirm: Confirming = no
    items: Items = field(default_factory=MemoryItems)
    accepted: AcceptedResults = field(default_factory=MemoryAccepted)
    lending: Callable[[Role], LenderTools | None] = lambda role: None
    attending: Attending = nobody


@frozen
class TeamResult:
    """The outcome of a team. ``by``: the work of each member."""

    answer: Answer
    state: TeamState
    team: Team
    conflicts: tuple[Conflict, ...] = ()
    messages: Mapping[str, int] = field(default_factory=dict[str, int])
    by: Mapping[str, Sequence[JobOutcome]] = field(default_factory=dict[str, Sequence[JobOutcome]])
    seconds: float = 0.0


class Orchestrator:
    """One team at work on one branch. Use it once."""

    def __init__(self, means: TeamMeans, rules: TeamRules, assignment: Assignment, branch: Branch) -> None:
        self._means = means
        self._rules = rules
        self._branch = branch
        self.assignment = _with_verifier(assignment)
        self.roles = {role.name: role for role in self.assignment.roles}
        members = formed(self.assignment.roles, rules.members)
        if rules.shared:
            members = [(f"{name}@{assignment.id}", role) for name, role in members]
        self._local = dict(members)
        listed = tuple(Member(name, role.name, heard=time.time()) for name, role in members)
        self.watch = TeamWatch(Team(assignment.id, assignment.goal, assignment.pattern, listed), branch)
        verifiers = {name for name, role in members if role.name == VERIFIER}
        claims = Claims(assignment.id, verifiers, rules.difference)
        judges = Judges(self._authority, self._verified, self._asked)
        self.settling = ConflictSettler(claims, self.watch, assignment.conflicts, judges, rules.difference)
        self._board = Board(self._shared(lead_of(assignment.id)), means.bus, self.settling, self.watch.message)
        self._desks = self._leads(len(members))
        self._done: dict[str, list[JobOutcome]] = {}
        self._who: dict[str, str] = {}

    def _leads(self, members: int) -> list[LeadDesk]:
        """Return one lead, or the sub-orchestrators of a large team, each for eight members."""
        first, number = lead_of(self.assignment.id), -(-members // SPAN)
        names = [first] if number < 2 else [f"{first}.{index + 1}" for index in range(number)]
        means = DeskMeans(
            self._means.bus, self.settling.heard, self._means.confirm, self._means.accepted, self._board, self._may,
            self._means.attending,
        )  # fmt: skip
        made = [LeadDesk(name, means, self.watch, self._rules.handing_out) for name in names]
        if number > 1:
            leads = (Member(name, LEAD, heard=time.time()) for name in names)
            self.watch.team = replace(self.watch.team, members=(*leads, *self.watch.team.members))
        return made

    async def run(self) -> TeamResult:
        """Run the team and return its outcome, also after a failure. Raises BaError when the bus can't be used at
        all.
        """
        began, state, answer = time.monotonic(), "cancelled", Answer("")
        for name, facts in self.assignment.facts:
            self.settling.claims.state(name, facts)
        self.watch.state("working")
        for desk in self._desks:
            desk.start()
        members = [asyncio.create_task(self._serve(name, role)) for name, role in self._local.items()]
        try:
            answer = await self._answer()
            await self.settling.done()
            state = "completed" if answer.complete else "partial" if answer.text else "failed"
        finally:
            await self._close(members)
            self.watch.close(state)
        found = tuple(self.settling.claims.conflicts)
        taken = time.monotonic() - began
        return TeamResult(answer, state, self.watch.team, found, self.watch.counts, self._done, taken)

    async def _answer(self) -> Answer:
        pattern = committee if self.assignment.pattern == "committee" else hierarchical
        try:
            async with asyncio.timeout(self.assignment.deadline):
                return await self._while_hearing(pattern(self))
        except TimeoutError:
            late = f"the deadline of {self.assignment.deadline:g} s has passed"
            results = {each.member: each.report for each in self._outcomes() if each.ok}
            return Answer.unfinished(results, [late])

    async def _while_hearing(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Return the answer; raise as soon as a lead can't receive messages, for example without the secret."""
        hearing = [task for desk in self._desks for task in desk.listening]
        answering = asyncio.create_task(work)
        try:
            await asyncio.wait({answering, *hearing}, return_when=asyncio.FIRST_COMPLETED)
            for task in hearing:
                if task.done() and not answering.done():
                    task.result()
            return await answering
        finally:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)

    def _outcomes(self) -> Sequence[JobOutcome]:
        return [each for outcomes in self._done.values() for each in outcomes]

    async def _serve(self, name: str, role: Role) -> None:
        bus, do = self._means.bus, self._means.do
        patience = self._rules.handing_out.patience
        seat = Seat(Borrower(Requests(name, bus, patience)), role, self.assignment.id, self._shared(name))
        lending = await asyncio.to_thread(self._means.lending, role)
        lender = Lender(name, bus, lending) if lending else None
        member = LocalMember(seat, bus, do, lambda: list(self._means.running()), lender)
        await member.serve(self.assignment.id, self._rules.heartbeat)

    def _shared(self, member: str) -> SharedContext:
        return SharedContext(self._means.items, self._means.bus, self.assignment.id, member)

    def _may(self, member: str, type: MessageType) -> bool:
        role = self.member_role(member)
        return role is None or may_send(role, type)

    async def _close(self, members: Sequence[asyncio.Task[None]]) -> None:
        await self.settling.close()
        for desk in self._desks:
            await desk.close()
        for task in members:
            task.cancel()
        await asyncio.gather(*members, return_exceptions=True)

    # Called by patterns.

    @property
    def branch(self) -> Branch:
        return self._branch

    async def planned(self) -> Plan:
        """Return the plan of the assignment, or a new one, with a role for each subtask."""
        plan = self.assignment.plan or await self._means.plan(self.assignment.goal, self.assignment.roles, self._branch)
        if len(plan.subtasks) > SUBTASKS:
            text = f"The plan of the team has {len(plan.subtasks):,} subtasks; at most {SUBTASKS:,} are allowed."
            raise UsageError(text, "Ask for a part of it.")
        subtasks = tuple(replace(each, role=self._role(each).name) for each in plan.subtasks)
        return replace(plan, subtasks=subtasks)

    def _role(self, subtask: SubTask) -> Role:
        """Return the role that the plan names, or the one whose capabilities fit best."""
        if subtask.role in self.roles:
            return self.roles[subtask.role]
        words = f"{subtask.role} {subtask.description} {subtask.expected_output}"
        return best_role(words, self.assignment.roles) or self.assignment.roles[0]

    async def carry(self, plan: Plan, work: Working) -> Plan:
        return await self._means.carry(plan, work, lambda each: self._means.reads(self._role(each)), self._branch)

    async def work(self, subtask: SubTask, prompt: str) -> JobOutcome:
        """Have ``subtask`` done by a member of its role, or by the winning bidder in a market."""
        role = self._role(subtask)
        # Members of a committee answer independently of each other.
        facts = () if self.settling.held else self.settling.claims.facts
        listed = () if self.settling.held else await self._board.listed()
        told = part_of(self.assignment.goal, role, subtask, prompt, (facts, listed))
        job = self.job(subtask.id, role, told, _REFERENCE.sub(r"\1", subtask.description), prompt)
        job = replace(
            job,
            expected=subtask.expected_output,
            critical=subtask.critical and self._means.reads(role),
            max_loops=role.max_loops,
        )
        if self.assignment.pattern == "market":
            job = await self._bid_for(job)
        return await self.do(job)

    async def results(self, plan: Plan) -> Mapping[str, str]:
        """Return the complete results of completed subtasks, by id."""
        done = [each for each in plan.subtasks if each.status == "completed"]
        return {each.id: await asyncio.to_thread(self._means.whole, each) for each in done}

    def overruled(self, task: str) -> bool:
        """Return whether the member that did ``task`` stated another value than the settled one."""
        member, share = self._who.get(task, ""), self._rules.difference
        return any(
            each.winner
            and any(one.member == member and differ(one.value, each.winner.value, share) for one in each.claims)
            for each in self.settling.claims.conflicts
        )

    def job(self, task: str, role: Role, prompt: str, description: str, words: str = "") -> TeamJob:
        """Return a job. ``words`` describe it for its key; if empty, the prompt does, so that another prompt is another
        job.
        """
        context = {} if self.settling.held else {each.key: each.value for each in self.settling.claims.facts}
        # Members of a committee answer independently of each other.
        apart = self.assignment.pattern == "committee"
        key = self._key(task, words or prompt)
        return TeamJob(task, role.name, prompt, key, description, context=context, apart=apart)

    def _key(self, task: str, words: str) -> str:
        """Return a key that is equal for equal work, also after the team is resumed, and differs for other work."""
        digest = hashlib.sha256(words.encode("utf-8", "replace")).hexdigest()[:12]
        return f"{self.assignment.id}/{task}/{digest}"

    async def do(self, job: TeamJob) -> JobOutcome:
        """Have a job done, and compare its statements with those of other members before other work uses them."""
        desk = min(self._desks, key=lambda each: each.open)
        outcome = await desk.do(job)
        if outcome.member:
            self._done.setdefault(outcome.member, []).append(outcome)
            self._who[job.task] = outcome.member
        if outcome.ok and outcome.facts:
            await self.settling.state(outcome.member, outcome.facts)
            await self._board.keep([fact.key for fact in outcome.facts])
        return outcome

    async def _bid_for(self, job: TeamJob) -> TeamJob:
        desk = min(self._desks, key=lambda each: each.open)
        bidders = [name for name, role in self._local.items() if may_send(role, "bid")]
        won = awarded(await desk.bids(job, bidders))
        return replace(job, to=won[0], role=self._local[won[0]].name) if won else job

    async def synthesized(self, results: Mapping[str, str], missing: Sequence[str]) -> Answer:
        """Return one answer from all results, written by a coordinator; the plain results if that fails."""
        self.watch.state("synthesizing")
        known = {role.name: role for role in (*self.assignment.known, *self.assignment.roles)}
        role = known.get(COORDINATOR) or self.assignment.roles[-1]
        told = synthesizing(self.assignment.goal, results, self.settling.claims.facts, missing)
        name = f"{COORDINATOR}@{self.assignment.id}"
        member = asyncio.create_task(self._serve(name, replace(role, name=COORDINATOR)))
        self.watch.join(Member(name, COORDINATOR))
        try:
            job = self.job("answer", replace(role, name=COORDINATOR), told, "write the answer")
            outcome = await self.do(replace(job, max_loops=role.max_loops))
        finally:
            member.cancel()
            await asyncio.gather(member, return_exceptions=True)
        return Answer(outcome.report, not missing) if outcome.ok else Answer.unfinished(results, missing)

    def member_role(self, member: str) -> Role | None:
        found = self.watch.find(member)
        return self.roles.get(found.role) if found else None

    # Settling of conflicts.

    def _authority(self, member: str) -> float:
        role = self.member_role(member)
        return role.authority if role else Role("").authority

    async def _verified(self, conflict: Conflict) -> Claim | None:
        role = self.roles.get(VERIFIER)
        if role is None:
            return None
        desk = min(self._desks, key=lambda each: each.open)
        job = self.job(f"verify-{conflict.id}", role, verifying(conflict), f"verify {conflict.key}")
        outcome = await desk.do(replace(job, max_loops=role.max_loops))
        self._done.setdefault(outcome.member or VERIFIER, []).append(outcome)
        said = [each for each in outcome.facts if each.key == conflict.key]
        return Claim(outcome.member, said[-1].value, said[-1].confidence) if outcome.ok and said else None

    async def _asked(self, conflict: Conflict) -> Claim | None:
        said = await self._means.ask(conflict)
        return None if said is None else Claim("person", said, 1.0)


def formed(roles: Sequence[Role], most: int) -> list[tuple[str, Role]]:
    """Return the members of ``roles`` with their names. Raises UsageError for too many members or none."""
    if not roles:
        raise UsageError("A team needs a role.", "Name some with --roles; ba team roles lists them.")
    wanted = sum(role.members for role in roles)
    if wanted > most:
        raise UsageError(f"A team of {wanted} is too large.", f"The setting team.max_members is {most}.")
    return [
        (f"{role.name}-{number}" if role.members > 1 else role.name, role)
        for role in roles
        for number in range(1, role.members + 1)
    ]


def _with_verifier(assignment: Assignment) -> Assignment:
    """Return the roles with a verifier added, if the strategy needs one."""
    if assignment.conflicts != "verifier" or any(role.name == VERIFIER for role in assignment.roles):
        return assignment
    known = next((role for role in assignment.known if role.name == VERIFIER), None)
    return replace(assignment, roles=(*assignment.roles, known)) if known else assignment


def stated_before(messages: Sequence[AgentMessage]) -> tuple[tuple[str, tuple[StatedFact, ...]], ...]:
    """Return the facts that members stated in an earlier run, read from its messages."""

    found: list[tuple[str, tuple[StatedFact, ...]]] = []
    for each in messages:
        if each.type == "task_response":
            with contextlib.suppress(UsageError):
                found.append((each.sender, facts_of(each)))
    return tuple(found)
