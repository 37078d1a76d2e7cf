"""All tools by name, with their origin and the settings of tools.yaml. ``visible`` decides which of them a model
sees."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeAlias, cast, get_args

from ba_tui.core.ports.contributions import ToolSource
from ba_tui.core.results import OutputLevel, ToolResult, failure
from ba_tui.core.text.wording import did_you_mean
from ba_tui.core.tool import Call, Guard, Run, Tool
from ba_tui.core.values import frozen, late
from ba_tui.ingress import Read
from ba_tui.resources import read_regular
from ba_tui.settings.document import Problem, non_empty_text, options_files, shown, switch, unknown
from ba_tui.tools.discovery import Discovery, Module, ToolOrigin, ToolProblem

# Needed for lists of tools, and by users with own tools.
missing, worker_tool = (late(f"ba_tui.tools.workers:{name}") for name in ("missing", "worker_tool"))
is_tool_name = late("ba_tui.tools.declared_tools:is_tool_name")


@frozen
class ToolChoice:
    """The settings of one tool in tools.yaml; None for those not set. ``timeout`` in seconds."""

    enabled: bool | None = None
    available_to_subagent: bool | None = None
    category: str | None = None
    tags: tuple[str, ...] | None = None
    description: str | None = None
    output_level: OutputLevel | None = None
    timeout: float | None = None
    examples: tuple[Mapping[str, Any], ...] | None = None


OPTIONS = tuple(each.name for each in fields(ToolChoice))


@frozen
class ToolChoices:
    """The merged layers of tools.yaml. Tools are listed for models in this order."""

    core: tuple[str, ...] = ()
    optional: Mapping[str, ToolChoice] = field(default_factory=dict[str, ToolChoice])
    problems: tuple[ToolProblem, ...] = ()
    named: Mapping[str, Problem] = field(default_factory=dict[str, Problem])
    """The names in all files but the bundled one, with their places: a tool of each name must exist."""

    def unknown(self, names: Collection[str]) -> tuple[ToolProblem, ...]:
        """Return a problem for each name that no tool has."""
        return tuple(
            ToolProblem(place.where, f"there is no tool {name!r}{did_you_mean(name, names)}", place.line)
            for name, place in self.named.items()
            if name not in names
        )


def read_tool_choices(bundled: Path | None, others: Sequence[Path] = (), read: Read = read_regular) -> ToolChoices:
    """Read ``bundled`` and the ``others`` that exist, later ones over earlier. Never raises: ``problems`` has the
    errors."""
    core: list[str] = []
    optional: dict[str, ToolChoice] = {}
    problems: list[Problem] = []
    named: dict[str, Problem] = {}
    for path, file in options_files((*([bundled] if bundled else []), *others), ("core", "optional"), read):
        for name in file.core():
            if name not in core:
                core.append(name)
            if (known := optional.get(name)) and known.enabled is False:
                optional[name] = replace(known, enabled=None)
        for name, given in file.optional(_complaint).items():
            given |= {option: tuple(given[option]) for option in ("tags", "examples") if option in given}
            optional[name] = replace(optional.get(name, ToolChoice()), **given)
            if given.get("enabled") is False and name in core:
                core.remove(name)
        problems += file.problems
        named |= {} if path == bundled else file.named
    return ToolChoices(tuple(core), optional, tuple(map(_problem, problems)), named)


def _problem(found: Problem) -> ToolProblem:
    return ToolProblem(found.where, f"{found.key}: {found.text}" if found.key else found.text, found.line)


def _complaint(option: str, value: Any) -> str:
    """Return what is wrong with an option of a tool; empty if it is valid."""
    match option:
        case "enabled" | "available_to_subagent":
            return switch(value)
        case "category" | "description":
            return non_empty_text(value)
        case "tags":
            return "" if _texts(value) else f"expected a list of texts, got {shown(value)}"
        case "examples":
            return (
                ""
                if _mappings(value)
                else f"expected a list of arguments, such as [{{path: a.txt}}], got {shown(value)}"
            )
        case "output_level":
            levels = get_args(OutputLevel)
            return "" if value in levels else f"expected one of {', '.join(levels)}, got {shown(value)}"
        case "timeout":
            number = isinstance(value, int | float) and not isinstance(value, bool)
            good = number and 0 < value <= 86_400
            return "" if good else f"expected seconds, more than 0 and at most 86400, got {shown(value)}"
        case _:
            return unknown(option, OPTIONS)


def _mappings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in cast("list[Any]", value))


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in cast("list[Any]", value))


BUILT_IN = "built in"
SEARCH = "tool_search"
PARTS = ("name", "description", "input_schema")
Clean: TypeAlias = Callable[[Any], Any]


def _as_it_is(value: Any) -> Any:
    return value


@frozen
class ToolEntry:
    """A tool within its guards. Every model sees ``core`` and ``enabled`` ones. ``size``: bytes of the schema.
    ``off``: the user switched the tool off in this session."""

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
        """Return the requirement of the tool that is not installed; empty if none is."""
        return missing(self.tool.facts.needs)


@frozen
class ToolFiles:
    """The ``tools.yaml`` files: the bundled one, the effective ones over it, and how to read them."""

    bundled: Path | None = None
    others: Callable[[], Sequence[Path]] = tuple[Path]
    read: Read = read_regular

    def choices(self) -> ToolChoices:
        return read_tool_choices(self.bundled, self.others(), self.read)


@dataclass(slots=True)
class _Raw:
    """A tool without settings and guards."""

    tool: Tool
    origin: ToolOrigin
    file: str
    line: int
    module: Module | None = field(default=None)


class Registry:
    """All tools, within ``guard``. Thread-safe. ``clean`` makes a JSON value, such as the schema of a foreign tool,
    safe for a model."""

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
        """Add a tool; also possible while the app runs.

        Raises:
            ValueError: the name is taken; the message names both places.
        """
        self._take(_Raw(tool, origin, file, line))

    def get_tool(self, name: str) -> Tool | None:
        """Return the tool within its guards, whether or not a model sees it."""
        entry = self._entries.get(name)
        return entry.tool if entry else None

    def entry(self, name: str) -> ToolEntry | None:
        return self._entries.get(name)

    def entries(self) -> Sequence[ToolEntry]:
        """Return all tools in the order of tools.yaml, then in the order in which they were found."""
        with self._lock:
            order = {name: index for index, name in enumerate((*self._choices.core, *self._choices.optional))}
            return sorted(self._entries.values(), key=lambda entry: order.get(entry.tool.name, len(order)))

    def tools(self) -> dict[str, Tool]:
        """Return all tools that can be called now, within their guards, by name."""
        return {entry.tool.name: entry.tool for entry in self.entries()}

    def names(self) -> frozenset[str]:
        with self._lock:
            return frozenset(self._entries)

    def persistent(self, *, for_subagent: bool = False) -> Sequence[ToolEntry]:
        """Return the tools of every turn: core tools first, then enabled ones."""
        found = [each for each in self.entries() if each.persistent and (each.tool.facts.subagents or not for_subagent)]
        return sorted(found, key=lambda entry: not entry.core)

    def problems(self) -> Sequence[ToolProblem]:
        """Return why tools can't be used, and the errors in tools.yaml."""
        with self._lock:
            return (*self._found_problems, *self._choices.problems, *self._choices.unknown(self._entries.keys()))

    def refresh(self) -> None:
        """Search the folders and files again. Blocks while new tools load: call it off the loop."""
        with self._looking:
            self._apply(self._discovery.look() if self._discovery else ())
            self._joined_problems = tuple(text for source in self._sources for text in self._look(source))

    def join(self, sources: Iterable[ToolSource]) -> None:
        """Add ``sources`` of tools, which the next refresh asks first."""
        self._sources = (*self._sources, *sources)

    def outdated(self) -> bool:
        """Return whether the tools of a source changed since the last refresh."""
        return any(source.outdated() for source in self._sources)

    def joined_problems(self) -> Sequence[str]:
        """Return why tools of the sources can't be used, as sentences."""
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
        """Enable or disable a tool for the life of the registry, regardless of the files.

        A disabled tool stays listed for models that saw it, but calls of it fail.
        """
        with self._lock:
            self._switched[name] = on
            if raw := self._raw.get(name):
                self._entries[name] = self._entry(raw)

    def close(self) -> None:
        """End the workers of the user's tools, then call ``closed``."""
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
        for record in module.records:
            if not is_tool_name(str(record.get("name", ""))):
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
        # The user's own files are enabled; bundled tools and those of packages must be switched on.
        default = raw.origin in {"user", "project", "extra", "workflow", "mcp", "feature"}
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
    """Return the approximate bytes of a tool in each request."""
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
