"""One layer of settings and its check: invalid values are left out and reported in ba's words.

``layers`` lists and ranks the layers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeAlias, cast

from ba_tui.core.ports.permissions import RuleLayer
from ba_tui.core.text.wording import nearest
from ba_tui.settings.document import KeyPath, Problem, printable, shown
from ba_tui.settings.model import Settings
from ba_tui.settings.plain import NotPlain, adapter, build
from ba_tui.settings.sections.data import SourceSettings
from ba_tui.settings.sections.models import ModelProfile
from ba_tui.settings.sections.tools import HookGroup, McpSettings, RuleSettings, ServerSettings

ROUNDS = 20
SettingPath: TypeAlias = tuple[str, int]

_EXPECTED = {
    "string_type": "expected text",
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "float_parsing": "expected a number",
    "finite_number": "expected a finite number",
    "tuple_type": "expected a list",
    "path_type": "expected a path",
    "dataclass_type": "expected a group of settings",
    "dict_type": "expected a group of settings",
}


@dataclass(slots=True)
class Layer:
    """One source of settings. ``place`` returns the file (or flag, or variable) and line of a key.

    ``folder`` is the base of relative paths.
    """

    data: dict[str, Any]
    place: Callable[[KeyPath], SettingPath]
    folder: Path
    problems: list[Problem] = field(default_factory=list[Problem])
    gone: dict[KeyPath, list[int]] = field(default_factory=dict[KeyPath, list[int]])
    """Indexes of list items that were left out, needed to find the lines of later items."""
    void: set[str] = field(default_factory=set[str])
    """Providers with an error: using the valid part could send prompts to the wrong server."""
    kind: RuleLayer = "user"
    """Whose settings they are; variables belong to the user."""
    foreign: bool = False
    """Whether the layer is a file of an untrusted folder."""
    project: bool = False
    """Whether the layer is a file of the project, which may set less than the user."""

    def told(self) -> list[Problem]:
        """Return the layer's problems with advice; `ba config edit` opens only the user's file."""
        cure = "Correct it in that file." if self.project else ""
        return [
            replace(each, foreign=self.foreign, cure=each.cure or (cure if each.fatal else ""))
            for each in self.problems
        ]

    def source(self, path: KeyPath) -> str:
        where, line = self._place(path)
        return f"{where}:{line}" if line else where

    def complain(self, path: KeyPath, text: str, *, fatal: bool = True, cure: str = "") -> None:
        where, line = self._place(path)
        self.problems.append(Problem(where, text, line, dotted(path), fatal, cure=cure))

    def _place(self, path: KeyPath) -> SettingPath:
        if path and isinstance(path[-1], int):
            index = path[-1]
            for missing in sorted(self.gone.get(path[:-1], ())):
                index += missing <= index
            path = (*path[:-1], index)
        return self.place(path)

    def drop(self, path: KeyPath) -> None:
        """Remove the value at ``path``."""
        if not path:
            self.data = {}
            return
        holder: Any = self.data
        for part in path[:-1]:
            holder = holder[part]
        del holder[path[-1]]
        if isinstance(path[-1], int):
            gone = self.gone.setdefault(path[:-1], [])
            index = path[-1]
            for missing in sorted(gone):
                index += missing <= index
            gone.append(index)


def dotted(path: Sequence[str | int]) -> str:
    """Return ``path`` in the form ``permissions.allow``."""
    return printable(".".join(str(part) for part in path if isinstance(part, str)))


def check(layer: Layer) -> None:
    """Remove and report everything in ``layer`` that is not a valid setting."""
    layer.data = cast("dict[str, Any]", _without_nothing(layer.data))
    try:
        build(Settings, layer.data)
    except NotPlain:
        _check_fully(layer)


def _check_fully(layer: Layer) -> None:
    from pydantic import ValidationError  # noqa: PLC0415 - see adapter

    for _ in range(ROUNDS):
        try:
            adapter(Settings).validate_python(layer.data)
        except ValidationError as error:
            paths = sorted({_existing(layer.data, item["loc"]) for item in error.errors()}, key=_order, reverse=True)
            told: set[KeyPath] = set()
            for item in error.errors():
                path = _existing(layer.data, item["loc"])
                if path not in told:
                    told.add(path)
                    layer.complain(path, expectation(item, path))
            for path in paths:
                layer.drop(path)
                if path[:1] == ("providers",) and len(path) > 2:
                    layer.void.add(str(path[1]))
            if () in paths:
                return
        else:
            return
    layer.data = {}


def _order(path: KeyPath) -> list[tuple[int, str]]:
    return [(part, "") if isinstance(part, int) else (-1, part) for part in path]


def _existing(data: Any, loc: Sequence[str | int]) -> KeyPath:
    """Return the part of an error's location that exists in the data; the rest names types within the model."""
    path: list[str | int] = []
    for part in loc:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            break
        path.append(part)
    return tuple(path)


def _without_nothing(value: Any) -> Any:
    """Return ``value`` without keys whose value is None: they count as unset."""
    if not isinstance(value, Mapping):
        return value
    return {k: _without_nothing(v) for k, v in cast("Mapping[str, Any]", value).items() if v is not None}


_ADDRESSES: frozenset[KeyPath] = frozenset({("team", "bus_url"), ("memory", "redis"), ("memory", "url")})
"""Settings whose values may hold a password."""


def expectation(error: Mapping[str, Any], path: KeyPath) -> str:
    """Return pydantic's error in ba's words: the expected and the actual value."""
    kind, value = str(error["type"]), error.get("input")
    context = cast("dict[str, Any]", error.get("ctx") or {})
    if kind == "unexpected_keyword_argument":
        return unknown(path)
    if kind in _EXPECTED:
        expected = _EXPECTED[kind]
    elif kind == "literal_error":
        expected = f"expected {context['expected']}".replace("'", "")
    elif kind == "greater_than_equal":
        expected = f"expected at least {context['ge']}"
    elif kind == "less_than_equal":
        expected = f"expected at most {context['le']}"
    elif kind == "greater_than":
        expected = f"expected more than {context['gt']}"
    elif kind == "value_error":
        expected = str(context.get("error", error["msg"]))
        if path[0] in {"sources", "mcp"} or path in _ADDRESSES:
            # An address may contain a password.
            return expected
    else:
        expected = str(error["msg"]).replace("Input should be", "expected")
    secret = path[0] == "mcp" and len(path) > 3
    return expected if secret else f"{expected}, got {shown(value)}"


def unknown(path: KeyPath) -> str:
    """Return the message for an unknown key, with the nearest setting if there is one."""
    name = str(path[-1])
    if "key" in name.replace("-", "_").lower().split("_") or "token" in name.lower():
        return "unknown setting; API keys belong in the environment or the keyring, not in this file"
    close = nearest(name.replace("-", "_"), names(path[:-1]))
    return f"unknown setting; did you mean {close}?" if close else "unknown setting"


def names(group: Sequence[str | int]) -> list[str]:
    """Return the names of settings in ``group``: ``()`` for the top, ``("permissions",)``, ``("providers", NAME)``."""
    kinds: Mapping[str, type[Any]] = {
        "permissions": RuleSettings, "providers": ModelProfile, "hooks": HookGroup, "sources": SourceSettings,
        "mcp": ServerSettings if len(group) > 1 else McpSettings,
    }  # fmt: skip
    return [each.name for each in fields(kinds.get(str(group[0]), Settings) if group else Settings)]
