"""Which turns of a session stand after it was rewound, and so which of its lines or events are still part of it.

Pure. Turns are numbered from 1 in the order they began; a number is never used again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from ba_tui.core.events import Event, Rewound, TurnStarted
from ba_tui.core.text.patterns import regex
from ba_tui.sessions.records import MAIN, loads, starts_turn

_REWOUND = b'"rewound"'
_OF_MAIN = b'{"agent":"main","at":'
_ENDING = regex(rb'"turns":(null|\d{1,9}),"files":"[^"\\]*","undo":"[^"\\]*","type":"rewound"\}\n?$')


class Timeline:
    """``begun`` turns in all, ``last`` of them is where the session stands; 0 is before the first."""

    def __init__(self, begun: int = 0, last: int = 0, jumps: Mapping[int, int] | None = None) -> None:
        self.begun = begun
        self.last = last
        self._jumps = dict(jumps or {})
        """The turn before a turn, where it is not the one that began before it."""

    @classmethod
    def load(cls, text: str) -> Timeline:
        """What ``dump`` wrote."""
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
        """The session stands again as after ``turn``."""
        self.last = min(max(turn, 0), self.begun)

    def numbers(self) -> list[int]:
        """The turns that stand, oldest first."""
        found: list[int] = []
        turn = self.last
        while turn > 0:
            found.append(turn)
            turn = self._jumps.get(turn, turn - 1)
        return found[::-1]


def follow(events: Iterable[Event], timeline: Timeline) -> Iterator[Event]:
    """``events`` as they are; the ``last`` of ``timeline`` is the turn that the one given belongs to."""
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
    """``events`` without those of turns that were taken back; the Rewound events themselves stay. ``whole`` is the
    timeline after all of them, so that none need be held."""
    current = {0, *whole.numbers()}
    timeline = Timeline()
    return (event for event in follow(events, timeline) if timeline.last in current)


def current_lines(lines: Iterable[bytes]) -> list[bytes]:
    """The same for the lines of a file, without the rewinds and without reading the rest as events."""
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
    """Where the turns that stand begin among ``lines``, oldest first."""
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
    """The turn that the conversation stands at after this line; None for all lines but such a rewind."""
    if _REWOUND not in line[-64:]:
        return None
    if (found := _ENDING.search(line[-400:])) and line.startswith(_OF_MAIN):
        # As we write it: all messages stand in such a line, and need not be read for this.
        return int(found[1]) if found[1] != b"null" else None
    record = loads(line) or {}
    turn = record.get("turns")
    of_main = record.get("type") == "rewound" and record.get("agent") == MAIN
    return turn if of_main and isinstance(turn, int) else None
