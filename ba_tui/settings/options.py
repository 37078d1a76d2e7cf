"""Read files that select items by name under ``core`` and ``optional``, such as tools.yaml and skills.yaml.

The caller knows the items and the meaning of their options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, cast

from ba_tui.core.text.wording import suggestion
from ba_tui.ingress import Read
from ba_tui.resources import read_regular
from ba_tui.settings.document import KeyPath, Problem, SettingsDocument, read_document, shown

OptionCheck: TypeAlias = Callable[[str, Any], str]
"""Returns the problem with the value of the named option; empty when it is valid."""


class OptionsFile:
    """One file, checked as it is read. Invalid parts are left out and added to ``problems``.

    ``named``: every name and its first place in the file.
    """

    def __init__(self, document: SettingsDocument, keys: Sequence[str]) -> None:
        self._document = document
        self.problems = list(document.problems)
        self.named: dict[str, Problem] = {}
        for key in document.data:
            if key not in keys:
                self._wrong((key,), unknown(key, keys))

    def core(self) -> list[str]:
        """Return the distinct names under ``core``."""
        value: Any = self._document.data.get("core")
        if value is not None and not isinstance(value, list):
            self._wrong(("core",), f"expected a list of names, got {shown(value)}")
        found: list[str] = []
        for index, name in enumerate(cast("list[Any]", value) if isinstance(value, list) else ()):
            if isinstance(name, str) and name.strip():
                found.append(name.strip())
                self._name(name.strip(), ("core", index))
            else:
                self._wrong(("core", index), f"expected a name, got {shown(name)}")
        return list(dict.fromkeys(found))

    def optional(self, check: OptionCheck) -> dict[str, dict[str, Any]]:
        """Return the valid options under ``optional``, by name."""
        found: dict[str, dict[str, Any]] = {}
        for name, value in self._mapping(
            ("optional",), self._document.data.get("optional"), "options for each name"
        ).items():
            self._name(name, ("optional", name))
            found[name] = self._checked(("optional", name), value, check)
        return found

    def group(self, key: str, check: OptionCheck) -> dict[str, Any]:
        """Return the options under ``key``."""
        return self._checked((key,), self._document.data.get(key), check)

    def _checked(self, path: KeyPath, value: Any, check: OptionCheck) -> dict[str, Any]:
        good: dict[str, Any] = {}
        for option, given in self._mapping(path, value, "options by name").items():
            if complaint := check(option, given):
                self._wrong((*path, option), complaint)
            else:
                good[option] = given
        return good

    def _mapping(self, path: KeyPath, value: Any, expected: str) -> dict[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._wrong(path, f"expected {expected}, got {shown(value)}")
            return {}
        return cast("dict[str, Any]", value)

    def _name(self, name: str, path: KeyPath) -> None:
        self.named.setdefault(name, replace(self._problem(path, ""), fatal=False))

    def _wrong(self, path: KeyPath, text: str) -> None:
        self.problems.append(self._problem(path, text))

    def _problem(self, path: KeyPath, text: str) -> Problem:
        return Problem(str(self._document.path), text, self._document.line(path), ".".join(map(str, path)))


def options_files(
    paths: Iterable[Path], keys: Sequence[str], read: Read = read_regular
) -> Iterable[tuple[Path, OptionsFile]]:
    """Read those of ``paths`` that exist, in order. ``keys``: the allowed top-level keys."""
    for path in paths:
        document = read_document(path, read)
        if document is not None:
            yield path, OptionsFile(document, keys)


def switch(value: Any) -> str:
    """Check that a value is true or false."""
    return "" if isinstance(value, bool) else f"expected true or false, got {shown(value)}"


def non_empty_text(value: Any) -> str:
    """Check that a value is a text that is not empty."""
    return "" if isinstance(value, str) and value.strip() else f"expected a text, got {shown(value)}"


def unknown(name: str, known: Sequence[str]) -> str:
    return f"is not known; {suggestion(name, known)}"
