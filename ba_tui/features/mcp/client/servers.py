"""All servers of a session, by their names: core.ports.mcp.McpServers, and what tools and prompts ask of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.mcp import McpError, ServerConfig, ServerState
from ba_tui.core.text.wording import nearest
from ba_tui.features.mcp.client.definitions import server_names
from ba_tui.features.mcp.client.server import Server, started
from ba_tui.features.mcp.client.values import ServerMeans


class Servers:
    """Made once for a session; nothing is started before ``begin`` or a call. Reads the files of known servers."""

    def __init__(self, configs: Sequence[ServerConfig], means: ServerMeans) -> None:
        self._means = means
        self._listeners: dict[object, Callable[[], None]] = {}
        self.version = 0
        """Grows whenever something changes that a list of tools shows."""
        parts = server_names([config.name for config in configs])
        self.each: Mapping[str, Server] = {
            config.name: Server(config, parts[config.name], means, self._changed) for config in configs
        }
        self._tasks: set[asyncio.Task[object]] = set()

    # core.ports.mcp.McpServers

    def listed(self) -> Sequence[ServerState]:
        return [server.state() for server in self.each.values()]

    def listen(self, changed: Callable[[], None]) -> Callable[[], object]:
        key = object()
        self._listeners[key] = changed
        return partial(self._listeners.pop, key, None)

    def begin(self) -> None:
        for server in self.each.values():
            if server.unknown:
                task = started(server.connect)
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def settled(self, seconds: float) -> None:
        """Wait until the tools of all servers are known, or that they can't be; at most so many seconds."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    async def connect(self, name: str) -> ServerState:
        server = self._named(name)
        await server.connect()
        return server.state()

    async def reconnect(self, name: str) -> ServerState:
        server = self._named(name)
        await server.reconnect()
        return server.state()

    async def enable(self, name: str, tool: str = "", *, on: bool) -> None:
        server = self._named(name)
        config = server.config
        if tool:
            self._tool(server, tool)
            off = config.tools_off - {tool} if on else config.tools_off | {tool}
            server.config = replace(config, tools_off=off)
        else:
            server.config = replace(config, enabled=on)
            if not on:
                await server.disconnect()
        self._changed()
        if self._means.keep:
            await asyncio.to_thread(self._means.keep, name, tool, on)

    async def approve(self, name: str, tool: str) -> None:
        server = self._named(name)
        self._tool(server, tool)
        await server.approve(tool)

    def difference(self, name: str, tool: str) -> tuple[str, str]:
        return self._named(name).difference(tool)

    def logs(self, name: str) -> Sequence[str]:
        return self._named(name).logs()

    async def login(self, name: str, show: Callable[[str], None]) -> None:
        server, authority = self._named(name), self._means.authority
        if server.config.transport == "stdio" or authority is None:
            raise McpError(f"The MCP server {name} takes no login.", "Only servers with an address do.")
        await authority.login(server.config, show)
        await server.reconnect()

    async def logout(self, name: str) -> None:
        server = self._named(name)
        if self._means.authority:
            await self._means.authority.logout(server.config)
        await server.disconnect()

    async def close(self) -> None:
        """End all connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*(server.disconnect(closing=True) for server in self.each.values()))

    def _changed(self) -> None:
        self.version += 1
        for listener in tuple(self._listeners.values()):
            listener()

    def _named(self, name: str) -> Server:
        if name in self.each:
            return self.each[name]
        near = nearest(name, self.each)
        raise UsageError(f"There is no MCP server {name!r}.", f"Did you mean {near}?" if near else "See ba mcp list.")

    def _tool(self, server: Server, name: str) -> None:
        known = [tool.name for tool in server.tools()]
        if name not in known:
            near = nearest(name, known)
            hint = f"Did you mean {near}?" if near else "See /mcp."
            raise UsageError(f"The MCP server {server.config.name} has no tool {name!r}.", hint)
