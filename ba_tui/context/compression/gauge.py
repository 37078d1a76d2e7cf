"""How full the window is: the vendor's last count, and an estimate of the messages since then."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import is_

from ba_tui.context.compression.rounds import Count
from ba_tui.core.events import PromptProgress
from ba_tui.core.messages import Message, Text
from ba_tui.core.provider import ModelInfo
from ba_tui.core.text.patterns import regex
from ba_tui.core.turn import Branch

SMALLEST = 1_000
"""A smaller window that a server reports is ignored."""
FLATTEST, STEEPEST = 0.5, 4.0
"""A vendor's count outside of these shares of our estimate is ignored."""
HIDDEN = 1_000
"""Tokens that a vendor may add."""
MANY = 50
"""Messages from which on they are not counted on the event loop: a long conversation was opened."""
FEW = 8
"""Messages of a conversation that has just begun."""
BRANCHES = 8
_WINDOW = regex(
    r"(?:>|max(?:imum)?(?: model| context| prompt| input| allowed)*(?: length| size| tokens| limit| window)*"
    r"|context (?:size|length|window|limit)|limit)(?: is| of|:| to)? ?[(\[]?\s?(?:of )?(\d[\d,]{3,9})(?![\d,]|\s?\+)"
    r"|(\d[\d,]{3,9}) (?:tokens? )?maximum",
    re.IGNORECASE,
)


class Gauge:
    """Measures how full the window is. ``fixed``: tokens of the system prompt and the tools, ``size`` their bytes;
    ``longest``: tokens of the longest answer."""

    def __init__(
        self,
        model: Callable[[], ModelInfo],
        fixed: Callable[[], int],
        count: Count,
        longest: Callable[[], int] | None = None,
        size: Callable[[], int] | None = None,
    ) -> None:
        self._model = model
        self._size = size
        self._longest = longest or (lambda: model().max_output)
        self._told: dict[str, int] = {}
        self._tail: tuple[tuple[Message, ...], int] = ((), 0)
        """The messages since the last answer at the last call, and their tokens: each request asks several times."""
        self._own: dict[str, tuple[int, Message, int]] = {}
        """By the first message of a conversation: a position, its message, and our count up to there."""
        self.fixed = fixed
        self.count = count

    @property
    def room(self) -> int:
        """Return the tokens of the window without those reserved for the answer, which are at most half of it."""
        model = self._model()
        window = min(model.window, self._told.get(model.id, model.window))
        return window - min(self._longest(), window // 2)

    def spacious(self, messages: Sequence[Message], share: float) -> bool:
        """Whether they certainly take less than ``share`` of the room. Nothing is counted, so that the first request of
        a conversation does not wait: a token has a byte or more."""
        if self._size is None or not _plain(messages):
            return False
        size = self._size() + sum(len(message.text.encode()) for message in messages)
        return size + HIDDEN < share * self.room

    def used(self, messages: Sequence[Message]) -> int:
        """Return the tokens of a request with ``messages``."""
        for place in range(len(messages) - 1, -1, -1):
            usage = messages[place].usage
            if usage is not None and usage.counted:
                told, ours = usage.counted, self.fixed() + self._through(messages, place)
                if not FLATTEST * ours <= told <= STEEPEST * ours + HIDDEN:
                    told = ours
                return told + self._counted(tuple(messages[place + 1 :]))
        return self.estimate(messages)

    async def ready(self, messages: Sequence[Message]) -> None:
        """Count ``messages``, so that ``used`` takes no time afterwards."""
        place, last, _ = self._own.get(messages[0].id, (-1, None, 0)) if messages else (0, None, 0)
        if len(messages) - place > MANY and not (0 <= place < len(messages) and messages[place] is last):
            await asyncio.to_thread(self.used, tuple(messages))

    def _through(self, messages: Sequence[Message], place: int) -> int:
        """Return our count of ``messages`` up to ``place``; only new messages are counted."""
        key = messages[0].id
        known, last, tokens = self._own.pop(key, (-1, None, 0))
        if not (0 <= known <= place and messages[known] is last):
            known, tokens = -1, 0
        if known < place:
            tokens += self.count(tuple(messages[known + 1 : place + 1]))
        self._own[key] = (place, messages[place], tokens)
        while len(self._own) > BRANCHES:
            del self._own[next(iter(self._own))]
        return tokens

    def _counted(self, tail: tuple[Message, ...]) -> int:
        known, tokens = self._tail
        if len(known) != len(tail) or not all(map(is_, known, tail)):
            tokens = self.count(tail)
            self._tail = (tail, tokens)
        return tokens

    def ratio(self, messages: Sequence[Message]) -> float:
        """Return the vendor's tokens for each of ours."""
        estimate = self.estimate(messages)
        return min(STEEPEST, max(FLATTEST, self.used(messages) / estimate)) if estimate else 1.0

    def estimate(self, messages: Sequence[Message]) -> int:
        """Return the estimated tokens of a request, whatever a vendor counted."""
        return self.fixed() + self.count(messages)

    def learn(self, words: str) -> None:
        """Learn the size of the window from a server's refusal."""
        sizes = [int((one or other).replace(",", "")) for one, other in _WINDOW.findall(words)]
        sizes = [size for size in sizes if size >= SMALLEST]
        if sizes:
            self._told[self._model().id] = min(sizes)


def _plain(messages: Sequence[Message]) -> bool:
    """Whether they are few, and text only."""
    blocks = (block for message in messages[: FEW + 1] for block in message.blocks)
    return len(messages) <= FEW and all(isinstance(block, Text) for block in blocks)


def uncounted(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return ``messages`` without the vendor's counts, which were for the messages before them then."""
    return tuple(replace(message, usage=None) if message.usage else message for message in messages)


SOON = 1.0
"""Seconds before a first prompt is counted: most models answer within them, and the request is sent first."""


class PromptSize:
    """core.agent.Interceptor: reports the size of each prompt, for users who wait for the model's first word. It runs
    last, when all notes of the step are there."""

    def __init__(self, gauge: Gauge, soon: float = SOON) -> None:
        self._gauge = gauge
        self._soon = soon
        self._counting: asyncio.Task[None] | None = None

    async def before(self, branch: Branch) -> None:
        messages = branch.transcript.messages
        if any(message.usage for message in messages):
            await self._gauge.ready(messages)
            branch.emit(PromptProgress(self._gauge.used(messages)))
        else:
            self._stop()
            counting = self._counting = asyncio.create_task(self._count(branch))
            if work := asyncio.current_task():
                # After an error or a cancel no reply arrives: the count ends with the task of its agent.
                work.add_done_callback(lambda _: counting.cancel())

    async def _count(self, branch: Branch) -> None:
        """Count the messages as the context report does, during the request."""
        messages = tuple(branch.transcript.messages)
        await asyncio.sleep(self._soon)
        tokens = await asyncio.to_thread(self._gauge.estimate, messages)
        if tuple(branch.transcript.messages) == messages:
            branch.emit(PromptProgress(tokens))

    async def after(self, reply: Message, branch: Branch) -> None:
        """Stop counting: the prompt was read."""
        self._stop()

    def _stop(self) -> None:
        if self._counting:
            self._counting.cancel()
            self._counting = None
