"""Teams of agents: how members work together, and which server connects those of several machines."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le

from ba_tui.core.teamwork.teams import Pattern, Strategy
from ba_tui.core.values import frozen
from ba_tui.settings.fields import NUMBER, FieldCheck, Seconds, Setter, Share, Whole, about
from ba_tui.settings.sections.group import SettingsGroup


def _bus_address(value: str) -> str:
    if not value.startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("expected an address that begins with redis://, rediss:// or unix://")
    return value


@frozen
class TeamSettings(SettingsGroup):
    """Teams of agents (guide: teams)."""

    bus_url: Annotated[str, FieldCheck(_bus_address)] | None = field(
        default=None,
        metadata=about("A Redis server that connects members on several machines, such as redis://127.0.0.1:6379/0."),
    )
    pattern: Pattern = field(
        default="hierarchical",
        metadata=about(
            "How a team works: hierarchical (one plan, handed out), committee (all answer, then vote or merge) or "
            "market (members bid for each subtask).",
            "project",
        ),
    )
    conflicts: Strategy = field(
        default="majority",
        metadata=about(
            "What settles a conflict: majority, confidence, authority (of the role), verifier (a member checks) or "
            "person (you are asked).",
            "project",
        ),
    )
    difference: Share = field(
        default=0.05,
        metadata=about("Figures for the same key that differ by more than this share are a conflict.", "project"),
    )
    deadline: Annotated[float, NUMBER, Ge(1), Le(86_400)] = field(
        default=900, metadata=about("Deadline of one subtask, in seconds.", "project")
    )
    patience: Seconds = field(
        default=30,
        metadata=about("Seconds without a sign of life after which a member's work goes to another.", "project"),
    )
    heartbeat: Annotated[float, NUMBER, Ge(0.1), Le(60)] = field(
        default=5, metadata=about("Seconds between two signs of life of a worker.", "project")
    )
    lease: Annotated[float, NUMBER, Ge(0.5), Le(3600)] = field(
        default=30,
        metadata=about(
            "Seconds after which a message that a silent worker had taken goes to another worker.", "project"
        ),
    )
    deliveries: Annotated[Whole, Ge(1), Le(100)] = field(
        default=5,
        metadata=about("How often a message is delivered before it is set aside as a dead letter.", "project"),
    )
    max_message_mb: Annotated[float, NUMBER, Gt(0), Le(64)] = field(
        default=1,
        metadata=about("Largest message between members, in MB; larger texts travel as artifacts.", "project"),
    )
    max_waiting: Annotated[Whole, Ge(100), Le(10_000_000)] = field(
        default=100_000, metadata=about("Most messages that wait for one receiver or one role.", "project")
    )
    worker_questions: Literal["deny", "ask"] = field(
        default="deny",
        metadata=about(
            "What a worker does with a call that needs approval: deny it, or ask the user at the lead.",
            Setter(stricter=("deny",)),
        ),
    )
    attempts: Annotated[Whole, Ge(1), Le(10)] = field(
        default=3, metadata=about("How often a subtask is handed out before it has failed.", "project")
    )
    max_members: Annotated[Whole, Ge(1), Le(200)] = field(
        default=50,
        metadata=about("Most members of a team; from nine on, sub-orchestrators lead groups of eight.", "project"),
    )
    escalate: str = field(
        default="",
        metadata=about("A command that calls another person, by mail or chat, when a team's question has no answer."),
    )
    escalate_after: Annotated[float, NUMBER, Ge(0), Le(86_400)] = field(
        default=120,
        metadata=about("Seconds that a team's question waits for you before `team.escalate` runs.", "project"),
    )
