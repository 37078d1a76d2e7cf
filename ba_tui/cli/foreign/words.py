"""The names and arguments of our tools in Claude Code's words, for the face that speaks its wire format."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ba_tui.core.messages import ToolUse
from ba_tui.core.results import ToolResult
from ba_tui.core.values import frozen
from ba_tui.faces.claude.words import ClaudeCall
from ba_tui.hooks.runner import ToolTelling
from ba_tui.tools.guards.claude_calls import claude_calls, claude_names, claude_response

_KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}


@frozen
class ClaudeWords:
    """faces.claude.words.ToolWords for calls made in ``cwd``."""

    cwd: Path

    def name(self, tool: str) -> str:
        return claude_names(tool)[0]

    def call(self, use: ToolUse) -> ToolTelling:
        """A patch of several files has no counterpart, and neither has a call whose arguments are wrong."""
        try:
            told = claude_calls(use.name, use.input, self.cwd)
        except (TypeError, ValueError, AttributeError, KeyError):
            told = ()
        return told[0] if len(told) == 1 else ToolTelling((use.name,), use.input, dict)

    def response(self, call: ClaudeCall, result: ToolResult) -> Mapping[str, Any] | None:
        return claude_response(ToolTelling(call.names, call.input, call.own), result).get("tool_response")

    def key_source(self, model: str) -> str:
        variable = _KEYS.get(model.partition("/")[0], "")
        return variable if os.environ.get(variable) else "none"
