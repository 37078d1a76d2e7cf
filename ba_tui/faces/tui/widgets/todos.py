"""The list of todos: a fold over results that change it. State is a mark and a colour, never colour alone.

A plan stands above them while it is under way; one that is over gives way to them.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from ba_tui.core.events import Event, Rewound, ToolFinished
from ba_tui.core.teamwork.plans import Plan, SubTaskStatus
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.work import Todo

MARKS = {"completed": ("✓", "$success"), "in_progress": ("▸", "$accent"), "pending": ("○", "$text-muted")}
BROKEN = ("✗", "$error")

_LOOKS: dict[SubTaskStatus, tuple[str, str]] = {
    "pending": ("$text-muted", "$text-muted"),
    "executing": ("$accent", "$foreground"),
    "completed": ("$success", "$text-muted"),
    "failed": ("$error", "$text-error"),
    "blocked": ("$warning", "$text-warning"),
    "skipped": ("$text-muted", "$text-muted"),
}
"""Colours of a step's mark and of its words."""
LEAST_ROWS = 3
"""Rows that the todos need below a plan."""


class TodoList(Static):
    class Changed(Message):
        """The list has become empty, or has stopped being so."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self.items: tuple[Todo, ...] = ()
        self.plan: Plan | None = None
        self._room = 0
        self._drawn: tuple[tuple[Todo, ...], Plan | None, int, int] | None = None

    def on_resize(self) -> None:
        self._draw()

    @property
    def filled(self) -> bool:
        """Whether there is anything to show."""
        return bool(self.items or self.plan)

    def reset(self) -> None:
        self._take((), None)

    def show_plan(self, plan: Plan | None) -> None:
        """The newest plan, as it stands; None when it stands elsewhere."""
        self._take(self.items, plan)

    def apply(self, event: Event) -> None:
        match event:
            case ToolFinished(agent="main", result=result) if result.changes and result.changes.todos is not None:
                self._take(result.changes.todos, self.plan)
            case Rewound(agent="main", turns=int(), state=state):
                self._take(state.todos or (), self.plan)
            case _:
                pass

    def _take(self, items: tuple[Todo, ...], plan: Plan | None) -> None:
        before = self.filled
        self.items, self.plan = items, plan
        self._draw()
        if before != self.filled:
            self.post_message(self.Changed())

    def fit(self, room: int) -> None:
        """Take ``room`` rows at most."""
        self._room = max(3, room)
        self._draw()

    def _draw(self) -> None:
        wanted = (self.items, self.plan, self.size.width, self._room)
        if wanted != self._drawn:
            self._drawn = wanted
            self.update(list_lines(*wanted))


def list_lines(items: tuple[Todo, ...], plan: Plan | None, width: int = 0, room: int = 0) -> Content:
    """The plan while it is under way, then the todos where there is room for both; the other way round after it."""
    if plan is None:
        return todo_lines(items, width, room)
    from ba_tui.plotting.plans.signs import under_way  # noqa: PLC0415 - few sessions have a plan

    if items and not under_way(plan):
        return todo_lines(items, width, room)
    lines = plan_lines(plan, width, room)
    rows = len(lines.plain.split("\n"))
    if not items or (room and room - rows < LEAST_ROWS):
        return lines
    return Content("\n").join([lines, Content(""), todo_lines(items, width, room - rows - 1 if room else 0)])


def plan_lines(plan: Plan, width: int = 0, room: int = 0) -> Content:
    """A step each, in the order in which they are written; in too small a ``room`` those around what is being done."""
    from ba_tui.plotting.plans.signs import UNICODE, done, step_name  # noqa: PLC0415 - see list_lines

    said = f"{done(plan)} of {len(plan.subtasks)} done" if plan.subtasks else "being made"
    head = Content.assemble(("Plan", "bold"), (f"  {said}", "$text-muted"))
    entries = [
        _marked(UNICODE.mark(step.status), *_LOOKS[step.status], step_name(step), width) for step in plan.subtasks
    ]
    rows = [row for entry in entries for row in entry]
    if room and len(rows) >= room:
        statuses = [step.status for step in plan.subtasks]
        at = next((statuses.index(status) for status in ("executing", "pending") if status in statuses), 0)
        rows = _around(entries, at, room - 2)
    return Content("\n").join([head, *rows])


def todo_lines(items: tuple[Todo, ...], width: int = 0, room: int = 0) -> Content:
    """An item each, folded behind its mark when there is a ``width``; what is being done stands out. When there is a
    ``room`` of too few rows, those around it."""
    if not items:
        return Content.styled("No todos.", "$text-muted")
    done = sum(item.done for item in items)
    head = Content.assemble(("Todos", "bold"), (f"  {done} of {len(items)} done", "$text-muted"))
    entries = [_entry(item, width) for item in items]
    rows = [row for entry in entries for row in entry]
    if room and len(rows) >= room:
        statuses = [item.status for item in items]
        at = next((statuses.index(status) for status in ("in_progress", "pending") if status in statuses), 0)
        rows = _around(entries, at, room - 2)
    return Content("\n").join([head, *rows])


def _entry(item: Todo, width: int) -> list[Content]:
    mark, style = BROKEN if item.broken else MARKS[item.status]
    text = "$foreground" if item.status == "in_progress" else "$text-muted"
    urgent = (" high", "$warning") if item.priority == "high" and not item.done else ""
    return _marked(mark, style, text, paintable(" ".join(item.content.split()), newlines=False), width, urgent)


def _marked(  # noqa: PLR0913 - the parts of one row
    mark: str, style: str, text: str, words: str, width: int, urgent: tuple[str, str] | str = ""
) -> list[Content]:
    said = Content.assemble((words, text), urgent)
    first, *rest = said.wrap(width - 2) if width > 2 else [said]
    return [Content.assemble((f"{mark} ", style), first), *(Content.assemble("  ", each) for each in rest)]


def _around(entries: Sequence[list[Content]], at: int, room: int) -> list[Content]:
    """Entry ``at`` and whole neighbours, first those below it, in ``room`` rows; and how many there are besides."""
    first, after = at, at + 1
    left = room - len(entries[at])
    while after < len(entries) and len(entries[after]) <= left:
        left -= len(entries[after])
        after += 1
    while first and len(entries[first - 1]) <= left:
        first -= 1
        left -= len(entries[first])
    rows = [row for entry in entries[first:after] for row in entry][:room]
    besides = [f"{count} {where}" for count, where in ((first, "above"), (len(entries) - after, "below")) if count]
    return [*rows, Content.styled(f"… {', '.join(besides)}" if besides else "…", "$text-muted")]
