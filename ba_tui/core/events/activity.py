"""The states of agents as they follow from the other events: live in a turn, and from a journal. Pure."""

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
from ba_tui.core.teamwork.agents import AgentActivity

ENDINGS: Mapping[Ending, AgentActivity] = {
    "done": "finished",
    "limit": "error",
    "error": "error",
    "cancelled": "cancelled",
    "interrupted": "cancelled",
}
"""The state that each ending of a turn leaves an agent in: one that was stopped at a limit has not finished."""


class _Doing:
    """One agent. ``work`` is what it would do if no question were open and it were not paused."""

    def __init__(self, shown: AgentActivity) -> None:
        self.shown: AgentActivity = shown
        self.planning = False
        """Whether thinking is planning."""
        self.work: AgentActivity = "idle"
        self._calls: set[str] = set()
        self._asked: set[str] = set()
        self._paused = False
        self._replans: dict[str, int] = {}
        """How often each plan was made anew, by its id."""

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


_STEPS: Mapping[type[Event], Callable[[_Doing, Any], None]] = {
    MessageDone: _Doing.said,
    ToolStarted: _Doing.calls,
    ToolFinished: _Doing.called,
    Asked: _Doing.asks,
    Answered: _Doing.heard,
    AgentPaused: _Doing.pauses,
    PlanChanged: _Doing.plans,
    SubTaskChanged: _Doing.step,
    TurnStarted: _Doing.begin,
    TurnResumed: _Doing.begin,
    TurnEnded: _Doing.end,
    **dict.fromkeys(
        (TextDelta, ThinkingDelta, ToolInputDelta, PromptProgress, MessageRestarted),
        _Doing.writes,
    ),
}


class Activities:
    """What every agent of a conversation is doing. Feed it all events, replayed or live."""

    def __init__(self) -> None:
        self._working: dict[str, _Doing] = {}
        self._ended: dict[str, AgentActivity] = {}

    def of(self, agent: str) -> AgentActivity:
        doing = self._working.get(agent)
        return doing.shown if doing else self._ended.get(agent, "idle")

    def apply(self, event: Event, *, planning: bool = False) -> ActivityChanged | None:
        """Return the change of state that ``event`` brings to its agent. ``planning``: the agent's mode is plan."""
        step, agent = _STEPS.get(event.__class__), event.agent
        if step is None:
            return None
        doing = self._working.get(agent)
        if doing is None:
            # Calls beside the turns are no work of an agent.
            if not isinstance(event, TurnStarted | TurnResumed):
                return None
            doing = self._working[agent] = _Doing(self._ended.pop(agent, "idle"))
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
        """End the work of all agents whose end was never told, because the process died. ``at`` as in events."""
        for agent in list(self._working):
            if change := self.apply(TurnEnded("interrupted", agent=agent, at=at)):
                yield change


def activities(events: Iterable[Event]) -> list[tuple[float, str, AgentActivity]]:
    """Return every change of state in a session: when, in seconds since the epoch, of which agent, and to what."""
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
