"""YAML whose values know their lines, so that an error can name file, line, key and expectation.

For the files of this room; what they mean is their readers' business.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import yaml
from yaml.constructor import SafeConstructor

from ba_tui.core.errors import UsageError
from ba_tui.core.values import frozen
from ba_tui.resources import open_regular


@frozen
class YamlNode:
    """A value of the file, with the key that leads to it and its line (1-based)."""

    file: str
    line: int
    key: str
    value: Any

    def wrong(self, expected: str) -> UsageError:
        return UsageError(f"{self.file}, line {self.line}: {self.key or 'the file'} must be {expected}.")

    def mapping(self, known: Iterable[str] | None = None) -> dict[str, YamlNode]:
        """Its entries. Raises UsageError when it is no mapping, or has a key that is not ``known``."""
        if not isinstance(self.value, yaml.MappingNode):
            raise self.wrong("a mapping of keys to values")
        found: dict[str, YamlNode] = {}
        for key, value in cast("list[tuple[yaml.Node, yaml.Node]]", self.value.value):
            name = str(cast("Any", key).value)
            path = f"{self.key}.{name}" if self.key else name
            found[name] = YamlNode(self.file, key.start_mark.line + 1, path, value)
        for name, node in found.items() if known is not None else ():
            names = list(known or ())
            if name not in names:
                near = difflib.get_close_matches(name, names, 1)
                hint = f"Did you mean “{near[0]}”?" if near else f"Known: {', '.join(names)}."
                raise UsageError(f"{node.file}, line {node.line}: unknown key {node.key}.", hint)
        return found

    def sequence(self) -> list[YamlNode]:
        if not isinstance(self.value, yaml.SequenceNode):
            raise self.wrong("a list")
        parts = cast("list[yaml.Node]", self.value.value)
        return [
            YamlNode(self.file, part.start_mark.line + 1, f"{self.key}[{number}]", part)
            for number, part in enumerate(parts, 1)
        ]

    def plain(self) -> Any:
        """The value as Python has it."""
        constructor: Any = SafeConstructor()
        try:
            return constructor.construct_document(self.value)
        except (yaml.YAMLError, ValueError) as error:
            raise self.wrong("a plain value") from error

    def text(self) -> str:
        value = self.plain()
        if not isinstance(value, str):
            raise self.wrong("a text")
        return value

    def flag(self) -> bool:
        value = self.plain()
        if not isinstance(value, bool):
            raise self.wrong("true or false")
        return value

    def number(self) -> float:
        value = self.plain()
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
            raise self.wrong("a number, 0 or more")
        return value

    def whole(self) -> int:
        value = self.plain()
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.wrong("a whole number, 0 or more")
        return value


def parse(text: str, file: str) -> YamlNode | None:
    """The file's top node; None when it is empty. Raises UsageError when it is no YAML."""
    try:
        node: Any = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise UsageError(f"{file}{place}: this is no YAML: {problem}.", "Correct the file at that line.") from error
    return None if node is None else YamlNode(file, 1, "", node)


def read(path: Path) -> str:
    """The text of a file. Raises UsageError when there is none to read."""
    try:
        with open_regular(path) as file:
            return file.read().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror or error
        raise UsageError(f"{path} can't be read: {reason}.", "Check the path.") from error
