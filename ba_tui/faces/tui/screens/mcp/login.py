"""The login to an MCP server: the address to open, and the wait for the browser to come back. Esc cancels."""

from __future__ import annotations

import asyncio
import webbrowser
from typing import ClassVar
from urllib.parse import urlsplit

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static
from textual.worker import Worker

from ba_tui.core.errors import BaError
from ba_tui.core.ports.mcp import McpServers
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.inspector.row_view import RowView
from ba_tui.faces.tui.inspector.rows import line, painted
from ba_tui.faces.tui.screens.picker import LOW, SHEETS


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
