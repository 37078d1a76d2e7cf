"""Work that a lead hands out, and how it came out."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from ba_tui.core.teamwork.teams import AgentMessage
from ba_tui.core.values import frozen
from ba_tui.features.teams.engine.facts import Fact, as_fact, key_of
from ba_tui.features.teams.engine.messages import TaskResponse, content


@frozen
class HandingOut:
    """``patience``: seconds without a sign of life; ``attempts``: how often a task is handed out; ``deadline``: seconds
    for one attempt."""

    patience: float = 30.0
    attempts: int = 3
    deadline: float = 900.0


@frozen
class Job:
    """Work for a member of ``role``. ``to``: the member that won it, empty for whoever is free. ``key``: the same on
    every attempt. ``critical``: two members do it when there are two, and the first valid result counts.
    ``apart``: see TaskRequest. ``again``: the person wants it done although it may have been done in part."""

    task: str
    role: str
    prompt: str
    key: str
    description: str = ""
    expected: str = ""
    critical: bool = False
    to: str = ""
    again: bool = False
    apart: bool = False
    max_loops: int = 10
    context: dict[str, Any] = field(default_factory=dict[str, Any])
    chain: tuple[str, ...] = ()


@frozen
class Outcome:
    """How a job came out. ``report`` is partial when it is not ``ok``; ``error`` says why."""

    ok: bool
    report: str = ""
    member: str = ""
    agent_id: str = ""
    error: str = ""
    value: Any = None
    artifact: str = ""
    facts: tuple[Fact, ...] = ()
    attempts: int = 1
    tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    asks: str = ""


def facts_of(received: AgentMessage) -> tuple[Fact, ...]:
    """What a response states. Raises UsageError when it is none."""
    response = content(TaskResponse, received)
    claims = (claim_of(key, value, response.confidence) for key, value in response.claims.items())
    return tuple(filter(None, claims))


def outcome_of(received: AgentMessage, response: TaskResponse) -> Outcome:
    """How a job came out that a member answered."""
    # An answer without a word is none.
    ok = response.outcome == "done" and any(letter.isalnum() for letter in response.result)
    error = "" if ok else response.error or ("its report is empty" if response.outcome == "done" else response.outcome)
    return Outcome(
        ok, response.result, received.sender, response.agent_id, error, response.value, response.artifact,
        facts_of(received), tokens=response.tokens, cost=max(response.cost, 0.0), seconds=response.seconds,
        asks="; ".join(response.asks) if response.outcome == "refused" else "",
    )  # fmt: skip


def claim_of(key: str, value: Any, confidence: float) -> Fact | None:
    """What a member states of ``key``; None when it is no fact."""
    if isinstance(value, dict):
        return as_fact({"confidence": confidence, **value, "key": key_of(key)})
    return as_fact({"key": key, "value": value, "confidence": confidence})
