"""What lies in the checkout of a public collection: which file is a skill, an agent, a command, hooks or settings."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from ba_tui.core.text.front_matter import divided
from ba_tui.core.text.json_text import read_jsonc
from ba_tui.core.values import frozen

CollectionKind: TypeAlias = Literal["skills", "agents", "commands", "hooks", "settings"]
KINDS: tuple[CollectionKind, ...] = ("skills", "agents", "commands", "hooks", "settings")
SKIPPED = frozenset({".git", "node_modules", ".venv", "__pycache__", "dist"})
NOT_MEANT = frozenset({"docs", "doc", "evals", "tests", "test", "__tests__", "templates", "examples", "backups"})
"""Folders whose files are about agents and commands, or samples of them."""
DOCUMENTS = frozenset({"readme", "claude", "agents", "changelog", "contributing", "license", "index", "skill"})


@frozen
class FoundItem:
    """One file of a collection, and what it is."""

    kind: CollectionKind
    path: Path


def found_in(checkout: Path) -> Iterator[FoundItem]:
    """Everything in ``checkout`` that people would bring along, in the order of its paths."""
    skills: set[Path] = set()
    for here, folders, names in os.walk(checkout):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        folder = Path(here)
        if any(name.casefold() == "skill.md" for name in names):
            skills.add(folder)
            yield FoundItem("skills", folder)
        inside = not skills.isdisjoint({folder, *folder.parents})
        for name in sorted(names):
            path = folder / name
            if path.is_file() and not inside:
                yield from _items(path, path.relative_to(checkout))


def _items(path: Path, below: Path) -> Iterator[FoundItem]:
    parts = {part.casefold() for part in below.parts[:-1]}
    suffix = path.suffix.casefold()
    if parts & NOT_MEANT:
        return
    if suffix == ".json" and (parts & {"hooks", "settings", ".claude"}):
        data = json_of(path)
        if isinstance(data.get("hooks"), dict):
            yield FoundItem("hooks", path)
        if (".claude" in parts and path.name.startswith("settings")) or (
            "settings" in parts and _SETTINGS & data.keys()
        ):
            yield FoundItem("settings", path)
    elif suffix == ".toml":
        if "developer_instructions" in _toml(path):
            yield FoundItem("agents", path)
    elif suffix == ".md" and path.stem.casefold() not in DOCUMENTS:
        fields = _fields(path)
        if "commands" in parts or "command" in parts:
            yield FoundItem("commands", path)
        elif fields and (parts & {"agents", "agent"} or ({"name", "description"} <= fields and fields & _MARKS)):
            yield FoundItem("agents", path)


_SETTINGS = frozenset({"env", "hooks", "model", "outputStyle", "permissions", "statusLine"})
"""What a settings file of a collection is known by, wherever it lies."""
_MARKS = frozenset({"tools", "model", "color"})


def _fields(path: Path) -> set[str]:
    """The names of the fields that the front matter seems to have."""
    matter, _, _ = divided(path.read_bytes().decode("utf-8-sig", "replace").replace("\r\n", "\n"))
    return {line.partition(":")[0].strip() for line in (matter or "").split("\n") if line[:1].strip() and ":" in line}


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (ValueError, OSError):
        return {}


def json_of(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty when it holds none."""
    try:
        data: Any = read_jsonc(path.read_text("utf-8-sig"))
    except (json.JSONDecodeError, ValueError, OSError, RecursionError):
        return {}
    return cast("dict[str, Any]", data) if isinstance(data, dict) else {}
