"""Which turns of a session stand after it was rewound, and so which of its lines or events are still part of it.

Pure. Turns are numbered from 1 in the order they began; a number is never used again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ba_tui.core.events import Event, Rewound, TurnStarted
from ba_tui.sessions.records import MAIN, loads, starts_turn

_REWOUND = b'"rewound"'


class Standing:
    """``begun`` turns in all, ``last`` of them is where the session stands; 0 is before the first."""

    def __init__(self, begun: int = 0, last: int = 0, jumps: Mapping[int, int] | None = None) -> None:
        self.begun = begun
        self.last = last
        self._jumps = dict(jumps or {})
        """The turn before a turn, where it is not the one that began before it."""

    @classmethod
    def load(cls, text: str) -> Standing:
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


def standing(events: Sequence[Event]) -> list[Event]:
    """``events`` without those of turns that were taken back; the Rewound events themselves stay."""
    course = Standing()
    owners: list[int] = []
    for event in events:
        match event:
            case TurnStarted(agent="main"):
                course.begin()
            case Rewound(agent="main", turns=int(turn)):
                course.rewind(turn)
            case _:
                pass
        owners.append(course.last)
    kept = {0, *course.numbers()}
    return [event for event, owner in zip(events, owners, strict=True) if owner in kept]


def standing_lines(lines: Iterable[bytes]) -> list[bytes]:
    """The same for the lines of a file, without the rewinds and without reading the rest as events."""
    course = Standing()
    owned: list[tuple[int, bytes]] = []
    for line in lines:
        if rewinds(line):
            course.rewind(rewound_to(loads(line) or {}, course.last))
            continue
        if starts_turn(line):
            course.begin()
        owned.append((course.last, line))
    kept = {0, *course.numbers()}
    return [line for owner, line in owned if owner in kept]


def starts(lines: Sequence[bytes]) -> list[int]:
    """Where the turns that stand begin among ``lines``, oldest first."""
    course = Standing()
    places: list[int] = []
    for index, line in enumerate(lines):
        if starts_turn(line):
            course.begin()
            places.append(index)
        elif rewinds(line):
            course.rewind(rewound_to(loads(line) or {}, course.last))
    return [places[number - 1] for number in course.numbers()]


def rewinds(line: bytes) -> bool:
    """True for a rewind of the conversation, not of files alone."""
    if _REWOUND not in line[-64:]:
        return False
    record = loads(line) or {}
    return record.get("type") == "rewound" and record.get("agent") == MAIN and isinstance(record.get("turns"), int)


def rewound_to(record: dict[str, Any], last: int) -> int:
    turn = record.get("turns")
    return turn if isinstance(turn, int) else last
