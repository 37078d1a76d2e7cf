"""The rows of a step's box: its frame, its mark and its words in two lines; and the whole graph as text."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

from ba_tui.core.teamwork.plans import Plan, SubTask
from ba_tui.plotting.plans.graph import HEIGHT, Box, drawing
from ba_tui.plotting.plans.signs import UNICODE, PlanSigns, step_name


def box_line(step: SubTask, box: Box, row: int, signs: PlanSigns, mark: str = "") -> str:
    """Row ``row`` of the box, from 0, as wide as the box; ``mark`` stands in for the sign of its state."""
    left, flat, right, upright, low_left, low_right = signs.box
    if row == 0:
        return left + flat * (box.width - 2) + right
    if row == HEIGHT - 1:
        return low_left + flat * (box.width - 2) + low_right
    return f"{upright}{box_words(step, box, signs, mark)[row - 1]}{upright}"


def box_words(step: SubTask, box: Box, signs: PlanSigns, mark: str = "") -> tuple[str, str]:
    """The two lines within the frame."""
    room = box.width - 4
    text = step_name(step)
    first = _upto(text, room)
    rest = text[len(first) :].strip()
    short = cell_len(rest) <= room
    second = rest if short else set_cell_size(rest, max(0, room - len(signs.more))).rstrip() + signs.more
    sign = mark or signs.mark(step.status)
    return f"{sign} {set_cell_size(first.strip(), room)}", f"  {set_cell_size(second, room)}"


def _upto(text: str, room: int) -> str:
    """As many words of ``text`` as take at most ``room`` cells; a part of a word that is longer."""
    if cell_len(text) <= room:
        return text
    cut = len(set_cell_size(text, room).rstrip()) if text.isascii() else _fitting(text, room)
    space = text.rfind(" ", 0, cut + 1)
    return text[:space] if space > 0 else text[:cut]


def _fitting(text: str, room: int) -> int:
    cells = 0
    for index, letter in enumerate(text):
        cells += cell_len(letter)
        if cells > room:
            return index
    return len(text)


def graph_text(plan: Plan, width: int, signs: PlanSigns = UNICODE) -> list[str]:
    """The graph as plain lines."""
    drawn = drawing(plan, width, signs)
    steps = {step.id: step for step in plan.subtasks}
    found: list[str] = []
    for y in range(drawn.height):
        line = ""
        cells = drawn.lines.get(y, {})
        parts = [(box.x, box_line(steps[box.id], box, y - box.y, signs)) for box in drawn.row(y)]
        for x, text in sorted([*parts, *cells.items()]):
            line = line.ljust(x) + text
        found.append(line)
    return found
