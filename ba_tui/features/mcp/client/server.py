"""The servers of a session: each is connected on first use and restarted with pauses, and its tools are compared with
the approved ones.

The package ``mcp`` is loaded in a thread, for the first connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ba_tui.core.errors import BaError, StorageError, UsageError
from ba_tui.core.ports.mcp import (
    LoginNeeded,
    McpError,
    RemoteTool,
    ServerConfig,
    ServerPhase,
    ServerState,
    ToolChanged,
)
from ba_tui.core.text.wording import correction, one_line
from ba_tui.core.tool import Call
from ba_tui.features.mcp.client.definitions import (
    INSTRUCTIONS_CHARS,
    KnownServers,
    definition_text,
    plain_text,
    read_tools,
    server_names,
)
from ba_tui.features.mcp.client.host import ServerHost, oauth
from ba_tui.features.mcp.client.values import RemoteResult, ServerLog

if TYPE_CHECKING:
    from ba_tui.features.mcp.client.connection import Connection


T = TypeVar("T")
PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds before each successive restart; after the last one the server stays down."""
STEADY = 60.0
"""Seconds after which a connection counts as stable, and earlier failures are forgotten."""
FRESH = 5.0
"""Seconds after a failed connection in which no new attempt is made."""
GATHER = 0.2
"""Seconds within which several changes cause one listing."""
MOST_NOTES = 20
MOST_LEFT_OUT = 100
AGAIN = "Connect again: /mcp, or start a new session."


class Server:
    """One server. ``part``: its prefix in tool names. ``changed`` is called on the loop when its state changes."""

    def __init__(self, config: ServerConfig, part: str, host: ServerHost, changed: Callable[[], None]) -> None:
        self.config, self.part = config, part
        self._host, self._tell = host, changed
        self._kept = KnownServers(host.store, next(iter(host.roots()), None))
        self._known = self._kept.read(config)
        self._log = ServerLog()
        self._phase: ServerPhase = "idle"
        self._error: BaError | None = None
        self._failed_at = self._since = float("-inf")
        self._notes: tuple[str, ...] = ()
        self._offers: dict[str, None] = {}
        """Prompts and resources that changed in this session, each as a line."""
        self._instructions = ""
        self._cached = bool(self._known.listed)
        self._restarts = 0
        self._connection: Connection | None = None
        self._opening: asyncio.Task[Connection] | None = None
        self._later: set[asyncio.Task[None]] = set()
        self._listing: asyncio.Task[None] | None = None
        self._closed = False

    # State

    @property
    def usable(self) -> bool:
        """Return whether it may be connected to."""
        return self.config.enabled and self.config.trusted and not self.config.trouble

    @property
    def unknown(self) -> bool:
        """Return whether its tools are not known yet, and it has not failed."""
        return self.usable and not self._known.listed and self._phase in {"idle", "connecting"} and not self._since > 0

    def state(self) -> ServerState:
        """Return its present state."""
        config, error = self.config, self._error
        phase: ServerPhase = self._phase
        trouble, fix = (str(error), error.hint) if error else ("", "")
        if not config.trusted:
            phase, trouble, fix = "untrusted", "This project is not trusted.", "Trust it: /trust, or ba trust."
        elif not config.enabled:
            phase, trouble, fix = "off", "", ""
        elif config.trouble:
            phase, trouble, fix = "failed", config.trouble, "Correct the file that names it."
        return ServerState(
            config,
            phase,
            trouble,
            fix,
            self._known.title,
            self._known.protocol,
            self._instructions,
            self.tools(),
            self._cached,
            self._known.resources,
            self._known.prompts,
            _bounded((*self._known.left_out, *self._notes)),
            self._restarts,
            self._known.left_out,
        )

    def tools(self) -> tuple[RemoteTool, ...]:
        """Return its tools with their states: switched off, changed, refused or usable."""
        off = self.config.tools_off
        return tuple(
            replace(tool, standing="off", trouble="") if tool.name in off and tool.standing != "refused" else tool
            for tool in self._known.judged()
        )

    def approved(self, name: str) -> RemoteTool | None:
        """Return the approved definition of a tool."""
        return self._known.approved.get(name)

    def _changed(self, name: str) -> RemoteTool | None:
        """Return the present definition of a tool if it differs from the approved one."""
        return next((each for each in self._known.judged() if each.name == name and each.standing == "changed"), None)

    def difference(self, name: str) -> tuple[str, str]:
        """Return the approved and the present definition as text; empty texts if they are equal."""
        tool = self._changed(name)
        if tool is None:
            return "", ""
        old = self._known.approved.get(name)
        return definition_text(old) if old else "", definition_text(tool)

    def logs(self) -> list[str]:
        """Return the newest lines that it printed or logged."""
        return self._log.lines()

    # Actions

    async def connect(self) -> Connection:
        """Return the live connection; make one if needed. Raises McpError, LoginNeeded."""
        # While its tools are listed, it is unknown whether they are the approved ones.
        if self._connection and self._opening is None:
            return self._connection
        state = self.state()
        if not self.usable or self._closed:
            raise McpError(f"The MCP server {self.config.name} can't be used: {self._why(state)}", state.fix)
        if self._error and time.monotonic() - self._failed_at < FRESH:
            raise self._error
        if self._phase == "failed" and self._restarts >= len(PAUSES) and self._error:
            raise self._error
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(self._opened)
        return await asyncio.shield(self._opening)

    async def reconnect(self) -> None:
        """Connect again; earlier failures are forgotten. Raises McpError, LoginNeeded."""
        await self.disconnect()
        self._error, self._restarts, self._failed_at = None, 0, float("-inf")
        await self.connect()

    async def disconnect(self, *, closing: bool = False) -> None:
        """End the connection and pending restarts. ``closing``: permanently."""
        self._closed = self._closed or closing
        for task in (*self._later, *((self._opening,) if self._opening else ())):
            task.cancel()
        connection, self._connection = self._connection, None
        self._opening = None
        if connection:
            await connection.close()
        self._stand("idle")

    async def call(
        self, tool: str, args: Mapping[str, Any], call: Call, shown: RemoteTool | None = None
    ) -> RemoteResult:
        """Call a tool. A changed tool runs only if the user was ``shown`` this very definition, which approves it.
        Raises McpError, ToolChanged."""
        connection = await self.connect()
        if present := self._changed(tool):
            if present != shown:
                raise ToolChanged(self.config.name, tool)
            await self.approve(tool)
        return await self._asked(connection, lambda live: live.call(tool, args, call))

    async def read(self, uri: str, call: Call | None = None) -> RemoteResult:
        """Read a resource. Raises McpError."""
        return await self._asked(await self.connect(), lambda live: live.read(uri, call))

    async def prompt(self, name: str, args: Mapping[str, str], call: Call | None = None) -> RemoteResult:
        """Get a prompt, filled in. Raises McpError."""
        return await self._asked(await self.connect(), lambda live: live.prompt(name, args, call))

    async def approve(self, tool: str) -> None:
        """Mark the present definition of a tool as approved."""
        self._known = self._known.with_approved(tool)
        await self._save()
        self._tell()

    # Connecting and restarting

    async def _asked(self, connection: Connection, ask: Callable[[Connection], Awaitable[T]]) -> T:
        """Return the answer; if the server has forgotten the session, start a new one and repeat once."""
        try:
            return await ask(connection)
        except McpError as error:
            if "Session terminated" not in str(error) or self.config.transport == "stdio":
                raise
        await self.disconnect()
        return await ask(await self.connect())

    async def _open(self) -> Connection:
        self._error = None
        self._stand("connecting")
        try:
            made = await asyncio.to_thread(importlib.import_module, "ba_tui.features.mcp.client.connection")
            connection: Connection = made.Connection(self.config, self._host, self._log, self._lost, self._list_again)
            await self._negotiated(connection)
            self._connection = connection
            await self._list(connection)
        except BaError as error:
            if left := self._connection:
                self._connection = None
                await left.close()
            self._error, self._failed_at = error, time.monotonic()
            self._log.add(f"ba: {error}")
            self._stand("login" if isinstance(error, LoginNeeded) else "failed")
            raise
        self._since, self._cached = time.monotonic(), False
        self._stand("ready")
        return connection

    async def _negotiated(self, connection: Connection) -> None:
        """Open a connection. A server of an older protocol may exit at the probe of the newest one: it is then opened
        with its own protocol."""
        try:
            await connection.open(spoken=self._known.protocol)
        except LoginNeeded:
            raise
        except McpError:
            # The next attempt probes the protocol again, with the long timeout.
            self._known = replace(self._known, protocol="")
            if self.config.transport != "stdio" or not connection.died:
                raise
            await connection.open("legacy")

    def _opened(self, task: asyncio.Task[Connection]) -> None:
        self._opening = None
        if not task.cancelled():
            # Waiting callers get the error; a background connection has no caller.
            task.exception()

    async def _list(self, connection: Connection) -> None:
        """List what the server offers, and compare its tools with the approved ones. Raises McpError."""
        offered = await connection.offered()
        read = await asyncio.to_thread(read_tools, self.part, offered.tools)
        instructions, trouble = plain_text(connection.instructions, INSTRUCTIONS_CHARS)
        before = self._known
        self._known = replace(
            before.with_listing(read.tools),
            title=connection.title,
            protocol=connection.protocol,
            resources=offered.resources,
            prompts=offered.prompts,
            left_out=tuple(dict.fromkeys((*offered.left_out, *read.left_out)))[:MOST_LEFT_OUT],
        )
        changed = [
            f"{one_line(tool.name, 80)}: {tool.trouble}" for tool in self._known.judged() if tool.standing == "changed"
        ]
        self._offers |= dict.fromkeys(before.offer_changes(self._known))
        said = [f"in its instructions {trouble}"] if trouble else []
        notes = [*read.notes, *offered.notes, *said, *changed, *self._offers]
        self._instructions = instructions
        self._notes = tuple(dict.fromkeys(notes))
        if self._known != before:
            await self._save()

    def _list_again(self) -> None:
        """List again: the server reported changed offers."""
        if self._listing is None and self._connection:
            self._listing = asyncio.create_task(self._relist(self._connection))
            self._later.add(self._listing)
            self._listing.add_done_callback(self._later.discard)

    async def _relist(self, connection: Connection) -> None:
        try:
            await asyncio.sleep(GATHER)
            self._listing = None
            await self._list(connection)
        except BaError as error:
            self._log.add(f"ba: {error}")
        finally:
            self._listing = None
        self._tell()

    def _lost(self, why: str) -> None:
        """Handle a connection that ended unexpectedly."""
        if self._connection is None:
            return
        self._connection = None
        if self._closed:
            return
        self._log.add(f"ba: the connection ended: {why}")
        self._error = McpError(f"The MCP server {self.config.name} stopped. {why}".rstrip(), AGAIN)
        if time.monotonic() - self._since > STEADY:
            self._restarts = 0
        if self._restarts >= len(PAUSES):
            self._stand("failed")
            return
        if self.config.transport != "stdio":
            # No restart is needed: the next call connects.
            self._stand("idle")
            return
        pause = PAUSES[self._restarts]
        self._restarts += 1
        self._stand("waiting")
        task = asyncio.create_task(self._restart(pause))
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def _restart(self, pause: float) -> None:
        await asyncio.sleep(pause)
        with contextlib.suppress(BaError):
            await self.connect()

    async def _save(self) -> None:
        try:
            await asyncio.to_thread(self._kept.save, self.config, self._known)
        except StorageError as error:
            self._log.add(f"ba: its tools can't be remembered: {error}")

    def _stand(self, phase: ServerPhase) -> None:
        self._phase = phase
        self._tell()

    def _why(self, state: ServerState) -> str:
        return state.trouble or {"off": "it is switched off."}.get(state.phase, "the session is closed.")


def _bounded(notes: tuple[str, ...]) -> tuple[str, ...]:
    rest = len(notes) - MOST_NOTES
    return (*notes[:MOST_NOTES], f"… and {rest} more") if rest > 0 else notes


def started(work: Callable[[], Awaitable[object]]) -> asyncio.Task[object]:
    """Return a background task; its exceptions are already part of the state."""

    async def quiet() -> object:
        with contextlib.suppress(BaError):
            return await work()
        return None

    return asyncio.create_task(quiet())


class Servers:
    """All servers of a session by name, core.ports.mcp.McpServers. Nothing is started before ``begin`` or a call. Reads
    the files of known servers."""

    def __init__(self, configs: Sequence[ServerConfig], host: ServerHost) -> None:
        self._host = host
        self._listeners: dict[object, Callable[[], None]] = {}
        self.version = 0
        """Grows whenever something changes that a list of tools shows."""
        parts = server_names([config.name for config in configs])
        self.each: Mapping[str, Server] = {
            config.name: Server(config, parts[config.name], host, self._changed) for config in configs
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
        """Wait until the tools of all servers are known or have failed, at most so many seconds."""
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
        if self._host.keep:
            await asyncio.to_thread(self._host.keep, name, tool, on)

    async def approve(self, name: str, tool: str) -> None:
        server = self._named(name)
        self._tool(server, tool)
        await server.approve(tool)

    def difference(self, name: str, tool: str) -> tuple[str, str]:
        return self._named(name).difference(tool)

    def logs(self, name: str) -> Sequence[str]:
        return self._named(name).logs()

    async def login(self, name: str, show: Callable[[str], None]) -> None:
        server, tokens = self._named(name), self._host.tokens
        if server.config.transport == "stdio" or tokens is None:
            raise McpError(f"The MCP server {name} takes no login.", "Only servers with an address do.")
        await (await oauth(tokens)).login(server.config, show)
        await server.reconnect()

    async def logout(self, name: str) -> None:
        server = self._named(name)
        if self._host.tokens:
            await asyncio.to_thread(self._host.tokens.drop, server.config)
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
        raise UsageError(f"There is no MCP server {name!r}.", correction(name, self.each, "See ba mcp list."))

    def _tool(self, server: Server, name: str) -> None:
        known = [tool.name for tool in server.tools()]
        if name not in known:
            hint = correction(name, known, "See /mcp.")
            raise UsageError(f"The MCP server {server.config.name} has no tool {name!r}.", hint)
