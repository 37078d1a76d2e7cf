"""What an agent is made from: one value for main, sub-agents, planners and team members. Who builds it is elsewhere."""

from __future__ import annotations

from pathlib import Path

from ba_tui.core.effects import UNLIMITED, Ceiling
from ba_tui.core.values import frozen


@frozen
class Budget:
    """What an agent may spend on one task, its own sub-agents included: ``cost`` in US dollars, ``tokens`` in and out;
    None: no limit of its own."""

    cost: float | None = None
    tokens: int | None = None


@frozen
class ProjectCopy:
    """``files`` holds what ``project``, the top folder of the repository, held when it was copied. Both resolved.
    ``left``: what is not in it, and why."""

    project: Path
    files: Path
    left: tuple[str, ...] = ()


@frozen
class AgentSpec:
    """``name`` and ``description`` are what other agents choose it by; ``prompt`` is its system prompt.

    ``model``: None asks the model of whoever starts it. ``tools``: the names of the tools it is given; None: all that
    its role may have. ``ceiling``: the most that it may do. ``max_loops``: model requests within one task.
    ``expected_output``: what its answer must give, which a model checks before the agent ends; empty: nobody does.
    ``effort``: how much a model that reasons spends on it, empty for what the settings say. ``skills``: the names of
    those whose instructions a sub-agent has from the start. ``copy``: the copy of the project that it works in.
    """

    name: str
    description: str = ""
    prompt: str = ""
    model: str | None = None
    tools: tuple[str, ...] | None = None
    ceiling: Ceiling = UNLIMITED
    max_loops: int = 100
    budget: Budget | None = None
    expected_output: str = ""
    effort: str = ""
    skills: tuple[str, ...] = ()
    copy: ProjectCopy | None = None
