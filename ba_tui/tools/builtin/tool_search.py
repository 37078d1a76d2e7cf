"""The tool tool_search: finds tools that a model was not told of, by words of their names and descriptions.

Which tools those are, and that found ones join the list, is the business of ``visible``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ba_tui.core.results import ToolResult
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count
from ba_tui.core.tool import Call, Tool, ToolFacts
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failed import Failed
from ba_tui.tools.registry import SEARCH

MAX_MATCHES = 5
MAX_NAMES = 60
_WORD = regex(r"[^\W_]+")


class Searched(Protocol):
    """Where unlisted tools are."""

    def deferred(self) -> Sequence[Tool]: ...

    def show(self, names: Sequence[str]) -> None:
        """List tools from the next request on."""
        ...


def tool_search_tool(definition: Definition, searched: Searched, unlisted: Sequence[str] = ()) -> Tool:
    """``unlisted`` are named in the description; it stays as it is when others join them, for the prompt cache."""
    description = definition.description
    if unlisted:
        more = " and more" if len(unlisted) > MAX_NAMES else ""
        description = f"{description} Unlisted now: {', '.join(unlisted[:MAX_NAMES])}{more}."

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        del call
        tools = searched.deferred()
        found = matching(args["query"], tools)[: args.get("limit", MAX_MATCHES)]
        if not found:
            names = ", ".join(tool.name for tool in tools[:MAX_NAMES]) or "none"
            raise Failed("not_found", f"No tool fits {args['query']!r}.", f"Unlisted tools: {names}.")
        searched.show([tool.name for tool in found])
        told = [{"name": tool.name, "description": tool.description, "parameters": tool.input_schema} for tool in found]
        text = json.dumps(told, ensure_ascii=False, default=str)
        return ToolResult(text, kind="json", summary=count(len(found), "tool"))

    facts = ToolFacts(category="tools", target="query", repeatable=True)
    return Tool(SEARCH, description, definition.input_schema, run, timeout=10, facts=facts)


def matching(query: str, tools: Sequence[Tool]) -> list[Tool]:
    """The tools that share words with ``query``, the best first; beginnings of words count half."""
    words = _words(query)
    scored = [(_score(words, tool), index, tool) for index, tool in enumerate(tools)]
    return [tool for score, _, tool in sorted(scored, key=lambda each: (-each[0], each[1])) if score > 0]


def _score(words: set[str], tool: Tool) -> float:
    name = _words(tool.name)
    rest = _words(f"{tool.description} {' '.join(tool.facts.tags)} {tool.facts.category}")
    return 3 * _shared(words, name) + _shared(words, rest)


def _shared(words: set[str], others: set[str]) -> float:
    begun = {word for word in words - others if len(word) > 2 and any(_begins(word, other) for other in others)}
    return len(words & others) + len(begun) / 2


def _begins(one: str, other: str) -> bool:
    return other.startswith(one) or (len(other) > 3 and one.startswith(other))


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))
