"""All tools there are, by name, with where they come from and what is set of them: the first two of three tiers.

Which of them a model is told of in a turn is ``visible``'s business.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from ba_tui.core.ports.rooms import ToolSource
from ba_tui.core.results import ToolResult, failure
from ba_tui.core.tool import Call, Guard, Run, Tool
from ba_tui.core.values import frozen
from ba_tui.ingress import Read
from ba_tui.resources import read_regular
from ba_tui.tools.own.discovery import Discovery, Module, ToolOrigin, ToolProblem
from ba_tui.tools.tools_yaml import ToolChoice, ToolChoices, read_tool_choices

BUILT_IN = "built in"
SEARCH = "tool_search"
PARTS = ("name", "description", "input_schema")
Clean: TypeAlias = Callable[[Any], Any]


def _as_it_is(value: Any) -> Any:
    return value


@frozen
class ToolEntry:
    """A tool within its guards. ``core`` and ``enabled`` ones are told to every model; ``size`` in bytes of schema.
    ``off``: the person took it away in this session."""

    tool: Tool
    origin: ToolOrigin = "built-in"
    file: str = BUILT_IN
    line: int = 0
    core: bool = False
    enabled: bool = True
    size: int = 0
    off: bool = False

    @property
    def persistent(self) -> bool:
        return self.core or self.enabled

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    def lacking(self) -> str:
        """What the tool needs and is not installed; empty when nothing is."""
        from ba_tui.tools.own.worker_tools import missing  # noqa: PLC0415 - only lists of tools ask

        return missing(self.tool.facts.needs)


@frozen
class ToolFiles:
    """The ``tools.yaml`` files: the one that ships with ba, and those over it that count now; how they are read."""

    bundled: Path | None = None
    others: Callable[[], Sequence[Path]] = tuple[Path]
    read: Read = read_regular

    def choices(self) -> ToolChoices:
        return read_tool_choices(self.bundled, self.others(), self.read)


@dataclass(slots=True)
class _Raw:
    """A tool as it came, before files say anything of it and before its guards."""

    tool: Tool
    origin: ToolOrigin
    file: str
    line: int
    module: Module | None = field(default=None)


class Registry:
    """Safe to use from any thread. Every tool passes ``guard`` on its way in. ``clean`` makes a JSON value, such as the
    schema of a tool that did not come with ba, fit for a model."""

    def __init__(
        self,
        guard: Guard,
        files: ToolFiles | None = None,
        discovery: Discovery | None = None,
        clean: Clean = _as_it_is,
        closed: Callable[[], None] = lambda: None,
    ) -> None:
        self.guard = guard
        self._closed = closed
        self._clean = clean
        self._files = files or ToolFiles()
        self._discovery = discovery
        self._lock = threading.RLock()
        self._looking = threading.Lock()
        self._raw: dict[str, _Raw] = {}
        self._entries: dict[str, ToolEntry] = {}
        self._switched: dict[str, bool] = {}
        self._sources: tuple[ToolSource, ...] = ()
        self._joined: dict[int, dict[str, Tool]] = {}
        self._joined_problems: tuple[str, ...] = ()
        self._choices = self._files.choices()
        self._stamp = self._stamped()
        self._found_problems: tuple[ToolProblem, ...] = ()

    def add(self, tool: Tool, *, origin: ToolOrigin = "built-in", file: str = BUILT_IN, line: int = 0) -> None:
        """Take in a tool, also while the app runs.

        Raises:
            ValueError: there is one of that name; says where both are.
        """
        self._take(_Raw(tool, origin, file, line))

    def get_tool(self, name: str) -> Tool | None:
        """The tool within its guards, whether a model is told of it or not."""
        entry = self._entries.get(name)
        return entry.tool if entry else None

    def entry(self, name: str) -> ToolEntry | None:
        return self._entries.get(name)

    def entries(self) -> Sequence[ToolEntry]:
        """All tools: in the order of tools.yaml, then as they were found."""
        with self._lock:
            order = {name: index for index, name in enumerate((*self._choices.core, *self._choices.optional))}
            return sorted(self._entries.values(), key=lambda entry: order.get(entry.tool.name, len(order)))

    def tools(self) -> dict[str, Tool]:
        """All that can be called now within their guards, by name."""
        return {entry.tool.name: entry.tool for entry in self.entries()}

    def names(self) -> frozenset[str]:
        with self._lock:
            return frozenset(self._entries)

    def persistent(self, *, for_subagent: bool = False) -> Sequence[ToolEntry]:
        """What every turn has: the core first, then what is enabled."""
        found = [each for each in self.entries() if each.persistent and (each.tool.facts.subagents or not for_subagent)]
        return sorted(found, key=lambda entry: not entry.core)

    def problems(self) -> Sequence[ToolProblem]:
        """What keeps tools out, and what tools.yaml says that can't be."""
        with self._lock:
            return (*self._found_problems, *self._choices.problems, *self._choices.unknown(self._entries.keys()))

    def refresh(self) -> None:
        """Look at the folders and files again. Blocks while new ones are loaded: call it off the loop."""
        with self._looking:
            self._apply(self._discovery.look() if self._discovery else ())
            self._joined_problems = tuple(text for source in self._sources for text in self._look(source))

    def join(self, sources: Iterable[ToolSource]) -> None:
        """Ask ``sources`` for tools whenever tools are looked for, from the next time on."""
        self._sources = (*self._sources, *sources)

    def outdated(self) -> bool:
        """Return whether a source has other tools than at the last look."""
        return any(source.outdated() for source in self._sources)

    def joined_problems(self) -> Sequence[str]:
        """What keeps tools of the sources out, as sentences."""
        return self._joined_problems

    def _look(self, source: ToolSource) -> Iterator[str]:
        found = source.look()
        now = {id(each.tool): each for each in found.tools}
        before = self._joined.get(id(source), {})
        for name, tool in before.items():
            if id(tool) not in now:
                with self._lock:
                    del self._raw[name], self._entries[name]
        kept = {name: tool for name, tool in before.items() if id(tool) in now}
        for each in found.tools:
            if each.tool.name not in kept:
                try:
                    self.add(each.tool, origin=source.origin, file=each.file)
                    kept[each.tool.name] = each.tool
                except ValueError as error:
                    yield str(error)
        self._joined[id(source)] = kept
        yield from found.problems

    def switch(self, name: str, *, on: bool) -> None:
        """Enable or disable a tool for as long as the registry lives, whatever the files say.

        One that is off stays listed where a model was told of it, but a call of it does nothing.
        """
        with self._lock:
            self._switched[name] = on
            if raw := self._raw.get(name):
                self._entries[name] = self._entry(raw)

    def close(self) -> None:
        """End the workers of people's own tools, then call ``closed``."""
        if self._discovery:
            self._discovery.close()
        self._closed()

    def _apply(self, modules: Sequence[Module]) -> None:
        with self._lock:
            stamp = self._stamped()
            if stamp != self._stamp:
                self._stamp = stamp
                self._choices = self._files.choices()
                for raw in self._raw.values():
                    self._entries[raw.tool.name] = self._entry(raw)
            problems: list[ToolProblem] = []
            current = {id(module) for module in modules}
            for name, raw in list(self._raw.items()):
                if raw.module is not None and id(raw.module) not in current:
                    del self._raw[name], self._entries[name]
            for module in modules:
                problems += [module.problem] if module.problem else self._adopt(module)
            self._found_problems = tuple(problems)

    def _adopt(self, module: Module) -> Iterable[ToolProblem]:
        from ba_tui.tools.own.decorator import NAME  # noqa: PLC0415 - many people have no tools of their own
        from ba_tui.tools.own.worker_tools import worker_tool  # noqa: PLC0415

        for record in module.records:
            if not NAME.fullmatch(str(record.get("name", ""))):
                yield ToolProblem(module.shown, "a tool's name needs lower-case letters, digits, _ and - only")
                continue
            try:
                line = int(record["line"])
                raw = self._raw.get(record["name"])
                if raw is not None and raw.module is module and raw.line == line:
                    continue
                tool = worker_tool(record, module.pool)
            except (KeyError, TypeError, ValueError, AttributeError):
                yield ToolProblem(module.shown, "what the worker said of its tools can't be understood")
                continue
            try:
                self._take(_Raw(tool, module.origin, module.shown, line, module))
            except ValueError as error:
                yield ToolProblem(module.shown, str(error), line)

    def _take(self, raw: _Raw) -> None:
        name = raw.tool.name
        with self._lock:
            if first := self._entries.get(name):
                here = f"{raw.file}:{raw.line}" if raw.line else raw.file
                raise ValueError(f"two tools are named {name!r}: {first.place} has it, so {here} is left out")
            if name == SEARCH:
                raise ValueError(f"the name {name!r} is kept for the search among tools")
            self._raw[name] = raw
            self._entries[name] = self._entry(raw)

    def _entry(self, raw: _Raw) -> ToolEntry:
        name = raw.tool.name
        choice = self._choices.optional.get(name) or ToolChoice()
        core = name in self._choices.core
        # Files that a person put there are meant to be used; what ships with ba or came with a package is switched on.
        default = raw.origin in {"user", "project", "extra", "workflow", "mcp"}
        chosen = self._switched.get(name, choice.enabled)
        enabled = core or (default if chosen is None else chosen)
        tool = _with(raw.tool, choice)
        if raw.origin != "built-in" or choice.description:
            said = self._clean({"description": tool.description, "schema": dict(tool.input_schema)})
            tool = replace(tool, description=said["description"], input_schema=said["schema"])
        guarded = self.guard(tool)
        if self._switched.get(name) is False:
            guarded = replace(guarded, run=_off(name))
        return ToolEntry(
            guarded,
            raw.origin,
            raw.file,
            raw.line,
            core=core,
            enabled=enabled,
            size=size_of(tool),
            off=self._switched.get(name) is False,
        )

    def _stamped(self) -> Sequence[object]:
        found: list[object] = []
        for path in (*([self._files.bundled] if self._files.bundled else []), *self._files.others()):
            try:
                status = path.stat()
            except OSError:
                continue
            found.append((path, status.st_mtime_ns, status.st_size))
        return found


def _off(name: str) -> Run:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        del args, call
        return failure("permission_denied", f"The user has switched {name} off.", hint="Use another tool.")

    return run


def size_of(tool: Tool) -> int:
    """About how many bytes a tool takes in every request."""
    parts: Mapping[str, Any] = {part: getattr(tool, part) for part in PARTS}
    return len(json.dumps(parts, ensure_ascii=False, default=str).encode("utf-8", "replace"))


def _with(tool: Tool, choice: ToolChoice) -> Tool:
    facts = replace(
        tool.facts,
        category=choice.category or tool.facts.category,
        tags=tool.facts.tags if choice.tags is None else choice.tags,
        level=choice.output_level or tool.facts.level,
        examples=tool.facts.examples if choice.examples is None else choice.examples,
        subagents=tool.facts.subagents if choice.available_to_subagent is None else choice.available_to_subagent,
    )
    timeout = tool.timeout if choice.timeout is None or tool.timeout is None else choice.timeout
    return replace(tool, facts=facts, description=choice.description or tool.description, timeout=timeout)
