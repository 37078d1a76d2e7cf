"""The tool browser: all tools with their states, and a page for one tool with its schema."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import ClassVar, TypeAlias

from textual.binding import Binding, BindingType

from ba_tui.core.errors import BaError
from ba_tui.core.ports.tools import ToolLine, Tools
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.acts.port import Actions, inventory_of, needed
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.inspector.json_values import json_rows
from ba_tui.faces.tui.inspector.rows import GridRow, RowView, line, painted
from ba_tui.faces.tui.meters import duration, short_duration
from ba_tui.faces.tui.screens.list_screen import ListContent, ListRow, ListScreen
from ba_tui.faces.tui.screens.sheet import RowPage, app_of, fact_rows, section_rows

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
    """Return the problems of a tool, in words."""
    found = [tool.trouble] if tool.trouble else []
    if tool.breaker == "opened":
        found.append(f"failed too often: paused for {duration(tool.rest)}")
    elif tool.breaker == "half-opened":
        found.append("failed often: on trial")
    if tool.slow:
        found.append("slow: it timed out repeatedly")
    return " · ".join(found)


def figures(tool: ToolLine) -> str:
    """Return the number of calls and failures; empty if it was not called."""
    now = tool.figures
    if not now.calls:
        return ""
    failed = f", {now.failures} failed" if now.failures else ""
    return count(now.calls, "call") + failed


class ToolBrowser(ListScreen[ToolLine]):
    """Typing finds by name, category, tag and words of the description."""

    ENTER: ClassVar[str] = "details"
    EMPTY: ClassVar[str] = "No tools were found."
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+s", "switch", "on/off for this session", priority=True)]

    def __init__(self, tools: Tools) -> None:
        super().__init__("Tools")
        self._tools = tools

    def read(self) -> ListContent[ToolLine]:
        tools = self._tools.lines()
        states = [tool.state for tool in tools]
        off = sum(state in {"off", "deferred"} for state in states)
        wrong = sum(state in {"broken", "lacking"} for state in states)
        parts = [
            f"{len(tools)} tools",
            f"{off} off or on demand" if off else "",
            f"{wrong} can't be used" if wrong else "",
        ]
        return ListContent(list(map(_tool_row, range(len(tools)), tools)), ", ".join(filter(None, parts)))

    def choose(self, row: ListRow[ToolLine]) -> None:
        if row.value:
            app_of(self).push_screen(ToolPage(row.value, self._switch))

    def action_switch(self) -> None:
        if tool := self.item:
            self.perform(partial(self._switch_here, tool))

    async def _switch_here(self, tool: ToolLine) -> str:
        return (await self._switch(tool))[0]

    async def _switch(self, tool: ToolLine) -> tuple[str, ToolLine]:
        """Switch ``tool`` on or off. Return the result in words, and the tool with its new state."""
        if tool.state not in SWITCHED:
            return f"{tool.name} can't be switched. {MEANING[tool.state]}", tool
        on = tool.state != "on"
        try:
            await asyncio.to_thread(self._tools.switch, tool.name, on=on)
            await self.load()
        except BaError as error:
            return error.with_hint, tool
        now = next((row.value for row in self.rows if row.value and row.value.name == tool.name), tool)
        return f"{tool.name} is {'on' if on else 'off'} for this session, from the next turn on.", now


def _tool_row(place: int, tool: ToolLine) -> ListRow[ToolLine]:
    wrong = marks(tool)
    summary = " ".join(tool.description.split())
    cells = (tool.name, STATES[tool.state], tool.category, figures(tool))
    keywords = f"{' '.join(tool.tags)} {tool.source} {summary}"
    return ListRow(f"{place}:{tool.name}", cells, f"! {wrong}" if wrong else summary, keywords=keywords, value=tool)


class ToolPage(RowPage):
    """One tool: its source, its figures, its description and its parameters."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "switch", "On or off"),
        Binding("y", "copy", "Copy the schema"),
    ]

    def __init__(self, tool: ToolLine, switch: Switch) -> None:
        can_switch = " · s switch on/off" if tool.state in SWITCHED else ""
        super().__init__(tool.name, page_rows(tool), keys=f"↑ ↓ scroll · y copy schema{can_switch} · Esc close")
        self._tool = tool
        self._switch = switch

    def action_switch(self) -> None:
        self.run_worker(self._switch_it, group="switch", exit_on_error=False)

    async def _switch_it(self) -> None:
        result, self._tool = await self._switch(self._tool)
        self.say(result)
        self.query_one(RowView).put(page_rows(self._tool))

    def action_copy(self) -> None:
        text = json.dumps(dict(self._tool.schema), ensure_ascii=False, indent=2, default=str)
        self.post_message(CopyToClipboard(text))


def page_rows(tool: ToolLine) -> Sequence[GridRow]:
    """Return the page of one tool."""
    now = tool.figures
    rows = fact_rows(
        (
            ("State", MEANING[tool.state]),
            ("Source", tool.source),
            ("Category", tool.category),
            ("Tags", ", ".join(tool.tags)),
            ("Effect", tool.effect),
        )
    )
    if wrong := marks(tool):
        rows += [line(), *(line((painted(text), "warning")) for text in wrong.split("\n"))]
    rows += [line(), line(("Calls in this session", "heading"))]
    if now.calls:
        good = f"{100 * (now.calls - now.failures) / now.calls:.0f} % succeeded"
        rows.append(line((f"{now.calls} calls, {good}, {now.retries} retries, {now.cached} from the cache", "")))
        rows.append(line((f"{short_duration(now.average)} on average, 95 of 100 under {short_duration(now.p95)}", "")))
    else:
        rows.append(line(("None yet.", "muted")))
    rows += section_rows("What the model reads", [tool.description.strip()])
    rows += [line(), line(("Parameters", "heading")), *json_rows(dict(tool.schema))]
    return rows


def tools(chat: Actions, __: str) -> None:
    found = inventory_of(chat).tools
    hint = "/context shows which tools the model sees."
    chat.ba.push_screen(ToolBrowser(needed(found, "This session has no list of tools.", hint)))
