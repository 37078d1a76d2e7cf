"""How full the window is: what the vendor counted last, and an estimate of what came since. Pure reading."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import is_

from ba_tui.context.compression.rounds import Count
from ba_tui.core.messages import Message, Text
from ba_tui.core.provider import ModelInfo
from ba_tui.core.text.patterns import regex

SMALLEST = 1_000
"""A window that a server claims to have can't be smaller."""
FLATTEST, STEEPEST = 0.5, 4.0
"""What a vendor counts beyond these shares of our estimate is not believed."""
HIDDEN = 1_000
"""Tokens that a vendor may add of its own."""
MANY = 50
"""Messages that are not counted on the event loop: a long conversation was opened."""
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
    """``fixed``: tokens of the system prompt and the tools, ``size`` their bytes; ``longest``: tokens that an answer
    may have."""

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
        """What came since the last answer when last asked, and its tokens: several ask before each request."""
        self._own: dict[str, tuple[int, Message, int]] = {}
        """By the first message of a conversation: a place in it, what stood there, and our count up to there."""
        self.fixed = fixed
        self.count = count

    @property
    def room(self) -> int:
        """Tokens of the window less what is kept for the answer, which is never more than half of it."""
        model = self._model()
        window = min(model.window, self._told.get(model.id, model.window))
        return window - min(self._longest(), window // 2)

    def spacious(self, messages: Sequence[Message], share: float) -> bool:
        """Whether they certainly take less than ``share`` of the room. Counts nothing, so that the first request of a
        conversation need not wait for that: a token stands for a byte or more."""
        if self._size is None or not _plain(messages):
            return False
        return self._size() + _bytes(messages) + HIDDEN < share * self.room

    def used(self, messages: Sequence[Message]) -> int:
        """Tokens that a request with ``messages`` takes."""
        for place in range(len(messages) - 1, -1, -1):
            usage = messages[place].usage
            if usage is not None and usage.counted:
                told, ours = usage.counted, self.fixed() + self._through(messages, place)
                if not FLATTEST * ours <= told <= STEEPEST * ours + HIDDEN:
                    told = ours
                return told + self._counted(tuple(messages[place + 1 :]))
        return self.estimate(messages)

    async def ready(self, messages: Sequence[Message]) -> None:
        """So that ``used`` takes no time afterwards."""
        place, last, _ = self._own.get(messages[0].id, (-1, None, 0)) if messages else (0, None, 0)
        if len(messages) - place > MANY and not (0 <= place < len(messages) and messages[place] is last):
            await asyncio.to_thread(self.used, tuple(messages))

    def _through(self, messages: Sequence[Message], place: int) -> int:
        """Our count of ``messages`` up to ``place``; of what was counted before, only the rest is."""
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
        """How much the vendor counts for each token of ours."""
        estimate = self.estimate(messages)
        return min(STEEPEST, max(FLATTEST, self.used(messages) / estimate)) if estimate else 1.0

    def estimate(self, messages: Sequence[Message]) -> int:
        """Tokens of a request with ``messages``, whatever a vendor counted."""
        return self.fixed() + self.count(messages)

    def learn(self, words: str) -> None:
        """A server said, refusing a request, how large the window is."""
        sizes = [int((one or other).replace(",", "")) for one, other in _WINDOW.findall(words)]
        sizes = [size for size in sizes if size >= SMALLEST]
        if sizes:
            self._told[self._model().id] = min(sizes)


def _plain(messages: Sequence[Message]) -> bool:
    """Whether they are few, and only text."""
    blocks = (block for message in messages[: FEW + 1] for block in message.blocks)
    return len(messages) <= FEW and all(isinstance(block, Text) for block in blocks)


def _bytes(messages: Sequence[Message]) -> int:
    return sum(len(message.text.encode()) for message in messages)


def uncounted(messages: Sequence[Message]) -> tuple[Message, ...]:
    """``messages`` without what the vendor counted: it was true of what stood before them then."""
    return tuple(replace(message, usage=None) if message.usage else message for message in messages)
