"""Leads a team from its goal to its answer: forms it, assigns work, settles conflicts, combines results.

Patterns: hierarchical, committee, market. Members in this process and on other machines use the same bus.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from ba_tui.core.errors import UsageError
from ba_tui.core.teamwork import (
    TEAM_PLAN,
    AgentMessage,
    Claim,
    Conflict,
    Member,
    MessageType,
    Plan,
    PlanTask,
    Role,
    SubTask,
    Team,
)
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.teams.engine.approvals import Requests
from ba_tui.features.teams.engine.conflicts import Claims, ConflictSettler, Judges, StatedFact, differ
from ba_tui.features.teams.engine.desk import Board, DeskMeans, LeadDesk
from ba_tui.features.teams.engine.jobs import (
    ANSWER,
    Assignment,
    JobOutcome,
    TeamJob,
    answering,
    facts_of,
    part_of,
    synthesizing,
    verifying,
)
from ba_tui.features.teams.engine.leases import Borrower, Lender
from ba_tui.features.teams.engine.local_members import LocalMember, Seat
from ba_tui.features.teams.engine.messages import LEAD, Bid, lead_of, may_send
from ba_tui.features.teams.engine.roles import best_role
from ba_tui.features.teams.engine.shared_context import SharedContext
from ba_tui.features.teams.engine.team_work import TeamWork
from ba_tui.features.teams.engine.watching import TeamState, TeamWatch

VERIFIER, COORDINATOR = "verifier", "coordinator"
SUBTASKS = 1_000
"""Maximum subtasks of one plan."""
SPAN = 8
"""Members that one lead watches; a larger team has sub-orchestrators."""
_REFERENCE = regex(r"\{([\w.-]+)\}")


@frozen
class Answer:
    """The answer of a team. ``complete``: no part is missing. ``missing`` says what is."""

    text: str
    complete: bool = True
    missing: tuple[str, ...] = ()

    @staticmethod
    def unfinished(results: Mapping[str, str], missing: Sequence[str]) -> Answer:
        """Return the answer if no model could write one: the plain results, and a list of the missing ones."""
        parts = [f"**{name}**\n\n{text}" for name, text in results.items()]
        if missing and results:
            parts.append("Not done:\n" + "\n".join(f"- {each}" for each in missing))
        return Answer("\n\n".join(parts), complete=not missing and bool(results), missing=tuple(missing))


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

    def __init__(self, work: TeamWork) -> None:
        self._work = work
        self._share = work.settings.difference
        self.assignment = assignment = _with_verifier(work.assignment)
        self.roles = {role.name: role for role in assignment.roles}
        members = formed(assignment.roles, work.settings.max_members)
        if work.settings.bus_url is not None:
            # Other teams use the same server.
            members = [(f"{name}@{assignment.id}", role) for name, role in members]
        self._local = dict(members)
        listed = tuple(Member(name, role.name, heard=time.time()) for name, role in members)
        self.watch = TeamWatch(Team(assignment.id, assignment.goal, assignment.pattern, listed), work.branch)
        verifiers = {name for name, role in members if role.name == VERIFIER}
        claims = Claims(assignment.id, verifiers, self._share)
        judges = Judges(self._authority, self._verified, self._asked)
        self.settling = ConflictSettler(claims, self.watch, assignment.conflicts, judges, self._share)
        self._board = Board(self._shared(lead_of(assignment.id)), work.bus, self.settling, self.watch.message)
        self._desks = self._leads(len(members))
        self._done: dict[str, list[JobOutcome]] = {}
        self._who: dict[str, str] = {}

    def _leads(self, members: int) -> list[LeadDesk]:
        """Return one lead, or the sub-orchestrators of a large team, each for eight members."""
        first, number = lead_of(self.assignment.id), -(-members // SPAN)
        names = [first] if number < 2 else [f"{first}.{index + 1}" for index in range(number)]
        means = DeskMeans(
            self._work.bus, self.settling.heard, self._work.confirm, self._work.accepted, self._board, self._may,
            self._work.attending,
        )  # fmt: skip
        made = [LeadDesk(name, means, self.watch, self._work.handing_out) for name in names]
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
        try:
            async with asyncio.timeout(self.assignment.deadline):
                return await self._while_hearing(self._committee() if self._apart else self._hierarchical())
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
        work, bus = self._work, self._work.bus
        patience = work.handing_out.patience
        seat = Seat(Borrower(Requests(name, bus, patience)), role, self.assignment.id, self._shared(name))
        lending = await asyncio.to_thread(work.lending, role)
        lender = Lender(name, bus, lending) if lending else None
        member = LocalMember(seat, bus, work.do, work.running, lender)
        await member.serve(self.assignment.id, work.heartbeat)

    def _shared(self, member: str) -> SharedContext:
        return SharedContext(self._work.items, self._work.bus, self.assignment.id, member)

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

    @property
    def _apart(self) -> bool:
        """Return whether members answer independently of each other."""
        return self.assignment.pattern == "committee"

    # Hierarchical: a manager assigns the subtasks of one plan to workers and combines their results.

    async def _hierarchical(self) -> Answer:
        """Return the result of the plan's last subtask if all others lead to it and none of it was overruled by a
        settled conflict; else an answer from all results.
        """
        plan = await self._carry(await self._planned(), self._do_subtask)
        results, missing = await self._results(plan), missing_of(plan)
        if not results:
            return Answer("", complete=False, missing=tuple(missing))
        needed = {id for each in plan.subtasks for id in each.dependencies}
        last = [each for each in plan.subtasks if each.id not in needed]
        if not missing and len(last) == 1 and not self._overruled(last[0].id):
            return Answer(results[last[0].id])
        return await self._synthesized(results, missing)

    # Committee: every member answers independently; comparable answers are put to the vote, others are merged.

    async def _committee(self) -> Answer:
        """Return the report of a member whose answer won the vote; without countable votes, an answer from all
        reports.
        """
        said: dict[str, JobOutcome] = {}

        async def work(subtask: SubTask, prompt: str) -> JobOutcome:
            outcome = said[subtask.id] = await self._do_subtask(subtask, prompt)
            return outcome

        # Votes are counted once all members have answered.
        self.settling.held = True
        plan = await self._carry(self.assignment.plan or self._plan_of_answers(), work)
        results, missing = await self._results(plan), missing_of(plan)
        if not results:
            return Answer("", complete=False, missing=tuple(missing))
        await self.settling.release()
        if (voted := self._voted(said)) and len(said) == len(results):
            return Answer(voted, complete=not missing, missing=tuple(missing))
        if len(results) == 1:
            return Answer(next(iter(results.values())), not missing, tuple(missing))
        return await self._synthesized(results, missing)

    def _plan_of_answers(self) -> Plan:
        """Return a plan with one independent subtask per member."""
        goal, id = self.assignment.goal, self.assignment.id
        subtasks = tuple(
            SubTask(f"{role.name}-{number}", answering(goal, role), role=role.name)
            for role in self.assignment.roles
            for number in range(1, role.members + 1)
        )
        return Plan(f"{TEAM_PLAN}{id}", PlanTask(id, goal, goal), subtasks, state="approved")

    def _voted(self, said: Mapping[str, JobOutcome]) -> str:
        """Return the report behind the winning answer; empty if members stated none."""
        stated = {
            id: next((fact for fact in reversed(outcome.facts) if fact.key == ANSWER), None)
            for id, outcome in said.items()
            if outcome.ok
        }
        counts = next((fact for fact in self.settling.claims.facts if fact.key == ANSWER), None)
        if len(stated) < 2 or not all(stated.values()) or counts is None:
            return ""
        found = [id for id, fact in stated.items() if fact and not differ(fact.value, counts.value)]
        best = max(found, key=lambda id: next(f.confidence for f in said[id].facts if f.key == ANSWER), default="")
        if not best:
            # The user chose a value that no member stated.
            return f"{ANSWER}: {counts.value}"
        return f"{said[best].report}\n\nAnswer: {counts.value} ({len(found)} of {len(stated)} members)"

    # Both patterns.

    async def _planned(self) -> Plan:
        """Return the plan of the assignment, or a new one, with a role for each subtask."""
        plan = self.assignment.plan or await self._work.plan(self.assignment.roles)
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

    async def _carry(self, plan: Plan, work: Callable[[SubTask, str], Awaitable[JobOutcome]]) -> Plan:
        return await self._work.carry(plan, work, lambda each: self._work.reads(self._role(each)))

    async def _do_subtask(self, subtask: SubTask, prompt: str) -> JobOutcome:
        """Have ``subtask`` done by a member of its role, or by the winning bidder in a market."""
        role = self._role(subtask)
        # Members of a committee answer independently of each other.
        facts = () if self.settling.held else self.settling.claims.facts
        listed = () if self.settling.held else await self._board.listed()
        told = part_of(self.assignment.goal, role, subtask, prompt, (facts, listed))
        job = self._job(subtask.id, role, told, _REFERENCE.sub(r"\1", subtask.description), prompt)
        job = replace(
            job,
            expected=subtask.expected_output,
            critical=subtask.critical and self._work.reads(role),
            max_loops=role.max_loops,
        )
        if self.assignment.pattern == "market":
            job = await self._bid_for(job)
        return await self._do(job)

    async def _results(self, plan: Plan) -> Mapping[str, str]:
        """Return the complete results of completed subtasks, by id."""
        done = [each for each in plan.subtasks if each.status == "completed"]
        return {each.id: await asyncio.to_thread(self._work.whole, each) for each in done}

    def _overruled(self, task: str) -> bool:
        """Return whether the member that did ``task`` stated another value than the settled one."""
        member, share = self._who.get(task, ""), self._share
        return any(
            each.winner
            and any(one.member == member and differ(one.value, each.winner.value, share) for one in each.claims)
            for each in self.settling.claims.conflicts
        )

    def _job(self, task: str, role: Role, prompt: str, description: str, words: str = "") -> TeamJob:
        """Return a job. ``words`` describe it for its key; if empty, the prompt does, so that another prompt is another
        job.
        """
        context = {} if self.settling.held else {each.key: each.value for each in self.settling.claims.facts}
        key = self._key(task, words or prompt)
        return TeamJob(task, role.name, prompt, key, description, context=context, apart=self._apart)

    def _key(self, task: str, words: str) -> str:
        """Return a key that is equal for equal work, also after the team is resumed, and differs for other work."""
        digest = hashlib.sha256(words.encode("utf-8", "replace")).hexdigest()[:12]
        return f"{self.assignment.id}/{task}/{digest}"

    async def _do(self, job: TeamJob) -> JobOutcome:
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

    async def _synthesized(self, results: Mapping[str, str], missing: Sequence[str]) -> Answer:
        """Return one answer from all results, written by a coordinator; the plain results if that fails."""
        self.watch.state("synthesizing")
        known = {role.name: role for role in (*self.assignment.known, *self.assignment.roles)}
        role = known.get(COORDINATOR) or self.assignment.roles[-1]
        told = synthesizing(self.assignment.goal, results, self.settling.claims.facts, missing)
        name = f"{COORDINATOR}@{self.assignment.id}"
        member = asyncio.create_task(self._serve(name, replace(role, name=COORDINATOR)))
        self.watch.join(Member(name, COORDINATOR))
        try:
            job = self._job("answer", replace(role, name=COORDINATOR), told, "write the answer")
            outcome = await self._do(replace(job, max_loops=role.max_loops))
        finally:
            member.cancel()
            await asyncio.gather(member, return_exceptions=True)
        if outcome.ok:
            return Answer(outcome.report, not missing, tuple(missing))
        return Answer.unfinished(results, missing)

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
        job = self._job(f"verify-{conflict.id}", role, verifying(conflict), f"verify {conflict.key}")
        outcome = await desk.do(replace(job, max_loops=role.max_loops))
        self._done.setdefault(outcome.member or VERIFIER, []).append(outcome)
        said = [each for each in outcome.facts if each.key == conflict.key]
        return Claim(outcome.member, said[-1].value, said[-1].confidence) if outcome.ok and said else None

    async def _asked(self, conflict: Conflict) -> Claim | None:
        said = await self._work.ask(conflict)
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


# Market: members bid for each subtask; quality, cost and time decide. No model is asked.

QUALITY, COST, TIME = 0.6, 0.2, 0.2
"""Weights of quality, cost and time."""


def awarded(bids: Sequence[tuple[str, Bid]]) -> tuple[str, Bid] | None:
    """Return the best bid: cost and time are relative to the most expensive and the slowest bid. The first one wins a
    tie.
    """
    if not bids:
        return None
    dearest = max((bid.cost for _, bid in bids), default=0.0) or 1.0
    slowest = max((bid.seconds for _, bid in bids), default=0.0) or 1.0

    def worth(each: tuple[str, Bid]) -> float:
        bid = each[1]
        return QUALITY * bid.quality - COST * bid.cost / dearest - TIME * bid.seconds / slowest

    return max(bids, key=worth)


def missing_of(plan: Plan) -> Sequence[str]:
    """Return one line for each subtask that was not done, with the reason."""
    left = [each for each in plan.subtasks if each.status != "completed"]
    return [f"{each.id} ({each.description[:80]}): {each.error or each.status}" for each in left]
