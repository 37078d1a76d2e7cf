"""``tools.yaml``: which tools are always there, which may be, and what is set of each. Layers, a later one wins.

Which tools exist is not known here; the registry brings both together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, cast, get_args

from ba_tui.core.tool import Level
from ba_tui.core.wording import suggestion
from ba_tui.settings.document import Document, read_document, shown
from ba_tui.tools.discovery import Problem

LAYERS_AT_MOST = 8


@dataclass(frozen=True, slots=True)
class Choice:
    """What files say of one tool; None where they say nothing. ``where``: file and line of the last word."""

    enabled: bool | None = None
    available_to_subagent: bool | None = None
    category: str | None = None
    tags: tuple[str, ...] | None = None
    description: str | None = None
    output_level: Level | None = None
    timeout: float | None = None
    where: tuple[str, int] = ("", 0)


@dataclass(frozen=True, slots=True)
class ToolChoices:
    """All layers together. The order of names is the order in which the model is told of the tools."""

    core: tuple[str, ...] = ()
    optional: Mapping[str, Choice] = field(default_factory=dict[str, Choice])
    problems: tuple[Problem, ...] = ()
    named: Mapping[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    """Every name and where it stands, the bundled file left out: there must be a tool of that name."""


def read_tool_choices(bundled: Path | None, others: Sequence[Path] = ()) -> ToolChoices:
    """What ``bundled`` says, and over it the files that there are. Never raises: ``problems`` say what is wrong."""
    result = ToolChoices()
    for path in (*([bundled] if bundled else []), *others[:LAYERS_AT_MOST]):
        document = read_document(path)
        if document is not None:
            result = _Layer(document).over(result, ours=path == bundled)
    return result


class _Layer:
    """One file, checked as it is read."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._file = str(document.path)
        self._problems = [
            Problem(problem.where, f"{problem.key + ': ' if problem.key else ''}{problem.text}", problem.line)
            for problem in document.problems
        ]
        self._named: dict[str, tuple[str, int]] = {}

    def over(self, below: ToolChoices, *, ours: bool) -> ToolChoices:
        data = self._document.data
        for key in data:
            if key not in {"core", "optional"}:
                self._wrong((key,), _unknown(key, ("core", "optional")))
        added = self._core(data.get("core"))
        core = [*below.core, *(name for name in added if name not in below.core)]
        optional = dict(below.optional)
        for name in added:
            if (known := optional.get(name)) and known.enabled is False:
                optional[name] = replace(known, enabled=None)
        for name, choice in self._optional(data.get("optional")).items():
            before = optional.get(name, Choice())
            said = {each.name: value for each in fields(choice) if (value := getattr(choice, each.name)) is not None}
            optional[name] = replace(before, **said)
            if choice.enabled is False and name in core:
                core.remove(name)
        named = below.named if ours else {**below.named, **self._named}
        return ToolChoices(tuple(core), optional, (*below.problems, *self._problems), named)

    def _core(self, value: Any) -> list[str]:
        if value is None:
            return []
        if not isinstance(value, list):
            self._wrong(("core",), f"expected a list of names, got {shown(value)}")
            return []
        found: list[str] = []
        for index, name in enumerate(cast("list[Any]", value)):
            if isinstance(name, str):
                self._named[name] = (self._file, self._document.line(("core", index)))
                found.append(name)
            else:
                self._wrong(("core", index), f"expected a name, got {shown(name)}")
        return list(dict.fromkeys(found))

    def _optional(self, value: Any) -> dict[str, Choice]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._wrong(("optional",), f"expected tools by name, got {shown(value)}")
            return {}
        found: dict[str, Choice] = {}
        for name, options in cast("dict[str, Any]", value).items():
            where = (self._file, self._document.line(("optional", name)))
            self._named[name] = where
            if options is None:
                options = {}
            if isinstance(options, dict):
                found[name] = Choice(**self._options(name, cast("dict[str, Any]", options)), where=where)
            else:
                self._wrong(("optional", name), f"expected options by name, got {shown(options)}")
        return found

    def _options(self, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
        good: dict[str, Any] = {}
        for option, value in options.items():
            expected = _expected(option, value)
            if expected is None:
                good[option] = tuple(value) if option == "tags" else value
            else:
                self._wrong(("optional", name, option), expected)
        return good

    def _wrong(self, path: tuple[str | int, ...], text: str) -> None:
        key = ".".join(map(str, path))
        self._problems.append(Problem(self._file, f"{key}: {text}", self._document.line(path)))


def _expected(option: str, value: Any) -> str | None:
    """What is wrong with an option of a tool; None when nothing is."""
    match option:
        case "enabled" | "available_to_subagent":
            return None if isinstance(value, bool) else f"expected true or false, got {shown(value)}"
        case "category" | "description":
            return None if isinstance(value, str) and value.strip() else f"expected a text, got {shown(value)}"
        case "tags":
            return None if _texts(value) else f"expected a list of texts, got {shown(value)}"
        case "output_level":
            levels = get_args(Level)
            return None if value in levels else f"expected one of {', '.join(levels)}, got {shown(value)}"
        case "timeout":
            number = isinstance(value, int | float) and not isinstance(value, bool)
            good = number and 0 < value <= 86_400
            return None if good else f"expected seconds, more than 0 and at most 86400, got {shown(value)}"
        case _:
            known = [each.name for each in fields(Choice) if each.name != "where"]
            return _unknown(option, known)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in cast("list[Any]", value))


def _unknown(name: str, known: Sequence[str]) -> str:
    return f"is not known; {suggestion(name, known)}"
