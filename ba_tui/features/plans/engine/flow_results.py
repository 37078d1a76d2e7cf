"""Builds the result of a workflow: a row for each step, its output or why it failed, as text and as data.

Pure: nothing is run here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

from ba_tui.core.errors import ErrorKind
from ba_tui.core.results import Table, ToolResult, failure
from ba_tui.core.text.wording import count, one_line
from ba_tui.core.values import frozen
from ba_tui.features.plans.engine.workflows import Flow, WorkflowStep

MAX_ROWS = 60
COLUMNS = ("Step", "Tool", "Outcome", "Seconds", "Summary")
_KINDS: dict[str, ErrorKind] = {kind: kind for kind in get_args(ErrorKind)}


@frozen
class ResultRow:
    """What became of one step."""

    step: str
    tool: str
    ok: bool
    seconds: float
    summary: str

    @property
    def outcome(self) -> str:
        return "ok" if self.ok else "failed"

    def record(self) -> dict[str, Any]:
        """As data, for ``meta`` and ``--json``."""
        facts = {"step": self.step, "tool": self.tool, "ok": self.ok}
        return {**facts, "duration_ms": round(self.seconds * 1000), "summary": self.summary}

    def __str__(self) -> str:
        tool = f" ({self.tool})" if self.tool else ""
        about = f", {self.summary}" if self.summary else ""
        return f"{self.step}{tool}: {self.outcome}{about} ({self.seconds:.1f} s)"


class StepFailed(Exception):
    """A step failed and nothing in the workflow says to go on."""

    def __init__(self, step: WorkflowStep, result: ToolResult) -> None:
        super().__init__(step.id)
        self.step = step
        self.result = result


def finished(flow: Flow, output: Any, rows: Sequence[ResultRow]) -> ToolResult:
    """All steps ran."""
    said = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, indent=2)
    listed = _listing(flow, rows)
    text = listed if flow.output is None else f"{said.rstrip()}\n\n{listed}"
    summary = count(len(rows), "step")
    return _with_rows(flow, ToolResult(text, summary=summary, meta={"flow": {"output": output}}), rows)


def invalid_output(flow: Flow, why: str, rows: Sequence[ResultRow]) -> ToolResult:
    said = f"All steps of {flow.name} ran, but its output does not fit its schema: {why}"
    return _told(flow, failure("validation_error", said), rows)


def failed_flow(
    flow: Flow, failed: StepFailed, rolled_back: tuple[Sequence[str], Sequence[str]], rows: Sequence[ResultRow]
) -> ToolResult:
    """A step failed; ``rolled_back``: the steps that could be undone and those that could not."""
    undone, stuck = rolled_back
    error = failed.result.error
    kind = _KINDS.get(error.kind if error else "", "execution_error")
    where = f"{flow.document.path.name}:{flow.line(failed.step)}"
    lines = [
        f"Step {failed.step.id} of {flow.name} ({where}) failed: {message(failed.result)}",
        "No later step was run.",
    ]
    lines += [f"Undone: {', '.join(undone)}."] if undone else []
    lines += [f"Could not be undone: {', '.join(stuck)}."] if stuck else []
    return _told(flow, failure(kind, " ".join(lines), hint=error.hint if error else ""), rows)


def message(result: ToolResult) -> str:
    """Why ``result`` failed, in one line."""
    if result.error or result.is_error:
        return one_line(result.error.message if result.error else result.text, 300)
    # A command that failed: how, and what it said last.
    return one_line(f"{result.summary}: {result.text[-200:].rpartition('[')[0] or result.text[-200:]}", 300)


def _told(flow: Flow, result: ToolResult, rows: Sequence[ResultRow]) -> ToolResult:
    return _with_rows(flow, replace(result, text=f"{result.text}\n\n{_listing(flow, rows)}"), rows)


def _with_rows(flow: Flow, result: ToolResult, rows: Sequence[ResultRow]) -> ToolResult:
    table = Table(COLUMNS, tuple((row.step, row.tool, row.outcome, round(row.seconds, 2), row.summary) for row in rows))
    steps = [row.record() for row in rows]
    facts = {"name": flow.name, "version": flow.version, **result.meta.get("flow", {}), "steps": steps}
    return replace(result, display=table, meta={**result.meta, "flow": facts})


def _listing(flow: Flow, rows: Sequence[ResultRow]) -> str:
    more = [f"… and {len(rows) - MAX_ROWS} more"] if len(rows) > MAX_ROWS else []
    return "\n".join([f"Steps of {flow.name}:", *([f"- {row}" for row in rows[:MAX_ROWS]] or ["- none"]), *more])
