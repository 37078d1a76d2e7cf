"""One server as ``.mcp.json`` and other assistants write it, read as ba's own settings of a server.

Nothing is raised: a server that can't be used comes with the reason, and a key that ba does not know is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import nearest
from ba_tui.core.values import frozen
from ba_tui.settings.document import printable, shown
from ba_tui.settings.sections.mcp import LONGEST_NAME, OAuthSettings, ServerSettings, server_url

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
    """``settings`` None: the server can't be used, and ``problem`` says why. ``remarks``: keys without effect."""

    settings: ServerSettings | None
    problem: str = ""
    remarks: tuple[str, ...] = ()


def tool_safe(name: str) -> str:
    """``name`` as the names of tools may hold it: letters, digits, - and single _."""
    return _LINES.sub("_", _NOT_IN_NAMES.sub("_", name)).lstrip("_")[:LONGEST_NAME]


def read_entry(raw: Any) -> Entry:
    """The server that ``raw``, the value of its name, describes."""
    if not isinstance(raw, dict):
        return Entry(None, f"expected an object with command or url, got {shown(raw)}")
    reading = _Reading(cast("dict[str, Any]", raw))
    try:
        settings = reading.read()
    except ValueError as error:
        return Entry(None, str(error), tuple(reading.remarks))
    return Entry(settings, remarks=tuple(reading.remarks))


class _Reading:
    """One entry, key by key. Its methods raise ValueError."""

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
