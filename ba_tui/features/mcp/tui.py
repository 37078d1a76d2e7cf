"""The browser of MCP servers: the state and scope of each, and actions on it; its tools on Enter."""

from __future__ import annotations

import asyncio
import webbrowser
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import ClassVar, TypeVar
from urllib.parse import urlsplit

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.worker import Worker

from ba_tui.core.errors import BaError
from ba_tui.core.ports.mcp import McpServers, RemoteTool, ServerPhase, ServerState, ToolStanding
from ba_tui.core.results import Diff
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.acts.port import Actions, inventory_of, needed
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.inspector.diff import diff_rows
from ba_tui.faces.tui.inspector.json_values import json_rows
from ba_tui.faces.tui.inspector.rows import GridRow, RowView, line, painted
from ba_tui.faces.tui.screens.list_screen import ListContent, ListRow, ListScreen
from ba_tui.faces.tui.screens.sheet import RowPage, Sheet, app_of, fact_rows, section_rows

T = TypeVar("T")
STANDINGS: dict[ToolStanding, str] = {"on": "on", "off": "off", "changed": "changed", "refused": "refused"}
LOG_LINES = 500
FACT = 12
"""Cells of the name of a fact."""


class ServerList(ListScreen[T]):
    """A list that is drawn again when a server changes."""

    def __init__(self, servers: McpServers, title: str) -> None:
        super().__init__(title)
        self._servers = servers
        self._stop_listening: Callable[[], object] | None = None

    def on_mount(self) -> None:
        self._stop_listening = self._servers.listen(self._draw)

    def on_unmount(self) -> None:
        if self._stop_listening:
            self._stop_listening()

    async def load(self) -> None:
        self._draw()

    def _draw(self) -> None:
        if self.is_attached:
            self.show(self.read())

    def _reconnect(self, name: str) -> None:
        self.say(f"Connecting to {name} …")
        self.perform(partial(self._servers.reconnect, name), f"{name} is connected.")


class ServerTools(ServerList[RemoteTool]):
    """The tools of one server. Typing searches names and descriptions."""

    ENTER: ClassVar[str] = "details"
    EMPTY: ClassVar[str] = "No tools are known. Ctrl+R connects."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "switch", "on/off", priority=True),
        Binding("ctrl+o", "about", "server and log", priority=True),
        Binding("ctrl+r", "reconnect", "reconnect", priority=True),
    ]

    def __init__(self, servers: McpServers, name: str) -> None:
        super().__init__(servers, name)
        self._server = name

    @property
    def state(self) -> ServerState:
        """Return the present state of the server."""
        return next(state for state in self._servers.listed() if state.name == self._server)

    def read(self) -> ListContent[RemoteTool]:
        state = self.state
        off = sum(tool.standing != "on" for tool in state.tools)
        parts = [self._server, count(len(state.tools), "tool"), f"{off} not used" if off else ""]
        empty = f"! {state.trouble} {state.fix}".rstrip() if state.trouble else ""
        return ListContent(
            [_tool_row(self._server, tool) for tool in state.tools], " · ".join(filter(None, parts)), empty
        )

    def choose(self, row: ListRow[RemoteTool]) -> None:
        if tool := row.value:
            changed = tool.standing == "changed"
            difference = self._servers.difference(self._server, tool.name) if changed else ("", "")
            approve = partial(self._servers.approve, self._server, tool.name) if changed else None
            rows = tool_rows(self._server, tool, difference)
            app_of(self).push_screen(McpPage(f"{self._server}: {tool.name}", rows, approve), self._after_page)

    def _after_page(self, message: str | None) -> None:
        self._draw()
        self.say(message or "")

    def action_about(self) -> None:
        rows = server_rows(self.state, self._servers.logs(self._server))
        app_of(self).push_screen(McpPage(self._server, rows))

    def action_switch(self) -> None:
        tool = self.item
        if tool is None:
            return
        if tool.standing == "refused":
            self.say(f"{tool.name} can't be used: {tool.trouble}")
            return
        on = tool.standing == "off"
        switch = partial(self._servers.enable, self._server, tool.name, on=on)
        self.perform(switch, f"{tool.name} is {'on' if on else 'off'} in this project.")

    def action_reconnect(self) -> None:
        self._reconnect(self._server)


class McpPage(RowPage):
    """A page of rows. ``approve`` approves the changed definition of a tool; dismissed with the result in words."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("a", "approve", "Approve the change")]

    def __init__(
        self, title: str, rows: Sequence[GridRow], approve: Callable[[], Awaitable[object]] | None = None
    ) -> None:
        keys = " · a approve the change" if approve else ""
        super().__init__(title, rows, keys=f"↑ ↓ scroll{keys} · Esc close")
        self._approve = approve

    def action_approve(self) -> None:
        if self._approve:
            self.run_worker(partial(self._approved, self._approve), group="approve", exit_on_error=False)

    async def _approved(self, approve: Callable[[], Awaitable[object]]) -> None:
        try:
            await approve()
        except BaError as error:
            self.dismiss(error.with_hint)
            return
        self.dismiss("The change is approved.")


def _tool_row(server: str, tool: RemoteTool) -> ListRow[RemoteTool]:
    said = " ".join((tool.description or tool.title).split())
    below = f"! {tool.trouble}" if tool.trouble else said
    return ListRow(tool.name, (tool.name, STANDINGS[tool.standing], server), below, keywords=said, value=tool)


def tool_rows(server: str, tool: RemoteTool, difference: tuple[str, str]) -> list[GridRow]:
    """Return the page of one tool: its names, its description, its changes."""
    hints = [
        "reads only" if tool.read_only else "may destroy" if tool.destructive else "writes",
        "can be repeated" if tool.idempotent else "",
        "reaches beyond this machine" if tool.open_world else "",
    ]
    rows = fact_rows(
        (
            ("Server", server),
            ("Name", tool.full_name),
            ("Title", tool.title),
            ("State", STANDINGS[tool.standing]),
            ("It says", ", ".join(filter(None, hints))),
        ),
        FACT,
    )
    if tool.trouble:
        rows += [line(), line((painted(tool.trouble), "warning"))]
    if any(difference):
        rows += [line(), line(("What changed since you approved it", "heading"))]
        rows += diff_rows(Diff(tool.name, *difference))
    rows += section_rows("What the model reads", [tool.description.strip()])
    return [*rows, line(), line(("Parameters", "heading")), *json_rows(dict(tool.schema))]


def server_rows(state: ServerState, log: Sequence[str]) -> list[GridRow]:
    """Return the page of one server: its configuration and state, its instructions, and its log, newest lines last."""
    config = state.config
    confined = "in the sandbox" if config.sandboxed else "outside the sandbox"
    rows = fact_rows(
        (
            ("Server", state.title),
            ("Protocol", state.protocol),
            ("Runs" if config.transport == "stdio" else "Address", config.address),
            ("Transport", f"{config.transport}, {confined}" if config.transport == "stdio" else config.transport),
            ("From", f"{config.scope}: {config.source}"),
            ("Restarts", str(state.restarts or "")),
        ),
        FACT,
    )
    if state.trouble:
        rows += [line(), line((painted(f"{state.trouble} {state.fix}".rstrip()), "warning"))]
    resources = [f"{each.uri}  {each.description or each.name}".rstrip() for each in state.resources]
    prompts = [f"/{state.name}:{each.name}  {each.description}".rstrip() for each in state.prompts]
    parts = (
        ("Notes", state.notes),
        ("What the server says on its use", [state.instructions.strip()]),
        ("Resources", resources),
        ("Prompts", prompts),
        ("Log", [*log][-LOG_LINES:]),
    )
    return [*rows, *(row for heading, texts in parts for row in section_rows(heading, texts))]


class LoginPage(Sheet[str]):
    """Dismissed with the result in words; None if the user cancelled. The browser opens only on a key press."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "open", "Open in the browser"),
        Binding("y", "copy", "Copy the address"),
    ]

    def __init__(self, servers: McpServers, name: str) -> None:
        super().__init__(f"Log in to {name}", keys="Esc cancel")
        self._servers, self._server = servers, name
        self._address = ""
        self._work: Worker[None] | None = None

    def body(self) -> ComposeResult:
        yield RowView([line(("Asking the server …", "muted"))], word_wrap=True, id="tool")

    def on_mount(self) -> None:
        self.query_one(RowView).focus()
        self._work = self.run_worker(self._log_in, group="login", exit_on_error=False)

    async def _log_in(self) -> None:
        try:
            await self._servers.login(self._server, self._show)
        except BaError as error:
            self.dismiss(error.with_hint)
            return
        self.dismiss(f"You are logged in to {self._server}.")

    def _show(self, address: str) -> None:
        self._address = address
        host = urlsplit(address).hostname or ""
        rows = [
            line((painted(f"Open this address and log in at {host}:"), "")),
            line(),
            line((painted(address), "")),
            line(),
            line(("ba goes on when the browser comes back.", "muted")),
        ]
        self.query_one(RowView).put(rows)
        self.say("o open in the browser · y copy · Esc cancel")

    def action_open(self) -> None:
        if self._address:
            self.run_worker(self._open_browser, group="browser", exit_on_error=False)

    async def _open_browser(self) -> None:
        await asyncio.to_thread(webbrowser.open, self._address)

    def action_copy(self) -> None:
        if self._address:
            self.post_message(CopyToClipboard(self._address))

    def action_close(self) -> None:
        if self._work:
            self._work.cancel()
        self.dismiss(None)


PHASES: dict[ServerPhase, str] = {
    "off": "off", "untrusted": "not trusted", "idle": "not connected", "connecting": "connecting",
    "ready": "connected", "waiting": "restarts soon", "login": "needs a login", "failed": "failed",
}  # fmt: skip


class ServerBrowser(ServerList[ServerState]):
    """Typing searches name, state, scope and address."""

    ENTER: ClassVar[str] = "tools"
    EMPTY: ClassVar[str] = "No MCP servers. To add one: ba mcp add NAME -- COMMAND (see /guide mcp)."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "switch", "on/off", priority=True),
        Binding("ctrl+r", "reconnect", "reconnect", priority=True),
        Binding("ctrl+g", "login", "log in", priority=True),
    ]

    def __init__(self, servers: McpServers) -> None:
        super().__init__(servers, "MCP servers")

    def read(self) -> ListContent[ServerState]:
        states = self._servers.listed()
        phases = [state.phase for state in states]
        wrong = phases.count("failed") + phases.count("login")
        parts = [
            count(len(phases), "MCP server"),
            f"{phases.count('ready')} connected" if "ready" in phases else "",
            f"{wrong} can't be used" if wrong else "",
        ]
        return ListContent([_server_row(state) for state in states], ", ".join(filter(None, parts)))

    def choose(self, row: ListRow[ServerState]) -> None:
        app_of(self).push_screen(ServerTools(self._servers, row.id))

    def action_switch(self) -> None:
        if state := self.item:
            on = not state.config.enabled
            switch = partial(self._servers.enable, state.name, on=on)
            self.perform(switch, f"{state.name} is {'on' if on else 'off'} in this project.")

    def action_reconnect(self) -> None:
        if state := self.item:
            self._reconnect(state.name)

    def action_login(self) -> None:
        if state := self.item:
            app_of(self).push_screen(LoginPage(self._servers, state.name), lambda message: self.say(message or ""))


def _server_row(state: ServerState) -> ListRow[ServerState]:
    config = state.config
    tools = f"{count(len(state.tools), 'tool')}{' (remembered)' if state.cached else ''}" if state.tools else ""
    below = f"! {state.trouble} {state.fix}".rstrip() if state.trouble else config.address
    cells = (state.name, PHASES[state.phase], tools, config.transport, config.scope)
    return ListRow(state.name, cells, below, keywords=f"{config.source} {config.address}", value=state)


def show_servers(chat: Actions, _: str) -> None:
    """Open the list of servers. Raises UsageError in a session without any."""
    chat.ba.push_screen(
        ServerBrowser(needed(inventory_of(chat).feature(McpServers), "This session has no MCP servers."))
    )
