"""Files that hold MCP servers as JSON: ``.mcp.json`` of a project, those that a flag names, and ``~/.claude.json``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, cast

from ba_tui.core.text.jsonc import key_lines, read_jsonc
from ba_tui.core.values import frozen
from ba_tui.ingress import FileRefused, Read
from ba_tui.resources import read_regular
from ba_tui.settings.document import KeyPath, printable
from ba_tui.settings.mcp.entries import Entry, read_entry, tool_safe

PROJECT_FILE = ".mcp.json"
CLAUDE_FILE = ".claude.json"
SERVERS = "mcpServers"
MAX_BYTES = 500_000
CLAUDE_BYTES = 50_000_000
MOST = 200
"""Servers of one file that are read."""


@frozen
class ServerEntry:
    """One server of a file. ``name`` may differ from what stands there: names of tools hold few signs."""

    name: str
    entry: Entry
    line: int = 0


@frozen
class ServersFile:
    """``problem``: why nothing of the file can be used, in a few words, at ``line``."""

    source: str
    entries: tuple[ServerEntry, ...] = ()
    problem: str = ""
    line: int = 0

    @property
    def problems(self) -> Iterator[str]:
        """One line for each thing that is wrong, with file and line."""
        if self.problem:
            yield printable(f"{_at(self.source, self.line)}: {self.problem}")
        for each in self.entries:
            where = f"{_at(self.source, each.line)}: {each.name}"
            if each.entry.problem:
                yield printable(f"{where}: {each.entry.problem}; this server is not used")

    @property
    def remarks(self) -> Iterator[str]:
        """One line for each key that has no effect, likewise."""
        for each in self.entries:
            where = f"{_at(self.source, each.line)}: {each.name}"
            yield from (printable(f"{where}: {remark}") for remark in each.entry.remarks)


@frozen
class ClaudeState:
    """What ``~/.claude.json`` says of servers: the person's, those of one project, and which are off there."""

    file: Path
    user: ServersFile
    local: ServersFile
    off: frozenset[str] = field(default_factory=frozenset[str])


def read_servers(path: Path, read: Read = read_regular) -> ServersFile | None:
    """The servers in the file at ``path``; None when there is none. Raises nothing."""
    source = str(path)
    try:
        raw = read(path, MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except FileRefused as error:
        return ServersFile(source, problem=f"was not read: {error.strerror}")
    except OSError as error:
        return ServersFile(source, problem=f"can't be read: {error.strerror or error}")
    if len(raw) > MAX_BYTES:
        return ServersFile(source, problem=f"is larger than {MAX_BYTES // 1_000} KB")
    return parse_servers(source, raw.decode("utf-8-sig", "replace"))


def parse_servers(source: str, text: str) -> ServersFile:
    """The servers in ``text``, which is the content of ``source``. Raises nothing."""
    try:
        data: Any = read_jsonc(text)
    except json.JSONDecodeError as error:
        return ServersFile(source, problem=f"can't be read as JSON ({error.msg})", line=error.lineno)
    except (ValueError, RecursionError):
        return ServersFile(source, problem="can't be read as JSON")
    group, above = _group(data)
    if group is None:
        return ServersFile(source, problem=f'expected {{"{SERVERS}": {{NAME: {{…}}}}}}')
    return ServersFile(source, _entries(group, key_lines(text), above))


def _group(data: Any) -> tuple[Mapping[str, Any] | None, KeyPath]:
    """The servers in ``data`` by name, and the path to them: below ``mcpServers``, or the whole of it."""
    whole = cast("dict[str, Any]", data) if isinstance(data, dict) else None
    if whole is None:
        return None, ()
    for key in (SERVERS, "servers"):
        if isinstance(named := whole.get(key), dict):
            return cast("dict[str, Any]", named), (key,)
    bare = all(isinstance(each, dict) and {"command", "url"} & each.keys() for each in whole.values())
    return (whole if bare and SERVERS not in whole else None), ()


def _entries(group: Mapping[str, Any], lines: Mapping[KeyPath, int], above: KeyPath) -> tuple[ServerEntry, ...]:
    found: dict[str, ServerEntry] = {}
    for raw_name, raw in list(group.items())[:MOST]:
        name, entry = tool_safe(raw_name), read_entry(raw)
        line = lines.get((*above, raw_name), 0)
        if not name:
            name, entry = printable(raw_name)[:40] or "?", Entry(None, "expected a name with letters or digits")
        elif name in found:
            name, entry = raw_name, Entry(None, f"another server of this file is called {name} too")
        found[name] = ServerEntry(name, entry, line)
    return tuple(found.values())


def read_claude_state(home: Path | None, root: Path) -> ClaudeState | None:
    """What ``~/.claude.json`` says for the project at ``root``; None where it says nothing. Raises nothing."""
    if home is None:
        return None
    path = home / CLAUDE_FILE
    empty = ServersFile(str(path))
    try:
        raw = read_regular(path, CLAUDE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return ClaudeState(path, ServersFile(str(path), problem=f"can't be read: {error.strerror or error}"), empty)
    # The file holds much else, and grows: most people have no servers there.
    if len(raw) > CLAUDE_BYTES or not any(word in raw for word in (b'"mcpServers"', b'"disabledMcp')):
        return None
    try:
        data: Any = json.loads(raw.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return ClaudeState(path, ServersFile(str(path), problem="can't be read as JSON"), empty)
    project = _object(_object(data, "projects"), str(root))
    off = [name for key in ("disabledMcpServers", "disabledMcpjsonServers") for name in _names(project.get(key))]
    user, local = (ServersFile(str(path), _entries(_object(each, SERVERS), {}, ())) for each in (data, project))
    return ClaudeState(path, user, local, frozenset(map(tool_safe, off)))


def _object(data: Any, key: str) -> dict[str, Any]:
    value = cast("dict[str, Any]", data).get(key) if isinstance(data, dict) else None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _names(value: Any) -> list[str]:
    return [each for each in cast("list[Any]", value) if isinstance(each, str)] if isinstance(value, list) else []


def _at(source: str, line: int) -> str:
    return f"{source}:{line}" if line else source
