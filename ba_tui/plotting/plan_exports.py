"""Export plans: as JSON and back, as a Mermaid flowchart, and as progress lines for print mode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any

from ba_tui.core.errors import UsageError, written_by_newer
from ba_tui.core.events import Event, PlanChanged, SubTaskChanged
from ba_tui.core.plan_folds import PlanCourse
from ba_tui.core.teamwork import Plan, SubTask, SubTaskStatus
from ba_tui.core.text.wording import clipped, count
from ba_tui.plotting.plan_graph import needs
from ba_tui.plotting.plan_signs import STATES, UNICODE, counted, lasted, step_name, words

if TYPE_CHECKING:
    from pydantic import TypeAdapter


SCHEMA = 1


@cache
def _adapter() -> TypeAdapter[Plan]:
    from pydantic import TypeAdapter  # noqa: PLC0415 - a tenth of a second, and few sessions have a plan

    return TypeAdapter(Plan)


def as_json(plan: Plan) -> dict[str, Any]:
    """Return the whole plan as JSON values; ``schema_version`` identifies their shape."""
    return {"schema_version": SCHEMA, **asdict(plan), "execution_order": list(_order(plan))}


def _order(plan: Plan) -> tuple[str, ...]:
    from graphlib import CycleError  # noqa: PLC0415 - see _adapter

    try:
        return plan.execution_order
    except CycleError:
        return ()


def plan_of(data: Mapping[str, Any]) -> Plan:
    """Parse the output of ``as_json``. Raises UsageError with the first invalid field."""
    from pydantic import ValidationError  # noqa: PLC0415 - see _adapter

    version = data.get("schema_version", SCHEMA)
    if isinstance(version, int) and version > SCHEMA:
        raise UsageError(written_by_newer("This plan", version, SCHEMA), "Update ba.")
    if version != SCHEMA:
        raise UsageError(f"This plan has the schema version {version!r}.", f"This ba reads version {SCHEMA}.")
    known = {key: value for key, value in data.items() if key not in {"schema_version", "execution_order"}}
    try:
        return _adapter().validate_python(known, strict=False)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise UsageError(f"This is not a plan: {place}: {first['msg']}.", "Export the plan again.") from None


LONGEST = 200
"""Maximum length of a step's label."""
_PLAIN = frozenset(" ,.:/-_+()?!'=*")
_SHAPES: dict[bool, tuple[str, str]] = {True: ("[[", "]]"), False: ("[", "]")}
"""Delimiters of a label: for a step that calls a tool, and for one that an agent works on."""
_CLASSES: dict[SubTaskStatus, str] = {
    "pending": "fill:#f3f4f6,stroke:#5b636d,color:#1c1f23",
    "executing": "fill:#dbeafe,stroke:#0b5cad,color:#1c1f23,stroke-width:3px",
    "completed": "fill:#dcfce7,stroke:#116329,color:#1c1f23",
    "failed": "fill:#fee2e2,stroke:#a40e26,color:#1c1f23",
    "blocked": "fill:#fef3c7,stroke:#92400e,color:#1c1f23,stroke-dasharray:4",
    "skipped": "fill:#ffffff,stroke:#9aa3ad,color:#5b636d,stroke-dasharray:4",
}


def mermaid(plan: Plan) -> str:
    """Return the plan as a Mermaid flowchart, top to bottom; dotted lines are optional dependencies. Node names are
    numbers and labels are escaped, so that no word of a plan is Mermaid syntax."""
    lines = ["---", f"title: {_title(plan)}", "---", "flowchart TD"]
    names = {step.id: f"s{number}" for number, step in enumerate(plan.subtasks, 1)}
    for step in plan.subtasks:
        before, after = _SHAPES[bool(step.tool_name)]
        lines.append(f'    {names[step.id]}{before}"{_label(step)}"{after}:::{step.status}')
    waits = needs(plan)
    for step in plan.subtasks:
        for other in waits[step.id]:
            arrow = "-.->" if other in step.optional else "-->"
            lines.append(f"    {names[other]} {arrow} {names[step.id]}")
    used = {step.status for step in plan.subtasks}
    lines += [f"    classDef {status} {look}" for status, look in _CLASSES.items() if status in used]
    return "\n".join(lines) + "\n"


def _label(step: SubTask) -> str:
    mark = UNICODE.mark(step.status)
    who = f" by {words(step.role)}" if step.role else f" ({words(step.tool_name)})" if step.tool_name else ""
    return f"{mark} {escaped(clipped(step_name(step), LONGEST) + who)}"


def escaped(text: str) -> str:
    """Return ``text`` for a label in double quotes, with entity codes for characters of Mermaid, Markdown or HTML."""
    return "".join(_letter(letter) for letter in text)


def _letter(letter: str) -> str:
    safe = letter.isalnum() or letter in _PLAIN
    return letter if safe and letter not in "*_" else f"#{ord(letter)};"


def _title(plan: Plan) -> str:
    """Return the goal as a double-quoted YAML string."""
    goal = clipped(words(plan.task.goal or plan.task.original_query), LONGEST)
    return '"' + "".join(letter if letter.isalnum() or letter in " ,.:-()" else "_" for letter in goal) + '"'


class PlanReporter:
    """Report a running plan: apply events, and ``said`` returns a line for each, or nothing."""

    def __init__(self) -> None:
        self._course = PlanCourse()
        self._why = ""

    def said(self, event: Event) -> str:
        if not self._course.apply(event):
            return ""
        match event:
            case PlanChanged(plan=plan, reason=reason):
                return _changed(plan, self._once(words(reason)))
            case SubTaskChanged(plan=id, subtask=step):
                record = self._course.find(id)
                if record is None or step.status == "pending":
                    return ""
                ids = [each.id for each in record.plan.subtasks]
                place = f"Step {ids.index(step.id) + 1} of {len(ids)}" if step.id in ids else f"Step {words(step.id)}"
                seconds = record.time_of(step).lasted(event.at)
                took = f" after {lasted(seconds)}" if seconds is not None and step.status != "executing" else ""
                why = f" {words(step.error)}" if step.error else ""
                return f"{place} {step.status}{took}: {step_name(step)}.{why}".replace("..", ".")
            case _:
                return ""

    def _once(self, reason: str) -> str:
        """Return ``reason`` without its explanation if the previous line had the same one."""
        what, _, why = reason.partition(": ")
        before, self._why = self._why, why
        return what if why and why == before else reason


def _changed(plan: Plan, reason: str) -> str:
    """Return the line about a plan as a whole."""
    if not plan.subtasks:
        return "Planning."
    if plan.state == "proposed":
        return f"Planned {count(len(plan.subtasks), 'step')}."
    if plan.state in {"approved", "running"}:
        return f"{reason.rstrip('.')}." if reason else ""
    return ". ".join(filter(None, (f"Plan {STATES[plan.state]}, {counted(plan)} done", reason.rstrip(".")))) + "."


def plan_fields(event: Event) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield type and fields of the stream-json lines for a plan event."""
    match event:
        case PlanChanged(plan=plan, reason=reason):
            yield "plan", {"plan": as_json(plan), "reason": reason}
        case SubTaskChanged(plan=id, subtask=step):
            yield "subtask", {"plan": id, "subtask": asdict(step)}
        case _:
            pass
