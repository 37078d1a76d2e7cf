"""A session that is opened again: its end is painted at once, what came before when it is read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from ba_tui.core.conversation import Conversation
from ba_tui.core.events import MAIN, Event, TurnStarted
from ba_tui.faces.tui.transcript.turn_records import reaches_back
from ba_tui.faces.tui.transcript.view import RECENT, TranscriptView

BREATH = 500
"""Events that are folded before keys are looked at again."""


async def replay(transcript: TranscriptView, conversation: Conversation, fold: Callable[[Event], None]) -> None:
    """Fill ``transcript`` with all that the session holds; ``fold`` gets every event."""
    tail = await asyncio.to_thread(conversation.tail, RECENT)
    tail = [] if any(map(reaches_back, tail)) else tail
    transcript.replay(tail)
    # What is seen first is painted first; folding the rest would hold it up.
    painted = asyncio.Event()
    transcript.call_after_refresh(painted.set)
    await painted.wait()
    events = await conversation.history()
    earlier = len(events) - len(tail)
    # Sub-agents can fill all of the tail: what does not begin with a turn is no part that stands for itself.
    if events[earlier:] == tail and (not tail or opens_turn(tail[0])):
        transcript.prepend(events[:earlier])
    else:
        transcript.clear()
        transcript.replay(events)
    for index, event in enumerate(events):
        fold(event)
        if index % BREATH == BREATH - 1:
            await asyncio.sleep(0)


async def paced(events: AsyncIterator[Event]) -> AsyncIterator[tuple[int, Event]]:
    """Yield ``events`` with their numbers from 1, and look at keys now and then: a journal comes all at once."""
    number = 0
    async for event in events:
        number += 1
        yield number, event
        if number % BREATH == 0:
            await asyncio.sleep(0)


def opens_turn(event: Event) -> bool:
    """Whether the person said something, not an agent to another."""
    return isinstance(event, TurnStarted) and event.agent == MAIN
