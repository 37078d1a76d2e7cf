"""The popup above the prompt: candidates for a command, a mention or an earlier prompt, and which one is chosen.

It finds nothing itself and holds no focus; the composer fills it and moves in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from rich.cells import cell_len, set_cell_size
from textual.content import Content
from textual.widgets import Static

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.values import frozen
from ba_tui.faces.tui.transcript.lines import clipped

ROWS = 8
Kind = Literal["command", "argument", "mention", "history", "path"]
_ARGUMENT = regex(r"/[\w-]+ +(\S*)$")
_AT = regex(r"(?<![A-Za-z0-9_@/.:\\-])@(\"[^\"]*|[^\s\"@]*)$")


@frozen
class CompletionRequest:
    """What the text before the cursor asks to be completed, and the column where that begins."""

    kind: Kind
    query: str
    column: int


@frozen
class Candidate:
    """``insert`` replaces what was typed; ``label`` and ``detail`` are the two columns of its row.

    ``sure``: Enter takes it; one that only has the same letters has to be chosen first.
    """

    insert: str
    label: str
    detail: str = ""
    sure: bool = True


def wanted(before: str, row: int) -> CompletionRequest | None:
    """What to complete for the line ``before`` the cursor, in line ``row`` of the prompt."""
    if row == 0 and before.startswith("/") and not re.search(r"\s", before) and "/" not in before[1:]:
        return CompletionRequest("command", before[1:], 0)
    if found := _AT.search(before):
        return CompletionRequest("mention", found[1].lstrip('"'), found.start())
    if row == 0 and (found := _ARGUMENT.match(before)):
        return CompletionRequest("argument", before[1:], found.start(1))
    return None


class Completion(Static):
    """Hidden while it has no candidates."""

    def __init__(self) -> None:
        super().__init__(markup=False)
        self.candidates: Sequence[Candidate] = ()
        self.chosen = 0
        self.moved = False
        """Whether the person went to a row."""
        self.display = False
        self._rows = ROWS

    @property
    def choice(self) -> Candidate | None:
        return self.candidates[self.chosen] if self.candidates else None

    def offer(self, candidates: Sequence[Candidate]) -> None:
        """Show ``candidates``, best first; none hides the popup."""
        if not (candidates or self.candidates):
            # Nearly every key: laying the screen out again would be most of what it costs.
            return
        self.candidates = candidates
        self.chosen, self.moved = 0, False
        self.display = bool(candidates)
        self._rows = min(len(candidates), max(2, min(ROWS, self.screen.size.height // 2 - 3)))
        self.styles.height = self._rows + (self._rows < len(candidates)) or None
        self._draw()

    def move(self, step: int) -> None:
        if self.candidates:
            self.chosen = (self.chosen + step) % len(self.candidates)
            self.moved = True
            self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        if not self.candidates:
            self.update("")
            return
        width = max(10, self.size.width - 2)
        first = max(0, min(self.chosen - self._rows // 2, len(self.candidates) - self._rows))
        shown = self.candidates[first : first + self._rows]
        labels = [paintable(candidate.label, newlines=False) for candidate in self.candidates]
        column = min(max(map(cell_len, labels)), width * 3 // 5)
        lines: list[Content] = []
        for index, candidate in enumerate(shown, first):
            label = _fitting(labels[index], column)
            detail = _fitting(f"  {paintable(candidate.detail, newlines=False)}", max(0, width - column))
            here = index == self.chosen
            mark = "› " if here else "  "
            style = "$accent" if here else "$foreground"
            lines.append(Content.assemble((mark + label, style), (detail, "$text-muted")))
        hidden = (first, "above"), (len(self.candidates) - first - len(shown), "below")
        if words := ", ".join(f"{count} more {where}" for count, where in hidden if count):
            lines.append(Content.styled(f"  … {words}", "$text-muted"))
        self.update(Content("\n").join(lines))


def _fitting(text: str, width: int) -> str:
    return set_cell_size(clipped(text, width), width)
