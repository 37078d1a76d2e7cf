"""A todo list as rows. The panel that follows the live list is another widget."""

from __future__ import annotations

from ba_tui.core.results import Todos
from ba_tui.faces.tui.inspector.rows import GridRow, line, visible

MARKS = {"pending": ("[ ] ", ""), "in_progress": ("[>] ", "heading"), "completed": ("[x] ", "muted")}
BROKEN = ("[!] ", "error")


def todo_rows(display: Todos) -> list[GridRow]:
    """Each item with its state as a sign, urgent ones named."""
    rows: list[GridRow] = []
    for item in display.items:
        mark, role = BROKEN if item.broken else MARKS[item.status]
        urgent = [(" (high)", "warning")] if item.priority == "high" and not item.done else []
        rows.append(line((visible(item.content), role), *urgent, gutter=mark))
    return rows or [line(("No todos.", "muted"))]


def todo_text(display: Todos) -> str:
    """The list as Markdown, for the clipboard."""
    return "\n".join(f"- [{'x' if item.done else ' '}] {item.content}" for item in display.items)
