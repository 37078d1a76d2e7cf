"""Settings of sub-agents, plans, teams, checkpoints and sessions."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le

from ba_tui.core.teamwork import Pattern, Strategy
from ba_tui.core.values import frozen
from ba_tui.settings.fields import (
    NUMBER,
    Amount,
    FieldCheck,
    Seconds,
    Setter,
    SettingsGroup,
    Share,
    Whole,
    about,
    finite,
)


@frozen
class AgentSettings(SettingsGroup):
    """Limits of sub-agents. An agent's file and the call that starts it may set tighter ones."""

    main: str = field(
        default="", metadata=about("The agent that you talk to; by default ba itself. Flag --agent.", "project")
    )
    given: str = field(default="", metadata=about("Agents as JSON; only as the flag --agents."))
    depth: Annotated[Whole, Ge(0), Le(10)] = field(
        default=3,
        metadata=about("How deep agents may start further agents; 0 starts none.", Setter("project", lower=True)),
    )
    at_once: Annotated[Whole, Ge(1), Le(100)] = field(
        default=8,
        metadata=about(
            "Sub-agents that work at the same time; further ones wait in line.", Setter("project", lower=True)
        ),
    )
    deadline: Annotated[float, NUMBER, Gt(0), FieldCheck(finite)] = field(
        default=1800, metadata=about("Seconds after which a sub-agent is stopped.", Setter("project", lower=True))
    )


@frozen
class PlanSettings(SettingsGroup):
    """Limits of one plan. Each of its agents has those of sub-agents besides."""

    at_once: Annotated[Whole, Ge(1), Le(100)] = field(
        default=8,
        metadata=about(
            "Steps of a plan that run at the same time, as long as they only read.", Setter("project", lower=True)
        ),
    )
    deadline: Annotated[float, NUMBER, Gt(0), FieldCheck(finite)] | None = field(
        default=None,
        metadata=about("Seconds after which a plan is ended with what it has.", Setter("project", lower=True)),
    )
    max_cost: Annotated[float, NUMBER, Gt(0), FieldCheck(finite)] | None = field(
        default=None,
        metadata=about("US dollars after which no further step of a plan is begun.", Setter("project", lower=True)),
    )


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


@frozen
class CheckpointSettings(SettingsGroup):
    """What is kept of the files before a turn changes any, for `/rewind`."""

    max_file_mb: Annotated[Amount, Gt(0), Le(1_000)] = field(
        default=10, metadata=about("The largest file that is kept, in MB; a larger one can't be rewound.", "project")
    )
    max_session_mb: Annotated[Amount, Gt(0), Le(1_000_000)] = field(
        default=500,
        metadata=about("Disk space for earlier versions of files in one session, in MB; the oldest go first."),
    )
    max_total_mb: Annotated[Amount, Gt(0), Le(10_000_000)] = field(
        default=5_000,
        metadata=about(
            "Disk space for the checkpoints of all sessions, in MB; the least recently used sessions go first."
        ),
    )
