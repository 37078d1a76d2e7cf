"""A record of the transcript as the inspector's value: where the two meet, so that neither knows the other."""

from __future__ import annotations

from dataclasses import replace

from ba_tui.core import results
from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.ports.results import Reader
from ba_tui.faces.tui.inspector.model import Inspected, Whole
from ba_tui.faces.tui.transcript.records import (
    Compaction,
    End,
    MemoryNote,
    NoticeRecord,
    Prompt,
    ProseRecord,
    Record,
    Retry,
    Thought,
    ToolRow,
    source,
    unread,
)


def inspected(record: Record, stored: Reader | None = None, datasets: Datasets | None = None) -> Inspected:
    """Everything that is known of ``record``; ``stored`` reads what was too large for the conversation."""
    match record:
        case ToolRow():
            return replace(_call(record, stored), datasets=datasets)
        case ProseRecord(table=results.Table() as table):
            return Inspected("Table", display=table)
        case ProseRecord(text=text):
            return Inspected("Answer", display=results.Prose(text, markdown=True))
        case Thought(text=text):
            return Inspected("Thinking", display=results.Prose(text))
        case Prompt(text=text):
            return Inspected("Your prompt", display=results.Prose(text))
        case NoticeRecord(text=text, hint=hint):
            return Inspected("Notice", text=f"{text}\n{hint}".strip())
        case MemoryNote():
            return Inspected("Memory", text=source(record))
        case Compaction():
            return _compaction(record)
        case Retry(reason=reason):
            return Inspected("Retry", text=reason)
        case End(reason=reason, error=error):
            return Inspected(f"Turn {reason}", text=f"{error.message}\n{error.hint}".strip() if error else "")


def _compaction(record: Compaction) -> Inspected:
    title = "Compression undone" if record.strategy == "undo" else "Compression"
    cost = "not known" if record.cost is None else f"${record.cost:.4f}" if record.cost else "none"
    facts = {"tokens before": record.before, "tokens after": record.after, "strategy": record.strategy, "cost": cost}
    head = f"Kept: {record.kept}." if record.kept else ""
    notes = f"What the model reads instead of the earlier conversation:\n\n{record.notes}" if record.notes else ""
    return Inspected(title, facts, results.Prose("\n\n".join(part for part in (head, notes) if part), markdown=True))


def _call(row: ToolRow, stored: Reader | None) -> Inspected:
    result = row.result
    title = f"{row.name} {row.target}".strip()
    if result is None:
        return Inspected(title, row.args or {}, text=row.tail, state=row.state)
    whole = Whole(stored, result.artifact) if stored and result.artifact else None
    return Inspected(
        title,
        row.args or {},
        result.display,
        result.text,
        row.state,
        row.duration,
        result.summary,
        whole,
        unread(result),
    )
