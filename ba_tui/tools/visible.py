"""The tools that a model is told of: the third tier. The list only grows, at its end, so that prompt caches hold.

What exists is the registry's business; narrowing what may be called is the permission policy's.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from ba_tui.core.events import Notice
from ba_tui.core.messages import Message
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import sentence
from ba_tui.core.tool import Tool
from ba_tui.core.turn import Branch
from ba_tui.tools.builtin.tool_search import Search, tool_search_tool
from ba_tui.tools.foreign_calls import DELEGATE, TASK, task_tool
from ba_tui.tools.own.discovery import ToolProblem
from ba_tui.tools.registry import SEARCH, Registry, ToolEntry, size_of

BUDGET_BYTES = 11_500
"""Bytes of system prompt and tools together, beyond which tools are searched for instead of listed: with the prompt and
the notes that go with it, a first request stays below 12 KB."""
OWN = {"user", "project", "extra"}
"""Tools that a person put there have room of their own, a quarter of the budget: what they write, they see used."""
_MENTION = regex(r"(?<![\w@/.:-])@([A-Za-z][\w-]{0,63})(?![\w/-]|\.\w)")


class Visible:
    """core.tool.Toolset for one agent of one conversation."""

    def __init__(
        self,
        registry: Registry,
        search: Search,
        *,
        system: str = "",
        budget: int = BUDGET_BYTES,
        for_subagent: bool = False,
    ) -> None:
        self._registry = registry
        self._for_subagent = for_subagent
        self._left = budget - len(system.encode("utf-8", "replace"))
        self._own = budget // 4
        self._search = search
        self._lock = threading.RLock()
        self._listed: dict[str, Tool] = {}
        self._deferred: dict[str, ToolEntry] = {}
        self._tools: tuple[Tool, ...] | None = None

    def visible(self) -> Sequence[Tool]:
        """The same tuple until something joins it."""
        with self._lock:
            if self._tools is None:
                self._join_persistent()
                self._tools = tuple(self._listed.values())
            return self._tools

    def find(self, name: str) -> Tool | None:
        """A listed tool in its present form; a deferred one is listed by being called."""
        if name == DELEGATE or name in TASK:
            return self._delegating(name)
        with self._lock:
            self.visible()
            if name in self._deferred:
                self.show([name])
            if name not in self._listed:
                return None
            return self._registry.get_tool(name) or self._listed[name]

    def _delegating(self, name: str) -> Tool | None:
        """The tool that starts agents, also where it was not listed: models know it by its other names."""
        tool = self._registry.get_tool(DELEGATE)
        if tool is None or (self._for_subagent and not tool.facts.subagents):
            return None
        self.show([DELEGATE])
        return task_tool(tool) if name in TASK else tool

    def deferred(self) -> Sequence[Tool]:
        """Those that would be listed, had they fitted the budget."""
        with self._lock:
            self.visible()
            return [entry.tool for entry in self._deferred.values()]

    def show(self, names: Iterable[str]) -> None:
        """List tools from the next request on, whatever the budget and whether they are enabled or not."""
        with self._lock:
            self.visible()
            for name in names:
                self._deferred.pop(name, None)
                entry = self._registry.entry(name)
                if entry and name not in self._listed and (entry.tool.facts.subagents or not self._for_subagent):
                    self._list(entry.tool, entry.size)

    def refresh(self) -> Sequence[ToolProblem]:
        """Look for new and changed tools; says what keeps some out. Blocks: call it off the loop."""
        self._registry.refresh()
        with self._lock:
            self.visible()
            for name, old in self._listed.items():
                new = self._registry.get_tool(name)
                if new and (new.description, new.input_schema) != (old.description, old.input_schema):
                    # A tool that is another now has to be told anew, at the price of the cached prompt.
                    self._listed[name] = new if name != SEARCH else old
                    self._tools = None
            self._join_persistent()
        return self._registry.problems()

    def outdated(self) -> bool:
        """Return whether ``refresh`` would find other tools."""
        return self._registry.outdated()

    def names(self) -> Collection[str]:
        """All tools that a mention can load."""
        return self._registry.names()

    def _join_persistent(self) -> None:
        persistent = self._registry.persistent(for_subagent=self._for_subagent)
        waiting = [
            entry
            for entry in persistent
            if entry.tool.name not in self._listed
            and entry.tool.name not in self._deferred
            and entry.tool.name != SEARCH
        ]
        roomy: set[str] = set()
        for entry in waiting:
            if entry.origin in OWN and entry.size <= self._own:
                self._own -= entry.size
                self._left += entry.size
                roomy.add(entry.tool.name)
        late = self._late(waiting, roomy)
        for entry in waiting:
            if entry.tool.name in late:
                self._deferred[entry.tool.name] = entry
            else:
                self._list(entry.tool, entry.size)
        if (late or self._search.skills) and SEARCH not in self._listed:
            tool = self._searching(list(self._deferred))
            self._list(tool, size_of(tool))

    def _late(self, waiting: Sequence[ToolEntry], roomy: Collection[str]) -> set[str]:
        """The names of those to defer so that the rest fits: optional ones before the core, the largest first.

        Of the optional ones, those of MCP servers go first, as there may be hundreds. Those that a person put there
        stay longest, and those in ``roomy`` anyway.
        """
        over = sum(entry.size for entry in waiting) - self._left
        if over <= 0:
            return set()
        if SEARCH not in self._listed:
            over += size_of(self._searching(()))
        late: set[str] = set()
        for entry in sorted(waiting, key=lambda entry: (entry.core, _rank(entry), -entry.size)):
            if over <= 0:
                break
            if entry.tool.name in roomy:
                continue
            late.add(entry.tool.name)
            over -= entry.size - (0 if entry.origin == "mcp" else len(f"{entry.tool.name}, "))
        return late

    def _searching(self, unlisted: Sequence[str]) -> Tool:
        tool = tool_search_tool(self._search, self, unlisted)
        return replace(tool, run=self._registry.guard(tool).run)

    def _list(self, tool: Tool, size: int) -> None:
        self._listed[tool.name] = tool
        self._left -= size
        self._tools = None


def _rank(entry: ToolEntry) -> int:
    return 0 if entry.origin == "mcp" else 2 if entry.origin in OWN else 1


def _called(messages: Sequence[Message]) -> list[str]:
    """The names of the tools that were called, each once. Takes time in proportion to the history."""
    return list(dict.fromkeys(call.name for message in messages for call in message.calls))


class Joining:
    """core.agent.Interceptor: before a turn's first request looks for new tools, before each lists what was mentioned.

    ``active`` gives the tools that are needed now: those of active skills, what reads a stored result. May block.
    """

    def __init__(self, visible: Visible, active: Callable[[], Sequence[str]] = tuple[str]) -> None:
        self._visible = visible
        self._active = active
        self._branch: Branch | None = None
        self._told: set[str] = set()

    async def before(self, branch: Branch) -> None:
        messages = branch.transcript.messages
        names: list[str] = []
        if self._branch is not branch or self._visible.outdated():
            if self._branch is None:
                # A session that goes on: what was called in it is listed again.
                names += await asyncio.to_thread(_called, messages)
            self._branch = branch
            for problem in await asyncio.to_thread(self._visible.refresh):
                self._tell(problem, branch)
        names += await asyncio.to_thread(self._active)
        names += mentioned(_said(messages[-1]) if messages else "", self._visible.names())
        if names:
            self._visible.show(names)

    async def after(self, reply: Message, branch: Branch) -> None:
        """Nothing: tools join before requests."""

    def _tell(self, problem: ToolProblem, branch: Branch) -> None:
        if (text := str(problem)) not in self._told:
            self._told.add(text)
            branch.emit(Notice(sentence(f"A tool can't be used: {text}"), "warning", "See ba tools list."))


def mentioned(text: str, names: Collection[str]) -> tuple[str, ...]:
    """The tools that ``text`` names with an ``@`` before, in the order of their first mention."""
    return tuple(dict.fromkeys(name for name in _MENTION.findall(text) if name in names))


def _said(message: Message) -> str:
    """The words of a person in ``message``, without the notes that go with them."""
    return message.own_text if message.role == "user" else ""
