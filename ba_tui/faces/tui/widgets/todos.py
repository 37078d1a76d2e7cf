"""The list of todos: a fold over results that change it. State is a mark and a colour, never colour alone."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from ba_tui.core.events import Event, Rewound, ToolFinished
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.work import Todo

MARKS = {"completed": ("✓", "$success"), "in_progress": ("▸", "$accent"), "pending": ("○", "$text-muted")}


class TodoList(Static):
    class Changed(Message):
        """The list has become empty, or has stopped being so."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, markup=False)
        self.items: tuple[Todo, ...] = ()
        self._room = 0
        self._drawn: tuple[tuple[Todo, ...], int, int] | None = None

    def on_resize(self) -> None:
        self._draw()

    def reset(self) -> None:
        self._take(())

    def apply(self, event: Event) -> None:
        match event:
            case ToolFinished(agent="main", result=result) if result.changes and result.changes.todos is not None:
                self._take(result.changes.todos)
            case Rewound(agent="main", turns=int(), state=state):
                self._take(state.todos or ())
            case _:
                pass

    def _take(self, items: tuple[Todo, ...]) -> None:
        changed = bool(items) != bool(self.items)
        self.items = items
        self._draw()
        if changed:
            self.post_message(self.Changed())

    def fit(self, room: int) -> None:
        """Take ``room`` rows at most."""
        self._room = max(3, room)
        self._draw()

    def _draw(self) -> None:
        wanted = (self.items, self.size.width, self._room)
        if wanted != self._drawn:
            self._drawn = wanted
            self.update(todo_lines(*wanted))


def todo_lines(items: tuple[Todo, ...], width: int = 0, room: int = 0) -> Content:
    """An item each, folded behind its mark when there is a ``width``; what is being done stands out. When there is a
    ``room`` of too few rows, those around it."""
    if not items:
        return Content.styled("No todos.", "$text-muted")
    done = sum(item.status == "completed" for item in items)
    head = Content.assemble(("Todos", "bold"), (f"  {done} of {len(items)} done", "$text-muted"))
    entries = [_entry(item, width) for item in items]
    rows = [row for entry in entries for row in entry]
    if room and len(rows) >= room:
        statuses = [item.status for item in items]
        at = next((statuses.index(status) for status in ("in_progress", "pending") if status in statuses), 0)
        rows = _around(entries, at, room - 2)
    return Content("\n").join([head, *rows])


def _entry(item: Todo, width: int) -> list[Content]:
    mark, style = MARKS[item.status]
    text = "$foreground" if item.status == "in_progress" else "$text-muted"
    urgent = (" high", "$warning") if item.priority == "high" and item.status != "completed" else ""
    words = paintable(" ".join(item.content.split()), newlines=False)
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
