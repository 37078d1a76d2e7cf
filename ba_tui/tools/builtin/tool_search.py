"""The tool tool_search: finds tools that a model was not told of, by words of their names and descriptions.

Which tools those are, and that found ones join the list, is the business of ``visible``.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from ba_tui.core.results import ToolResult
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.ranking import matching
from ba_tui.core.text.wording import count
from ba_tui.core.tool import Call, Tool, ToolFacts
from ba_tui.core.values import frozen
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failed import Failed
from ba_tui.tools.registry import SEARCH

_SERVER = regex(r"mcp__.+?__")
MAX_MATCHES = 5
MAX_NAMES = 60
FindSkills: TypeAlias = Callable[[str], Sequence[tuple[str, str]]]
"""Gives names and descriptions of the skills that fit a query. Blocks."""


class Searched(Protocol):
    """Where unlisted tools are."""

    def deferred(self) -> Sequence[Tool]: ...

    def show(self, names: Sequence[str]) -> None:
        """List tools from the next request on."""
        ...


@frozen
class Search:
    """What the tool is told to models as; with ``skills`` it finds these too."""

    definition: Definition
    skills: FindSkills | None = None


def tool_search_tool(search: Search, searched: Searched, unlisted: Sequence[str] = ()) -> Tool:
    """``unlisted`` are named in the description; it stays as it is when others join them, for the prompt cache."""
    definition, skills = search.definition, search.skills
    description = definition.description
    if names := _grouped(unlisted):
        more = " and more" if len(names) > MAX_NAMES else ""
        description = f"{description} Unlisted now: {', '.join(names[:MAX_NAMES])}{more}."
    if skills:
        description = f"{description} Finds skills too; start one with activate_skill."

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        del call
        tools = searched.deferred()
        found = matching(args["query"], tools, _described)[: args.get("limit", MAX_MATCHES)]
        fitting = await asyncio.to_thread(skills, args["query"]) if skills else ()
        if not found and not fitting:
            names = ", ".join(tool.name for tool in tools[:MAX_NAMES]) or "none"
            raise Failed(
                "not_found",
                f"No tool{' or skill' if skills else ''} fits {args['query']!r}.",
                f"Unlisted tools: {names}.",
            )
        searched.show([tool.name for tool in found])
        told: list[dict[str, Any]] = [
            {"name": tool.name, "description": tool.description, "parameters": tool.input_schema} for tool in found
        ]
        told += [{"skill": name, "description": words, "use": f"activate_skill {name}"} for name, words in fitting]
        text = json.dumps(told, ensure_ascii=False, default=str)
        return ToolResult(text, kind="json", summary=_summary(len(found), len(fitting)))

    facts = ToolFacts(category="tools", target="query", repeatable=True)
    return Tool(SEARCH, description, definition.input_schema, run, timeout=10, facts=facts)


def _grouped(names: Sequence[str]) -> list[str]:
    """Names, those of tools of an MCP server as one."""
    servers = Counter(found[0] for name in names if (found := _SERVER.match(name)))
    return [*(name for name in names if not _SERVER.match(name)), *(f"{key}* ({n})" for key, n in servers.items())]


def _described(tool: Tool) -> tuple[str, str]:
    return tool.name, f"{tool.description} {' '.join(tool.facts.tags)} {tool.facts.category}"


def _summary(tools: int, skills: int) -> str:
    counts = [count(number, noun) for number, noun in ((tools, "tool"), (skills, "skill")) if number]
    return ", ".join(counts)
