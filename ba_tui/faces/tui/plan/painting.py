"""The lines of a plan as runs of text and role: a tree, a step a line, or a graph of boxes. Pure; the view has colours.

Only the lines that are asked for are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from rich.cells import cell_len, set_cell_size

from ba_tui.core.events.plan_course import PlanRecord
from ba_tui.core.teamwork.plans import SubTask
from ba_tui.core.values import frozen
from ba_tui.plotting.plans.boxes import box_line
from ba_tui.plotting.plans.graph import HEIGHT, PlanDrawing, drawing
from ba_tui.plotting.plans.signs import ASCII, PlanSigns, lasted, shown_status, step_name, words
from ba_tui.plotting.plans.tree import TreeLine, tree_lines

PlanMode: TypeAlias = Literal["tree", "graph"]
LEAST_TEXT = 24
"""Columns that the words of a step get before anything else stands beside them."""
WAITS = "waiting for you"
SPINNERS = {True: "|/-\\", False: "◐◓◑◒"}


class PlanRun(NamedTuple):
    """``role``: the state of a step, ``line``, ``dim`` or ``text``; ``chosen``: it belongs to the step with the
    cursor."""

    text: str
    role: str = "text"
    chosen: bool = False


@frozen
class Look:
    """What changes between two paintings: the step with the cursor, the time, the frame of the spinner."""

    chosen: str
    now: float
    frame: int
    live: bool = True
    """False: nothing is carried out now, so nothing turns."""


class PlanLines:
    """A plan laid out for a width. ``update`` takes newer states; it says whether the same layout still fits."""

    def __init__(self, record: PlanRecord, mode: PlanMode, width: int, signs: PlanSigns) -> None:
        self._record = record
        self._mode = mode
        self._width = width
        self._signs = signs
        self._shape = _shape(record)
        self._steps = {step.id: step for step in record.plan.subtasks}
        self._tree: Sequence[TreeLine] = tree_lines(record.plan, signs) if mode == "tree" else ()
        self._graph: PlanDrawing = drawing(record.plan, width, signs) if mode == "graph" else PlanDrawing({}, {}, 0, 0)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        if self._mode == "tree":
            return self._width, len(self._tree)
        return max(self._width, self._graph.width), self._graph.height

    @property
    def order(self) -> Sequence[str]:
        """The steps as they stand, from top to bottom."""
        if self._mode == "tree":
            return [line.step.id for line in self._tree]
        return [box.id for box in sorted(self._graph.boxes.values(), key=lambda box: (box.y, box.x))]

    def update(self, record: PlanRecord) -> bool:
        """Take the states of ``record``; False when steps came, went or wait for others now."""
        if _shape(record) != self._shape:
            return False
        self._record = record
        self._steps = {step.id: step for step in record.plan.subtasks}
        return True

    def place(self, id: str) -> tuple[int, int, int, int]:
        """Column, line, columns and lines of a step."""
        if self._mode == "tree":
            return 0, self.order.index(id), 1, 1
        box = self._graph.boxes[id]
        return box.x, box.y, box.width, HEIGHT

    def at(self, x: int, y: int) -> str:
        """The step at a place; empty where none stands."""
        if self._mode == "tree":
            return self._tree[y].step.id if 0 <= y < len(self._tree) else ""
        return next((box.id for box in self._graph.row(y) if box.x <= x < box.x + box.width), "")

    def beside(self, id: str, across: int, down: int) -> str:
        """The step that a key leads to from ``id``."""
        if self._mode == "graph":
            return self._graph.next(id, across, down)
        order = self.order
        return order[max(0, min(len(order) - 1, order.index(id) + down))]

    def line(self, y: int, look: Look) -> list[PlanRun]:
        """Line ``y``."""
        if self._mode == "tree":
            return self._tree_line(self._tree[y], look) if 0 <= y < len(self._tree) else []
        return self._graph_line(y, look)

    def _mark(self, step: SubTask, look: Look) -> str:
        status = shown_status(step, live=look.live)
        if look.live and step.id in self._record.waiting:
            return self._signs.waiting
        if status != "executing":
            return self._signs.mark(status)
        frames = SPINNERS[self._signs is ASCII]
        return frames[look.frame % len(frames)]

    def _tree_line(self, line: TreeLine, look: Look) -> list[PlanRun]:
        step = self._steps[line.step.id]
        chosen, status = step.id == look.chosen, shown_status(step, live=look.live)
        most = max(0, self._width - LEAST_TEXT)
        rails = line.rails if len(line.rails) <= most else self._signs.more + line.rails[-max(0, most - 3) :]
        head = f"{self._mark(step, look)} "
        facts = self._facts(step, look)
        room = self._width - cell_len(rails) - len(head) - (cell_len(facts) + 2 if facts else 0)
        text = _cut(step_name(step), room, self._signs)
        runs = [PlanRun(rails, "line"), PlanRun(head, status, chosen), PlanRun(text, status, chosen)]
        left = room - cell_len(text)
        said = words(step.error if step.status in {"failed", "blocked", "skipped"} else step.result)
        if look.live and step.id in self._record.waiting:
            said = WAITS
        also = f"also after {', '.join(map(words, line.also))}" if line.also else ""
        extra = said or also
        if extra and left >= LEAST_TEXT // 2:
            extra = f"  {_cut(extra, left - 2, self._signs)}"
            runs.append(PlanRun(extra, "dim", chosen))
            left -= cell_len(extra)
        runs.append(PlanRun(" " * max(0, left), "dim", chosen))
        return [*runs, PlanRun(f"  {facts}", "dim", chosen)] if facts else runs

    def _facts(self, step: SubTask, look: Look) -> str:
        """Who works on it and how long it took, at the right edge."""
        seconds = self._record.time_of(step).lasted(look.now)
        who = words(step.role or step.tool_name)
        time = lasted(seconds) if seconds is not None else ""
        if self._width < 2 * LEAST_TEXT:
            return time
        return f"{set_cell_size(who, 12) if cell_len(who) > 12 else who.rjust(12)} {time:>6}".rstrip()

    def _graph_line(self, y: int, look: Look) -> list[PlanRun]:
        parts: list[tuple[int, PlanRun]] = [
            (x, PlanRun(sign, "line")) for x, sign in self._graph.lines.get(y, {}).items()
        ]
        for box in self._graph.row(y):
            step = self._steps[box.id]
            text = box_line(step, box, y - box.y, self._signs, self._mark(step, look))
            parts.append((box.x, PlanRun(text, shown_status(step, live=look.live), step.id == look.chosen)))
        runs: list[PlanRun] = []
        column = 0
        for x, run in sorted(parts, key=lambda part: part[0]):
            if x > column:
                runs.append(PlanRun(" " * (x - column)))
            runs.append(run)
            column = max(column, x) + cell_len(run.text)
        return runs


def _shape(record: PlanRecord) -> object:
    """What decides where things stand."""
    return [(step.id, step.description, step.dependencies) for step in record.plan.subtasks]


def _cut(text: str, room: int, signs: PlanSigns) -> str:
    if cell_len(text) <= room:
        return text
    return set_cell_size(text, max(0, room - len(signs.more))).rstrip() + signs.more if room > len(signs.more) else ""
