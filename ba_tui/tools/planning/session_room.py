"""The plans of a session: made for a goal, agreed to, carried out, answered. The session's events are their state."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ba_tui.core.errors import BaError, StopTurn, UsageError
from ba_tui.core.events import Event, MessageDone, Notice, PlanChanged, Steered, TurnStarted
from ba_tui.core.messages import Message, Text, reminder, user
from ba_tui.core.ports.delegation import Delegation, Work
from ba_tui.core.questions import Option, Question, Reply
from ba_tui.core.teamwork.plans import ENDED, Plan, SubTask
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import clipped, one_line
from ba_tui.core.tool import Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.planning.plan_mode import PlanMode
from ba_tui.planning.plan_run import PlanBounds, PlanMeans, PlanRun, begun_again, may_have_run
from ba_tui.sessions.results.artifacts import Artifacts
from ba_tui.settings.sections.plans import PlanSettings
from ba_tui.tools.definitions import Definition
from ba_tui.tools.memory.session_room import MemoryRoom
from ba_tui.tools.planning import answers, outcomes
from ba_tui.tools.planning.agreement import Agreed, Agreement, PlanMaker, Talk
from ba_tui.tools.planning.asking import ModelRequests
from ba_tui.tools.planning.plan_tool import NAME, Waiting, plan_tool
from ba_tui.tools.planning.steps import StepWork

Ask = Callable[[Question], Awaitable[Reply]]
Planning = Callable[[Callable[[str, Sequence[Message], Sequence[Tool]], Awaitable[Message]]], PlanMaker]
"""Makes a planner that asks the model by what it is given."""
CONTEXT = 4_000
"""Characters of the conversation that the planner is told."""
NO_TOOL = frozenset({NAME, "present_plan", "ask_user", "tool_search", "todo_write", "todo_read", "activate_skill"})
"""Tools that no step calls by itself: they talk with the person or keep the model's own notes."""
_SPOKEN = regex(r"(?i)\bplan(?!s?[ -]mode)(?:s|nen|ning|ifier|ificar?|en)?\b|step by step|计划|方案|规划")
GO_ON = "Go on with it: /plan resume. What was completed is kept."
AGAIN, DONE, SKIP = "Run it again", "Count it as done", "Skip it"


@frozen
class PlanScope:
    """The session: what was said, its ``tools`` within their guards by name, who starts agents, what is remembered,
    long results, and plan mode. ``requests`` ask the session's model; None where no conversation is. ``planning``:
    None for ba's own planner. ``attended``: somebody can be asked."""

    transcript: Transcript
    tools: Callable[[], Mapping[str, Tool]]
    delegation: Delegation
    memory: MemoryRoom
    results: Artifacts
    mode: PlanMode
    requests: ModelRequests | None = None
    attended: bool = False
    planning: Planning | None = None


@frozen
class _Means:
    """What one plan works with: the agent's branch, who is asked, and the call that runs it (or empty)."""

    branch: Branch
    ask: Ask
    call_id: str = ""


class PlanRoom:
    """core.ports.plans.Plans, a listener, and what the tool plan does. Made once for a session."""

    def __init__(self, definition: Definition, settings: PlanSettings, scope: PlanScope) -> None:
        self._settings = settings
        self._scope = scope
        self._running: dict[str, None] = {}
        self._said: list[str] = []
        self._spoken = self._told = False
        self.tool = plan_tool(definition, self.by_model)

    def plan(self, goal: str) -> Work:
        """See core.ports.plans.Plans."""

        async def work(branch: Branch) -> None:
            means = _Means(branch, branch.ask)
            agreed = await self._agreed(goal, means)
            await self._answered(agreed, means)

        return work

    def resume(self, plan: str) -> Work:
        """See core.ports.plans.Plans."""
        record = self._scope.transcript.plans.find(plan)
        if record is None:
            raise UsageError(f"There is no plan {one_line(plan, 60)!r} in this session.", "Make one: /plan GOAL.")
        if not resumable(record.plan) or plan in self._running:
            state = "running" if plan in self._running else record.plan.state
            raise UsageError(f"The plan can't go on: it is {state}.", "Make a new one: /plan GOAL.")

        async def work(branch: Branch) -> None:
            means = _Means(branch, branch.ask)
            if record.plan.state == "proposed":
                agreed = await self._agreement(means).approve(record.plan)
                await self._answered(agreed, means)
                return
            left = (record.failure, record.reason)
            await self._answered(Agreed(await self._settled(record.plan, means)), means, left)

        return work

    def latest(self) -> Plan | None:
        """See core.ports.plans.Plans."""
        newest = self._scope.transcript.plans.newest
        return newest.plan if newest and newest.plan.subtasks else None

    def interrupted(self) -> str:
        """See core.ports.plans.Plans."""
        plan = self.latest()
        if plan is None or plan.id in self._running or not resumable(plan):
            return ""
        done = sum(step.status == "completed" for step in plan.subtasks)
        goal = one_line(plan.task.goal or plan.task.original_query, 80)
        how = "was not approved yet" if plan.state == "proposed" else "was interrupted"
        return f"The plan “{goal}” {how}: {done} of {len(plan.subtasks)} steps are completed. {GO_ON}"

    def needed(self) -> Sequence[str]:
        """The tool, once the person speaks of a plan; in plan mode the model presents one instead."""
        return (NAME,) if self._spoken and not self._scope.mode.on else ()

    def apply(self, event: Event) -> None:
        match event:
            case TurnStarted(agent="main", prompt=message):
                self._hear(message)
            case Steered(agent="main", message=Message(origin="steer") as message):
                self._hear(message)
                if self._running:
                    self._said.append(message.said.strip())
            case _:
                pass

    async def before(self, branch: Branch) -> None:
        """Say once that a plan was interrupted in an earlier run."""
        if self._told:
            return
        self._told = True
        if line := self.interrupted():
            branch.emit(Notice(line, "warning"))
            branch.emit(Steered(reminder(f"{line} Only the person can go on with it.")))

    async def after(self, reply: Message, branch: Branch) -> None:
        """An answer needs no plan."""

    async def by_model(self, goal: str, reason: str, waiting: Waiting) -> Plan:
        """Make and carry out a plan within a call of the model; the plan as it ended, or as nobody agreed to it.

        Raises:
            BaError: no plan could be made, or one is running.
        """
        if self._running:
            raise UsageError("A plan is running already.", "Wait for its end.")
        means = _Means(waiting.call.branch, waiting.call.ask, waiting.call.id)
        agreed = await self._agreed(goal, means, f"Why a plan is needed: {reason}" if reason else "")
        if agreed.plan.state != "approved":
            return agreed.plan
        return await self._carried_out(agreed.plan, means, ("", ""), waiting.words)

    async def close(self) -> None:
        if self._scope.requests:
            await self._scope.requests.close()

    def _hear(self, message: Message) -> None:
        self._spoken = self._spoken or bool(_SPOKEN.search(message.said))

    async def _agreed(self, goal: str, means: _Means, more: str = "") -> Agreed:
        known = await outcomes.recalled(goal, self._scope.memory)
        said = earlier(self._scope.transcript.messages, goal)
        context = "\n".join(filter(None, (said, more, known)))
        return await self._agreement(means).reach(goal, context, f"plan-{uuid.uuid4().hex[:8]}")

    def _agreement(self, means: _Means) -> Agreement:
        scope, tool = self._scope, NAME if means.call_id else ""
        lets = partial(scope.mode.agreed, branch=means.branch)
        talk = Talk(means.ask, lets, scope.attended, scope.mode.on, means.call_id, tool)
        return Agreement(self._planner(means.branch), self._tools(), means.branch, talk)

    def _tools(self) -> Sequence[Tool]:
        """Those that a step may call by itself."""
        return [tool for name, tool in self._scope.tools().items() if tool.facts.subagents and name not in NO_TOOL]

    def _planner(self, branch: Branch) -> PlanMaker:
        scope = self._scope
        if scope.requests is None:
            raise UsageError("Plans can only be made in a conversation.", "Run ba, or ba -p.")
        ask = partial(scope.requests.ask, branch)
        if scope.planning:
            return scope.planning(ask)
        from ba_tui.planning.planner import Planner  # noqa: PLC0415 - few sessions have a plan

        return Planner(ask)

    async def _answered(self, agreed: Agreed, means: _Means, left: tuple[str, str] = ("", "")) -> None:
        """Carry the plan out if somebody agreed to it, and answer."""
        plan = agreed.plan
        if plan.state == "rejected":
            self._say(means.branch, "The plan was rejected. Nothing was carried out.")
        elif plan.state == "proposed":
            notes = "\n".join(f"- {note}" for note in agreed.notes)
            self._say(means.branch, "\n\n".join(filter(None, (answers.outline(plan), notes))))
        else:
            await self._answer(await self._carried_out(plan, means, left), means.branch)

    async def _carried_out(
        self, plan: Plan, means: _Means, left: tuple[str, str], words: Callable[[], Sequence[str]] = tuple[str]
    ) -> Plan:
        """The plan as it ended; its outcome is remembered."""
        scope, branch = self._scope, means.branch
        work = StepWork(scope.tools, scope.delegation, scope.results, means.call_id or plan.id)
        bounds = PlanBounds(self._settings.at_once, self._settings.deadline, self._settings.max_cost)
        self._running[plan.id] = None
        self._said.clear()
        try:
            async with scope.memory.working(branch, f"plan {plan.id}") as shared:
                await shared.set("goal", plan.task.goal or plan.task.original_query)

                async def said() -> Sequence[str]:
                    """What the person said, and facts that others put into the shared working memory."""
                    branch.drain()
                    heard = list(dict.fromkeys((*self._said, *words())))
                    held = await shared.get("facts", [])
                    if new := [each for each in heard if each not in held]:
                        held = [*held, *new]
                        await shared.set("facts", held)
                    return [str(each) for each in held]

                async def replan(plan: Plan, reason: str) -> Plan:
                    return (await self._planner(branch).replan(plan, reason, self._tools())).plan

                run = PlanRun(
                    plan,
                    branch,
                    PlanMeans(work.call, work.work, work.reads, replan, work.whole, said, branch.unpaused),
                    bounds,
                    left,
                )
                ended = await run.run()
        finally:
            self._running.pop(plan.id, None)
        await outcomes.remember(ended, scope.memory, branch)
        return ended

    async def _settled(self, plan: Plan, means: _Means) -> Plan:
        """``plan`` as it can go on. Steps that were running begin again, or as the person says when they may have
        changed something."""
        work = StepWork(self._scope.tools, self._scope.delegation, self._scope.results)
        for step in plan.subtasks:
            if not may_have_run(step):
                continue
            again = begun_again(step) if step.status == "executing" else step
            if not await asyncio.to_thread(work.reads, step):
                again = await self._decided(again, means)
            plan = plan.updated(again)
        means.branch.emit(PlanChanged(replace(plan, state="approved"), self._reason(plan)))
        return replace(plan, state="approved")

    def _reason(self, plan: Plan) -> str:
        record = self._scope.transcript.plans.find(plan.id)
        return record.reason if record else ""

    async def _decided(self, step: SubTask, means: _Means) -> SubTask:
        """What becomes of a step that may have changed something before it was interrupted."""
        name = f"{step.id} ({one_line(step.description, 120)})"
        if not self._scope.attended:
            why = "It may have run when ba was interrupted, and nobody can be asked now."
            return replace(step, status="blocked", error=why)
        options = (
            Option(AGAIN, "It may do its work twice"),
            Option(DONE, "Later steps get no result of it"),
            Option(SKIP, "Steps that need it are skipped"),
        )
        text = f"The step {name} was running when ba was interrupted, so it may have run. What now?"
        reply = await means.ask(Question("choice", text, options=options))
        if reply.choice != "deny" and reply.text.strip() == AGAIN:
            return step
        if reply.choice != "deny" and reply.text.strip() == DONE:
            return replace(
                step, status="completed", result="(Done before ba was interrupted; no result is known.)", error=""
            )
        return replace(step, status="skipped", error="Skipped by the person: it may have run before.")

    async def _answer(self, plan: Plan, branch: Branch) -> None:
        """Write the answer from the results; plainly where no model can."""
        branch.drain()
        requests = self._scope.requests
        if requests and any(step.status == "completed" for step in plan.subtasks):
            try:
                said = "\n".join(f"The person said meanwhile: {each}" for each in self._said)
                prompt = "\n\n".join(filter(None, (answers.request(plan), said)))
                await requests.say(branch, answers.SYSTEM, (user(prompt),))
            except (BaError, StopTurn) as error:
                branch.emit(Notice(f"No model could write the answer: {error}", "warning", error.hint))
            else:
                return
        self._say(branch, answers.plainly(plan))

    @staticmethod
    def _say(branch: Branch, text: str) -> None:
        branch.emit(MessageDone(Message("assistant", (Text(text),), stop="end_turn", origin="assistant")))


def resumable(plan: Plan) -> bool:
    """Whether the plan can go on: nobody rejected it, and it has not ended."""
    open_ = any(step.status not in ENDED for step in plan.subtasks)
    return plan.state in {"proposed", "approved", "running", "paused", "cancelled"} and (
        open_ or plan.state == "running"
    )


def earlier(messages: Sequence[Message], goal: str) -> str:
    """What the person said before in the conversation, the newest last, as far as there is room."""
    said = [message.said.strip() for message in messages if message.role == "user" and not message.hidden]
    lines: list[str] = []
    left = CONTEXT
    for text in reversed([each for each in said if each and each != goal.strip()]):
        line = clipped(one_line(text, 800), left)
        left -= len(line)
        if left <= 0:
            break
        lines.append(f"The person said: {line}")
    return "\n".join(reversed(lines))
