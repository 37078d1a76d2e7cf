"""What the agent of a role is made from."""

from __future__ import annotations

from dataclasses import replace

from ba_tui.core.agent_spec import AgentSpec
from ba_tui.core.effects import Ceiling
from ba_tui.core.errors import UsageError
from ba_tui.core.teamwork.teams import Role
from ba_tui.team.catalog import AgentFiles


def member_spec(role: Role, files: AgentFiles) -> AgentSpec:
    """The agent of ``role`` with the prompt of the role below its own, and no more tools than both allow. Reads files.

    Raises:
        UsageError: there is no such agent, or its file is broken.
    """
    file = files.find(role.agent)
    if file is None or not file.usable:
        why = file.trouble if file else "there is no such agent"
        raise UsageError(f"The role {role.name} needs the agent {role.agent}: {why}.", "See ba agents list.")
    spec = file.spec
    if role.name == role.agent:
        return spec
    tools = spec.tools
    if role.tools is not None:
        tools = role.tools if tools is None else tuple(name for name in role.tools if name in tools)
    return replace(
        spec,
        name=role.name,
        description=role.description or spec.description,
        prompt="\n\n".join(filter(None, (spec.prompt, role.prompt))),
        model=role.model or spec.model,
        tools=tools,
        ceiling=spec.ceiling.within(Ceiling(tools=None if role.tools is None else frozenset(role.tools))),
        max_loops=role.max_loops,
        budget=role.budget or spec.budget,
    )
