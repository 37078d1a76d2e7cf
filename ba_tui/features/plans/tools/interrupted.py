"""What the running steps of an interrupted plan had done when ba ended, as the events of the session tell it. Pure.

A call that is not certainly harmless counts as one that may have changed something. A call did not run when its tool
was never started, when it was denied, and while its question was open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ba_tui.core.effects import Effect
from ba_tui.core.events import (
    MAIN,
    Answered,
    Asked,
    Event,
    Judged,
    MessageDone,
    PlanChanged,
    SubTaskChanged,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.events.teamwork import AgentStarted
from ba_tui.core.messages import ToolUse
from ba_tui.core.results import ToolResult
from ba_tui.core.teamwork.plans import Plan, SubTask
from ba_tui.core.text.wording import one_line
from ba_tui.core.tool import Tool
from ba_tui.features.plans.tools.steps import label

_DENIED = frozenset({"permission_denied", "invalid_parameters"})
"""Failures of calls whose tool did not run."""
_STARTS_AGENTS = "delegate_task"
"""Its agents have events of their own."""
NAMED = 3
"""Calls that a step is described by."""


@dataclass
class _Call:
    use: ToolUse
    target: str
    own: bool
    """Whether it is the step's call, and not one of its agent's."""
    judged: bool = False
    reading: bool = True
    """Whether every permission confined it to reading."""
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
    """What one try of a step left. ``ended``: the agents of it that finished, by name, and what each said last."""

    calls: dict[str, _Call] = field(default_factory=dict[str, _Call])
    agents: set[str] = field(default_factory=set[str])
    ended: dict[str, str] = field(default_factory=dict[str, str])
    _said: dict[str, str] = field(default_factory=dict[str, str])

    def changes(self, find: Callable[[str], Tool | None]) -> str:
        """Name the calls that may have changed something; empty when there were none."""
        calls = [call for call in self.calls.values() if call.changed(find(call.use.name))]
        named = [one_line(f"{call.use.name} {call.target}".strip(), 120) for call in calls[:NAMED]]
        return "; ".join([*named, f"and {len(calls) - NAMED} more"] if len(calls) > NAMED else named)

    @property
    def result(self) -> ToolResult | None:
        """Return what the step's own call gave, when it succeeded."""
        results = [call.result for call in self.calls.values() if call.own]
        return next((each for each in results if each and not each.is_error), None)

    def apply(self, event: Event, step: SubTask) -> None:
        """Take up an event that came while ``step`` ran."""
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
                self.calls[use.id] = _Call(use, target, own)
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
    """Return what the newest try of each step left, by its id. A step that never began has none. Call it off the
    loop."""
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
