"""The tools that a model sees: listed in its requests, or found by tool_search. Names and arguments of Claude Code's
tool Task start agents, too.

The list of an agent only grows, at its end, so that prompt caches stay valid. The registry knows all tools; the
permission policy decides which calls are allowed.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ba_tui.core.effects import AgentCeiling, Effect
from ba_tui.core.errors import UsageError
from ba_tui.core.events import Notice
from ba_tui.core.messages import Message
from ba_tui.core.ports.tools import ToolFigures, ToolLine, ToolState
from ba_tui.core.results import ToolResult
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count, matching, sentence
from ba_tui.core.tool import Call, Tool, ToolFacts, Toolset
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.observe.metrics import CallMetrics
from ba_tui.settings.tool_names import ALIASES
from ba_tui.tools.definitions import Definition
from ba_tui.tools.discovery import ToolProblem
from ba_tui.tools.failures import ToolFailure
from ba_tui.tools.registry import SEARCH, Registry, ToolEntry, size_of

_SERVER = regex(r"mcp__.+?__")
MAX_MATCHES = 5
MAX_NAMES = 60
FindSkills: TypeAlias = Callable[[str], Sequence[tuple[str, str]]]
"""Returns names and descriptions of the skills that match a query. Blocks."""


@frozen
class Search:
    """The definition of tool_search; ``skills`` makes it find skills too."""

    definition: Definition
    skills: FindSkills | None = None


def tool_search_tool(search: Search, searched: Visible, unlisted: Sequence[str] = ()) -> Tool:
    """Return tool_search. Its description names the tools ``unlisted`` now; it never changes, for the prompt cache."""
    definition, skills = search.definition, search.skills
    description = definition.description
    if names := _grouped(unlisted):
        more = " and more" if len(names) > MAX_NAMES else ""
        description = f"{description} Unlisted now: {', '.join(names[:MAX_NAMES])}{more}."
    if skills:
        description = f"{description} Finds skills too; start one with activate_skill."

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        del call
        tools = searched.deferred()
        found = matching(args["query"], tools, _described)[: args.get("limit", MAX_MATCHES)]
        fitting = await asyncio.to_thread(skills, args["query"]) if skills else ()
        if not found and not fitting:
            names = ", ".join(tool.name for tool in tools[:MAX_NAMES]) or "none"
            raise ToolFailure(
                "not_found",
                f"No tool{' or skill' if skills else ''} fits {args['query']!r}.",
                f"Unlisted tools: {names}.",
            )
        searched.show([tool.name for tool in found])
        told: list[dict[str, Any]] = [
            {"name": tool.name, "description": tool.description, "parameters": tool.input_schema} for tool in found
        ]
        told += [{"skill": name, "description": words, "use": f"activate_skill {name}"} for name, words in fitting]
        text = json.dumps(told, ensure_ascii=False, default=str)
        return ToolResult(text, kind="json", summary=_summary(len(found), len(fitting)))

    facts = ToolFacts(category="tools", target="query", repeatable=True)
    return Tool(SEARCH, description, definition.input_schema, run, timeout=10, facts=facts)


def _grouped(names: Sequence[str]) -> list[str]:
    """Return the names, with those of an MCP server's tools as one pattern and a count."""
    servers = Counter(found[0] for name in names if (found := _SERVER.match(name)))
    return [*(name for name in names if not _SERVER.match(name)), *(f"{key}* ({n})" for key, n in servers.items())]


def _described(tool: Tool) -> tuple[str, str]:
    return tool.name, f"{tool.description} {' '.join(tool.facts.tags)} {tool.facts.category}"


def _summary(tools: int, skills: int) -> str:
    counts = [count(number, noun) for number, noun in ((tools, "tool"), (skills, "skill")) if number]
    return ", ".join(counts)


if TYPE_CHECKING:
    from ba_tui.tools.guards.reliability import Breakers

DELEGATE = "delegate_task"
TASK = frozenset(ALIASES[DELEGATE])
"""Names of the tool in Claude Code."""
# Without ``isolation`` an agent would change the project itself, which the caller does not expect.
_KEPT = ("description", "prompt", "resume", "isolation")


def task_tool(tool: Tool) -> Tool:
    """Return ``tool`` with the arguments of Task."""

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        return await tool.run(own_arguments(args), call)

    def below(args: Mapping[str, Any]) -> Effect:
        return tool.reach(own_arguments(args))

    def target(args: Mapping[str, Any]) -> str:
        return tool.target(own_arguments(args))

    facts = replace(tool.facts, below=below, target_of=target)
    return replace(tool, run=run, facts=facts)


def own_arguments(args: Mapping[str, Any]) -> dict[str, Any]:
    """Convert arguments of Task to those of delegate_task, which has no ``model``."""
    given = {name: args[name] for name in _KEPT if args.get(name)}
    prompt = str(args.get("prompt") or "")
    given.setdefault("description", prompt[:80] or "a task")
    given["agent_type"] = args.get("agent_type") or args.get("subagent_type") or "general"
    if args.get("background") or args.get("run_in_background"):
        given["background"] = True
    return given


BUDGET_BYTES = 11_500
"""Bytes of system prompt and listed tools; further tools are found by tool_search. With the user's prompt and its notes
a first request stays below 12 KB."""
OWN = {"user", "project", "extra"}
"""Origins of the user's own tools, which have an additional quarter of the budget, so that they are listed."""
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
        """Return the listed tools: the same tuple until a tool is added."""
        with self._lock:
            if self._tools is None:
                self._join_persistent()
                self._tools = tuple(self._listed.values())
            return self._tools

    def find(self, name: str) -> Tool | None:
        """Return the current version of a listed tool. A deferred tool is listed by the call."""
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
        """Return the tool that starts agents, even if not listed: models know its names in other assistants."""
        tool = self._registry.get_tool(DELEGATE)
        if tool is None or (self._for_subagent and not tool.facts.subagents):
            return None
        self.show([DELEGATE])
        return task_tool(tool) if name in TASK else tool

    def deferred(self) -> Sequence[Tool]:
        """Return the tools that are not listed because they exceed the budget."""
        with self._lock:
            self.visible()
            return [entry.tool for entry in self._deferred.values()]

    def show(self, names: Iterable[str]) -> None:
        """List tools from the next request on, regardless of the budget and of whether they are enabled."""
        with self._lock:
            self.visible()
            for name in names:
                self._deferred.pop(name, None)
                entry = self._registry.entry(name)
                if entry and name not in self._listed and (entry.tool.facts.subagents or not self._for_subagent):
                    self._list(entry.tool, entry.size)

    def refresh(self) -> Sequence[ToolProblem]:
        """Find new and changed tools and return the problems of unusable ones. Blocks: call it off the loop."""
        self._registry.refresh()
        with self._lock:
            self.visible()
            for name, old in self._listed.items():
                new = self._registry.get_tool(name)
                if new and (new.description, new.input_schema) != (old.description, old.input_schema):
                    # The model must see the changed tool, although this invalidates the cached prompt.
                    self._listed[name] = new if name != SEARCH else old
                    self._tools = None
            self._join_persistent()
        return self._registry.problems()

    def outdated(self) -> bool:
        """Return whether ``refresh`` would find changes."""
        return self._registry.outdated()

    def names(self) -> Collection[str]:
        """Return the names of all tools that a mention can load."""
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
        """Return the names of tools to defer so that the rest fits: optional before core tools, the largest first.

        Of the optional ones, tools of MCP servers are deferred first, as there may be hundreds, and the user's own
        last. Tools in ``roomy`` are never deferred.
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
    """Return the names of the called tools, each once. Takes time in proportion to the history."""
    return list(dict.fromkeys(call.name for message in messages for call in message.calls))


class ToolArrivals:
    """core.agent.Interceptor: finds new tools before a turn's first request, lists mentioned tools before each.

    ``active`` returns the tools that are needed now, such as those of active skills. May block.
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
                # A resumed session lists the tools that it called before.
                names += await asyncio.to_thread(_called, messages)
            self._branch = branch
            for problem in await asyncio.to_thread(self._visible.refresh):
                self._tell(problem, branch)
        names += await asyncio.to_thread(self._active)
        names += mentioned(_said(messages[-1]) if messages else "", self._visible.names())
        if names:
            self._visible.show(names)

    async def after(self, reply: Message, branch: Branch) -> None:
        """Do nothing: tools are added before requests."""

    def _tell(self, problem: ToolProblem, branch: Branch) -> None:
        if (text := str(problem)) not in self._told:
            self._told.add(text)
            branch.emit(Notice(sentence(f"A tool can't be used: {text}"), "warning", "See ba tools list."))


def mentioned(text: str, names: Collection[str]) -> tuple[str, ...]:
    """Return the tools that ``text`` mentions as ``@NAME``, in the order of their first mention."""
    return tuple(dict.fromkeys(name for name in _MENTION.findall(text) if name in names))


def _said(message: Message) -> str:
    """Return the user's own words in ``message``, without notes that ba added."""
    return message.own_text if message.role == "user" else ""


class SelectedTools:
    """core.tool.Toolset: the tools of ``all_tools`` in ``names`` (None: all) that ``ceiling`` allows."""

    def __init__(self, all_tools: Toolset, names: Collection[str] | None, ceiling: AgentCeiling) -> None:
        self._all = all_tools
        self._names = names
        self._ceiling = ceiling
        self._read: tuple[Sequence[Tool], tuple[Tool, ...]] = ((), ())

    def visible(self) -> Sequence[Tool]:
        """Return the same tuple until a tool is added."""
        if (now := self._all.visible()) is not self._read[0]:
            self._read = (now, tuple(tool for tool in now if self._has(tool)))
        return self._read[1]

    def find(self, name: str) -> Tool | None:
        tool = self._all.find(name)
        return tool if tool and self._has(tool) else None

    def _has(self, tool: Tool) -> bool:
        named = self._ceiling.may_call(tool.name) and (self._names is None or tool.name in self._names)
        # Commands stay listed: under a ceiling without EXECUTE they run in the profile reading.
        return named and (tool.effect is Effect.EXECUTE or tool.effect in self._ceiling.effects)


class ToolList:
    """core.ports.tools.Tools: every tool of the registry with its state and figures, switchable for a conversation."""

    def __init__(
        self, registry: Registry, health: Callable[[], Breakers], visible: Visible, metrics: CallMetrics
    ) -> None:
        self._registry = registry
        self._health = health
        self._visible = visible
        self._metrics = metrics

    def lines(self) -> Sequence[ToolLine]:
        registry = self._registry
        registry.refresh()
        shown = {tool.name for tool in self._visible.visible()}
        deferred = {tool.name for tool in self._visible.deferred()}
        found = [self._line(entry, _state(entry, shown, deferred)) for entry in registry.entries()]
        broken = [
            ToolLine(problem.file.rsplit("/", 1)[-1], "broken", problem.file, trouble=str(problem))
            for problem in registry.problems()
        ]
        return [*found, *broken]

    def switch(self, name: str, *, on: bool) -> None:
        entry = self._registry.entry(name)
        if entry is None:
            raise UsageError(f"There is no tool {name!r} that can be used.", "Check its file.")
        if not on and entry.core:
            raise UsageError(f"{name} is one of the core tools.", "They are always there; see tools.yaml.")
        if on:
            self._visible.show([name])
        self._registry.switch(name, on=on)

    def _line(self, entry: ToolEntry, state: ToolState) -> ToolLine:
        tool, condition = entry.tool, self._health().condition(entry.tool.name)
        done = self._metrics.tools.get(tool.name)
        figures = (
            ToolFigures(done.calls, done.failures, done.retries, done.cached, done.average, done.p95)
            if done
            else ToolFigures()
        )
        return ToolLine(
            tool.name,
            state,
            entry.place,
            tool.description,
            tool.facts.category,
            tool.facts.tags,
            tool.effect.value,
            tool.input_schema,
            entry.lacking(),
            figures,
            condition.state,
            condition.rest,
            condition.slow,
        )


def _state(entry: ToolEntry, shown: set[str], deferred: set[str]) -> ToolState:
    if entry.lacking():
        return "lacking"
    if entry.core:
        return "core"
    if not entry.enabled:
        return "off"
    if entry.tool.name in deferred:
        return "deferred"
    return "on" if entry.tool.name in shown else "off"
