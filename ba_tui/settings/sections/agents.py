"""Sub-agents: how deep, how many at once, for how long."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from annotated_types import Ge, Gt, Le

from ba_tui.core.values import frozen
from ba_tui.settings.fields import NUMBER, FieldCheck, Setter, Whole, about, finite
from ba_tui.settings.sections.group import SettingsGroup


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
