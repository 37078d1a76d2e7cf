"""The user's MCP servers for one project, and the servers and tools that the user has turned off there.

They are saved in the user's config folder, never in the project, and only readable by the user: they may contain keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import yaml

from ba_tui.core.errors import UsageError
from ba_tui.resources import UserFolders, exclusive, save_whole
from ba_tui.settings.document import load_mapping, read_document
from ba_tui.settings.mcp.files import ServerEntry, ServersFile, read_entry

FILE = "mcp.yaml"
HEADER = """\
# Your MCP servers for single projects, and what you switched off there. `ba mcp` and /mcp write this file.
# Servers for every project are under mcp.servers in config.yaml.
"""
_SERVERS, _OFF, _TOOLS = "servers", "off", "tools_off"


class McpChoices:
    """The choices for the project at ``root``. Reading never raises. All methods use a file: call them off the loop."""

    def __init__(self, where: UserFolders, root: Path) -> None:
        self.path = where.config / FILE
        self._root = str(root)

    def servers(self) -> ServersFile:
        """Return the servers for this project only."""
        document = read_document(self.path)
        if document is None:
            return ServersFile(str(self.path))
        if document.broken:
            return ServersFile(str(self.path), problem=document.problems[0].text, line=document.problems[0].line)
        given = _group(_group(document.data.get(self._root)).get(_SERVERS))
        entries = (
            ServerEntry(name, read_entry(raw), document.line((self._root, _SERVERS, name)))
            for name, raw in given.items()
        )
        return ServersFile(str(self.path), tuple(entries))

    def off(self) -> frozenset[str]:
        """Return the names of servers that are turned off here."""
        return frozenset(_texts(self._read().get(_OFF)))

    def tools_off(self) -> Mapping[str, frozenset[str]]:
        """Return the tools that are turned off here, by server and under the server's own names."""
        return {name: frozenset(_texts(tools)) for name, tools in _group(self._read().get(_TOOLS)).items()}

    def add(self, name: str, entry: Mapping[str, Any]) -> None:
        """Save a server for this project. Raises StorageError."""
        self._change(lambda mine: mine.setdefault(_SERVERS, {}).update({name: dict(entry)}))

    def remove(self, name: str) -> bool:
        """Remove a server of this project; return False when there is none. Raises StorageError."""
        found: list[bool] = []
        self._change(lambda mine: found.append(mine.get(_SERVERS, {}).pop(name, None) is not None))
        return found[0]

    def switch(self, name: str, tool: str = "", *, on: bool) -> None:
        """Turn a server, or one of its tools, on or off in this project. Raises StorageError."""

        def change(mine: dict[str, Any]) -> None:
            holder = mine if not tool else mine.setdefault(_TOOLS, {})
            key, item = (_OFF, name) if not tool else (name, tool)
            kept = [each for each in _texts(holder.get(key)) if each != item]
            holder[key] = kept if on else [*kept, item]

        self._change(change)

    def reset(self) -> bool:
        """Turn everything on in this project; return False when nothing was off. Raises StorageError."""
        found: list[bool] = []
        self._change(lambda mine: found.append(any([mine.pop(_OFF, None), mine.pop(_TOOLS, None)])))
        return found[0]

    def _read(self) -> dict[str, Any]:
        document = read_document(self.path)
        return _group(document.data.get(self._root)) if document else {}

    def _change(self, change: Callable[[dict[str, Any]], object]) -> None:
        with exclusive(self.path.parent):
            kept = load_mapping(self.path)
            mine = deepcopy(_group(kept.get(self._root)))
            change(mine)
            left = {key: value for key, value in mine.items() if value}
            rest = {root: value for root, value in kept.items() if root != self._root}
            whole = {**rest, self._root: left} if left else rest
            if whole != kept:
                text = yaml.safe_dump(whole, allow_unicode=True, sort_keys=False) if whole else ""
                save_whole(self.path, HEADER + text, mode=0o600)


def check_entry(entry: Mapping[str, Any]) -> None:
    """Raise UsageError when ``entry`` does not describe a server, or has unknown keys."""
    read = read_entry(dict(entry))
    if wrong := read.problem or next(iter(read.remarks), ""):
        raise UsageError(f"The server can't be added: {wrong}.", "See ba mcp add --help.")


def _group(value: Any) -> dict[str, Any]:
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}


def _texts(value: Any) -> list[str]:
    return [str(each) for each in cast("list[Any]", value)] if isinstance(value, list) else []
