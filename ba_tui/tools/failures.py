"""The exception with which tools report a call that can't be done; the output guard turns it into a result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from errno import errorcode
from typing import Any, get_args

from ba_tui.core.errors import BaError, ErrorKind, NoThread, StopTurn
from ba_tui.core.results import ToolResult, failure
from ba_tui.core.tool import Call, Tool


class ToolFailure(BaError):
    """A failed call: ``kind``, message, and ``hint`` for the model. ``code``: the name of the error in the system or
    on a server (``ENOSPC``, ``HTTP 503``), or empty."""

    def __init__(self, kind: ErrorKind, message: str, hint: str = "", *, code: str = "") -> None:
        super().__init__(message, hint)
        self.kind = kind
        self.code = code

    def reworded(self, message: str) -> ToolFailure:
        """Return the same failure with another message."""
        other = ToolFailure("validation_error", message, self.hint, code=self.code)
        other.kind = self.kind
        return other


_KINDS: dict[str, ErrorKind] = {kind: kind for kind in get_args(ErrorKind)}


def failed_result(error: BaError) -> ToolResult:
    """Return the result for an error. Kinds unknown to tools, such as a refused path, become ``permission_denied``."""
    failed = failure(_KINDS.get(error.kind, "permission_denied"), str(error), hint=error.hint)
    code = error.code if isinstance(error, ToolFailure) else ""
    return replace(failed, error=replace(failed.error, code=code)) if code and failed.error else failed


def from_os(error: OSError, what: str) -> ToolFailure:
    """Return the failure for an error of the operating system on ``what``."""
    code = errorcode.get(error.errno or 0, "")
    if isinstance(error, FileNotFoundError):
        return ToolFailure("not_found", f"{what} does not exist.", code=code)
    if isinstance(error, PermissionError):
        # This kind is not retried: waiting does not change permissions.
        message = f"The system does not allow access to {what}."
        return ToolFailure("execution_error", message, "Check the file's permissions.", code=code)
    return ToolFailure("resource_error", f"{what}: {error.strerror or error}.", code=code)


async def outcome(tool: Tool, args: Mapping[str, Any], call: Call) -> ToolResult:
    """Run ``tool`` and return its result, also for an error, for guards that add text to results."""
    try:
        return await tool.run(args, call)
    except (StopTurn, NoThread):
        raise
    except BaError as error:
        return failed_result(error)
