"""The browser of MCP servers: how each stands, whose it is, and what can be done about it; its tools on Enter.

Which servers there are and what becomes of a key is the business of ``core.ports.mcp.McpServers``.
"""

from __future__ import annotations

import asyncio
import webbrowser
from collections.abc import Awaitable, Callable
from functools import partial
from typing import ClassVar
from urllib.parse import urlsplit

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static
from textual.worker import Worker

from ba_tui.core.errors import BaError
from ba_tui.core.ports.mcp import McpServers, ServerPhase, ServerState
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.inspector.row_view import RowView
from ba_tui.faces.tui.inspector.rows import line, painted
from ba_tui.faces.tui.screens.mcp.tools import ServerTools
from ba_tui.faces.tui.screens.picker import LOW, SHEETS, Picker, PickerChoice, app_of


class LoginPage(ModalScreen[str | None]):
    """Dismissed with what came of it, in words; None when the person cancelled. No browser opens by itself."""

    CSS_PATH = SHEETS
    VERTICAL_BREAKPOINTS = LOW
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Cancel"),
        Binding("o", "open", "Open in the browser"),
        Binding("y", "copy", "Copy the address"),
    ]

    def __init__(self, servers: McpServers, name: str) -> None:
        super().__init__(classes="picker")
        self._servers, self._server = servers, name
        self._address = ""
        self._work: Worker[None] | None = None

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(painted(f"Log in to {self._server}"), classes="title", markup=False)
            yield RowView([line(("Asking the server …", "muted"))], word_wrap=True, id="tool")
            yield Static("Esc cancels", classes="keys", markup=False)

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
        self.query_one(".keys", Static).update("o opens it in the browser · y copies it · Esc cancels")

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
        self.dismiss()


KEYS = "Enter tools · Ctrl+S on/off · Ctrl+R reconnect · Ctrl+G log in · Esc closes"
PHASES: dict[ServerPhase, str] = {
    "off": "off",
    "untrusted": "not trusted",
    "idle": "not connected",
    "connecting": "connecting",
    "ready": "connected",
    "waiting": "restarts soon",
    "login": "needs a login",
    "failed": "failed",
}
EMPTY = "No MCP servers. To add one: ba mcp add NAME -- COMMAND (see /guide mcp)."


class ServerBrowser(Picker):
    """Typing finds by name, state, scope and address. The list follows the servers while it is open."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "switch", "On or off", priority=True),
        Binding("ctrl+r", "reconnect", "Reconnect", priority=True),
        Binding("ctrl+g", "login", "Log in", priority=True),
    ]

    def __init__(self, servers: McpServers) -> None:
        super().__init__("MCP servers", (), keys=KEYS)
        self.empty = EMPTY
        self._servers = servers
        self._states: dict[str, ServerState] = {}
        self._stop: Callable[[], object] | None = None

    def on_mount(self) -> None:
        self._stop = self._servers.listen(self._show)
        self._show()

    def on_unmount(self) -> None:
        if self._stop:
            self._stop()

    def _show(self) -> None:
        if not self.is_attached:
            return
        self._states = {state.name: state for state in self._servers.listed()}
        self.choices = [_choice(state) for state in self._states.values()]
        phases = [state.phase for state in self._states.values()]
        wrong = phases.count("failed") + phases.count("login")
        parts = [
            count(len(phases), "MCP server"),
            f"{phases.count('ready')} connected" if "ready" in phases else "",
            f"{wrong} can't be used" if wrong else "",
        ]
        self.query_one(".title", Static).update(", ".join(filter(None, parts)))
        self.refill()

    def choose(self, id: str) -> None:
        if id in self._states:
            app_of(self).push_screen(ServerTools(self._servers, id))

    @property
    def _here(self) -> ServerState | None:
        return self._states.get(self.highlighted or "")

    def action_switch(self) -> None:
        if state := self._here:
            on = not state.config.enabled
            told = f"{state.name} is {'on' if on else 'off'} in this project."
            self._do(lambda: self._servers.enable(state.name, on=on), told)

    def action_reconnect(self) -> None:
        if state := self._here:
            self.say(f"Connecting to {state.name} …")
            self._do(lambda: self._servers.reconnect(state.name), f"{state.name} is connected.")

    def action_login(self) -> None:
        if state := self._here:
            app_of(self).push_screen(LoginPage(self._servers, state.name), lambda told: self.say(told or KEYS))

    def _do(self, work: Callable[[], Awaitable[object]], told: str) -> None:
        self.run_worker(partial(self._done, work, told), group="server", exit_on_error=False)

    async def _done(self, work: Callable[[], Awaitable[object]], told: str) -> None:
        try:
            await work()
        except BaError as error:
            told = error.with_hint
        self._show()
        self.say(told)


def _choice(state: ServerState) -> PickerChoice:
    config = state.config
    tools = f"{count(len(state.tools), 'tool')}{' (remembered)' if state.cached else ''}" if state.tools else ""
    below = f"! {state.trouble} {state.fix}".rstrip() if state.trouble else config.address
    cells = (state.name, PHASES[state.phase], tools, config.transport, config.scope)
    return PickerChoice(state.name, cells, below, keywords=f"{config.source} {config.address}")
