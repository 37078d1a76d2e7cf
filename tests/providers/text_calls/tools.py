"""Tools that replies are read against; nothing of them is run here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.providers.text_calls.known_tools import RequestTools


async def _run(args: Mapping[str, Any], call: Call) -> ToolResult:
    return ToolResult(str(args))


def tool(name: str, description: str, required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> Tool:
    properties = {key: {"type": kind} if isinstance(kind, str) else kind for key, kind in required.items()}
    more = {key: {"type": kind} if isinstance(kind, str) else kind for key, kind in (optional or {}).items()}
    schema = {"type": "object", "properties": {**properties, **more}, "required": list(required)}
    return Tool(name, description, schema, _run)


READ = tool(
    "read_file", "Read a file. Lines are numbered.", {"path": "string"}, {"offset": "integer", "limit": "integer"}
)
WRITE = tool("write_file", "Write a file.", {"path": "string", "content": "string"})
GREP = tool("grep", "Search files.", {"pattern": "string"}, {"path": "string", "ignore_case": "boolean"})
SHELL = tool("shell", "Run a command.", {"command": "string"}, {"timeout": "integer"})
TODOS = tool("todo_write", "Keep the list of steps.", {"items": {"type": "array", "items": {"type": "object"}}})
NOW = tool("now", "The time.", {}, {"zone": "string"})
TOOLS = (READ, WRITE, GREP, SHELL, TODOS, NOW)
KNOWN = RequestTools(TOOLS)
