"""What an agent is doing, and which of its states may follow which. The fold over events is in ``core.events``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

AgentActivity: TypeAlias = Literal[
    "idle",
    "planning",
    "thinking",
    "acting",
    "observing",
    "replanning",
    "awaiting_approval",
    "paused",
    "finished",
    "error",
    "cancelled",
]
ENDED: frozenset[AgentActivity] = frozenset({"finished", "error", "cancelled"})
"""How the work of a turn ends."""


def _states(*states: AgentActivity) -> frozenset[AgentActivity]:
    return frozenset(states)


_BEGUN = _states("thinking", "planning")
_WORKING = _states("planning", "thinking", "acting", "observing", "replanning")
_LEFT = _states("awaiting_approval", "paused") | ENDED
TRANSITIONS: Mapping[AgentActivity, frozenset[AgentActivity]] = {
    "idle": _BEGUN,
    "planning": _states("thinking", "acting", "observing", "replanning") | _LEFT,
    "thinking": _states("planning", "acting", "replanning") | _LEFT,
    "acting": _states("planning", "thinking", "observing", "replanning") | _LEFT,
    "observing": _states("planning", "thinking", "acting", "replanning") | _LEFT,
    "replanning": _states("planning", "thinking", "acting", "observing") | _LEFT,
    "awaiting_approval": _WORKING | _states("paused") | ENDED,
    "paused": _WORKING | _states("awaiting_approval") | ENDED,
    "finished": _BEGUN,
    "error": _BEGUN,
    "cancelled": _BEGUN,
}
"""Which state may follow which. ``thinking``: the model works on its answer; ``acting``: calls or subtasks run;
``observing``: their results were sent to the model, and its answer has not begun; ``planning`` and ``replanning``: a
plan is made, or the mode is plan and the model thinks. An agent whose turn has ended begins the next one anew."""
