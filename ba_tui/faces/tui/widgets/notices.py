"""Notices next to the input: they go by themselves, errors with a later key. All of them can be read again.

The rows stand in the layout, so they never cover the input, a question or the popup.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from textual.content import Content
from textual.widgets import Static

from ba_tui.core.events import Event, Notice
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import with_hint
from ba_tui.faces.tui.widgets.activity import INDENT

KEPT = 200
"""Notices that can be read again."""
MOST_ROWS = 4
LOW = 18
"""Rows of a screen on which notices have one row."""
ROWS_EACH = 2
LEAST = {"info": 4.0, "warning": 8.0}
READING = 15.0
"""Characters that people read in a second, without hurry."""
SEEN = 1.0
"""Seconds for which an error stands before a key takes it away: who is typing has not looked yet."""
LOOK_AGAIN = 2.0
MORE = "more: /notices"
MARKS = {"info": "·", "warning": "!", "error": "✗"}
COLOURS = {"info": "$text-muted", "warning": "$text-warning", "error": "$text-error"}


class NoticeStrip(Static):
    """``asked``: whether a question stands above, which needs the room."""

    def __init__(self, asked: Callable[[], bool], clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(id="notices", markup=False)
        self.kept: deque[Notice] = deque(maxlen=KEPT)
        """Oldest first."""
        self._asked = asked
        self._clock = clock
        self._shown: list[tuple[Notice, float]] = []
        self.display = False

    def tell(self, notice: Notice) -> None:
        """Show ``notice`` and keep it for reading again."""
        self.kept.append(notice)
        self._shown.append((notice, self._clock()))
        if notice.level != "error":
            self._drop_in(seconds_to_read(notice), notice)
        self._draw()

    def _drop_in(self, seconds: float, notice: Notice) -> None:
        self.set_timer(seconds, partial(self._drop, notice))

    def _drop(self, notice: Notice) -> None:
        if not self.screen.is_active:
            # Another screen covers it.
            self._drop_in(LOOK_AGAIN, notice)
            return
        self._shown = [each for each in self._shown if each[0] is not notice]
        self._draw()

    def key_pressed(self) -> None:
        """Take away the errors that have been there long enough to be noticed."""
        now = self._clock()
        left = [each for each in self._shown if each[0].level != "error" or now - each[1] < SEEN]
        if len(left) < len(self._shown):
            self._shown = left
            self._draw()

    def apply(self, event: Event) -> None:
        """Notices of a turn stand in the conversation; here they can only be read again."""
        if isinstance(event, Notice):
            self.kept.append(event)

    def reset(self) -> None:
        self._shown.clear()
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        self.display = bool(self._shown)
        if self._shown:
            width = (self.container_size.width or 80) - 2
            low = self._asked() or self.screen.size.height < LOW
            rows = strip([notice for notice, _ in self._shown], width, 1 if low else MOST_ROWS)
            # The rows are cut to the width already; a height that follows the text would lag behind a resize.
            self.styles.height = len(rows)
            self.update(Content("\n").join(rows))


def seconds_to_read(notice: Notice) -> float:
    """Return how long ``notice`` stays."""
    return LEAST.get(notice.level, 0.0) + len(notice.text + notice.hint) / READING


def strip(notices: Sequence[Notice], width: int, most: int) -> list[Content]:
    """The newest notices in at most ``most`` rows, the newest last and whole if it can be; how many more there are
    stands behind it."""
    rows: list[Content] = []
    left = len(notices)
    for notice in reversed(notices):
        folded = _folded(notice, width, min(ROWS_EACH, most) if rows else most)
        if rows and len(rows) + len(folded) > most:
            break
        rows = [*folded, *rows]
        left -= 1
    if left:
        more = f"  +{left} {MORE}"
        rows[-1] = Content.assemble(rows[-1].truncate(max(8, width - len(more)), ellipsis=True), (more, "$text-muted"))
    return rows


def _folded(notice: Notice, width: int, most: int) -> list[Content]:
    text = paintable(with_hint(notice.text, notice.hint), newlines=False)
    style, room = COLOURS[notice.level], max(10, width - len(INDENT))
    lines = [line.rstrip() for line in Content.styled(text, style).wrap(room)]
    if len(lines) > most:
        rest = text[sum(len(line.plain) + 1 for line in lines[: most - 1]) :]
        lines = [*lines[: most - 1], Content.styled(rest, style).truncate(room, ellipsis=True)]
    signs = [MARKS[notice.level] + " ", *[INDENT] * (len(lines) - 1)]
    return [Content.assemble((sign, style), line) for sign, line in zip(signs, lines, strict=True)]
