"""What real usage says of our estimates: a ratio for each model, learned from answers and kept in a small file.

How an estimate is made is not known here.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import StorageError
from ba_tui.core.messages import Message, Usage
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.resources import exclusive, read_regular, save_whole

LOWEST, HIGHEST = 0.5, 2.5
"""A ratio beyond these comes from something else than words: pictures, tools of the vendor's own."""
LEAST = 400
"""Tokens: of a smaller request, what stands around the words decides."""
STEADY = 8
"""Answers after which the newest counts for an eighth."""
RATIOS = "token-ratios.json"
"""The file in ba's state folder."""
KEPT = 100
LARGEST = 100_000
MAIN = "main"
GROWN = 10
"""A conversation that has grown by less than this part of it says nothing new, and estimating it takes time."""
MANY = 50
"""New messages that are not counted on the event loop: a long conversation was opened."""


@frozen
class _Learned:
    ratio: float = 1.0
    seen: int = 0


class Calibration:
    """Ratios by model, in ``file``. One that can't be read or written costs accuracy and nothing else."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._ratios: dict[str, _Learned] | None = None
        self._changed: dict[str, _Learned] = {}

    def ratio(self, model: str) -> float:
        """Real tokens for each estimated one; 1 while nothing is known."""
        known = self._known().get(model)
        return known.ratio if known else 1.0

    def learn(self, model: str, estimated: float, real: int) -> None:
        """``estimated`` without the ratio, for what the vendor counted as ``real``."""
        if estimated < LEAST or real < LEAST:
            return
        known = self._known()
        old = known.pop(model, _Learned())
        seen = min(old.seen + 1, STEADY)
        told = min(HIGHEST, max(LOWEST, real / estimated))
        known[model] = self._changed[model] = _Learned(old.ratio + (told - old.ratio) / seen, seen)

    def save(self) -> None:
        """Put what was learned into the file, beside what other processes have put there. Never raises."""
        if not self._changed or self._file is None:
            return
        with suppress(StorageError, OSError), exclusive(self._file.parent):
            ratios = {**_read(self._file), **self._changed}
            newest = list(ratios.items())[-KEPT:]
            text = json.dumps({model: [round(one.ratio, 4), one.seen] for model, one in newest}, indent=1)
            save_whole(self._file, text + "\n", mode=0o600)
            self._changed = {}

    def _known(self) -> dict[str, _Learned]:
        if self._ratios is None:
            self._ratios = _read(self._file) if self._file else {}
        return self._ratios


def _read(file: Path) -> dict[str, _Learned]:
    with suppress(OSError, ValueError, RecursionError):
        read: Any = json.loads(read_regular(file, LARGEST))
        if isinstance(read, dict):
            pairs = cast("dict[str, Any]", read)
            return {model: one for model, value in pairs.items() if (one := _learned(value))}
    return {}


def _learned(value: object) -> _Learned | None:
    match value:
        case [int() | float() as ratio, int() as seen] if math.isfinite(ratio) and LOWEST <= ratio <= HIGHEST:
            return _Learned(float(ratio), min(max(1, seen), STEADY))
        case _:
            return None


class Calibrating:
    """core.agent.Interceptor: compares each request's estimate with what its answer says it was, once that has come:
    no request waits for it. Speaks never.

    ``estimate``: tokens of a request with these messages, without the ratio; ``learn`` hears estimate and usage.
    ``beside``: what is sent with them; another value once it is another. It stands last, where a request is as it will
    be sent.
    """

    def __init__(
        self,
        estimate: Callable[[Sequence[Message]], float],
        learn: Callable[[str, float, int], None],
        beside: Callable[[], object],
    ) -> None:
        self._estimate = estimate
        self._learn = learn
        self._beside = beside
        self._sent: tuple[tuple[Message, ...], object] = ((), None)
        self._counted = 0

    async def before(self, branch: Branch) -> None:
        if branch.name != MAIN:
            # Sub-agents have tools and a prompt of their own, which the estimate does not know.
            return
        messages = branch.transcript.messages
        await self._compare(messages)
        if messages and not 0 <= len(messages) - self._counted < len(messages) // GROWN:
            self._sent = (tuple(messages), self._beside())

    async def after(self, reply: Message, branch: Branch) -> None:
        if branch.name == MAIN:
            await self._compare(branch.transcript.messages)

    async def _compare(self, messages: Sequence[Message]) -> None:
        (sent, beside), self._sent = self._sent, ((), None)
        place = len(sent)
        if not sent or place >= len(messages) or messages[place - 1] is not sent[-1]:
            # What was sent is not what is there: it was compressed since.
            return
        if beside is not self._beside():
            # The estimate would count tools that were not sent.
            return
        answer = messages[place]
        usage = answer.usage or Usage()
        if answer.role != "assistant" or not usage.counted:
            return
        if place - self._counted > MANY:
            estimated = await asyncio.to_thread(self._estimate, sent)
        else:
            estimated = self._estimate(sent)
        self._counted = place
        self._learn(answer.model, estimated, usage.prompt)
