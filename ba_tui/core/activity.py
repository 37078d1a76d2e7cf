"""Folds over events: states of agents, and failures in a row. The same live and replayed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ba_tui.core.events import (
    MAIN,
    TRANSIENT,
    ActivityChanged,
    AgentPaused,
    Answered,
    Asked,
    Ending,
    Event,
    MessageDone,
    MessageRestarted,
    ModeChanged,
    PlanChanged,
    PromptProgress,
    SubTaskChanged,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolInputDelta,
    ToolStarted,
    TurnEnded,
    TurnResumed,
    TurnStarted,
)
from ba_tui.core.teamwork import AgentActivity, Plan
from ba_tui.core.text.wording import one_line, sentence

ENDINGS: Mapping[Ending, AgentActivity] = {
    "done": "finished",
    "limit": "error",
    "error": "error",
    "cancelled": "cancelled",
    "interrupted": "cancelled",
}
"""The state of an agent after each ending of a turn: an agent stopped at a limit has not finished."""


class _AgentWork:
    """State of one agent. ``work`` is its activity, ignoring open questions and pauses."""

    def __init__(self, shown: AgentActivity) -> None:
        self.shown: AgentActivity = shown
        self.planning = False
        """Whether thinking counts as planning."""
        self.work: AgentActivity = "idle"
        self._calls: set[str] = set()
        self._asked: set[str] = set()
        self._paused = False
        self._replans: dict[str, int] = {}
        """Number of replans by plan id."""

    def now(self) -> AgentActivity:
        if self._asked:
            return "awaiting_approval"
        return "paused" if self._paused else self.work

    def apply(self, event: Event) -> None:
        thinking: AgentActivity = "planning" if self.planning else "thinking"
        match event:
            case TextDelta() | ThinkingDelta() | ToolInputDelta() | PromptProgress() | MessageRestarted():
                self.work = thinking if self.work == "observing" else self.work
            case TurnStarted() | TurnResumed() | TurnEnded():
                self.work = ENDINGS[event.reason] if isinstance(event, TurnEnded) else thinking
                self._paused = False
                self._calls.clear()
                self._asked.clear()
            case MessageDone(message=message):
                self.work, self._calls = thinking, {call.id for call in message.calls}
            case ToolStarted(call=call):
                self._calls.add(call.id)
                self.work = "acting"
            case ToolFinished(call_id=id) if id in self._calls:
                self._calls.discard(id)
                self.work = "acting" if self._calls else "observing"
            case Asked(ask_id=id):
                self._asked.add(id)
            case Answered(ask_id=id):
                self._asked.discard(id)
            case AgentPaused(paused=paused):
                self._paused = paused
            case PlanChanged(plan=plan):
                self.work = self._planned(plan, thinking)
            case SubTaskChanged(subtask=step) if step.status == "executing":
                self.work = "acting"
            case _:
                pass

    def _planned(self, plan: Plan, thinking: AgentActivity) -> AgentActivity:
        if plan.state in {"approved", "running", "paused"}:
            again = plan.replans > self._replans.get(plan.id, 0)
            self._replans[plan.id] = plan.replans
            return "replanning" if again else "acting"
        if plan.state == "proposed":
            return "replanning" if plan.replans else "planning"
        return "acting" if self._calls else thinking


class Activities:
    """The activities of all agents of a conversation. Apply all events, replayed or live."""

    def __init__(self) -> None:
        self._working: dict[str, _AgentWork] = {}
        self._ended: dict[str, AgentActivity] = {}

    def of(self, agent: str) -> AgentActivity:
        doing = self._working.get(agent)
        return doing.shown if doing else self._ended.get(agent, "idle")

    def apply(self, event: Event, *, planning: bool = False) -> ActivityChanged | None:
        """Return the change of state of the agent of ``event``, if any. ``planning``: the agent's mode is plan."""
        agent = event.agent
        doing = self._working.get(agent)
        if doing is None:
            # Calls outside turns are not an agent's work.
            if not isinstance(event, TurnStarted | TurnResumed):
                return None
            doing = self._working[agent] = _AgentWork(self._ended.pop(agent, "idle"))
        doing.planning = planning
        doing.apply(event)
        before: AgentActivity = doing.shown
        now: AgentActivity = doing.now()
        if event.__class__ is TurnEnded:
            del self._working[agent]
            self._ended[agent] = now
        if before == now:
            return None
        doing.shown = now
        return ActivityChanged(now, before, agent=agent, at=event.at)

    def left(self, at: float) -> Iterable[ActivityChanged]:
        """Yield the cancellation of all agents without an end, because the process died. ``at`` as in events."""
        for agent in list(self._working):
            if change := self.apply(TurnEnded("interrupted", agent=agent, at=at)):
                yield change


def activities(events: Iterable[Event]) -> list[tuple[float, str, AgentActivity]]:
    """Return every change of state in a session: time in seconds since the epoch, agent, new state."""
    fold, planning = Activities(), False
    found: list[tuple[float, str, AgentActivity]] = []
    for event in events:
        if isinstance(event, ModeChanged):
            planning = event.mode == "plan"
        if isinstance(event, TRANSIENT):
            continue
        changed = [fold.apply(event, planning=planning and event.agent == MAIN)]
        if isinstance(event, TurnEnded) and event.agent == MAIN and event.reason == "interrupted":
            changed += fold.left(event.at)
        found.extend((each.at, each.agent, each.activity) for each in changed if each)
    return found


SHOWN = 160
"""Maximum length of the last failure."""


class Failures:
    """Failures of all agents of a turn. ``number``: failures since the last success; ``last``: the newest, in one
    line."""

    def __init__(self) -> None:
        self.number = 0
        self.last = ""

    def apply(self, event: Event) -> None:
        if isinstance(event, ToolFinished):
            error = event.result.error
            if not event.result.is_error:
                self.number = 0
            elif error is None or error.kind != "interrupted":
                self._failed(error.message if error else event.result.text)
        elif isinstance(event, TurnEnded) and event.agent != MAIN and event.reason in {"error", "limit"}:
            self._failed(event.error.message if event.error else f"{event.agent} ended early.")

    def _failed(self, why: str) -> None:
        self.number += 1
        self.last = sentence(one_line(why, SHOWN))
