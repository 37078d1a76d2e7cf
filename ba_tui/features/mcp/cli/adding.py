"""Where ``ba mcp add`` writes a server, and ``ba mcp remove`` takes one out: one place for each scope."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from ba_tui.core.errors import UsageError
from ba_tui.core.text.jsonc import read_jsonc
from ba_tui.core.text.patterns import regex
from ba_tui.resources import Places, read_regular, save_whole
from ba_tui.settings.document import read_document
from ba_tui.settings.editing import put_value, unset_value
from ba_tui.settings.mcp.choices import McpChoices, check_entry
from ba_tui.settings.mcp.entries import read_entry
from ba_tui.settings.mcp.files import MAX_BYTES, PROJECT_FILE, SERVERS
from ba_tui.settings.mcp.written import changed
from ba_tui.settings.sections.mcp import server_name
from ba_tui.settings.variable_names import holds_key

Scope: TypeAlias = Literal["local", "user", "project"]
SCOPES: tuple[Scope, ...] = ("local", "project", "user")
_ENVIRONMENT_NAME = regex(r"[A-Za-z_]\w*")
_HEADER = regex(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def entry_of(
    target: Sequence[str], transport: str | None, env: Sequence[str], headers: Sequence[str], oauth: Mapping[str, Any]
) -> dict[str, Any]:
    """What ``ba mcp add`` was told, as ``.mcp.json`` has it. Raises UsageError."""
    first, *args = target
    address = re.match(r"https?://", first) is not None
    kind = transport or ("http" if address else "stdio")
    if kind == "stdio":
        if address:
            raise UsageError(f"{first} is an address.", "Use --transport http or sse, or leave it out.")
        if headers or oauth:
            raise UsageError("Headers and logins are for servers with an address.", "Use --env for a program.")
        entry: dict[str, Any] = {"type": "stdio", "command": first, "args": args}
        return entry | ({"env": _pairs("--env", env, "=", _ENVIRONMENT_NAME)} if env else {})
    if not address:
        raise UsageError(f"{first} is no address for transport {kind}.", "It begins with http:// or https://.")
    if args or env:
        what = f"argument {args[0]}" if args else "--env"
        raise UsageError(f"A server with an address takes no {what}.", "Use --header, or put -- before a command.")
    entry = {"type": kind, "url": first}
    if headers:
        entry["headers"] = _pairs("--header", headers, ":", _HEADER)
    return entry | ({"oauth": dict(oauth)} if oauth else {})


def _pairs(option: str, texts: Sequence[str], sign: str, name: re.Pattern[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        key, found, value = text.partition(sign)
        if not found or not name.fullmatch(key.strip()):
            # The value may be a secret, so it is not shown.
            raise UsageError(f"{option} takes NAME{sign}VALUE.", f"Such as {option} TOKEN{sign}'${{TOKEN}}'")
        pairs[key.strip()] = value.strip() if sign == ":" else value
    return pairs


def literal_secrets(entry: Mapping[str, Any]) -> list[str]:
    """The names of variables and headers in ``entry`` whose value is a key in plain text."""
    groups = (entry.get("env"), entry.get("headers"))
    pairs = [pair for group in groups if isinstance(group, dict) for pair in cast("dict[str, Any]", group).items()]
    secret = (name for name, value in pairs if "${" not in str(value) and (holds_key(name) or _is_header(name)))
    return list(secret)


def _is_header(name: str) -> bool:
    return name.lower() in {"authorization", "x-api-key", "api-key", "cookie"}


def write_server(where: Places, root: Path, scope: Scope, name: str, entry: Mapping[str, Any]) -> Path:
    """Add a server; returns the file that has it now.

    Raises:
        UsageError: it can't be used, there is one of the name already, or the file is broken. StorageError.
    """
    try:
        server_name(name)
    except ValueError as error:
        raise UsageError(f"{name!r} can't be a server's name: {error}.") from error
    check_entry(entry)
    if name in named(where, root, scope):
        raise UsageError(f"There is a server {name} already (scope {scope}).", f"ba mcp remove {name} -s {scope}")
    if scope == "local":
        choices = McpChoices(where, root)
        choices.add(name, entry)
        return choices.path
    if scope == "user":
        settings = read_entry(dict(entry)).settings
        return put_value(where, f"mcp.servers.{name}", changed(settings) if settings else {})
    path = root / PROJECT_FILE
    data = _project(path)
    data.setdefault(SERVERS, {})[name] = dict(entry)
    save_whole(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    return path


def remove_server(where: Places, root: Path, scope: Scope, name: str) -> Path:
    """Take out a server that is there; returns the file that had it. Raises UsageError, StorageError."""
    if scope == "local":
        choices = McpChoices(where, root)
        choices.remove(name)
        return choices.path
    if scope == "user":
        unset_value(where, f"mcp.servers.{name}")
        return where.settings
    path = root / PROJECT_FILE
    data = _project(path)
    del data[SERVERS][name]
    save_whole(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    return path


def named(where: Places, root: Path, scope: Scope) -> list[str]:
    """The names of the servers of one scope, as ``ba mcp`` writes them. Raises UsageError for a broken file."""
    if scope == "local":
        return [each.name for each in McpChoices(where, root).servers().entries]
    if scope == "user":
        document = read_document(where.settings)
        group: Any = document.data.get("mcp") if document else None
        servers: Any = cast("dict[str, Any]", group).get("servers") if isinstance(group, dict) else None
        return list(cast("dict[str, Any]", servers)) if isinstance(servers, dict) else []
    return list(_project(root / PROJECT_FILE).get(SERVERS, {}))


def _project(path: Path) -> dict[str, Any]:
    """What ``.mcp.json`` says. Raises UsageError when it can't be written again without loss."""
    try:
        text = read_regular(path, MAX_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} can't be read.", "Check the file.") from error
    try:
        data: Any = json.loads(text)
    except ValueError as error:
        try:
            read_jsonc(text)
        except ValueError:
            raise UsageError(f"{path} is no valid JSON: {error}.", "Correct the file first.") from error
        raise UsageError(f"{path} has comments, which would be lost.", "Edit the file by hand.") from error
    servers: Any = cast("dict[str, Any]", data).get(SERVERS, {}) if isinstance(data, dict) else None
    if not isinstance(servers, dict):
        raise UsageError(f'{path} has no {{"{SERVERS}": {{…}}}}.', "Correct the file first.")
    return cast("dict[str, Any]", data)
