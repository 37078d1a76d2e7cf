"""Read a YAML file as data with line numbers, and report problems in one line with file, line and key.

Used for config.yaml, rules, keys, workflows, models and scripts. This module does not know what the keys mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, TypeAlias, cast

import yaml

from ba_tui.core.errors import StorageError
from ba_tui.core.events import Notice
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import clipped, sentence, suggestion
from ba_tui.core.values import frozen
from ba_tui.ingress import FileRefused, Read
from ba_tui.resources import bundled, read_regular

SIZE = 1_000_000
_QUICK = {
    "tag:yaml.org,2002:str": (str, None),
    "tag:yaml.org,2002:int": (int, regex(r"0|[1-9][0-9]*")),
    "tag:yaml.org,2002:float": (float, regex(r"[0-9]+\.[0-9]+")),
}
"""Converters of plain values. YAML's own constructors would take half of the time of reading a file."""
SHOWN = 60

KeyPath: TypeAlias = tuple[str | int, ...]


@frozen
class Problem:
    """A problem with one setting: where, and what was expected.

    ``fatal``: the app reports it and continues without the value; ``-p`` and ``ba config validate`` exit 1.
    ``foreign``: the file belongs to an untrusted folder, so ``-p`` continues too.
    """

    where: str
    text: str
    line: int = 0
    key: str = ""
    fatal: bool = True
    foreign: bool = False
    cure: str = ""
    """Advice, when correcting the file is not enough."""

    def __str__(self) -> str:
        place = printable(f"{self.where}:{self.line}" if self.line else self.where)
        return f"{place}: {self.key}: {self.text}" if self.key else f"{place}: {self.text}"

    @property
    def notice(self) -> Notice:
        return Notice(
            sentence(str(self)), "warning", self.cure or ("Correct it: ba config edit." if self.fatal else "")
        )


@frozen
class SettingsDocument:
    """The mapping in a file, the line of each key and list item, and the problems."""

    path: Path
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    lines: Mapping[KeyPath, int] = field(default_factory=dict[KeyPath, int])
    problems: tuple[Problem, ...] = ()

    @property
    def broken(self) -> bool:
        """Return whether the file could not be read at all."""
        return any(problem.fatal and not problem.key for problem in self.problems)

    def line(self, path: KeyPath) -> int:
        """Return the line of ``path``, or of its nearest known parent; 0 when unknown."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 0)


def read_document(path: Path, read: Read = read_regular) -> SettingsDocument | None:
    """Read the file at ``path``; return None when it does not exist. Errors are in ``problems``; nothing is raised."""
    try:
        raw = read(path, SIZE + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except FileRefused as error:
        return _broken(path, f"was not read: {error.strerror}")
    except OSError as error:
        return _broken(path, f"can't be read: {error.strerror or error}")
    if len(raw) > SIZE:
        return _broken(path, f"is larger than {SIZE // 1000} KB; expected a short YAML file")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _broken(path, "is not UTF-8 text", raw.count(b"\n", 0, error.start) + 1)
    return parse_document(path, text)


def parse_document(path: Path, text: str) -> SettingsDocument:
    """Parse ``text``, the content of ``path``. Errors are in ``problems``; nothing is raised."""
    try:
        loader = _loader(path)(text)
        root = loader.get_single_node()
        if root is None:
            return SettingsDocument(path)
        if not isinstance(root, yaml.MappingNode):
            return _broken(path, f"expected lines of `name: value`, got {_kind(root)}", root.start_mark.line + 1)
        reading = _NodeReader(path, loader)
        return SettingsDocument(path, reading.mapping(root, ()), reading.lines, tuple(reading.problems))
    except yaml.MarkedYAMLError as error:
        return _broken(path, *_explained(error))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, int(error.position)) + 1
        return _broken(path, f"a character that YAML does not allow: U+{ord(text[error.position]):04X}", line)
    except (RecursionError, ValueError) as error:
        what = "is nested too deeply" if isinstance(error, RecursionError) else f"can't be understood: {error}"
        return _broken(path, what)


def _loader(path: Path) -> type[yaml.SafeLoader]:
    """Return libyaml's loader for ba's own files only: it is ten times faster, but crashes on unlimited nesting."""
    ours = path.is_relative_to(bundled("config"))
    return cast("type[yaml.SafeLoader]", getattr(yaml, "CSafeLoader", yaml.SafeLoader)) if ours else yaml.SafeLoader


def load_mapping(path: Path) -> dict[str, Any]:
    """Read a file that ba itself writes (keys, approvals); empty when it does not exist.

    Raises:
        StorageError: the file can't be parsed; it must not be overwritten then.
    """
    document = read_document(path)
    if document is None:
        return {}
    if document.problems:
        raise StorageError(str(document.problems[0]), "Correct the file, or move it away.")
    return document.data


def shown(value: object) -> str:
    """Format ``value`` for a message: short, on one line, without control characters."""
    if isinstance(value, Mapping):
        return "a group of settings"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "yes (a switch)" if value else "no (a switch)"
    return clipped(repr(value), SHOWN)


def printable(text: str) -> str:
    """Escape control characters in ``text``, since names of files and folders are not trusted."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


class _NodeReader:
    """Convert the nodes of a document to data, recording the line of each."""

    def __init__(self, path: Path, loader: yaml.SafeLoader) -> None:
        self.path = path
        self.lines: dict[KeyPath, int] = {}
        self.problems: list[Problem] = []
        self._loader = loader
        self._budget = 20_000

    def value(self, node: yaml.Node, path: KeyPath) -> Any:
        # Limits values, because nested aliases can make a small file huge.
        self._budget -= 1
        if self._budget < 0:
            raise ValueError("too many values; are there aliases of aliases?")
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            items: list[Any] = []
            for index, item in enumerate(cast("list[yaml.Node]", node.value)):
                self.lines[(*path, index)] = item.start_mark.line + 1
                items.append(self.value(item, (*path, index)))
            return items
        return self._plain(node)

    def _plain(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.ScalarNode) and (quick := _QUICK.get(node.tag)):
            kind, plain = quick
            if plain is None or plain.fullmatch(node.value):
                return kind(node.value)
        construct = cast("Callable[..., Any]", self._loader.construct_object)
        return construct(node, deep=True)

    def mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self._loader.flatten_mapping(node)
        for name, item in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            key = str(name.value) if isinstance(name, yaml.ScalarNode) else str(self._plain(name))
            line = name.start_mark.line + 1
            here = (*path, key)
            if key in found:
                dotted = ".".join(map(str, here))
                text = f"is set again (first in line {self.lines[here]}); the last value counts"
                self.problems.append(Problem(str(self.path), text, line, dotted))
            self.lines[here] = line
            found[key] = self.value(item, here)
        return found


def _broken(path: Path, text: str, line: int = 0) -> SettingsDocument:
    return SettingsDocument(path, problems=(Problem(str(path), text, line),))


def _kind(node: yaml.Node) -> str:
    return "a list" if isinstance(node, yaml.SequenceNode) else "a single value"


def _explained(error: yaml.MarkedYAMLError) -> tuple[str, int]:
    """Return YAML's error in one line, and its line number."""
    mark = error.problem_mark or error.context_mark
    said = " ".join(part for part in (error.problem, f"({error.context})" if error.context else "") if part)
    if "\\t" in said or "cannot start any token" in said:
        said += "; indent with spaces, and quote values that begin with a special character"
    return f"is not valid YAML: {said or 'it can not be parsed'}", mark.line + 1 if mark else 0


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
