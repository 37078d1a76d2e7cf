"""``skills.yaml``: which skills are told to models, which start by themselves. Layers, a later one wins.

Which skills exist is not known here; ``catalog`` finds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from ba_tui.core.wording import did_you_mean, suggestion
from ba_tui.settings.document import Document, Problem, read_document, shown

TOP = ("global", "core", "optional")


@dataclass(frozen=True, slots=True)
class Choice:
    """What files say of one skill. ``file_types`` are name endings in small letters, without the dot."""

    enabled: bool = True
    available_to_subagent: bool = True
    description: str = ""
    file_types: tuple[str, ...] = ()


UNSAID = Choice()
OPTIONS = {"enabled": bool, "available_to_subagent": bool, "description": str, "auto_load_on_file_types": list}


@dataclass(frozen=True, slots=True)
class Choices:
    """All layers together. ``named``: skills that a person's own file names, with the place."""

    enabled: bool = True
    auto_load: bool = True
    core: tuple[str, ...] = ()
    optional: Mapping[str, Choice] = field(default_factory=dict[str, Choice])
    named: Mapping[str, Problem] = field(default_factory=dict[str, Problem])
    problems: tuple[Problem, ...] = ()

    def of(self, id: str) -> Choice:
        return self.optional.get(id, UNSAID)

    def unknown(self, ids: Sequence[str]) -> tuple[Problem, ...]:
        """A line for each name that is no skill's."""
        missing = [name for name in self.named if name not in ids]
        return tuple(
            replace(self.named[name], text=f"there is no skill {name!r}{did_you_mean(name, ids)}") for name in missing
        )


def read_choices(bundled: Path | None, others: Sequence[Path] = ()) -> Choices:
    """What ``bundled`` says, and over it the files that there are. Never raises: ``problems`` say what is wrong."""
    result = Choices()
    for path in (*([bundled] if bundled else []), *others):
        document = read_document(path)
        if document is not None:
            result = _Layer(document).over(result, ours=path == bundled)
    return result


class _Layer:
    """One file, checked as it is read."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._problems = list(document.problems)
        self._named: dict[str, Problem] = {}

    def over(self, below: Choices, *, ours: bool) -> Choices:
        data = self._document.data
        for key in data:
            if key not in TOP:
                self._wrong((key,), _unknown(key, TOP))
        switches = self._switches(data.get("global"))
        added = self._core(data.get("core"))
        optional = dict(below.optional)
        for name, said in self._optional(data.get("optional")).items():
            optional[name] = replace(optional.get(name, UNSAID), **said)
        return Choices(
            switches.get("enabled", below.enabled),
            switches.get("auto_load_on_file_upload", below.auto_load),
            tuple(dict.fromkeys((*below.core, *added))),
            optional,
            below.named if ours else {**below.named, **self._named},
            (*below.problems, *self._problems),
        )

    def _switches(self, value: Any) -> dict[str, bool]:
        known = ("enabled", "auto_load_on_file_upload")
        good: dict[str, bool] = {}
        for key, said in self._mapping(("global",), value, "switches by name").items():
            if key not in known:
                self._wrong(("global", key), _unknown(key, known))
            elif isinstance(said, bool):
                good[key] = said
            else:
                self._wrong(("global", key), f"expected true or false, got {shown(said)}")
        return good

    def _core(self, value: Any) -> list[str]:
        if value is None:
            return []
        if not isinstance(value, list):
            self._wrong(("core",), f"expected a list of names, got {shown(value)}")
            return []
        found: list[str] = []
        for index, name in enumerate(cast("list[Any]", value)):
            if isinstance(name, str) and name.strip():
                found.append(name.strip())
                self._name(name.strip(), ("core", index))
            else:
                self._wrong(("core", index), f"expected a name, got {shown(name)}")
        return found

    def _optional(self, value: Any) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for name, options in self._mapping(("optional",), value, "skills by name").items():
            self._name(name, ("optional", name))
            found[name] = {}
            for option, said in self._mapping(("optional", name), options, "options by name").items():
                if complaint := _complaint(option, said):
                    self._wrong(("optional", name, option), complaint)
                elif option == "auto_load_on_file_types":
                    found[name]["file_types"] = tuple(dict.fromkeys(text.strip().lower().lstrip("*.") for text in said))
                else:
                    found[name][option] = said
        return found

    def _mapping(self, path: tuple[str, ...], value: Any, expected: str) -> dict[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._wrong(path, f"expected {expected}, got {shown(value)}")
            return {}
        return cast("dict[str, Any]", value)

    def _name(self, name: str, path: tuple[str | int, ...]) -> None:
        key = ".".join(map(str, path))
        self._named.setdefault(name, Problem(str(self._document.path), "", self._document.line(path), key, fatal=False))

    def _wrong(self, path: tuple[str | int, ...], text: str) -> None:
        key = ".".join(map(str, path))
        self._problems.append(Problem(str(self._document.path), text, self._document.line(path), key))


def _complaint(option: str, value: Any) -> str:
    """What is wrong with an option; empty when nothing is."""
    kind = OPTIONS.get(option)
    if kind is None:
        return _unknown(option, list(OPTIONS))
    if kind is bool:
        return "" if isinstance(value, bool) else f"expected true or false, got {shown(value)}"
    if kind is str:
        return "" if isinstance(value, str) and value.strip() else f"expected a text, got {shown(value)}"
    items = cast("list[Any]", value) if isinstance(value, list) else [None]
    good = all(isinstance(item, str) and item.strip(" *.") for item in items)
    return "" if good else f"expected a list of name endings such as [pdf, csv], got {shown(cast('object', value))}"


def _unknown(name: str, known: Sequence[str]) -> str:
    return f"is not known; {suggestion(name, known)}"
