"""Which records belong to which turn, so that a rewind can take turns away and bring them back. Pure.

The fold says where turns begin; it owns the list that is cut here.
"""

from __future__ import annotations

from ba_tui.core.events import Event, Rewound
from ba_tui.faces.tui.transcript.records import Record


def reaches_back(event: Event) -> bool:
    """Whether it changes what stands further up: then only the whole history can be folded."""
    return isinstance(event, Rewound) and event.turns is not None


class TurnRecords:
    """Parts of the list: 0 is what stands before the first turn, turns count from 1, what a rewind adds from -1."""

    def __init__(self) -> None:
        self._before: dict[int, int | None] = {0: None}
        self._line: list[int] = [0]
        self._begins: dict[int, int] = {0: 0}
        self._gone: dict[int, list[Record]] = {}
        self._turns = 0
        self._rewinds = 0

    def begin(self, at: int) -> None:
        """A turn begins with the record at ``at``."""
        self._turns += 1
        self._open(self._turns, at)

    def _open(self, part: int, at: int) -> None:
        self._before[part] = self._line[-1]
        self._line.append(part)
        self._begins[part] = at

    def back(self, items: list[Record], turn: int) -> int:
        """Leave in ``items`` what stood when ``turn`` had ended; from which place on they changed."""
        wanted: list[int] = []
        part = turn if turn in self._before else None
        while part is not None:
            wanted.insert(0, part)
            part = self._before[part]
        if not wanted:
            # A part of the history alone: what lies before it is not known here.
            return len(items)
        same = 0
        while same < min(len(wanted), len(self._line)) and wanted[same] == self._line[same]:
            same += 1
        ends = [*(self._begins[part] for part in self._line[1:]), len(items)]
        for part, end in list(zip(self._line, ends, strict=True))[same:]:
            self._gone[part] = items[self._begins[part] : end]
        cut = ends[same - 1]
        del items[cut:]
        for part in wanted[same:]:
            self._begins[part] = len(items)
            items += self._gone.pop(part)
        self._line = wanted
        self._rewinds += 1
        self._open(-self._rewinds, len(items))
        return cut
