"""Processing of a goal in a session: the plan is made, approved, executed, stored in memory and answered."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from ba_tui.core.effects import Effect
from ba_tui.core.errors import BaError, StopTurn, UsageError
from ba_tui.core.events import (
    MAIN,
    AgentStarted,
    Answered,
    Asked,
    Event,
    Judged,
    MemoryChanged,
    MessageDone,
    Notice,
    PlanChanged,
    SubTaskChanged,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import Message, Text, ToolUse, clean_text, user
from ba_tui.core.plan_folds import PlanRecord
from ba_tui.core.ports.memory import Draft, TaskMemory, line_of
from ba_tui.core.questions import Option, Question
from ba_tui.core.results import ToolResult
from ba_tui.core.teamwork import UNDECIDED, Plan, SubTask
from ba_tui.core.text.untrusted import neutralized
from ba_tui.core.text.wording import clipped, count, one_line, sentence
from ba_tui.core.tool import Tool
from ba_tui.core.turn import Branch
from ba_tui.features.plans.engine import plan_tool
from ba_tui.features.plans.engine.filling import revision
from ba_tui.features.plans.engine.plan_mode import PLAN_TOOL, PlanScope
from ba_tui.features.plans.engine.plan_run import (
    UNBEGUN,
    PlanBounds,
    PlanMeans,
    PlanRun,
    begun_again,
    completed,
    may_have_run,
)
from ba_tui.features.plans.engine.plan_tool import PlanCall
from ba_tui.features.plans.engine.planner import AgreedPlan, Agreement, PlanContext, Planner
from ba_tui.features.plans.engine.steps import StepWork, label
from ba_tui.permissions.rule import COMMAND_TOOLS
from ba_tui.settings.sections.agents import PlanSettings

# Actions of the running steps of an interrupted plan, reconstructed from the session's events. Pure.
#
# A call that is not certainly harmless counts as one that may have changed something. A call did not run if its tool
# was never started, if it was denied, or while its question was open.

_DENIED = frozenset({"permission_denied", "invalid_parameters"})
"""Failures of calls whose tool did not run."""
_STARTS_AGENTS = "delegate_task"
"""Its agents have events of their own."""
NAMED = 3
"""Maximum calls in the description of a step."""


@dataclass
class _TracedCall:
    use: ToolUse
    target: str
    own: bool
    """The call belongs to the step itself, not to one of its agents."""
    judged: bool = False
    reading: bool = True
    """Every permission limited the call to reading."""
    asked: set[str] = field(default_factory=set[str])
    result: ToolResult | None = None

    def changed(self, tool: Tool | None) -> bool:
        """Return whether it may have changed something."""
        if self.result and self.result.error and self.result.error.kind in _DENIED:
            return False
        if self.asked and not self.judged:
            return False
        if tool is None:
            return not (self.result and self.result.error and self.result.error.kind == "not_found")
        effect = tool.effect_of(self.use.input) if tool.name == _STARTS_AGENTS else tool.reach(self.use.input)
        confined = effect is Effect.EXECUTE and self.judged and self.reading
        return effect is not Effect.READ and not confined


@dataclass
class StepTrace:
    """The trace of one attempt at a step. ``ended``: its finished agents by name, each with its last message."""

    calls: dict[str, _TracedCall] = field(default_factory=dict[str, _TracedCall])
    agents: set[str] = field(default_factory=set[str])
    ended: dict[str, str] = field(default_factory=dict[str, str])
    _said: dict[str, str] = field(default_factory=dict[str, str])

    def changes(self, find: Callable[[str], Tool | None]) -> str:
        """Return the names of calls that may have changed something; empty if there were none."""
        calls = [call for call in self.calls.values() if call.changed(find(call.use.name))]
        named = [one_line(f"{call.use.name} {call.target}".strip(), 120) for call in calls[:NAMED]]
        return "; ".join([*named, f"and {len(calls) - NAMED} more"] if len(calls) > NAMED else named)

    @property
    def result(self) -> ToolResult | None:
        """Return the result of the step's own call, if it succeeded."""
        results = [call.result for call in self.calls.values() if call.own]
        return next((each for each in results if each and not each.is_error), None)

    def apply(self, event: Event, step: SubTask) -> None:
        """Process an event that arrived while ``step`` ran."""
        name = event.agent
        if isinstance(event, AgentStarted) and name.count("/") == 1 and event.description == label(step):
            self.agents.add(name)
        own = name == MAIN and isinstance(event, ToolStarted) and event.call.id.endswith(f".{step.id}.{step.attempts}")
        if own or name in self.agents or name.startswith(tuple(f"{agent}/" for agent in self.agents)):
            self._agent(event, own=own)
        else:
            self._call(event)

    def _agent(self, event: Event, *, own: bool) -> None:
        match event:
            case ToolStarted(call=use, target=target):
                self.calls[use.id] = _TracedCall(use, target, own)
            case TurnStarted():
                self.ended.pop(event.agent, None)
            case MessageDone(message=message):
                self._said[event.agent] = "" if message.calls else message.text.strip()
            case TurnEnded(reason="done") if self._said.get(event.agent):
                self.ended[event.agent] = self._said[event.agent]
            case _:
                self._call(event)

    def _call(self, event: Event) -> None:
        match event:
            case Judged(call_id=id, verdict="allow", profile=profile) if id in self.calls:
                self.calls[id].judged = True
                self.calls[id].reading &= profile == "reading"
            case Asked(ask_id=asked, question=question) if question.call_id in self.calls:
                self.calls[question.call_id].asked.add(asked)
            case Answered(ask_id=asked, reply=reply) if reply.choice != "deny":
                for call in self.calls.values():
                    call.judged |= asked in call.asked
            case ToolFinished(call_id=id, result=result) if id in self.calls:
                self.calls[id].result = result
            case _:
                pass


def traces(events: Iterable[Event], plan: Plan) -> dict[str, StepTrace]:
    """Return the trace of each step's newest attempt by step id, without steps that never began. Call it
    in a thread.
    """
    found: dict[str, StepTrace] = {}
    running: dict[str, SubTask] = {}
    for event in events:
        match event:
            case SubTaskChanged(plan=id, subtask=step) if id == plan.id:
                if step.status == "executing":
                    running[step.id], found[step.id] = step, StepTrace()
                else:
                    running.pop(step.id, None)
            case PlanChanged(plan=changed) if changed.id == plan.id:
                running = {step.id: step for step in changed.subtasks if step.status == "executing"}
            case _:
                for id, step in running.items():
                    found.setdefault(id, StepTrace()).apply(event, step)
    return found


log = logging.getLogger(__name__)
FOUND = 3
"""Number of earlier plans' outcomes in the planner's prompt."""
LONGEST = 1_500


def outcome_of(plan: Plan) -> str:
    """Return the memory entry of a plan that ended."""
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
    """Store the outcome of the plan, if memory is on. A failing memory never costs the answer."""
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
    """Return the outcomes of similar goals, one line each; empty if none are known."""
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


CONTEXT = 4_000
"""Characters of the conversation in the planner's prompt."""
NO_TOOL = frozenset({PLAN_TOOL, "present_plan", "ask_user", "tool_search", "todo_write", "todo_read", "activate_skill"})
"""Tools that no step calls directly: they talk to the user or keep the model's own notes."""
COMMAND = "/plan"
AGAIN, DONE, SKIP = "Run it again", "Count it as done", "Skip it"


class PlanWork:
    """Makes and executes the plans of a session. ``said``: the user's messages since the running plan began;
    ``running``: ids of running plans.
    """

    def __init__(self, scope: PlanScope, settings: PlanSettings, said: list[str], running: set[str]) -> None:
        self._scope = scope
        self._settings = settings
        self._said = said
        self._running = running

    async def from_goal(self, goal: str, branch: Branch) -> None:
        """Make a plan for ``goal``, have it approved, execute it and answer. Raises BaError if none can be made."""
        means = PlanContext(branch, branch.ask)
        await self.answered(await self.agreed(goal, means), means)

    async def go_on(self, record: PlanRecord, branch: Branch) -> None:
        """Resume an interrupted plan, and answer."""
        means, plan = PlanContext(branch, branch.ask), record.plan
        if plan.state == "proposed":
            await self.answered(await self.agreement(means).approve(plan), means)
            return
        left = (record.failure, record.reason)
        await self.answered(AgreedPlan(await self.settled(plan, means)), means, left)

    async def within_call(self, goal: str, reason: str, waiting: PlanCall) -> Plan:
        """Return the final state of the plan, or the unapproved plan. Raises BaError if none can be made."""
        call = waiting.call
        means = PlanContext(call.branch, call.ask, call.id, waiting.words)
        agreed = await self.agreed(goal, means, f"Why a plan is needed: {reason}" if reason else "")
        return await self.carried_out(agreed.plan, means) if agreed.plan.state == "approved" else agreed.plan

    async def agreed(self, goal: str, means: PlanContext, more: str = "") -> AgreedPlan:
        known = await recalled(goal, self._scope.memory)
        said = earlier(self._scope.transcript.messages, goal)
        context = "\n".join(filter(None, (said, more, known)))
        return await self.agreement(means).reach(goal, context, f"plan-{uuid.uuid4().hex[:8]}")

    def agreement(self, means: PlanContext) -> Agreement:
        return Agreement(self._planner(means.branch), self._tools(), self._scope, means)

    def _tools(self) -> Sequence[Tool]:
        """Return the tools that a step may call directly."""
        tools = list(self._by_name().values())
        return self._scope.requests.offered(tools) if self._scope.requests else tools

    def _by_name(self) -> Mapping[str, Tool]:
        tools = self._scope.tools().items()
        return {name: tool for name, tool in tools if tool.facts.subagents and name not in NO_TOOL}

    def _planner(self, branch: Branch) -> Planner:
        scope = self._scope
        if scope.requests is None:
            raise UsageError("Plans can only be made in a conversation.", "Run ba, or ba -p.")
        return Planner(partial(scope.requests.ask, branch), scope.roles())

    async def answered(self, agreed: AgreedPlan, means: PlanContext, left: tuple[str, str] = ("", "")) -> None:
        """Execute the plan if it was approved, and answer."""
        plan = agreed.plan
        if plan.state == "rejected":
            self._say(means.branch, "The plan was rejected. Nothing was carried out.")
        elif plan.state == "proposed":
            notes = "\n".join(f"- {note}" for note in agreed.notes)
            self._say(means.branch, "\n\n".join(filter(None, (plan_tool.outline(plan), notes))))
        else:
            await self._answer(await self.carried_out(plan, means, left), means.branch)

    async def carried_out(self, plan: Plan, means: PlanContext, left: tuple[str, str] = ("", "")) -> Plan:
        """Return the plan's final state; its outcome is stored, unless a step still waits for the user's decision."""
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
                    """Return the user's messages, and facts that other agents put into the shared working memory."""
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

    async def settled(self, plan: Plan, means: PlanContext) -> Plan:
        """Return ``plan`` ready to be resumed. Of steps that were running, finished ones are completed, and those that
        changed nothing start again; the user decides about the others.
        """
        events = await self._scope.history()
        left = await asyncio.to_thread(traces, events, plan)
        for step in plan.subtasks:
            if step.status == "skipped" and step.error.startswith(UNBEGUN):
                # The step that it needs may be executed now.
                plan = plan.updated(replace(step, status="pending", error=""))
            elif may_have_run(step):
                plan = plan.updated(await self._settle(step, left.get(step.id), means))
        means.branch.emit(PlanChanged(replace(plan, state="approved"), self._reason(plan)))
        return replace(plan, state="approved")

    def _reason(self, plan: Plan) -> str:
        record = self._scope.transcript.plans.find(plan.id)
        return record.reason if record else ""

    async def _settle(self, step: SubTask, trace: StepTrace | None, means: PlanContext) -> SubTask:
        """Return an interrupted step as it can be resumed, judged by the trace of its last attempt."""
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

    async def _decided(self, step: SubTask, changes: str, means: PlanContext) -> SubTask:
        """Ask what to do with a step that made ``changes`` before it was interrupted."""
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
            # Text that the user typed is meant for the agent.
            return replace(step, error=f"{step.error} The user says: {said}")
        return replace(step, status="skipped", error="Skipped by the user: it may have run before.")

    async def _answer(self, plan: Plan, branch: Branch) -> None:
        """Write the answer from the results; as plain text if no model can."""
        branch.drain()
        requests = self._scope.requests
        if requests and any(step.status == "completed" for step in plan.subtasks):
            try:
                said = "\n".join(f"The user said meanwhile: {each}" for each in self._said)
                prompt = "\n\n".join(filter(None, (plan_tool.request(plan), said)))
                await requests.say(branch, plan_tool.SYSTEM, (user(prompt),))
            except (BaError, StopTurn) as error:
                branch.emit(Notice(f"No model could write the answer: {error}", "warning", error.hint))
            else:
                return
        self._say(branch, plan_tool.plainly(plan))

    @staticmethod
    def _say(branch: Branch, text: str) -> None:
        branch.emit(MessageDone(Message("assistant", (Text(text),), stop="end_turn", origin="assistant")))


def earlier(messages: Sequence[Message], goal: str) -> str:
    """Return the user's earlier messages in the conversation, oldest first, as far as they fit; without the goal
    itself, with or without its command.
    """
    said = [message.said.strip() for message in messages if message.role == "user" and not message.hidden]
    lines: list[str] = []
    left = CONTEXT
    for text in reversed([each for each in said if each and each.removeprefix(COMMAND).strip() != goal.strip()]):
        line = clipped(one_line(text, 800), left)
        left -= len(line)
        if left <= 0:
            break
        lines.append(f"The user said: {line}")
    return "\n".join(reversed(lines))
