"""MCP servers of other assistants, as ``mcp.servers`` of config.yaml. Keys and passwords in them are never copied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ba_tui.core.text.patterns import regex
from ba_tui.settings.mcp.entries import read_entry, tool_safe
from ba_tui.settings.mcp.written import changed
from ba_tui.settings.migration.draft import Draft

_BY_NAME = frozenset({"bearer_token_env_var", "env_http_headers", "env_vars", "required"})
_SECRET = regex(r"(?i)key|token|secret|pass|auth|credential|pat$")
_VARIABLE = regex(r"\{env:(\w+)\}")


def codex_server(draft: Draft, name: str, given: Mapping[str, Any]) -> None:
    """A table of ``mcp_servers`` of Codex: tokens and headers there may name the variables that hold them."""
    entry = {key: value for key, value in given.items() if key not in _BY_NAME}
    headers = dict(entry.pop("http_headers", None) or {})
    if isinstance(token := given.get("bearer_token_env_var"), str):
        headers["Authorization"] = f"Bearer ${{{token}}}"
    if isinstance(named := given.get("env_http_headers"), dict):
        headers |= {key: f"${{{value}}}" for key, value in cast("dict[str, Any]", named).items()}
    if isinstance(passed := given.get("env_vars"), list):
        entry["env"] = {**(entry.get("env") or {}), **{f"{each}": f"${{{each}}}" for each in cast("list[Any]", passed)}}
    server(draft, name, {**entry, "headers": headers} if headers else entry)


def opencode_server(draft: Draft, name: str, given: Mapping[str, Any]) -> None:
    """An entry of ``mcp`` of OpenCode, which writes ``{env:NAME}`` for a variable."""
    server(draft, name, {key: _with_variables(value) for key, value in given.items()})


def _with_variables(value: Any) -> Any:
    if isinstance(value, str):
        return _VARIABLE.sub(r"${\1}", value)
    if isinstance(value, list):
        return [_with_variables(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _with_variables(each) for key, each in cast("dict[str, Any]", value).items()}
    return value


def server(draft: Draft, name: str, given: Mapping[str, Any]) -> None:
    """A server nearly as ``.mcp.json`` has it."""
    what, ours = f"MCP server {name}", tool_safe(name)
    read = read_entry(dict(given))
    if read.settings is None or not ours:
        draft.no(what, read.problem or "expected a name with letters or digits")
        return
    for remark in read.remarks:
        draft.no(f"{what}, {remark.partition(':')[0]}", remark.partition(": ")[2])
    pairs = {**read.settings.env, **read.settings.headers}
    if any("${" not in value and (key in read.settings.headers or _SECRET.search(key)) for key, value in pairs.items()):
        draft.note(what, "by hand", f"it holds a key, which is never copied: see ba mcp add --help, and name it {ours}")
        return
    draft.set(f"mcp.servers.{ours}", changed(read.settings), what)
