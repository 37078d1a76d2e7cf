"""Tool results in the older published formats, 1.4 to 1.9, as results of ours.

Pure. How a file of them becomes a session is the business of importing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast, get_args

from ba_tui.core.errors import ErrorInfo, ErrorKind
from ba_tui.core.events import Event, MessageDone, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from ba_tui.core.messages import Message, ToolUse, user
from ba_tui.core.results import ToolResult
from ba_tui.sessions.foreign import one_line
from ba_tui.sessions.migrations import Record
from ba_tui.sessions.records import number

VERSIONS = ("1.4", "1.5", "1.6", "1.7", "1.8", "1.9")
_LEVELS = ("brief", "standard", "full")
_IDS = ("request_id", "tool_call_id", "id")
_KINDS = frozenset(get_args(ErrorKind))


def recognised(records: Sequence[Record]) -> bool:
    return bool(records) and all(isinstance(record.get("observation"), str) for record in records)


def result_of(record: Record) -> ToolResult:
    """A result in any of ``VERSIONS``: 1.4 knows no output level and means the standard one, the others are alike."""
    observation = record.get("observation")
    text = observation if isinstance(observation, str) else ""
    failed = record.get("success") is False
    level = str(record.get("output_level") or "").rpartition(".")[2].lower()
    kept = ("data_file", "data_size_bytes", "data_hash", "data_summary", "error_code", "retry_count", "last_error")
    meta: dict[str, Any] = {key: record[key] for key in kept if record.get(key) is not None}
    given = record.get("metadata")
    meta |= cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    meta["output_level"] = level if level in _LEVELS else "standard"
    if not failed:
        return ToolResult(text, summary=one_line(text, 60), meta=meta)
    kind = str(record.get("error_type") or "").rpartition(".")[2].lower()
    known = cast("ErrorKind", kind) if kind in _KINDS else "execution_error"
    message = str(record.get("error_message") or "") or one_line(text)
    error = ErrorInfo(known, message)
    return ToolResult(text, None, is_error=True, summary=known.replace("_", " "), error=error, meta=meta)


def published_events(records: Sequence[Record], name: str) -> list[Event]:
    """One turn that holds the results as if they had been called for."""
    calls = [ToolUse(_id(record, place), _tool(record), {}) for place, record in enumerate(records)]
    return [TurnStarted(user(f"Results imported from {name}.")), *_called(calls, records), TurnEnded("done")]


def _called(calls: Sequence[ToolUse], records: Sequence[Record]) -> Iterator[Event]:
    yield MessageDone(Message("assistant", tuple(calls), stop="tool_use", origin="assistant"), None)
    for call, record in zip(calls, records, strict=True):
        yield ToolStarted(call)
        yield ToolFinished(call.id, result_of(record), number(record.get("duration_ms")) / 1000)


def _id(record: Record, place: int) -> str:
    found = next((value for key in _IDS if isinstance(value := record.get(key), str) and value), "result")
    return f"{found}-{place + 1}"


def _tool(record: Record) -> str:
    name = record.get("tool_name")
    return name if isinstance(name, str) and name else "tool"
