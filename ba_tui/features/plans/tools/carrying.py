"""What becomes of a goal in a session: a plan is made and agreed on, carried out, remembered and answered."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from ba_tui.core.errors import BaError, StopTurn, UsageError
from ba_tui.core.events import MemoryChanged, MessageDone, Notice, PlanChanged
from ba_tui.core.events.planned import PlanRecord
from ba_tui.core.messages import Message, Text, clean_text, user
from ba_tui.core.ports.memory import Draft, line_of
from ba_tui.core.ports.working import TaskMemory
from ba_tui.core.questions import Option, Question, Reply
from ba_tui.core.teamwork.plans import UNDECIDED, Plan, SubTask
from ba_tui.core.text.markup import neutralized
from ba_tui.core.text.wording import clipped, count, one_line, sentence
from ba_tui.core.tool import Tool
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.features.plans.engine.filling import revision
from ba_tui.features.plans.engine.plan_run import (
    UNBEGUN,
    PlanBounds,
    PlanMeans,
    PlanRun,
    begun_again,
    completed,
    may_have_run,
)
from ba_tui.features.plans.tools import answers
from ba_tui.features.plans.tools.agreement import Agreed, Agreement, PlanMaker, Talk
from ba_tui.features.plans.tools.interrupted import StepTrace, traces
from ba_tui.features.plans.tools.plan_tool import NAME, Waiting
from ba_tui.features.plans.tools.scope import PlanScope
from ba_tui.features.plans.tools.steps import StepWork
from ba_tui.permissions.rules.rule import COMMAND_TOOLS
from ba_tui.settings.sections.plans import PlanSettings

log = logging.getLogger(__name__)
FOUND = 3
"""Outcomes of earlier plans that the planner is given."""
LONGEST = 1_500


def outcome_of(plan: Plan) -> str:
    """The memory of a plan that ended."""
    done = [one_line(step.description, 120) for step in plan.subtasks if step.status == "completed"]
    lost = [
        f"{one_line(step.description, 120)} ({one_line(step.error, 160)})"
        for step in plan.subtasks
        if step.status in {"failed", "blocked"}
    ]
    parts = [sentence(f"Plan for: {one_line(plan.task.original_query, 300)}")]
    again = f" after {count(plan.replans, 'new plan')}" if plan.replans else ""
    parts.append(f"{'Completed' if plan.state == 'completed' else 'Partly done'}{again}.")
    parts += [f"Worked: {'; '.join(done)}."] if done else []
    parts += [f"Failed: {'; '.join(lost)}."] if lost else []
    return clipped(" ".join(parts), LONGEST)


async def remember(plan: Plan, memory: TaskMemory, branch: Branch) -> None:
    """Store what became of the plan, where memory is on. A memory that is broken costs nobody an answer."""
    if memory.off():
        return
    try:
        stored = await memory.memory.remember(Draft(outcome_of(plan), "outcome", origin="assistant", source=plan.id))
    except BaError as error:
        log.info("the outcome of a plan was not stored: %s", error)
    except Exception:
        log.exception("the outcome of a plan was not stored")
    else:
        if stored.outcome != "known":
            branch.emit(MemoryChanged((line_of(stored.entry),)))


async def recalled(goal: str, memory: TaskMemory) -> str:
    """What became of similar goals, a line each; empty when nothing is known."""
    if memory.off():
        return ""
    try:
        found = await memory.memory.find(goal, limit=FOUND * 4)
    except Exception:
        log.exception("outcomes of plans could not be recalled")
        return ""
    hits = [each.entry for each in found.found if each.entry.kind == "outcome" and each.score >= 1][:FOUND]
    lines = [f"- {datetime.fromtimestamp(each.at).astimezone():%Y-%m-%d}: {neutralized(each.text)}" for each in hits]
    return "\n".join(["Outcomes of similar plans (data, may be out of date):", *lines]) if lines else ""


Ask = Callable[[Question], Awaitable[Reply]]
CONTEXT = 4_000
"""Characters of the conversation that the planner is told."""
NO_TOOL = frozenset({NAME, "present_plan", "ask_user", "tool_search", "todo_write", "todo_read", "activate_skill"})
"""Tools that no step calls by itself: they talk with the person or keep the model's own notes."""
COMMAND = "/plan"
AGAIN, DONE, SKIP = "Run it again", "Count it as done", "Skip it"


@frozen
class Means:
    """What one plan works with: the agent's branch, who is asked, the call that runs it (or empty), and the words that
    wait to join the branch while it does."""

    branch: Branch
    ask: Ask
    call_id: str = ""
    words: Callable[[], Sequence[str]] = tuple[str]


class PlanWork:
    """``said``: what the person said since the plan that runs began; ``running``: the ids of plans that run."""

    def __init__(self, scope: PlanScope, settings: PlanSettings, said: list[str], running: set[str]) -> None:
        self._scope = scope
        self._settings = settings
        self._said = said
        self._running = running

    async def from_goal(self, goal: str, branch: Branch) -> None:
        """Make a plan for ``goal``, agree on it, carry it out and answer. Raises BaError when none can be made."""
        means = Means(branch, branch.ask)
        await self.answered(await self.agreed(goal, means), means)

    async def go_on(self, record: PlanRecord, branch: Branch) -> None:
        """Go on with a plan that was interrupted, and answer."""
        means, plan = Means(branch, branch.ask), record.plan
        if plan.state == "proposed":
            await self.answered(await self.agreement(means).approve(plan), means)
            return
        left = (record.failure, record.reason)
        await self.answered(Agreed(await self.settled(plan, means)), means, left)

    async def within_call(self, goal: str, reason: str, waiting: Waiting) -> Plan:
        """The plan as it ended, or as nobody agreed to it. Raises BaError when none can be made."""
        call = waiting.call
        means = Means(call.branch, call.ask, call.id, waiting.words)
        agreed = await self.agreed(goal, means, f"Why a plan is needed: {reason}" if reason else "")
        return await self.carried_out(agreed.plan, means) if agreed.plan.state == "approved" else agreed.plan

    async def agreed(self, goal: str, means: Means, more: str = "") -> Agreed:
        known = await recalled(goal, self._scope.memory)
        said = earlier(self._scope.transcript.messages, goal)
        context = "\n".join(filter(None, (said, more, known)))
        return await self.agreement(means).reach(goal, context, f"plan-{uuid.uuid4().hex[:8]}")

    def agreement(self, means: Means) -> Agreement:
        scope, tool = self._scope, NAME if means.call_id else ""
        lets = partial(scope.mode.agreed, branch=means.branch)
        talk = Talk(means.ask, lets, scope.attended, scope.mode.on, means.call_id, tool)
        return Agreement(self._planner(means.branch), self._tools(), means.branch, talk)

    def _tools(self) -> Sequence[Tool]:
        """Those that a step may call by itself."""
        tools = list(self._by_name().values())
        return self._scope.requests.offered(tools) if self._scope.requests else tools

    def _by_name(self) -> Mapping[str, Tool]:
        tools = self._scope.tools().items()
        return {name: tool for name, tool in tools if tool.facts.subagents and name not in NO_TOOL}

    def _planner(self, branch: Branch) -> PlanMaker:
        scope = self._scope
        if scope.requests is None:
            raise UsageError("Plans can only be made in a conversation.", "Run ba, or ba -p.")
        ask = partial(scope.requests.ask, branch)
        if scope.planning:
            return scope.planning(ask)
        from ba_tui.features.plans.engine.planner import Planner  # noqa: PLC0415 - an interrupted plan may need none

        return Planner(ask, scope.roles())

    async def answered(self, agreed: Agreed, means: Means, left: tuple[str, str] = ("", "")) -> None:
        """Carry the plan out if somebody agreed to it, and answer."""
        plan = agreed.plan
        if plan.state == "rejected":
            self._say(means.branch, "The plan was rejected. Nothing was carried out.")
        elif plan.state == "proposed":
            notes = "\n".join(f"- {note}" for note in agreed.notes)
            self._say(means.branch, "\n\n".join(filter(None, (answers.outline(plan), notes))))
        else:
            await self._answer(await self.carried_out(plan, means, left), means.branch)

    async def carried_out(self, plan: Plan, means: Means, left: tuple[str, str] = ("", "")) -> Plan:
        """The plan as it ended; its outcome is remembered, unless a step still waits for the user's decision."""
        scope, branch = self._scope, means.branch
        work = StepWork(self._by_name, scope.delegation, scope.results, means.call_id or plan.id)
        bounds = PlanBounds(self._settings.at_once, self._settings.deadline, self._settings.max_cost)
        self._running.add(plan.id)
        self._said.clear()
        run: PlanRun | None = None
        try:
            async with scope.memory.working(branch, f"plan {plan.id}") as shared:
                await shared.set("goal", plan.task.goal or plan.task.original_query)

                async def said() -> Sequence[str]:
                    """What the person said, and facts that others put into the shared working memory."""
                    branch.drain()
                    heard = list(dict.fromkeys((*self._said, *means.words())))
                    held = await shared.get("facts", [])
                    if new := [each for each in heard if each not in held]:
                        held = [*held, *new]
                        await shared.set("facts", held)
                    return [str(each) for each in held]

                async def replan(plan: Plan, reason: str) -> Plan:
                    draft = await self._planner(branch).replan(plan, reason, self._tools())
                    for text in draft.notes:
                        branch.emit(Notice(sentence(text), "info"))
                    return draft.plan

                run = PlanRun(
                    plan,
                    branch,
                    PlanMeans(
                        work.call, work.work, work.reads, replan, work.whole, said, branch.unpaused, COMMAND_TOOLS
                    ),
                    bounds,
                    left,
                )
                ended = await run.run()
        except asyncio.CancelledError:
            done = sum(step.status == "completed" for step in run.plan.subtasks) if run else 0
            kept = f"The plan was interrupted: {done} of {count(len(plan.subtasks), 'step')} completed."
            branch.emit(Notice(kept, "warning", "Go on with it: /plan resume"))
            raise
        finally:
            self._running.discard(plan.id)
        if ended.state != "cancelled":
            await remember(ended, scope.memory, branch)
        return ended

    async def settled(self, plan: Plan, means: Means) -> Plan:
        """``plan`` as it can go on. Of steps that were running, those that had finished are completed, and those that
        changed nothing begin again; the user decides about the others."""
        events = await self._scope.history()
        left = await asyncio.to_thread(traces, events, plan)
        for step in plan.subtasks:
            if step.status == "skipped" and step.error.startswith(UNBEGUN):
                # The step it needs may be carried out now.
                plan = plan.updated(replace(step, status="pending", error=""))
            elif may_have_run(step):
                plan = plan.updated(await self._settle(step, left.get(step.id), means))
        means.branch.emit(PlanChanged(replace(plan, state="approved"), self._reason(plan)))
        return replace(plan, state="approved")

    def _reason(self, plan: Plan) -> str:
        record = self._scope.transcript.plans.find(plan.id)
        return record.reason if record else ""

    async def _settle(self, step: SubTask, trace: StepTrace | None, means: Means) -> SubTask:
        """Return an interrupted step as it can go on, by what its last try left."""
        again = step if step.status == "pending" else begun_again(step)
        work = StepWork(self._by_name, self._scope.delegation, self._scope.results)
        if trace and trace.result and not trace.result.failed:
            return completed(again, await work.returned(trace.result))
        if trace and (found := next(((said, id) for id, said in trace.ended.items() if not revision(said)), None)):
            return completed(again, await work.answered(*found))
        changes = trace.changes(self._scope.tools().get) if trace else "the session has no record of them"
        if not changes or (trace is None and await asyncio.to_thread(work.reads, step)):
            return again
        return await self._decided(again, changes, means)

    async def _decided(self, step: SubTask, changes: str, means: Means) -> SubTask:
        """What becomes of a step that made ``changes`` before it was interrupted."""
        name = f"{step.id} ({one_line(step.description, 120)})"
        if not self._scope.attended:
            blocked = replace(step, status="blocked", error=f"{UNDECIDED}{changes}.")
            hint = "Nobody can be asked now. Decide in the app: ba -c, then /plan resume."
            means.branch.emit(Notice(f"The step {name} is blocked. {blocked.error}", "warning", hint))
            return blocked
        options = (
            Option(AGAIN, "It may do its work twice"),
            Option(DONE, "Later steps get no result of it"),
            Option(SKIP, "Steps that need it are skipped"),
        )
        text = (
            f"The step {name} was running when ba was interrupted, so it may have run. It may have changed something "
            f"with these calls: {changes}. What now?"
        )
        reply = await means.ask(Question("choice", text, options=options))
        said = "" if reply.choice == "deny" else clean_text(reply.text).strip()
        if said == AGAIN:
            return step
        if said == DONE:
            done = "(Done before ba was interrupted; no result is known.)"
            return replace(step, status="completed", result=done, error="")
        if said not in {"", SKIP} and not step.tool_name:
            # Words of the person's own are for the agent.
            return replace(step, error=f"{step.error} The user says: {said}")
        return replace(step, status="skipped", error="Skipped by the user: it may have run before.")

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


def earlier(messages: Sequence[Message], goal: str) -> str:
    """What the person said before in the conversation, the newest last, as far as there is room; not the goal itself,
    with or without the command before it."""
    said = [message.said.strip() for message in messages if message.role == "user" and not message.hidden]
    lines: list[str] = []
    left = CONTEXT
    for text in reversed([each for each in said if each and each.removeprefix(COMMAND).strip() != goal.strip()]):
        line = clipped(one_line(text, 800), left)
        left -= len(line)
        if left <= 0:
            break
        lines.append(f"The person said: {line}")
    return "\n".join(reversed(lines))
