"""A todo list, each item with its state."""

from __future__ import annotations

from ba_tui.core.results import Todos
from ba_tui.faces.tui.displays.renderer import Renderer
from ba_tui.faces.tui.inspector.todos import todo_rows, todo_text
from ba_tui.faces.tui.transcript.excerpt import PreviewSpace
from ba_tui.faces.tui.transcript.lines import PaintedLine
from ba_tui.faces.tui.transcript.markdown import plain


def _preview(display: Todos, space: PreviewSpace) -> list[PaintedLine]:
    glyphs, lines = space.palette.glyphs, list[PaintedLine]()
    signs = {"pending": glyphs.todo, "in_progress": glyphs.running, "completed": glyphs.done}
    for item in display.items:
        lines += plain(
            f"{glyphs.failed if item.broken else signs[item.status]} {item.content}", space.width, space.palette.text
        )
    return lines


TODOS: Renderer[Todos] = Renderer(
    preview=_preview,
    page=lambda display, _split: [lambda: todo_rows(display)],
    question=lambda display: [lambda: todo_rows(display)],
    text=todo_text,
    values=lambda display: [todo.content for todo in display.items],
    quiet=True,
    complete=True,
)
