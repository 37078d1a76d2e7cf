"""Folds over events: states of agents, and failures in a row. The same live and replayed. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

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
from ba_tui.core.teamwork import AgentActivity
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

    @property
    def _thinking(self) -> AgentActivity:
        return "planning" if self.planning else "thinking"

    def begin(self, event: TurnStarted | TurnResumed) -> None:
        self.work = self._thinking
        self._paused = False
        self._calls.clear()
        self._asked.clear()

    def end(self, event: TurnEnded) -> None:
        self.begin(TurnResumed((), at=event.at))
        self.work = ENDINGS[event.reason]

    def said(self, event: MessageDone) -> None:
        self.work = self._thinking
        self._calls = {call.id for call in event.message.calls}

    def writes(self, event: Event) -> None:
        if self.work == "observing":
            self.work = self._thinking

    def calls(self, event: ToolStarted) -> None:
        self._calls.add(event.call.id)
        self.work = "acting"

    def called(self, event: ToolFinished) -> None:
        if event.call_id in self._calls:
            self._calls.discard(event.call_id)
            self.work = "acting" if self._calls else "observing"

    def asks(self, event: Asked) -> None:
        self._asked.add(event.ask_id)

    def heard(self, event: Answered) -> None:
        self._asked.discard(event.ask_id)

    def pauses(self, event: AgentPaused) -> None:
        self._paused = event.paused

    def plans(self, event: PlanChanged) -> None:
        plan = event.plan
        again = plan.replans > self._replans.get(plan.id, 0)
        if plan.state in {"approved", "running", "paused"}:
            self.work = "replanning" if again else "acting"
            self._replans[plan.id] = plan.replans
        elif plan.state == "proposed":
            self.work = "replanning" if plan.replans else "planning"
        else:
            self.work = "acting" if self._calls else self._thinking

    def step(self, event: SubTaskChanged) -> None:
        if event.subtask.status == "executing":
            self.work = "acting"


_STEPS: Mapping[type[Event], Callable[[_AgentWork, Any], None]] = {
    MessageDone: _AgentWork.said,
    ToolStarted: _AgentWork.calls,
    ToolFinished: _AgentWork.called,
    Asked: _AgentWork.asks,
    Answered: _AgentWork.heard,
    AgentPaused: _AgentWork.pauses,
    PlanChanged: _AgentWork.plans,
    SubTaskChanged: _AgentWork.step,
    TurnStarted: _AgentWork.begin,
    TurnResumed: _AgentWork.begin,
    TurnEnded: _AgentWork.end,
    **dict.fromkeys(
        (TextDelta, ThinkingDelta, ToolInputDelta, PromptProgress, MessageRestarted),
        _AgentWork.writes,
    ),
}


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
        step, agent = _STEPS.get(event.__class__), event.agent
        if step is None:
            return None
        doing = self._working.get(agent)
        if doing is None:
            # Calls outside turns are not an agent's work.
            if not isinstance(event, TurnStarted | TurnResumed):
                return None
            doing = self._working[agent] = _AgentWork(self._ended.pop(agent, "idle"))
        doing.planning = planning
        step(doing, event)
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
