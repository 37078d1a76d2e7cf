"""The outermost guard: whatever a tool returns or raises becomes a clean, bounded result.

What the model reads is cut here as a last resort; tools with long results cut them better themselves.
"""

from __future__ import annotations

import logging
import math
import traceback
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from ba_tui.core.errors import BaError, ErrorInfo, StopTurn
from ba_tui.core.messages import Document, Image, clean_text
from ba_tui.core.results import Command, Diff, Diffs, Prose, Source, StateChange, Table, Todos, ToolResult, failure
from ba_tui.core.tool import Call, Tool
from ba_tui.tools.failed import failed_result
from ba_tui.tools.terminal_text import shortened, unescaped

log = logging.getLogger(__name__)
LIMIT = 30_000
SUMMARY = 100
DEEPEST = 50
DISPLAYS = (Diff, Diffs, Command, Source, Table, Prose, Todos)


def output(tool: Tool) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        try:
            result: object = await tool.run(args, call)
        except StopTurn:
            raise
        except BaError as error:
            result = failed_result(error)
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - a tool's failure becomes a result
            log.warning("%s failed\n%s", tool.name, clean_text(traceback.format_exc()))
            result = failure("internal_error", f"{tool.name} failed: {type(error).__name__}: {error}")
        if not isinstance(result, ToolResult):
            result = failure("internal_error", f"{tool.name} returned {type(result).__name__}, not a result.")
        return bounded(result)

    return replace(tool, run=run)


def bounded(result: ToolResult) -> ToolResult:
    """``result`` with text that survives a model, a journal and a terminal."""
    result = replace(
        result,
        display=result.display if isinstance(result.display, DISPLAYS) else None,
        changes=result.changes if isinstance(result.changes, StateChange) else None,
        error=result.error if isinstance(result.error, ErrorInfo) else None,
        attachments=tuple(item for item in result.attachments if isinstance(item, Image | Document)),
    )
    text = shortened(clean_text(unescaped(str(result.text))), LIMIT)
    summary = " ".join(unescaped(str(result.summary)).split())[:SUMMARY]
    return replace(cast("ToolResult", _clean(result, 0)), text=text, summary=clean_text(summary))


def _clean(value: Any, depth: int) -> Any:
    """The same value with every string in it clean, and nothing in it that is no JSON."""
    if depth > DEEPEST:
        return "…"
    match value:
        case None | bool() | int():
            return value
        case str():
            return clean_text(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case tuple():
            return tuple(_clean(item, depth + 1) for item in cast("tuple[Any, ...]", value))
        case list():
            return [_clean(item, depth + 1) for item in cast("list[Any]", value)]
        case dict():
            pairs = cast("dict[Any, Any]", value).items()
            return {clean_text(str(key)): _clean(item, depth + 1) for key, item in pairs}
        case _ if is_dataclass(value) and not isinstance(value, type):
            names = [field.name for field in fields(value)]
            return replace(value, **{name: _clean(getattr(value, name), depth + 1) for name in names})
        case _:
            return clean_text(str(value))
