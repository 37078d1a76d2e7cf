"""Declares web_fetch, extract_links and web_search without their code.

That comes in with the first call, in fetch.py, links.py and search.py: most sessions never need it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cache
from typing import Any

from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool, ToolFacts
from ba_tui.core.values import frozen
from ba_tui.settings import Settings
from ba_tui.tools.definitions import Definition
from ba_tui.tools.web.declarations import FETCH, SEARCH, SearchChoice, web_tool


@frozen
class WebOptions:
    """``allow_private``: hosts and networks that may be asked although they are private."""

    allow_private: tuple[str, ...] = ()
    search: SearchChoice = field(default_factory=SearchChoice)


def web_options(settings: Settings, own: Settings, env: Mapping[str, str]) -> WebOptions:
    """What ``settings`` choose; ``own`` are those without the project's files."""
    chosen = settings.web_search
    foreign = bool(chosen.url) and chosen.url != own.web_search.url
    search = SearchChoice(chosen.backend, chosen.url, chosen.api_key_env, env, foreign=foreign)
    return WebOptions(settings.web.allow_private, search)


def web_tools(definitions: Mapping[str, Definition], web: WebOptions) -> tuple[Tool, ...]:
    @cache
    def made() -> dict[str, Tool]:
        from ba_tui.tools.web.addresses import read_reach  # noqa: PLC0415
        from ba_tui.tools.web.client import WebClient  # noqa: PLC0415
        from ba_tui.tools.web.fetch import web_fetch_tool  # noqa: PLC0415
        from ba_tui.tools.web.links import extract_links_tool  # noqa: PLC0415 - see above
        from ba_tui.tools.web.search import web_search_tool  # noqa: PLC0415

        client = WebClient(read_reach(web.allow_private))
        tools = (
            web_fetch_tool(definitions["web_fetch"], client),
            extract_links_tool(definitions["extract_links"], client),
            web_search_tool(definitions["web_search"], client, web.search),
        )
        return {tool.name: tool for tool in tools}

    return (
        _known(definitions["web_fetch"], "web_fetch", FETCH, made),
        _known(definitions["extract_links"], "extract_links", FETCH, made),
        _known(definitions["web_search"], "web_search", SEARCH, made),
    )


def _known(definition: Definition, name: str, facts: ToolFacts, made: Callable[[], Mapping[str, Tool]]) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        tools = await asyncio.to_thread(made)
        return await tools[name].run(args, call)

    return web_tool(definition, name, facts, run)
