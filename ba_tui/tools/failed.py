"""The exception by which a tool reports that a call cannot be done. The output guard makes a result of it.

No wording of single tools: each raises its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from errno import errorcode
from typing import Any, get_args

from ba_tui.core.errors import BaError, ErrorKind, NoThread, StopTurn
from ba_tui.core.results import ToolResult, failure
from ba_tui.core.tool import Call, Tool


class Failed(BaError):
    """What happened, of which kind, and in ``hint`` what the model should do about it. ``code``: what the system or a
    server calls it (``ENOSPC``, ``HTTP 503``); empty where nobody does."""

    def __init__(self, kind: ErrorKind, message: str, hint: str = "", *, code: str = "") -> None:
        super().__init__(message, hint)
        self.kind = kind
        self.code = code

    def reworded(self, message: str) -> Failed:
        """The same failure, said with more about where it happened."""
        other = Failed("validation_error", message, self.hint, code=self.code)
        other.kind = self.kind
        return other


_KINDS: dict[str, ErrorKind] = {kind: kind for kind in get_args(ErrorKind)}


def failed_result(error: BaError) -> ToolResult:
    """The observation for an error of ours; a kind that tools do not know (a refused path) reads as a denial."""
    failed = failure(_KINDS.get(error.kind, "permission_denied"), str(error), hint=error.hint)
    code = error.code if isinstance(error, Failed) else ""
    return replace(failed, error=replace(failed.error, code=code)) if code and failed.error else failed


def from_os(error: OSError, what: str) -> Failed:
    """``error`` of the operating system on ``what``, in words."""
    code = errorcode.get(error.errno or 0, "")
    if isinstance(error, FileNotFoundError):
        return Failed("not_found", f"{what} does not exist.", code=code)
    if isinstance(error, PermissionError):
        # Of a kind that is not tried again: rights do not come back by waiting.
        message = f"The system does not allow access to {what}."
        return Failed("execution_error", message, "Check the file's permissions.", code=code)
    return Failed("resource_error", f"{what}: {error.strerror or error}.", code=code)


async def outcome(tool: Tool, args: Mapping[str, Any], call: Call) -> ToolResult:
    """What ``tool`` gives, its own refusals as results too, for guards that add words to either."""
    try:
        return await tool.run(args, call)
    except (StopTurn, NoThread):
        raise
    except BaError as error:
        return failed_result(error)
