"""Taking the last compression back: the fold over the same events without it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.core.events import Compressed, Event
from ba_tui.core.messages import Message
from ba_tui.core.transcript import Transcript


def uncompressed(events: Sequence[Event], agent: str = "main") -> Transcript | None:
    """What ``events`` come to without the last compression that still stands; None when there is none."""
    standing: list[int] = []
    void: set[int] = set()
    for place, event in enumerate(events):
        if not isinstance(event, Compressed) or event.agent != agent:
            continue
        if event.strategy == "undo" and standing:
            void |= {standing.pop(), place}
        else:
            standing.append(place)
    if not standing:
        return None
    void.add(standing[-1])
    return Transcript(agent, [event for place, event in enumerate(events) if place not in void])


def undone(events: Sequence[Event], now: Transcript) -> tuple[tuple[Message, ...], int] | None:
    """The messages without the last compression, and where the running turn begins; None when nothing changes."""
    earlier = uncompressed(events, now.agent)
    if earlier is None or [message.id for message in earlier.messages] == [message.id for message in now.messages]:
        return None
    return tuple(earlier.messages), _turn_start(earlier)


def _turn_start(transcript: Transcript) -> int:
    messages = transcript.messages
    begins = (place + 1 for place in range(len(messages) - 1, -1, -1) if messages[place].id in transcript.rounds)
    return next(begins, 0)
