"""What the agent of a role is made from."""

from __future__ import annotations

from dataclasses import replace

from ba_tui.agent_files.catalog import AgentFiles
from ba_tui.core.agent_spec import AgentSpec
from ba_tui.core.effects import Ceiling
from ba_tui.core.errors import UsageError
from ba_tui.core.teamwork.teams import Role

SHARE, ASK_TEAM, BORROW = "share", "ask_team", "borrow_tool"
"""Tools of members alone."""


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
        return _sharing(spec)
    tools = spec.tools
    if role.tools is not None:
        tools = role.tools if tools is None else tuple(name for name in role.tools if name in tools)
    made = replace(
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
    return _sharing(made)


def _sharing(spec: AgentSpec) -> AgentSpec:
    """``spec`` with what members share things by; these tools do nothing outside of the team."""
    names = (SHARE, ASK_TEAM, BORROW)
    tools = spec.ceiling.tools
    ceiling = replace(spec.ceiling, tools=None if tools is None else tools | {*names})
    return replace(spec, tools=None if spec.tools is None else (*spec.tools, *names), ceiling=ceiling)
