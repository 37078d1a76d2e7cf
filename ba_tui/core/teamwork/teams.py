"""A team: roles, members, messages between them, conflicts. Values only; buses and orchestration stand in ``team``."""

from __future__ import annotations

import time
import uuid
from dataclasses import field
from typing import Any, Literal, TypeAlias

from ba_tui.core.agent_spec import Budget
from ba_tui.core.teamwork.agents import AgentActivity
from ba_tui.core.values import frozen

MessageType: TypeAlias = Literal[
    "task_request",
    "task_response",
    "status_update",
    "information_share",
    "context_request",
    "error",
    "heartbeat",
    "bid",
]
Pattern: TypeAlias = Literal["hierarchical", "committee", "market"]
Strategy: TypeAlias = Literal["majority", "confidence", "authority", "verifier", "person"]
EVERYBODY = "*"
"""The receiver of a message to all members."""
PROTOCOL = 1
"""Grows when a worker of an older version could not understand a message."""


@frozen
class Role:
    """What a member is for. ``agent``: the agent whose prompt, tools and model it has, by name; ``prompt`` is added.

    ``capabilities``: words that work is matched with. ``messages``: the types that it may send; empty: all of them.
    ``authority``: whose word counts more in a conflict, from 0 to 1. ``members``: how many of this role there are.
    ``lends``: the names of tools that other members may call at a member of this role.
    """

    name: str
    description: str = ""
    agent: str = "general"
    prompt: str = ""
    capabilities: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    messages: tuple[MessageType, ...] = ()
    model: str | None = None
    max_loops: int = 10
    budget: Budget | None = None
    authority: float = 0.5
    members: int = 1
    lends: tuple[str, ...] = ()


@frozen
class AgentMessage:
    """``sender`` and ``receiver`` are members' names; ``EVERYBODY`` receives what is broadcast.

    ``sequence`` counts the messages of one sender from 1, without a gap; the bus gives it. ``correlation_id``: the id
    of the message that this one belongs to. ``idempotency_key``: the same on every delivery of one piece of work.
    ``at`` in seconds since the epoch.
    """

    sender: str
    receiver: str
    type: MessageType
    content: dict[str, Any] = field(default_factory=dict[str, Any])
    team: str = ""
    correlation_id: str = ""
    idempotency_key: str = ""
    sequence: int = 0
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    at: float = field(default_factory=time.time)
    protocol: int = PROTOCOL


@frozen
class Member:
    """One agent of a team as people see it. ``doing``: the subtask, in a line. ``heard``: when it last said anything,
    in seconds since the epoch. ``where``: the process, empty for this one."""

    name: str
    role: str
    activity: AgentActivity = "idle"
    doing: str = ""
    agent_id: str = ""
    heard: float = 0.0
    where: str = ""


@frozen
class Team:
    id: str
    goal: str
    pattern: Pattern
    members: tuple[Member, ...] = ()
    state: Literal["forming", "working", "synthesizing", "completed", "partial", "failed", "cancelled"] = "forming"


@frozen
class Claim:
    """What ``member`` says the value of a key is. ``confidence`` from 0 to 1."""

    member: str
    value: Any
    confidence: float = 0.5


@frozen
class Conflict:
    """Members say different things of the same ``key``. ``winner`` is the claim that counts; None while it is open."""

    id: str
    key: str
    claims: tuple[Claim, ...]
    strategy: Strategy = "majority"
    winner: Claim | None = None
    reason: str = ""


def conflict_facts(conflict: Conflict) -> dict[str, Any]:
    """Return the conflict as JSON: who said what, and what settled it."""
    won = conflict.winner
    return {
        "id": conflict.id,
        "key": conflict.key,
        "claims": [
            {"member": each.member, "value": each.value, "confidence": each.confidence} for each in conflict.claims
        ],
        "strategy": conflict.strategy,
        "winner": {"member": won.member, "value": won.value} if won else None,
        "reason": conflict.reason,
    }
