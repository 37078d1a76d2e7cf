"""A search in a stored result: the words typed, the lines that hold them, and which of those is looked at.

Reading is the reader's, moving the view is the pager's.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from rich.segment import Segment
from rich.style import Style
from textual.events import Key

from ba_tui.core.errors import BaError
from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.graphemes import without_last
from ba_tui.faces.tui.inspector.model import Whole

HITS = 500
"""Lines with a hit that are looked up at a time."""
NEXT = frozenset({"n", "enter", "down"})
PREVIOUS = frozenset({"N", "shift+enter", "up"})
LETTER_KEYS = "n next  N previous  / other words  Esc closes "
OTHER_KEYS = "Enter next  ↑ previous  Ctrl+F other words  Esc closes "


class SearchHit:
    """``due``: there is something to look up; ``look`` does it, in a thread."""

    def __init__(self, whole: Whole) -> None:
        self.words = ""
        self.pattern: re.Pattern[str] | None = None
        self.due = False
        self._whole = whole
        self.typing = True
        """Whether letters are words to look for; False once they are looked for."""
        self._lines: list[int] = []
        self._all = False
        self._at = -1
        self._by = 0
        self._fault = ""

    @property
    def found(self) -> int:
        """Lines found so far."""
        return len(self._lines)

    def typed(self, event: Key) -> bool:
        """Take one key; False when it is none of the search's."""
        if not self.typing:
            if event.key not in NEXT | PREVIOUS:
                return False
            self._by, self.due = (1 if event.key in NEXT else -1), True
        elif event.key == "enter":
            self._begin()
        elif event.key in {"backspace", "ctrl+h"}:
            self.words = without_last(self.words)
        elif event.key == "ctrl+u":
            self.words = ""
        elif event.character and event.is_printable:
            self.words += event.character
        else:
            return False
        return True

    def _begin(self) -> None:
        self.typing, self._lines, self._all, self._at, self._by, self._fault = False, [], False, -1, 0, ""
        parts = [re.escape(word) for word in self.words.split()]
        self.pattern = re.compile("|".join(parts), re.IGNORECASE) if parts else None
        self.due = bool(parts)

    def look(self, top: int) -> int | None:
        """The line to go to: the first from ``top`` on, or one further; None when there is none. Slow."""
        self.due = False
        try:
            while not self._all and (
                not self._lines or self._lines[-1] < top or self._at + self._by >= len(self._lines)
            ):
                self._more()
        except BaError as error:
            self._fault = str(error)
        if not self._lines:
            return None
        if self._at < 0:
            self._at = bisect_left(self._lines, top)
        else:
            self._at += self._by
        self._at %= len(self._lines)
        return self._lines[self._at]

    def _more(self) -> None:
        start = self._lines[-1] + 1 if self._lines else 1
        hits = self._whole.reader.search(self._whole.ref, self.words, HITS, start)
        self._lines += [hit.line for hit in hits]
        self._all = len(hits) < HITS

    def bar(self, width: int, *, letters: bool) -> str:
        """What stands below while searching; with the keys that are ``letters`` where those are keys."""
        words = paintable(self.words, newlines=False)
        if self.typing:
            text, keys = f" Find: {words}_", "Enter finds  Esc closes "
        else:
            text = f" Find: {words}  {self._tally()}"
            keys = LETTER_KEYS if letters else OTHER_KEYS
        return text.ljust(width - len(keys)) + keys if len(text) + len(keys) < width else text

    def _tally(self) -> str:
        if self._fault:
            return self._fault
        if not self._lines:
            return "nothing found" if self._all else "looking …"
        return f"hit {self._at + 1:,} of {len(self._lines):,}{'' if self._all else ' or more'}"


def marked(segment: Segment, pattern: re.Pattern[str]) -> Iterator[Segment]:
    """The same text, what was found in reverse."""
    text, style, _ = segment
    place = 0
    for found in pattern.finditer(text):
        if found.start() > place:
            yield Segment(text[place : found.start()], style)
        yield Segment(found.group(), (style or Style()) + Style(reverse=True))
        place = found.end()
    if place < len(text):
        yield Segment(text[place:], style)
