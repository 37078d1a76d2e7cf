"""The tools of one MCP server, switched one by one; a tool in full, and the server itself, on a page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from ba_tui.core.errors import BaError
from ba_tui.core.ports.mcp import McpServers, RemoteTool, ServerState, ToolStanding
from ba_tui.core.results import Diff
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.inspector.diff import diff_rows
from ba_tui.faces.tui.inspector.json_tree import json_rows
from ba_tui.faces.tui.inspector.row_view import RowView
from ba_tui.faces.tui.inspector.rows import GridRow, line, painted
from ba_tui.faces.tui.screens.picker import LOW, SHEETS, Picker, PickerChoice, app_of

KEYS = "Enter details · Ctrl+S on/off · Ctrl+O server and log · Ctrl+R reconnect"
STANDINGS: dict[ToolStanding, str] = {"on": "on", "off": "off", "changed": "changed", "refused": "refused"}
LOG_LINES = 500


class ServerTools(Picker):
    """Typing finds by name and words of the description."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "switch", "On or off", priority=True),
        Binding("ctrl+r", "reconnect", "Reconnect", priority=True),
        Binding("ctrl+o", "about", "The server and its log", priority=True),
    ]

    def __init__(self, servers: McpServers, name: str) -> None:
        super().__init__(name, (), keys=KEYS)
        self._servers, self._server = servers, name
        self._tools: dict[str, RemoteTool] = {}
        self._stop: Callable[[], object] | None = None

    @property
    def state(self) -> ServerState:
        """The server now."""
        return next(state for state in self._servers.listed() if state.name == self._server)

    def on_mount(self) -> None:
        self._stop = self._servers.listen(self._show)
        self._show()

    def on_unmount(self) -> None:
        if self._stop:
            self._stop()

    def _show(self) -> None:
        if not self.is_attached:
            return
        state = self.state
        self._tools = {tool.name: tool for tool in state.tools}
        self.empty = (
            f"! {state.trouble} {state.fix}".rstrip() if state.trouble else "No tools are known. Ctrl+R connects."
        )
        self.choices = [_choice(self._server, tool) for tool in state.tools]
        off = sum(tool.standing != "on" for tool in state.tools)
        parts = [self._server, count(len(state.tools), "tool"), f"{off} not used" if off else ""]
        self.query_one(".title", Static).update(" · ".join(filter(None, parts)))
        self.refill()

    def choose(self, id: str) -> None:
        if tool := self._tools.get(id):
            difference = self._servers.difference(self._server, id) if tool.standing == "changed" else ("", "")
            approve = partial(self._servers.approve, self._server, id) if tool.standing == "changed" else None
            rows = tool_rows(self._server, tool, difference)
            app_of(self).push_screen(McpPage(f"{self._server}: {tool.name}", rows, approve), self._told)

    def _told(self, told: str | None) -> None:
        self._show()
        self.say(told or KEYS)

    def action_about(self) -> None:
        rows = server_rows(self.state, self._servers.logs(self._server))
        app_of(self).push_screen(McpPage(self._server, rows))

    def action_switch(self) -> None:
        tool = self._tools.get(self.highlighted or "")
        if tool is None:
            return
        if tool.standing == "refused":
            self.say(f"{tool.name} can't be used: {tool.trouble}")
            return
        on = tool.standing == "off"
        told = f"{tool.name} is {'on' if on else 'off'} in this project."
        self._do(lambda: self._servers.enable(self._server, tool.name, on=on), told)

    def action_reconnect(self) -> None:
        self.say(f"Connecting to {self._server} …")
        self._do(lambda: self._servers.reconnect(self._server), f"{self._server} is connected.")

    def _do(self, work: Callable[[], Awaitable[object]], told: str) -> None:
        self.run_worker(partial(self._done, work, told), group="server", exit_on_error=False)

    async def _done(self, work: Callable[[], Awaitable[object]], told: str) -> None:
        try:
            await work()
        except BaError as error:
            told = error.with_hint
        self._show()
        self.say(told)


class McpPage(ModalScreen[str | None]):
    """Rows to read. ``approve`` accepts the changed definition of a tool; dismissed with what came of it."""

    CSS_PATH = SHEETS
    VERTICAL_BREAKPOINTS = LOW
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Close"),
        Binding("a", "approve", "Approve the change"),
        Binding("w", "wrap", "Wrap", show=False),
    ]

    def __init__(
        self, title: str, rows: Sequence[GridRow], approve: Callable[[], Awaitable[object]] | None = None
    ) -> None:
        super().__init__(classes="picker")
        self._title, self._rows, self._approve = title, rows, approve

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(painted(self._title), classes="title", markup=False)
            yield RowView(self._rows, word_wrap=True, id="tool")
            approve = " · a approves the change" if self._approve else ""
            yield Static(f"↑ ↓ scroll{approve} · Esc closes", classes="keys", markup=False)

    def on_mount(self) -> None:
        self.query_one(RowView).focus()

    def action_close(self) -> None:
        self.dismiss()

    def action_wrap(self) -> None:
        view = self.query_one(RowView)
        view.wrap = not view.wrap

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


def _choice(server: str, tool: RemoteTool) -> PickerChoice:
    said = " ".join((tool.description or tool.title).split())
    below = f"! {tool.trouble}" if tool.trouble else said
    return PickerChoice(tool.name, (tool.name, STANDINGS[tool.standing], server), below, keywords=said)


def _facts(facts: Sequence[tuple[str, str]]) -> list[GridRow]:
    return [line((f"{name:<12}", "muted"), (painted(text), "")) for name, text in facts if text]


def _part(heading: str, texts: Sequence[str]) -> list[GridRow]:
    rows = [row for text in texts for row in text.split("\n")]
    return [line(), line((heading, "heading")), *(line((painted(row), "")) for row in rows)] if rows else []


def tool_rows(server: str, tool: RemoteTool, difference: tuple[str, str]) -> list[GridRow]:
    """The page of one tool: what it is called, what it says of itself, what changed."""
    hints = [
        "reads only" if tool.read_only else "may destroy" if tool.destructive else "writes",
        "can be repeated" if tool.idempotent else "",
        "reaches beyond this machine" if tool.open_world else "",
    ]
    rows = _facts(
        (
            ("Server", server),
            ("Name", tool.full_name),
            ("Title", tool.title),
            ("State", STANDINGS[tool.standing]),
            ("It says", ", ".join(filter(None, hints))),
        )
    )
    if tool.trouble:
        rows += [line(), line((painted(tool.trouble), "warning"))]
    if any(difference):
        rows += [line(), line(("What changed since you approved it", "heading"))]
        rows += diff_rows(Diff(tool.name, *difference))
    rows += _part("What the model is told", [tool.description.strip()] if tool.description.strip() else [])
    return [*rows, line(), line(("Parameters", "heading")), *json_rows(dict(tool.schema))]


def server_rows(state: ServerState, log: Sequence[str]) -> list[GridRow]:
    """The page of one server: how it is configured and stands, what it says, and its log, newest lines last."""
    config = state.config
    confined = "in the sandbox" if config.sandboxed else "outside the sandbox"
    rows = _facts(
        (
            ("Server", state.title),
            ("Protocol", state.protocol),
            ("Runs" if config.transport == "stdio" else "Address", config.address),
            ("Transport", f"{config.transport}, {confined}" if config.transport == "stdio" else config.transport),
            ("From", f"{config.scope}: {config.source}"),
            ("Restarts", str(state.restarts or "")),
        )
    )
    if state.trouble:
        rows += [line(), line((painted(f"{state.trouble} {state.fix}".rstrip()), "warning"))]
    resources = [f"{each.uri}  {each.description or each.name}".rstrip() for each in state.resources]
    prompts = [f"/{state.name}:{each.name}  {each.description}".rstrip() for each in state.prompts]
    parts = (
        ("Notes", state.notes),
        ("What the server says on its use", [state.instructions.strip()] if state.instructions.strip() else []),
        ("Resources", resources),
        ("Prompts", prompts),
        ("Log", [*log][-LOG_LINES:]),
    )
    return [*rows, *(row for heading, texts in parts for row in _part(heading, texts))]
