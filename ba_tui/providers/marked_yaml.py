"""Typed values of a YAML document; errors name file, line, key and expectation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import UsageError
from ba_tui.core.text.wording import nearest
from ba_tui.core.values import frozen
from ba_tui.settings.document import KeyPath, SettingsDocument, read_document


@frozen
class YamlNode:
    """A value of the file, and the path of keys and indexes to it."""

    document: SettingsDocument
    path: KeyPath
    value: Any

    @property
    def file(self) -> str:
        """Return the file's name for messages."""
        return str(self.document.path)

    @property
    def line(self) -> int:
        """Return the line of its key or list item, from 1."""
        return self.document.line(self.path) or 1

    @property
    def key(self) -> str:
        """Return the path as users write it: ``steps[1].say``."""
        parts = (f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in self.path)
        return "".join(parts).removeprefix(".")

    def wrong(self, expected: str) -> UsageError:
        """Return the error that says what was expected here."""
        return UsageError(f"{self.file}:{self.line}: {self.key or 'the file'} must be {expected}.")

    def mapping(self, known: Iterable[str] | None = None) -> dict[str, YamlNode]:
        """Return its entries. Raises UsageError when it is no mapping, or has a key that is not in ``known``."""
        if not isinstance(self.value, dict):
            raise self.wrong("a mapping of keys to values")
        found = {
            name: YamlNode(self.document, (*self.path, name), value)
            for name, value in cast("dict[str, Any]", self.value).items()
        }
        names = list(known or found)
        for name, node in found.items():
            if name not in names:
                near = nearest(name, names)
                hint = f"Did you mean “{near}”?" if near else f"Known: {', '.join(names)}."
                raise UsageError(f"{node.file}:{node.line}: unknown key {node.key}.", hint)
        return found

    def sequence(self) -> list[YamlNode]:
        """Return its items. Raises UsageError when it is no list."""
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        items = cast("list[Any]", self.value)
        return [YamlNode(self.document, (*self.path, index), item) for index, item in enumerate(items)]

    def values(self, readers: Mapping[str, Callable[[YamlNode], Any]]) -> dict[str, Any]:
        """Return the values of its entries, each read by the reader of its key. Raises UsageError as ``mapping``."""
        return {key: readers[key](node) for key, node in self.mapping(readers).items()}

    def text(self) -> str:
        """Return the text. Raises UsageError when it is none."""
        if not isinstance(self.value, str):
            raise self.wrong("a text")
        return self.value

    def flag(self) -> bool:
        """Return the truth value. Raises UsageError when it is neither true nor false."""
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value

    def number(self) -> float:
        """Return the number. Raises UsageError when it is none, negative or far too large."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
            raise self.wrong("a number, 0 or more")
        return value

    def whole(self) -> int:
        """Return the whole number. Raises UsageError when it is none, or negative."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.wrong("a whole number, 0 or more")
        return value


def read_yaml(path: Path) -> YamlNode | None:
    """Return the file's top node, None when it is empty. Raises UsageError when it is unreadable or no YAML mapping."""
    document = read_document(path)
    if document is None:
        raise UsageError(f"{path} can't be read: there is no such file.", "Check the path.")
    if document.problems:
        raise UsageError(f"{document.problems[0]}.", "Correct the file at that line.")
    return YamlNode(document, (), document.data) if document.data else None
