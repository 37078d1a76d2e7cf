"""Renderers of plans, as a tree and step by step, and of todo lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.style import Style

from ba_tui.core.results import PlanGraph, Todos
from ba_tui.core.teamwork import Plan, SubTask, SubTaskStatus
from ba_tui.faces.tui.displays.renderer import Build, Renderer
from ba_tui.faces.tui.inspector.rows import GridRow, Piece, line, visible
from ba_tui.faces.tui.inspector.source import todo_rows, todo_text
from ba_tui.faces.tui.transcript.lines import PreviewSpace, Rows, missing
from ba_tui.faces.tui.transcript.markdown import plain
from ba_tui.faces.tui.transcript.palette import ASCII as PLAIN_GLYPHS
from ba_tui.faces.tui.transcript.palette import Palette
from ba_tui.plotting.plan_edits import arguments_text
from ba_tui.plotting.plan_graph import TreeLine, after, tree_lines, tree_text
from ba_tui.plotting.plan_signs import ASCII, STATES, UNICODE, counted, step_name, words

ROLES: dict[SubTaskStatus, str] = {
    "pending": "",
    "executing": "accent",
    "completed": "muted",
    "failed": "error",
    "blocked": "warning",
    "skipped": "muted",
}
"""How the words of a step look, by its state; its sign says it too."""


def _style(status: SubTaskStatus, palette: Palette) -> Style:
    styles = {"executing": palette.running, "failed": palette.failed, "blocked": palette.warning}
    return styles.get(status, palette.text if status == "pending" else palette.dim)


def plan_rows(display: PlanGraph) -> list[GridRow]:
    """Return the tree first, then each step in full: nothing of it is hidden."""
    plan = display.plan
    rows: list[GridRow] = [line((visible(goal), "heading"))] if (goal := plan.task.goal.strip()) else []
    if display.notes:
        rows += [line((f"! {visible(note)}", "warning")) for note in display.notes]
    rows += [tree_row(each) for each in tree_lines(plan)]
    if plan.task.assumptions:
        rows += [line(), line(("Taken for granted", "heading"))]
        rows += [line((f"- {visible(each)}", "")) for each in plan.task.assumptions]
    for step in plan.subtasks:
        rows += [line(), *step_rows(step)]
    return rows


def tree_row(each: TreeLine) -> GridRow:
    """Return a step in one row, its place in the tree before it."""
    step = each.step
    # Rails are no gutter: that is as wide as the widest one in all rows.
    pieces: list[Piece] = [(each.rails, "muted"), (f"{UNICODE.mark(step.status)} ", ROLES[step.status])]
    pieces.append((visible(" ".join(step.description.split()) or step.id), ROLES[step.status]))
    if step.tool_name:
        pieces.append((f"  {visible(step.tool_name)}", "name"))
    elif step.role:
        pieces.append((f"  {visible(step.role)}", "name"))
    if also := after(each):
        pieces.append((also, "muted"))
    # Folded text is aligned with its first word; rails that lead to a later step are continued.
    rails = each.rails.replace(UNICODE.branch, UNICODE.rail)
    return line(*pieces, hang="".join(sign if sign in UNICODE.rail else " " for sign in rails) + "  ")


def step_rows(step: SubTask) -> list[GridRow]:
    """Return one step in full, a row for each field that is not empty."""
    rows: list[GridRow] = [line((visible(step.id), "heading"), (f"  {step.status}", "muted"))]
    fields = [
        ("does", step.description, ""),
        ("gives", step.expected_output, ""),
        ("after", ", ".join(step.dependencies), ""),
        ("optional", ", ".join(step.optional), ""),
        ("role", step.role, ""),
        ("critical", "yes: when it fails, the plan is made anew" if step.critical else "", ""),
        ("tool", step.tool_name, "name"),
    ]
    rows += _fields(fields)
    args = arguments_text(step) if step.tool_args else ""
    return [*rows, *_fields([("with", args, ""), ("error", step.error, "error"), ("result", step.result, "")])]


def _fields(fields: Iterable[tuple[str, str, str]]) -> list[GridRow]:
    rows: list[GridRow] = []
    for name, text, role in fields:
        parts = text.strip("\n").split("\n") if text.strip() else []
        rows += [
            line((f"{name if not at else '':<9} ", "muted"), (visible(part), role), hang=" " * 10)
            for at, part in enumerate(parts)
        ]
    return rows


def plan_text(plan: Plan) -> str:
    """Return the plan as plain lines, for the clipboard."""
    return "\n".join([words(plan.task.goal), *tree_text(plan)]).strip()


class PlanRenderer(Renderer[PlanGraph]):
    """Shows the steps as a tree."""

    word_wrap: ClassVar[bool] = True
    folded_rows: ClassVar[int] = 8
    complete: ClassVar[bool] = True

    def preview(self, display: PlanGraph, space: PreviewSpace) -> Rows:
        plan, palette = display.plan, space.palette
        signs = ASCII if palette.glyphs == PLAIN_GLYPHS else UNICODE
        lines = Rows()
        tree = tree_lines(plan, signs)
        shown = tree if len(tree) < space.limit else tree[: max(1, space.limit - 2)]
        lines += plain(f"{counted(plan)} done · {STATES[plan.state]}", space.width, palette.dim)
        for each in shown:
            text = f"{each.rails}{signs.mark(each.step.status)} {step_name(each.step)}"
            lines += plain(text, space.width, _style(each.step.status, palette))[:1]
        left = len(tree) - len(shown)
        return [*lines, missing(f"{left} more step{'s' if left > 1 else ''} below", space)] if left else lines

    def question(self, display: PlanGraph) -> Sequence[Build]:
        return [lambda: plan_rows(display)]

    def text(self, display: PlanGraph) -> str:
        return plan_text(display.plan)

    def values(self, display: PlanGraph) -> Sequence[object]:
        return [
            part
            for step in display.plan.subtasks
            for part in (step.description, step.expected_output, step.tool_args, step.result)
        ]


class TodosRenderer(Renderer[Todos]):
    """Shows a todo list."""

    quiet: ClassVar[bool] = True
    complete: ClassVar[bool] = True

    def preview(self, display: Todos, space: PreviewSpace) -> Rows:
        glyphs, lines = space.palette.glyphs, Rows()
        signs = {"pending": glyphs.todo, "in_progress": glyphs.running, "completed": glyphs.done}
        for item in display.items:
            text = f"{glyphs.failed if item.broken else signs[item.status]} {item.content}"
            lines += plain(text, space.width, space.palette.text)
        return lines

    def question(self, display: Todos) -> Sequence[Build]:
        return [lambda: todo_rows(display)]

    def text(self, display: Todos) -> str:
        return todo_text(display)

    def values(self, display: Todos) -> Sequence[object]:
        return [todo.content for todo in display.items]
