"""The current turns of a session after rewinds, their lines and events, and the newest lines of a file.

Pure, except for ``newest``. Turns are numbered from 1 in the order in which they began; a number is never reused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ba_tui.core.events import Event, Rewound, TurnStarted
from ba_tui.core.text.patterns import regex
from ba_tui.sessions.records import MAIN, backwards, forwards, loads, starts_turn

_REWOUND = b'"rewound"'
_OF_MAIN = b'{"agent":"main","at":'
_ENDING = regex(rb'"turns":(null|\d{1,9}),"files":"[^"\\]*","undo":"[^"\\]*","type":"rewound"\}\n?$')


class Timeline:
    """``begun``: number of turns in all; ``last``: the current turn, 0 before the first."""

    def __init__(self, begun: int = 0, last: int = 0, jumps: Mapping[int, int] | None = None) -> None:
        self.begun = begun
        self.last = last
        self._jumps = dict(jumps or {})
        """The predecessor of a turn, if it is not the turn that began before it."""

    @classmethod
    def load(cls, text: str) -> Timeline:
        """Parse the output of ``dump``."""
        state: tuple[int, int, list[tuple[int, int]]] = json.loads(text) if text else (0, 0, [])
        return cls(state[0], state[1], dict(state[2]))

    def dump(self) -> str:
        return json.dumps([self.begun, self.last, sorted(self._jumps.items())])

    def begin(self) -> None:
        self.begun += 1
        if self.last != self.begun - 1:
            self._jumps[self.begun] = self.last
        self.last = self.begun

    def rewind(self, turn: int) -> None:
        """Return to the state after ``turn``."""
        self.last = min(max(turn, 0), self.begun)

    def numbers(self) -> list[int]:
        """Return the current turns, oldest first."""
        found: list[int] = []
        turn = self.last
        while turn > 0:
            found.append(turn)
            turn = self._jumps.get(turn, turn - 1)
        return found[::-1]


def follow(events: Iterable[Event], timeline: Timeline) -> Iterator[Event]:
    """Yield ``events`` and update ``timeline``, whose ``last`` is the turn of the yielded event."""
    for event in events:
        match event:
            case TurnStarted(agent="main"):
                timeline.begin()
            case Rewound(agent="main", turns=int(turn)):
                timeline.rewind(turn)
            case _:
                pass
        yield event


def current_events(events: Iterable[Event], whole: Timeline) -> Iterator[Event]:
    """Yield ``events`` without those of undone turns; Rewound events remain.

    ``whole``: the timeline after all events, so that they need not fit into memory.
    """
    current = {0, *whole.numbers()}
    timeline = Timeline()
    return (event for event in follow(events, timeline) if timeline.last in current)


def current_lines(lines: Iterable[bytes]) -> list[bytes]:
    """Return the current lines of a file, without rewinds, without parsing the rest as events."""
    timeline = Timeline()
    owned: list[tuple[int, bytes]] = []
    for line in lines:
        if (turn := rewind_target(line)) is not None:
            timeline.rewind(turn)
            continue
        if starts_turn(line):
            timeline.begin()
        owned.append((timeline.last, line))
    current = {0, *timeline.numbers()}
    return [line for owner, line in owned if owner in current]


def turn_starts(lines: Iterable[bytes]) -> list[int]:
    """Return the indexes of lines at which current turns begin, oldest first."""
    timeline = Timeline()
    places: list[int] = []
    for index, line in enumerate(lines):
        if starts_turn(line):
            timeline.begin()
            places.append(index)
        elif (turn := rewind_target(line)) is not None:
            timeline.rewind(turn)
    return [places[number - 1] for number in timeline.numbers()]


def rewind_target(line: bytes) -> int | None:
    """Return the turn to which a rewind line returns; None for all other lines."""
    if _REWOUND not in line[-64:]:
        return None
    if (found := _ENDING.search(line[-400:])) and line.startswith(_OF_MAIN):
        # ba's own format: the line contains all messages, which need not be parsed here.
        return int(found[1]) if found[1] != b"null" else None
    record = loads(line) or {}
    turn = record.get("turns")
    of_main = record.get("type") == "rewound" and record.get("agent") == MAIN
    return turn if of_main and isinstance(turn, int) else None


_ANSWER = b'"type":"message_done"}\n'
_UNSEEN = (b'"type":"judged"}\n', b'"type":"checkpointed"}\n')
"""Ends of lines that are not displayed."""


def newest(path: Path, limit: int) -> list[bytes]:
    """Return about ``limit`` lines, newest first, including the beginning of a turn: enough for a first paint.

    Of a rewound session, only current lines.
    """
    lines = backwards(path)
    taken = _taken(lines, limit)
    if any(rewind_target(line) is not None for line in taken):
        lines = reversed(current_lines(forwards(path)))
        taken = _taken(lines, limit)
    if any(map(starts_turn, taken)):
        return taken
    opening = next(filter(starts_turn, lines), None)
    if opening is None:
        return taken
    # The last turn exceeds the limit: return its prompt, and its end from a complete answer on.
    answers = [index for index, line in enumerate(taken) if line.endswith(_ANSWER)]
    return [*taken[: answers[-1] + 1 if answers else limit], opening]


def _taken(lines: Iterator[bytes], limit: int) -> list[bytes]:
    """Return the next lines up to ``limit`` displayed ones."""
    taken: list[bytes] = []
    seen = 0
    for line in lines:
        taken.append(line)
        seen += not line.endswith(_UNSEEN)
        if seen == limit:
            break
    return taken
