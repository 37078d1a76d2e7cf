"""Tools of servers as tools of the session: judged, asked about and bounded like all others.

What a server says of its own tools (that one only reads, say) is shown, and allows nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, cast

from ba_tui.core.errors import BaError
from ba_tui.core.ports.mcp import RemoteTool
from ba_tui.core.ports.rooms import JoiningTool, ToolsFound
from ba_tui.core.results import Diff, Display, ToolResult, failure
from ba_tui.core.text.wording import one_line, sentence
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.features.mcp.client.server import Server
from ba_tui.features.mcp.client.servers import Servers
from ba_tui.features.mcp.tools.results import tool_result
from ba_tui.tools.modalities import Modalities

CATEGORY = "mcp"
TARGET_CHARS = 200
TARGETS = ("path", "url", "uri", "query", "q", "command", "name", "id", "repo", "text", "message")
"""Arguments that usually say what a call is about."""
PATHS = ("path", "paths", "file", "file_path", "filepath", "directory", "folder", "source", "destination")
"""Arguments of a server on this machine that name files, which rules about paths and secrets judge."""


def _paths(args: Mapping[str, Any]) -> tuple[str, ...]:
    found: list[str] = []
    for name in PATHS:
        value = args.get(name)
        each = cast("list[object]", value) if isinstance(value, list) else [value]
        found += [text for text in each if isinstance(text, str)]
    return tuple(found)


def _changed(server: Server, name: str) -> RemoteTool | None:
    """The present definition of a tool where it differs from the approved one."""
    return next((each for each in server.tools() if each.name == name and each.standing == "changed"), None)


class RemoteTools:
    """The tools of all servers of a session; the same objects as long as nothing of them changes."""

    def __init__(self, servers: Servers, modalities: Modalities) -> None:
        self._servers, self._modalities = servers, modalities
        self._made: dict[str, tuple[object, JoiningTool]] = {}
        self._seen = -1

    def outdated(self) -> bool:
        """Return whether the tools may be others than at the last look."""
        return self._seen != self._servers.version

    def look(self) -> ToolsFound:
        """Return the tools that may be called now. Starts nothing."""
        self._seen = self._servers.version
        found: dict[str, tuple[object, JoiningTool]] = {}
        problems: list[str] = []
        for server, tool in self._all():
            if tool.standing == "refused":
                problems.append(sentence(f"{server.config.name}, {one_line(tool.name, 80)}: {tool.trouble}"))
            if tool.standing in {"refused", "off"}:
                continue
            if tool.full_name in found:
                problems.append(
                    f"{server.config.name}, {one_line(tool.name, 80)}: another server has {tool.full_name}."
                )
                continue
            shown = (server.approved(tool.name) or tool) if tool.standing == "changed" else tool
            key = (server.config, shown, tool.standing)
            before = self._made.get(tool.full_name)
            place = f"MCP server {server.config.name}"
            same = before if before and before[0] == key else None
            found[tool.full_name] = same or (key, JoiningTool(self._tool(server, shown, tool.full_name), place))
        self._made = found
        return ToolsFound([each for _, each in found.values()], problems)

    def _all(self) -> Iterator[tuple[Server, RemoteTool]]:
        for server in self._servers.each.values():
            if server.usable:
                yield from ((server, tool) for tool in server.tools())

    def _tool(self, server: Server, tool: RemoteTool, name: str) -> Tool:
        shown: RemoteTool | None = None

        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            if any(each.name == tool.name and each.standing == "off" for each in server.tools()):
                return failure("permission_denied", f"The user has switched {name} off.", hint="Use another tool.")
            answer = await server.call(tool.name, args, call, shown)
            return await asyncio.to_thread(tool_result, answer, self._modalities)

        async def concern(args: Mapping[str, Any]) -> str:
            del args
            # What is remembered of a server may be out of date: what it offers now is judged. A failure is told by run.
            with suppress(BaError):
                await server.connect()
            changed = _changed(server, tool.name)
            return f"The MCP server {server.config.name} changed this tool: {changed.trouble}" if changed else ""

        async def preview(args: Mapping[str, Any]) -> Display | None:
            nonlocal shown
            del args
            shown = _changed(server, tool.name)
            before, after = server.difference(tool.name)
            return Diff(f"{name} (definition)", before or None, after) if after else None

        local = server.config.transport == "stdio"
        properties: Mapping[str, Any] = tool.schema.get("properties", {})
        target = next((each for each in TARGETS if each in properties), next(iter(properties), ""))
        facts = ToolFacts(
            CATEGORY,
            # No argument is a command, which ``target`` would be taken for.
            target_of=lambda args: str(args.get(target, ""))[:TARGET_CHARS],
            paths_of=_paths if local and set(PATHS) & set(properties) else None,
            tags=(server.config.name,),
            bulky=True,
            confined=local and server.config.sandboxed and not server.config.network,
        )
        about = " ".join(filter(None, (tool.title and f"{tool.title}:", tool.description)))
        return Tool(
            name,
            about or f"A tool of the MCP server {server.config.name}.",
            tool.schema,
            run,
            Effect.EXECUTE if local else Effect.NETWORK,
            timeout=server.config.call_timeout,
            facts=facts,
            preview=preview,
            concern=concern,
        )
