"""The agent that the person talks to: ba, or one that a file describes (the flag --agent)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ba_tui.agent_files.catalog import AgentFiles
from ba_tui.core.agent_spec import AgentSpec
from ba_tui.core.errors import UsageError
from ba_tui.core.events import MAIN
from ba_tui.core.text.wording import clipped, suggestion
from ba_tui.settings import Settings

if TYPE_CHECKING:
    from ba_tui.agent_files.agent_file import AgentFile


def main_spec(files: AgentFiles, settings: Settings, system: str, skills: str) -> AgentSpec:
    """What the main agent is made from: ``system`` is ba's prompt, ``skills`` lists those there are. Raises UsageError,
    naming the nearest, when the agent of the settings is unknown or broken."""
    name = settings.agents.main
    spec = AgentSpec(MAIN, prompt=system, max_loops=settings.max_loops)
    if name:
        # The lists of tools and the limits of its file hold, as they do for a sub-agent.
        found = agent_called(files, name).spec
        # The person's own effort comes before that of the file, as their model does.
        effort = "" if settings.effort else found.effort
        spec = replace(found, name=MAIN, max_loops=settings.max_loops, effort=effort)
    return replace(spec, prompt="\n\n".join(part.strip() for part in (spec.prompt, skills) if part.strip()))


def agent_called(files: AgentFiles, name: str) -> AgentFile:
    """The agent of that name. Raises UsageError, naming the nearest, or saying why it can't be used."""
    from ba_tui.settings.tool_aliases import agent_name  # noqa: PLC0415 - see AgentFiles

    found = files.find(name) or files.find(agent_name(name))
    if found is None:
        names = [agent.spec.name for agent in files.look() if agent.usable]
        raise UsageError(f"There is no agent {clipped(name, 60)!r}: {suggestion(name, names)}.", "See ba agents list.")
    if found.trouble:
        raise UsageError(f"The agent {found.spec.name} can't be used: {found.trouble}.", f"Correct {found.path}.")
    if found.off:
        raise UsageError(f"The agent {found.spec.name} is switched off in {found.path}.", "Choose another agent.")
    return found
