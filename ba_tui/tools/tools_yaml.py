"""``tools.yaml``: which tools are always there, which may be, and what is set of each. Layers, a later one wins.

Which tools exist is not known here; the registry brings both together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Any, cast, get_args

from ba_tui.core.results import OutputLevel
from ba_tui.core.text.wording import did_you_mean
from ba_tui.core.values import frozen
from ba_tui.ingress import Read
from ba_tui.resources import read_regular
from ba_tui.settings.document import Problem, shown
from ba_tui.settings.options import non_empty_text, options_files, switch, unknown
from ba_tui.tools.own.discovery import ToolProblem


@frozen
class ToolChoice:
    """What files say of one tool; None where they say nothing. ``timeout`` in seconds."""

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
    """All layers together. The order of names is the order in which the model is told of the tools."""

    core: tuple[str, ...] = ()
    optional: Mapping[str, ToolChoice] = field(default_factory=dict[str, ToolChoice])
    problems: tuple[ToolProblem, ...] = ()
    named: Mapping[str, Problem] = field(default_factory=dict[str, Problem])
    """Every name and where it stands, the bundled file left out: there must be a tool of that name."""

    def unknown(self, names: Collection[str]) -> tuple[ToolProblem, ...]:
        """A line for each name that is no tool's."""
        return tuple(
            ToolProblem(place.where, f"there is no tool {name!r}{did_you_mean(name, names)}", place.line)
            for name, place in self.named.items()
            if name not in names
        )


def read_tool_choices(bundled: Path | None, others: Sequence[Path] = (), read: Read = read_regular) -> ToolChoices:
    """What ``bundled`` says, and over it the files that there are. Never raises: ``problems`` say what is wrong."""
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
    """What is wrong with an option of a tool; empty when nothing is."""
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
