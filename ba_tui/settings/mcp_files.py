"""Read MCP servers from JSON: ``.mcp.json`` of a project, files that a flag names, and ``~/.claude.json``.

Entries in the forms of other assistants become ba's settings of a server. Unusable servers are returned with the
reason, unknown keys as remarks; nothing is raised.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, cast

from ba_tui.core.text.json_text import key_lines, read_jsonc
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import nearest
from ba_tui.core.values import frozen
from ba_tui.ingress import FileRefused, Read
from ba_tui.resources import read_regular
from ba_tui.settings.document import KeyPath, printable, shown
from ba_tui.settings.sections.tools import LONGEST_NAME, OAuthSettings, ServerSettings, server_url

_TYPES = {
    "stdio": "stdio", "local": "stdio",
    "http": "http", "streamable-http": "http", "streamableHttp": "http", "streamable_http": "http", "remote": "http",
    "sse": "sse",
}  # fmt: skip
_TEXTS = {"command": "command", "cwd": "cwd", "url": "url", "httpUrl": "url", "serverUrl": "url"}
_LISTS = {
    "args": "args",
    "disabled_tools": "disabled_tools", "disabledTools": "disabled_tools", "excludeTools": "disabled_tools",
}  # fmt: skip
_GROUPS = {"env": "env", "environment": "env", "headers": "headers", "http_headers": "headers"}
_MILLISECONDS = ("timeout",)
_SECONDS = {"startup_timeout_sec": "startup_timeout", "tool_timeout_sec": "timeout"}
_SECONDS_MOST = 600.0
_QUIET = frozenset({"description", "name", "$schema", "instructions"})
_WHY = {
    **dict.fromkeys(("enabled_tools", "enabledTools", "includeTools"), "name the tools to leave out in disabled_tools"),
    "headersHelper": "ba runs no program for headers; write ${VARIABLE} or ${keyring:NAME} into headers",
    "autoApprove": "allow tools with a permission rule, such as mcp.NAME.TOOL",
    "alwaysAllow": "allow tools with a permission rule, such as mcp.NAME.TOOL",
    "trust": "allow tools with a permission rule, such as mcp.NAME.*",
}
_NOT_IN_NAMES = regex(r"[^A-Za-z0-9_-]+")
_LINES = regex(r"__+")


@frozen
class Entry:
    """One entry. ``settings`` is None for an unusable server; ``problem``: why. ``remarks``: keys without effect."""

    settings: ServerSettings | None
    problem: str = ""
    remarks: tuple[str, ...] = ()


def tool_safe(name: str) -> str:
    """Return ``name`` with only the characters allowed in names of tools: letters, digits, - and single _."""
    return _LINES.sub("_", _NOT_IN_NAMES.sub("_", name)).lstrip("_")[:LONGEST_NAME]


def read_entry(raw: Any) -> Entry:
    """Parse ``raw``, the value under a server's name."""
    if not isinstance(raw, dict):
        return Entry(None, f"expected an object with command or url, got {shown(raw)}")
    reading = _EntryParser(cast("dict[str, Any]", raw))
    try:
        settings = reading.read()
    except ValueError as error:
        return Entry(None, str(error), tuple(reading.remarks))
    return Entry(settings, remarks=tuple(reading.remarks))


class _EntryParser:
    """Parse one entry, key by key. Its methods raise ValueError."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self._raw = raw
        self._given: dict[str, Any] = {}
        self.remarks: list[str] = []

    def read(self) -> ServerSettings:
        for key, value in self._raw.items():
            if value is not None:
                self._take(key, value)
        kind, url = self._given.get("type"), self._given.get("url")
        if kind == "stdio" and url and not self._given.get("command"):
            raise ValueError("type stdio needs a command, and it has a url")
        if url:
            server_url(url)
        return ServerSettings(**self._given)

    def _take(self, key: str, value: Any) -> None:
        match key:
            case "type" | "transport":
                if value not in _TYPES:
                    raise ValueError(f"{key}: expected stdio, http or sse, got {shown(value)}")
                self._given["type"] = _TYPES[value]
            case "command" if value and isinstance(value, list):
                # OpenCode writes the program and its arguments as one list.
                program, *args = _texts(key, value)
                self._given |= {"command": program, "args": (*args, *self._given.get("args", ()))}
            case "disabled" | "enabled":
                if not isinstance(value, bool):
                    raise ValueError(f"{key}: expected true or false")
                self._given["enabled"] = value == (key == "enabled")
            case "oauth":
                self._given["oauth"] = self._oauth(value)
            case _:
                self._plain(key, value)

    def _plain(self, key: str, value: Any) -> None:
        if key in _TEXTS:
            if not isinstance(value, str) or not value.strip() or "\0" in value:
                raise ValueError(f"{key}: expected text, got {shown(value)}")
            self._given[_TEXTS[key]] = Path(value) if key == "cwd" else value.strip()
            if key == "httpUrl":
                self._given.setdefault("type", "http")
        elif key in _LISTS:
            name = _LISTS[key]
            self._given[name] = (*self._given.get(name, ()), *_texts(key, value))
        elif key in _GROUPS:
            self._given[_GROUPS[key]] = _pairs(key, value)
        elif key in _MILLISECONDS or key in _SECONDS:
            self._given[_SECONDS.get(key, "timeout")] = _seconds(key, value, 1000 if key in _MILLISECONDS else 1)
        elif key not in _QUIET:
            close = nearest(key, [*_TEXTS, *_LISTS, *_GROUPS, "type", "oauth", "timeout"])
            why = _WHY.get(key) or (f"unknown; did you mean {close}?" if close else "unknown, so it has no effect")
            self.remarks.append(f"{printable(key)[:60]}: {why}")

    def _oauth(self, value: Any) -> OAuthSettings:
        if value is False:
            return OAuthSettings()
        if not isinstance(value, dict):
            raise ValueError(f"oauth: expected an object, got {shown(value)}")
        given: dict[str, Any] = {}
        for key, item in cast("dict[str, Any]", value).items():
            match key, item:
                case "clientId" | "client_id", str():
                    given["client_id"] = item
                case "clientSecret" | "client_secret", str():
                    given["client_secret"] = item
                case "callbackPort" | "callback_port", int() if 1 <= item <= 65_535:
                    given["callback_port"] = item
                case "scopes" | "scope", str() | list():
                    given["scopes"] = tuple(item.split()) if isinstance(item, str) else _texts(key, item)
                case _:
                    self.remarks.append(f"oauth.{printable(key)[:60]}: unknown, so it has no effect")
        return OAuthSettings(**given)


def _texts(key: str, value: Any) -> tuple[str, ...]:
    items: list[Any] = list(cast("list[Any]", value)) if isinstance(value, list) else [None]
    if any(isinstance(item, dict | list) or item is None or "\0" in str(item) for item in items):
        raise ValueError(f"{key}: expected a list of texts")
    return tuple(str(item).lower() if isinstance(item, bool) else str(item) for item in items)


def _pairs(key: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError(f"{key}: expected an object of names and texts, got {shown(value)}")
    pairs = cast("dict[str, Any]", value)
    for name, item in pairs.items():
        # The value may be a secret, so the message does not show it.
        if (
            isinstance(item, dict | list)
            or "\0" in f"{name}{item}"
            or not name.strip()
            or (key == "env" and "=" in name)
        ):
            raise ValueError(f"{key}.{printable(name)[:60]}: expected a name and a text")
    return {
        name: str(item).lower() if isinstance(item, bool) else str(item)
        for name, item in pairs.items()
        if item is not None
    }


def _seconds(key: str, value: Any, parts: int) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ValueError(f"{key}: expected a number, got {shown(value)}")
    return min(float(value) / parts, _SECONDS_MOST)


PROJECT_FILE = ".mcp.json"
CLAUDE_FILE = ".claude.json"
SERVERS = "mcpServers"
MAX_BYTES = 500_000
CLAUDE_BYTES = 50_000_000
MOST = 200
"""Largest number of servers of one file."""


@frozen
class ServerEntry:
    """One server of a file. ``name`` may differ from the file's: names of tools allow few characters."""

    name: str
    entry: Entry
    line: int = 0


@frozen
class ServersFile:
    """The servers of one file. ``problem``: why none can be used, with its ``line``."""

    source: str
    entries: tuple[ServerEntry, ...] = ()
    problem: str = ""
    line: int = 0

    @property
    def problems(self) -> Iterator[str]:
        """Yield a line for each problem, with file and line."""
        if self.problem:
            yield printable(f"{_at(self.source, self.line)}: {self.problem}")
        for each in self.entries:
            where = f"{_at(self.source, each.line)}: {each.name}"
            if each.entry.problem:
                yield printable(f"{where}: {each.entry.problem}; this server is not used")

    @property
    def remarks(self) -> Iterator[str]:
        """Yield a line for each key without effect, with file and line."""
        for each in self.entries:
            where = f"{_at(self.source, each.line)}: {each.name}"
            yield from (printable(f"{where}: {remark}") for remark in each.entry.remarks)


@frozen
class ClaudeState:
    """The servers in ``~/.claude.json``: the user's, those of one project, and which are off there."""

    file: Path
    user: ServersFile
    local: ServersFile
    off: frozenset[str] = field(default_factory=frozenset[str])


def read_servers(path: Path, read: Read = read_regular) -> ServersFile | None:
    """Read the servers in the file at ``path``; None when it does not exist. Raises nothing."""
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
    """Parse the servers in ``text``, the content of ``source``. Raises nothing."""
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
    """Return the servers in ``data`` by name, and the path to them: ``mcpServers``, or the root."""
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
    """Read ``~/.claude.json`` for the project at ``root``; None when it has no servers. Raises nothing."""
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
    # The file can be large; a quick search avoids parsing it when it has no servers.
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
