"""A plan as the model wrote it, before anybody looked whether it can be carried out. Values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ba_tui.core.teamwork.plans import SubTask
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen

QUESTIONED = 20
"""Steps; a plan with more is questioned."""
MOST = 200
"""Steps; a plan with more is refused."""


@frozen
class Written:
    """``covers``: what the request wants, with the ids of the steps that do it. ``wrong``: what could not be read.
    ``size``: how many steps were written; of more than MOST none is read."""

    goal: str = ""
    subtasks: tuple[SubTask, ...] = ()
    assumptions: tuple[str, ...] = ()
    question: str = ""
    covers: tuple[tuple[str, tuple[str, ...]], ...] = ()
    wrong: tuple[str, ...] = ()
    size: int = 0


@frozen
class Means:
    """What a plan may use: tools by name, and roles with what each is for. ``done``: ids of steps that are completed,
    when a plan is made anew."""

    tools: Mapping[str, Tool]
    roles: Mapping[str, str]
    done: Sequence[str] = ()
