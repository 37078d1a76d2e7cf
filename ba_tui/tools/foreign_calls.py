"""Calls of delegate_task by the names and arguments of Claude Code's tool Task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ba_tui.core.effects import Effect
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.settings.tool_aliases import ALIASES

DELEGATE = "delegate_task"
TASK = frozenset(ALIASES[DELEGATE])
"""What Claude Code calls the tool."""
# Left out, the changes of an isolated agent would go where whoever asked for this does not expect them.
_KEPT = ("description", "prompt", "resume", "isolation")


def task_tool(tool: Tool) -> Tool:
    """``tool``, called with the arguments of Task."""

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        return await tool.run(own_arguments(args), call)

    def below(args: Mapping[str, Any]) -> Effect:
        return tool.reach(own_arguments(args))

    def target(args: Mapping[str, Any]) -> str:
        return tool.target(own_arguments(args))

    facts = replace(tool.facts, below=below, target_of=target)
    return replace(tool, run=run, facts=facts)


def own_arguments(args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of delegate_task that those of Task mean; what it does not know is left out, as ``model``."""
    given = {name: args[name] for name in _KEPT if args.get(name)}
    prompt = str(args.get("prompt") or "")
    given.setdefault("description", prompt[:80] or "a task")
    given["agent_type"] = args.get("agent_type") or args.get("subagent_type") or "general"
    if args.get("background") or args.get("run_in_background"):
        given["background"] = True
    return given
