"""What an agent is doing, and which of its states may follow which."""

from __future__ import annotations

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
