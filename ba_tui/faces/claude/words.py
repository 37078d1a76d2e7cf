"""How our calls, rules and modes are called in Claude Code. The names of tools are known to those above this room."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ba_tui.core.events import Mode
from ba_tui.core.messages import ToolUse
from ba_tui.core.results import ToolResult

VERSION = "2.1.197"
"""The version of Claude Code whose lines these are."""
MODES: Mapping[Mode, str] = {
    "default": "default",
    "accept-edits": "acceptEdits",
    "plan": "plan",
    "auto": "auto",
    "bypass": "bypassPermissions",
}
OWN_MODES: Mapping[str, Mode] = {theirs: ours for ours, theirs in MODES.items()}
QUIET = "dontAsk"
"""The mode that denies what would ask."""
ERRORS: Mapping[str, str] = {
    "auth_failed": "authentication_failed",
    "rate_limited": "rate_limit",
    "bad_request": "invalid_request",
    "model_not_found": "invalid_request",
    "context_overflow": "invalid_request",
    "overloaded": "server_error",
    "server_error": "server_error",
    "max_tokens": "max_output_tokens",
}
"""By the kind of an error of ours; all others are ``unknown``."""
STOPS: Mapping[str | None, str] = {"context_window": "model_context_window_exceeded"}


class ClaudeCall(Protocol):
    """A call in Claude Code's words: the names of the tool, the usual one first, and its input.

    ``own`` gives our arguments for an input that somebody changed; raises ValueError where it can't.
    """

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def input(self) -> Mapping[str, Any]: ...

    def own(self, changed: Mapping[str, Any], /) -> dict[str, Any]: ...


class ToolWords(Protocol):
    """Names and arguments of our tools, as Claude Code has them."""

    def name(self, tool: str) -> str: ...

    def call(self, use: ToolUse) -> ClaudeCall: ...

    def response(self, call: ClaudeCall, result: ToolResult) -> Any:
        """The ``tool_use_result`` of a call; None where there is none."""
        ...

    def key_source(self, model: str) -> str:
        """The variable that the key of ``model`` comes from; ``none`` where no variable is set."""
        ...


def stop_reason(stop: str | None) -> str | None:
    """Return why an answer ended, as the Messages API says it; None for one that was cut off."""
    return None if stop in {None, "cancelled", "error"} else STOPS.get(stop, stop)
