"""The summary of a session in long-term memory: from the notes of a compression, or from requests and the last answer.

No model is asked: the text is already part of the conversation. It is stored at the end of a turn, where the user sees
it and can undo it, and is updated when the session closes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence

from ba_tui.core.agent import Interceptor
from ba_tui.core.errors import BaError
from ba_tui.core.events import Compressed, Event, MemoryChanged, MessageDone, Rewound, Titled, TurnStarted
from ba_tui.core.messages import Message
from ba_tui.core.ports.memory import Draft, line_of
from ba_tui.core.text.wording import clipped, one_line
from ba_tui.core.turn import Branch
from ba_tui.features.memory.tools.storing import EntryWriter
from ba_tui.permissions.secrets.scanner import redact

log = logging.getLogger(__name__)
ReadEvents = Callable[[], Awaitable[Sequence[Event]]]

LEAST = 3
"""Minimum turns of a session with a summary; a compressed session always has one."""
FIRST, LAST = 2, 6
"""Number of first and last requests that are named."""
REQUEST, ANSWER, NOTES = 160, 500, 2_400
"""Maximum characters of a request, of the last answer, and of a model's summary for a compression."""


class SessionSummary(Interceptor):
    """For the main agent, and a listener for requests and answers.

    ``history``: all events of a resumed session.
    """

    def __init__(self, storing: EntryWriter, history: ReadEvents) -> None:
        self._storing = storing
        self._history = history
        self._course = Course()
        self._id = ""
        self._written = ""

    def apply(self, event: Event) -> None:
        self._course.apply(event)

    async def after(self, reply: Message, branch: Branch) -> None:
        """Store the summary once the session deserves one, and report it."""
        if self._off() or self._id:
            return
        if self._course.turns < branch.transcript.turns:
            await self._read()
        if self._id or not self._course.worth:
            return
        try:
            stored = await self._storing.remember(Draft(self._text(), "summary", origin="assistant", importance=0.3))
        except BaError as error:
            log.warning("no summary was stored: %s", error)
            return
        self._id, self._written = stored.entry.id, stored.entry.text
        branch.emit(MemoryChanged((line_of(stored.entry),)))

    async def close(self) -> None:
        """Update the summary, unless the user has forgotten it."""
        if self._off() or not self._id or (text := self._text()) == self._written:
            return
        try:
            if await self._storing.store.get([self._id]):
                await self._storing.store.change(self._id, text=text, at=time.time())
        except BaError as error:
            log.warning("the summary was not brought up to date: %s", error)

    def _off(self) -> bool:
        return bool(self._storing.owner.off())

    async def _read(self) -> None:
        """Fold the events of earlier runs, which may name this session's summary."""
        course = Course()
        for event in await self._history():
            course.apply(event)
        self._course, id = course, course.summary
        entry = (await self._storing.store.get([id])).get(id) if id else None
        # A forked session has its own summary; a forgotten summary stays forgotten.
        self._id = "" if entry and entry.session != self._storing.owner.session else id

    def _text(self) -> str:
        return redact(self._course.text())


class Course:
    """The course of a session, as far as its summary contains it."""

    def __init__(self) -> None:
        self.summary = ""
        """Id of the summary that was stored."""
        self.turns = 0
        """How many were heard: those of earlier runs have to be read."""
        self._title = ""
        self._requests: list[tuple[int, str]] = []
        self._answer = ""
        self._notes = ""
        self._compressed = False
        self._imported = False

    @property
    def worth(self) -> bool:
        """Return whether a summary is stored. Text of imported files stays out of memory."""
        return not self._imported and (self._compressed or len(self._requests) >= LEAST)

    def apply(self, event: Event) -> None:
        match event:
            case TurnStarted(agent="main", prompt=message):
                self.turns += 1
                self._imported = self._imported or message.origin == "imported"
                if not message.hidden:
                    self._requests.append((self.turns, one_line(message.said, REQUEST)))
                # The first and the last ones are named.
                del self._requests[FIRST : -LAST or None]
            case MessageDone(agent="main", message=message) if message.text.strip() and not message.calls:
                self._answer = message.text
            case Titled(title=title):
                self._title = title
            case Compressed(agent="main", strategy=strategy, messages=messages) if strategy != "undo":
                self._compressed, self._notes = True, _summary_in(messages)
            case Rewound(turns=int(turns)):
                self._requests = [each for each in self._requests if each[0] <= turns]
            case MemoryChanged(stored=stored):
                self.summary = next((line.id for line in stored if line.kind == "summary"), self.summary)
            case _:
                pass

    def text(self) -> str:
        """Return the title, the requests or a model's notes on them, and the end."""
        parts = [f"Session “{self._title}”." if self._title else "A session."]
        if self._notes:
            parts.append(clipped(self._notes, NOTES))
        parts.append("Asked: " + " · ".join(text for _, text in self._requests if text))
        if self._answer:
            parts.append(f"Last answer: {one_line(self._answer, ANSWER)}")
        return "\n".join(parts)


def _summary_in(messages: Sequence[Message]) -> str:
    """Return the summary that a model wrote for a compression; empty if rules wrote it."""
    from ba_tui.context.compression.notes import read  # noqa: PLC0415 - most conversations are never compressed

    notes = read([message for message in messages if message.origin == "compaction"])
    return notes.summary or "\n".join(fact.text for fact in notes.facts if fact.kind == "note")
