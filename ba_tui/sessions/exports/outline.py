"""What has to be known of a whole session before its first part is written: its turns, and what it used and cost.

Pure: a fold over events that holds a line a turn. What the parts are stands in document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ba_tui.core.events import (
    Compressed,
    Event,
    MessageDone,
    SideRequest,
    ToolStarted,
    TurnEnded,
    TurnResumed,
    TurnStarted,
)
from ba_tui.core.events.plan_course import PlanCourse
from ba_tui.core.messages import Usage
from ba_tui.core.ports.sessions import Outline, TurnLine
from ba_tui.sessions.foreign import one_line
from ba_tui.sessions.timeline import Timeline, follow


class Survey:
    """``cost`` is in US dollars, and None when nothing, or not everything, had a price. Usage and cost are those of
    all answers and summaries as billed; also of those that were taken back."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.timeline = Timeline()
        self.usage = Usage()
        self.compressions: list[Compressed] = []
        """Without the messages that they hold."""
        self.plans = PlanCourse()
        self._cost: float | None = None
        self._priced = True
        self._turns: dict[int, TurnLine] = {}
        self._asked_again: set[str] = set()
        """Calls that start once more, as their question was open when ba ended."""
        for event in follow(events, self.timeline):
            self._add(event)

    @property
    def cost(self) -> float | None:
        return self._cost if self._priced else None

    @property
    def turns(self) -> list[TurnLine]:
        """Those that stand, numbered as they stand."""
        kept = (self._turns[number] for number in self.timeline.numbers() if number in self._turns)
        return [replace(line, number=number) for number, line in enumerate(kept, 1)]

    def outline(self, hide: Callable[[str], str]) -> Outline:
        return Outline(self.usage, tuple(replace(line, prompt=hide(line.prompt)) for line in self.turns))

    def _add(self, event: Event) -> None:
        self.plans.apply(event)
        turn = self.timeline.last
        match event:
            case MessageDone(message=message, cost=price):
                self.usage += message.usage or Usage()
                self._pay(price, known=price is not None or message.usage is None)
            case SideRequest(cost=price, usage=used):
                self.usage += used or Usage()
                self._pay(price, known=price is not None)
            case Compressed(cost=price, usage=used):
                self.usage += used or Usage()
                self._pay(price or None, known=event.priced)
                self.compressions.append(replace(event, messages=()))
            case TurnStarted(prompt=message, agent="main", at=at):
                self._turns[turn] = TurnLine(turn, at, one_line(message.said))
            case ToolStarted(call=call) if turn in self._turns and call.id not in self._asked_again:
                line = self._turns[turn]
                self._turns[turn] = replace(line, calls=line.calls + 1)
            case TurnResumed(calls=calls):
                self._asked_again.update(calls)
            case TurnEnded(agent="main", reason=reason) if turn in self._turns:
                self._turns[turn] = replace(self._turns[turn], ended=reason)
            case _:
                pass

    def _pay(self, price: float | None, *, known: bool) -> None:
        self._priced = self._priced and known
        if price is not None:
            self._cost = (self._cost or 0.0) + price


def as_record(line: TurnLine) -> dict[str, Any]:
    """For JSON."""
    record = {"number": line.number, "at": iso(line.at), "prompt": line.prompt, "tool_calls": line.calls}
    return {**record, "ended": line.ended} if line.ended else record


def time_of(at: float) -> str:
    return iso(at).replace("T", " ").replace("+00:00", " UTC")


def iso(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return ""
