"""What a team is for, as a value."""

from __future__ import annotations

import uuid
from dataclasses import field

from ba_tui.core.teamwork.plans import Plan
from ba_tui.core.teamwork.teams import Pattern, Role, Strategy
from ba_tui.core.values import frozen
from ba_tui.features.teams.engine.facts import Fact
from ba_tui.features.teams.engine.shared_context import Item


@frozen
class Assignment:
    """What a team is for. ``plan``: one that was begun before, ``facts`` and ``items``: what its members had stated
    and shared. ``roles``: those of the members; ``known``: all that there are. ``deadline`` of the whole in seconds."""

    goal: str
    roles: tuple[Role, ...]
    known: tuple[Role, ...] = ()
    pattern: Pattern = "hierarchical"
    conflicts: Strategy = "majority"
    deadline: float | None = None
    plan: Plan | None = None
    facts: tuple[tuple[str, tuple[Fact, ...]], ...] = ()
    items: tuple[Item, ...] = ()
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
