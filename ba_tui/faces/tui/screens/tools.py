"""The tool browser: every tool that was found, how it is doing, and one of them in full with its schema.

Which tools there are and what can be switched is the inventory's affair.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import ClassVar, TypeAlias

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from ba_tui.core.errors import BaError
from ba_tui.core.ports.tools import ToolLine, Tools
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.inspector.json_tree import json_rows
from ba_tui.faces.tui.inspector.pane import spell
from ba_tui.faces.tui.inspector.row_view import RowView
from ba_tui.faces.tui.inspector.rows import GridRow, line, painted
from ba_tui.faces.tui.screens.picker import LOW, Picker, PickerChoice, app_of
from ba_tui.faces.tui.transcript.rows import duration

KEYS = "Enter details · Ctrl+S on/off for this session · Esc close"
STATES = {
    "core": "always on",
    "on": "on",
    "off": "off",
    "deferred": "on demand",
    "broken": "broken",
    "lacking": "requirement missing",
}
MEANING = {
    "core": "Always on.",
    "on": "On: every request lists it.",
    "off": "Off: the model sees it only when it is mentioned or a skill needs it.",
    "deferred": "On demand: the model finds it with tool_search.",
    "broken": "It could not be loaded.",
    "lacking": "It can't run here.",
}
Switch: TypeAlias = "Callable[[ToolLine], Awaitable[tuple[str, ToolLine]]]"
SWITCHED = frozenset({"on", "off", "deferred"})


def marks(tool: ToolLine) -> str:
    """What is not as it should be, in words."""
    found = [tool.trouble] if tool.trouble else []
    if tool.breaker == "opened":
        found.append(f"failed too often: paused for {spell(tool.rest)}")
    elif tool.breaker == "half-opened":
        found.append("failed often: on trial")
    if tool.slow:
        found.append("slow: it timed out repeatedly")
    return " · ".join(found)


def figures(tool: ToolLine) -> str:
    """How it did, in a few words; empty when it was not called."""
    now = tool.figures
    if not now.calls:
        return ""
    failed = f", {now.failures} failed" if now.failures else ""
    return count(now.calls, "call") + failed


class ToolBrowser(Picker):
    """Typing finds by name, category, tag and words of the description."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+s", "switch", "On or off", priority=True)]

    def __init__(self, tools: Tools) -> None:
        super().__init__("Tools", (), keys=KEYS)
        self.empty = "Looking …"
        self._tools = tools
        self._lines: dict[str, ToolLine] = {}

    def on_mount(self) -> None:
        self.reload()

    def reload(self) -> None:
        self.run_worker(self._load, group="tools", exclusive=True, exit_on_error=False)

    async def _load(self) -> None:
        try:
            lines = await asyncio.to_thread(self._tools.lines)
        except BaError as error:
            self.say(error.with_hint)
            return
        self._lines = {f"{place}:{tool.name}": tool for place, tool in enumerate(lines)}
        self.empty = "No tools were found."
        self.choices = [_choice(id, tool) for id, tool in self._lines.items()]
        states = [tool.state for tool in lines]
        off = sum(state in {"off", "deferred"} for state in states)
        wrong = sum(state in {"broken", "lacking"} for state in states)
        parts = [
            f"{len(lines)} tools",
            f"{off} off or on demand" if off else "",
            f"{wrong} can't be used" if wrong else "",
        ]
        self.query_one(".title", Static).update(", ".join(filter(None, parts)))
        self.refill()

    def choose(self, id: str) -> None:
        if id in self._lines:
            app_of(self).push_screen(ToolPage(self._lines[id], self._switch))

    def action_switch(self) -> None:
        if (id := self.highlighted) and id in self._lines:
            self.run_worker(partial(self._switch_here, self._lines[id]), group="switch", exit_on_error=False)

    async def _switch_here(self, tool: ToolLine) -> None:
        told, _ = await self._switch(tool)
        self.say(told)

    async def _switch(self, tool: ToolLine) -> tuple[str, ToolLine]:
        """What came of it, in words, and how the tool stands now."""
        if tool.state not in SWITCHED:
            return f"{tool.name} can't be switched. {MEANING[tool.state]}", tool
        on = tool.state != "on"
        try:
            await asyncio.to_thread(self._tools.switch, tool.name, on=on)
        except BaError as error:
            return error.with_hint, tool
        await self._load()
        now = next((line for line in self._lines.values() if line.name == tool.name), tool)
        return f"{tool.name} is {'on' if on else 'off'} for this session, from the next turn on.", now


def _choice(id: str, tool: ToolLine) -> PickerChoice:
    wrong = marks(tool)
    summary = " ".join(tool.description.split())
    below = f"! {wrong}" if wrong else summary
    cells = (tool.name, STATES[tool.state], tool.category, figures(tool))
    return PickerChoice(id, cells, below, keywords=f"{' '.join(tool.tags)} {tool.source} {summary}")


class ToolPage(ModalScreen[None]):
    """One tool: where it comes from, how it did, what it says of itself, its parameters."""

    CSS_PATH = "../styles/screens.tcss"
    VERTICAL_BREAKPOINTS = LOW
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Close"),
        Binding("s", "switch", "On or off"),
        Binding("y", "copy", "Copy the schema"),
        Binding("w", "wrap", "Wrap", show=False),
    ]

    def __init__(self, tool: ToolLine, switch: Switch) -> None:
        super().__init__(classes="picker")
        self._tool = tool
        self._switch = switch

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(painted(self._tool.name), classes="title", markup=False)
            yield RowView(page_rows(self._tool), word_wrap=True, id="tool")
            switch = " · s switches it on or off" if self._tool.state in SWITCHED else ""
            yield Static(f"↑ ↓ scroll · y copies the schema{switch} · Esc closes", classes="keys", markup=False)

    def on_mount(self) -> None:
        self.query_one(RowView).focus()

    def action_close(self) -> None:
        self.dismiss()

    def action_wrap(self) -> None:
        view = self.query_one(RowView)
        view.wrap = not view.wrap

    def action_switch(self) -> None:
        self.run_worker(self._switch_it, group="switch", exit_on_error=False)

    async def _switch_it(self) -> None:
        told, self._tool = await self._switch(self._tool)
        self.query_one(".keys", Static).update(painted(told))
        self.query_one(RowView).put(page_rows(self._tool))

    def action_copy(self) -> None:
        text = json.dumps(dict(self._tool.schema), ensure_ascii=False, indent=2, default=str)
        self.post_message(CopyToClipboard(text))


def page_rows(tool: ToolLine) -> Sequence[GridRow]:
    """The page of one tool."""
    now = tool.figures
    facts = [
        ("State", MEANING[tool.state]),
        ("Source", tool.source),
        ("Category", tool.category),
        ("Tags", ", ".join(tool.tags)),
        ("Effect", tool.effect),
    ]
    rows = [line((f"{name:<10}", "muted"), (painted(text), "")) for name, text in facts if text]
    if wrong := marks(tool):
        rows += [line(), *(line((painted(text), "warning")) for text in wrong.split("\n"))]
    rows += [line(), line(("Calls in this session", "heading"))]
    if now.calls:
        good = f"{100 * (now.calls - now.failures) / now.calls:.0f} % succeeded"
        rows.append(line((f"{now.calls} calls, {good}, {now.retries} retries, {now.cached} from the cache", "")))
        rows.append(line((f"{duration(now.average)} on average, 95 of 100 under {duration(now.p95)}", "")))
    else:
        rows.append(line(("None yet.", "muted")))
    if tool.description:
        rows += [line(), line(("What the model is told", "heading"))]
        rows += [line((painted(text), "")) for text in tool.description.strip().split("\n")]
    rows += [line(), line(("Parameters", "heading")), *json_rows(dict(tool.schema))]
    return rows
