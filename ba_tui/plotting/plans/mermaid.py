"""A plan as a Mermaid flowchart. No word of a plan can end its label: all but plain letters is written as a code.

Node names are numbers of ba's own, so that no id of a plan is a word of Mermaid's either.
"""

from __future__ import annotations

from ba_tui.core.teamwork.plans import Plan, SubTask, SubTaskStatus
from ba_tui.core.text.wording import clipped
from ba_tui.plotting.plans.layers import needs
from ba_tui.plotting.plans.signs import UNICODE, step_name, words

LONGEST = 200
"""Characters of a step's words in its box."""
_PLAIN = frozenset(" ,.:/-_+()?!'=*")
_SHAPES: dict[bool, tuple[str, str]] = {True: ("[[", "]]"), False: ("[", "]")}
"""Around a label: of a step that calls a tool, and of one that an agent works on."""
_CLASSES: dict[SubTaskStatus, str] = {
    "pending": "fill:#f3f4f6,stroke:#5b636d,color:#1c1f23",
    "executing": "fill:#dbeafe,stroke:#0b5cad,color:#1c1f23,stroke-width:3px",
    "completed": "fill:#dcfce7,stroke:#116329,color:#1c1f23",
    "failed": "fill:#fee2e2,stroke:#a40e26,color:#1c1f23",
    "blocked": "fill:#fef3c7,stroke:#92400e,color:#1c1f23,stroke-dasharray:4",
    "skipped": "fill:#ffffff,stroke:#9aa3ad,color:#5b636d,stroke-dasharray:4",
}


def mermaid(plan: Plan) -> str:
    """The flowchart, from top to bottom. A dotted line is a result that the step can do without."""
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
    """``text`` for a label in double quotes: entity codes for what Mermaid, Markdown or HTML might read."""
    return "".join(_letter(letter) for letter in text)


def _letter(letter: str) -> str:
    safe = letter.isalnum() or letter in _PLAIN
    return letter if safe and letter not in "*_" else f"#{ord(letter)};"


def _title(plan: Plan) -> str:
    """The goal as a text in double quotes of the YAML at the head."""
    goal = clipped(words(plan.task.goal or plan.task.original_query), LONGEST)
    return '"' + "".join(letter if letter.isalnum() or letter in " ,.:-()" else "_" for letter in goal) + '"'
