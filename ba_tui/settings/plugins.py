"""Find plugins in Claude Code's layout: folders with commands and skills, installed by the user or in a project.

Nothing of them is loaded here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, cast

from ba_tui.core.text.json_text import read_jsonc
from ba_tui.core.values import frozen
from ba_tui.resources import read_regular

MANIFEST = Path(".claude-plugin", "plugin.json")
PROJECT = (".claude/plugins", ".ba/plugins")
PARTS = ("commands", "skills", "agents", "hooks", ".claude-plugin")
"""A folder with one of these is a plugin."""
LARGEST = 2_000_000
MOST = 300
"""Largest number of plugins of one folder."""


@frozen
class Plugin:
    """A plugin. ``name`` is the prefix of its commands, ``shown`` its folder for the user, ``commands`` the files and
    folders of its commands. ``open``: whether it may be read now."""

    name: str
    folder: Path
    source: Literal["user", "project"]
    shown: str
    commands: tuple[Path, ...] = ()
    open: Callable[[], bool] = lambda: True


def plugins_of(home: Path | None, config: Path, root: Path, trusted: Callable[[], bool]) -> list[Plugin]:
    """Return the user's own plugins, those installed with Claude Code, then the project's, each folder once. Reads the
    disk, but nothing in an untrusted project."""
    found: dict[str, Plugin] = {}
    own = [config / "plugins", *([home / ".claude" / "plugins"] if home else [])]
    places = [folder for place in own for folder in _folders(place)]
    for folder in (*places, *(_installed(home, root) if home else ())):
        found.setdefault(os.path.realpath(folder), _plugin(folder, "user", home_path(folder, home)))
    for place in PROJECT:
        for folder in _folders(root / place):
            shown = folder.relative_to(root).as_posix()
            found.setdefault(os.path.realpath(folder), _plugin(folder, "project", shown, trusted))
    return list(found.values())


def _plugin(
    folder: Path, source: Literal["user", "project"], shown: str, trusted: Callable[[], bool] = lambda: True
) -> Plugin:
    manifest: Mapping[str, Any] = _json(folder / MANIFEST) if trusted() else {}
    named, listed = manifest.get("name"), manifest.get("commands")
    name = re.sub(r"[^\w.-]+", "-", named if isinstance(named, str) else "").strip("-") or folder.name
    items = [listed] if isinstance(listed, str) else cast("list[Any]", listed) if isinstance(listed, list) else []
    base = os.path.realpath(folder)
    further = [Path(os.path.realpath(folder / item)) for item in items if isinstance(item, str)]
    inside = [path for path in further if path.is_relative_to(base)]
    return Plugin(name, folder, source, shown, tuple(dict.fromkeys([Path(base, "commands"), *inside])), trusted)


def _folders(place: Path) -> Iterator[Path]:
    """Yield the plugin folders directly in ``place``."""
    try:
        names = sorted(entry.name for entry in os.scandir(place) if not entry.name.startswith("."))
    except OSError:
        return
    for name in names[:MOST]:
        folder = place / name
        if _is_plugin(folder):
            yield folder


def _installed(home: Path, root: Path) -> Iterator[Path]:
    """Yield enabled plugins that Claude Code has installed for the user or for this project."""
    claude = home / ".claude"
    switches = _mapping(_json(claude / "settings.json").get("enabledPlugins"))
    listed = _mapping(_json(claude / "plugins" / "installed_plugins.json").get("plugins"))
    for key, given in [*listed.items()][:MOST]:
        if switches.get(key) is False:
            continue
        # An older layout has one entry instead of a list.
        entries: list[Any] = cast("list[Any]", given) if isinstance(given, list) else [given]
        for entry in map(_mapping, entries):
            path, scope = entry.get("installPath"), entry.get("scope", "user")
            here = scope == "user" or entry.get("projectPath") == str(root)
            if isinstance(path, str) and here and Path(path).is_absolute() and _is_plugin(Path(path)):
                # Commands may read the whole folder, so it must not contain the home folder.
                yield from () if home.is_relative_to(os.path.realpath(path)) else (Path(path),)
                break


def _is_plugin(folder: Path) -> bool:
    return any((folder / part).is_dir() for part in PARTS)


def _json(file: Path) -> Mapping[str, Any]:
    try:
        return _mapping(read_jsonc(read_regular(file, LARGEST).decode("utf-8", "replace")))
    except (OSError, ValueError, RecursionError):
        return {}


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def home_path(path: Path, home: Path | None) -> str:
    """Return ``path`` for users: below ``home`` it begins with ~/."""
    return f"~/{path.relative_to(home).as_posix()}" if home and path.is_relative_to(home) else str(path)
