"""Plans: how many steps at once, for how long, for how much."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from annotated_types import Ge, Gt, Le

from ba_tui.core.values import frozen
from ba_tui.settings.fields import NUMBER, FieldCheck, Setter, Whole, about, finite
from ba_tui.settings.sections.group import SettingsGroup


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
