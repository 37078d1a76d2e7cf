"""Prompts that wait for the running turn, one line each above the input.

The list itself is the chat's; this shows it.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.transcript.lines import clipped

SHOWN = 4
LOW = 16
"""Rows of a terminal below which one line has to do."""


class QueueLines(Static):
    def __init__(self) -> None:
        super().__init__(id="queue", markup=False)
        self._waiting: tuple[str, ...] = ()
        self._paused = False
        self.display = False

    def show(self, waiting: Sequence[str], *, paused: bool) -> None:
        if (tuple(waiting), paused) == (self._waiting, self._paused):
            # Drawing it lays the whole screen out.
            return
        self._waiting, self._paused = tuple(waiting), paused
        self.display = bool(waiting)
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        low = self.screen.size.height < LOW
        shown = 1 if low else SHOWN
        more = len(self._waiting) - shown
        width = max(10, self.size.width - (14 if low else 3))
        lines = [
            Content.assemble((f"{index}. ", "$accent"), (_line(text, width), "$text-muted"))
            for index, text in enumerate(self._waiting[:shown], 1)
        ]
        if more > 0 and low:
            lines[0] = Content.assemble(lines[0], (f"  +{more} more", "$text-muted"))
        elif more > 0:
            lines.append(Content.styled(f"… and {more} more", "$text-muted"))
        if self._waiting and not low:
            words = (
                "Paused. Enter sends the next, Up edits the newest."
                if self._paused
                else "Enter sends the next now, Up edits the newest."
            )
            lines.append(Content.styled(words, "$text-muted italic"))
        self.update(Content("\n").join(lines))


def _line(text: str, width: int) -> str:
    words = paintable(" ".join(text[:2_000].split()), newlines=False)
    return clipped(words, width)
