"""The value that the inspector shows, and its construction from a record of the transcript."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, Literal, TypeAlias

from ba_tui.core import results
from ba_tui.core.ports.datasets import Datasets, OutputFormat
from ba_tui.core.ports.tools import Reader
from ba_tui.core.results import Display
from ba_tui.core.values import frozen
from ba_tui.faces.tui.transcript import records
from ba_tui.faces.tui.transcript.records import Record, ToolRow

CallState: TypeAlias = Literal["queued", "waiting", "running", "ok", "failed", "denied", "cancelled", ""]


@frozen
class Whole:
    """A stored result and its reader."""

    reader: Reader
    ref: str


@frozen
class DataTable:
    """The table ``name`` of the session's data; without a name, output in ``format`` that becomes one when opened."""

    datasets: Datasets
    name: str = ""
    format: OutputFormat = "csv"


@frozen
class InspectorValue:
    """``text`` is the result for the model; it is shown if there is no ``display``, or with a failed one. ``duration``
    in seconds, None while unknown. ``note``: the outcome in a few words. ``whole``: the stored result if neither
    ``display`` nor ``text`` is complete. ``datasets``: the data of the session.
    """

    title: str
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    display: Display | None = None
    text: str = ""
    state: CallState = ""
    duration: float | None = None
    note: str = ""
    whole: Whole | None = None
    unread: str = ""
    """Which parts of the result the model did not get, in words."""
    datasets: Datasets | None = None
    sought: str = ""
    """A line of the result that should be in sight."""
    sought_line: int = 0
    """Its number in all of the result, from 1."""


# Records of the transcript become values here, so that transcript and inspector don't import each other.


def inspected(record: Record, stored: Reader | None = None, datasets: Datasets | None = None) -> InspectorValue:
    """Return ``record`` for the inspector; ``stored`` reads results that were too large for the conversation."""
    match record:
        case ToolRow():
            return replace(_call(record, stored), datasets=datasets)
        case records.ProseRecord(table=results.Table() as table):
            return InspectorValue("Table", display=table)
        case records.ProseRecord(text=text):
            return InspectorValue("Answer", display=results.Prose(text, markdown=True))
        case records.Thought(text=text):
            return InspectorValue("Thinking", display=results.Prose(text))
        case records.Prompt(text=text):
            return InspectorValue("Your prompt", display=results.Prose(text))
        case records.NoticeRecord(text=text, hint=hint):
            return InspectorValue("Notice", text=f"{text}\n{hint}".strip())
        case records.MemoryNote():
            return InspectorValue("Memory", text=records.source(record))
        case records.Compaction():
            return _compaction(record)
        case records.Retry(reason=reason):
            return InspectorValue("Retry", text=reason)
        case records.End(reason=reason, error=error):
            return InspectorValue(f"Turn {reason}", text=f"{error.message}\n{error.hint}".strip() if error else "")


def _compaction(record: records.Compaction) -> InspectorValue:
    title = "Compression undone" if record.strategy == "undo" else "Compression"
    cost = "not known" if record.cost is None else f"${record.cost:.4f}" if record.cost else "none"
    facts = {"tokens before": record.before, "tokens after": record.after, "strategy": record.strategy, "cost": cost}
    head = f"Kept: {record.kept}." if record.kept else ""
    notes = f"What the model reads instead of the earlier conversation:\n\n{record.notes}" if record.notes else ""
    return InspectorValue(
        title, facts, results.Prose("\n\n".join(part for part in (head, notes) if part), markdown=True)
    )


def _call(row: ToolRow, stored: Reader | None) -> InspectorValue:
    result = row.result
    title = f"{row.name} {row.target}".strip()
    if result is None:
        return InspectorValue(title, row.args or {}, text=row.tail, state=row.state)
    whole = Whole(stored, result.artifact) if stored and result.artifact else None
    return InspectorValue(
        title,
        row.args or {},
        result.display,
        result.text,
        row.state,
        row.duration,
        result.summary,
        whole,
        records.unread(result),
    )
