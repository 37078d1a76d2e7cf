"""Token counts for the model in use, and their correction: a ratio for each model, learned from answers and saved."""

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
from ba_tui.core.provider import ModelInfo
from ba_tui.core.tool import Tool
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.providers.token_counter import (
    DynamicTokenCounter,
    ModelEncoderRegistry,
    Pixels,
    load_encoders,
    unmeasured,
)
from ba_tui.resources import exclusive, read_regular, save_whole

LOWEST, HIGHEST = 0.5, 2.5
"""A ratio outside of these has another cause than text: pictures, or tools of the vendor's."""
LEAST = 400
"""Tokens: in a smaller request the frame around the text dominates."""
STEADY = 8
"""Answers after which the newest has a weight of an eighth."""
RATIOS = "token-ratios.json"
"""The file in ba's state folder."""
KEPT = 100
LARGEST = 100_000
MAIN = "main"
GROWN = 10
"""A conversation that has grown by less than one part of this many is not estimated: that takes time."""
MANY = 50
"""New messages from which on they are not counted on the event loop: a long conversation was opened."""


@frozen
class _Ratio:
    ratio: float = 1.0
    seen: int = 0


class TokenCalibration:
    """Ratios by model, in ``file``. If it can't be read or written, only accuracy is lost."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._ratios: dict[str, _Ratio] | None = None
        self._changed: dict[str, _Ratio] = {}

    def ratio(self, model: str) -> float:
        """Return the real tokens for each estimated one; 1 while unknown."""
        known = self._known().get(model)
        return known.ratio if known else 1.0

    def learn(self, model: str, estimated: float, real: int) -> None:
        """Learn from ``estimated`` tokens, without the ratio, that the vendor counted as ``real``."""
        if estimated < LEAST or real < LEAST:
            return
        known = self._known()
        old = known.pop(model, _Ratio())
        seen = min(old.seen + 1, STEADY)
        told = min(HIGHEST, max(LOWEST, real / estimated))
        known[model] = self._changed[model] = _Ratio(old.ratio + (told - old.ratio) / seen, seen)

    def save(self) -> None:
        """Save the ratios together with those that other processes saved. Never raises."""
        if not self._changed:
            return
        with suppress(StorageError, OSError), exclusive(self._file.parent):
            ratios = {**_read(self._file), **self._changed}
            newest = list(ratios.items())[-KEPT:]
            text = json.dumps({model: [round(one.ratio, 4), one.seen] for model, one in newest}, indent=1)
            save_whole(self._file, text + "\n", mode=0o600)
            self._changed = {}

    def _known(self) -> dict[str, _Ratio]:
        if self._ratios is None:
            self._ratios = _read(self._file)
        return self._ratios


def _read(file: Path) -> dict[str, _Ratio]:
    with suppress(OSError, ValueError, RecursionError):
        read: Any = json.loads(read_regular(file, LARGEST))
        if isinstance(read, dict):
            pairs = cast("dict[str, Any]", read)
            return {model: one for model, value in pairs.items() if (one := _learned(value))}
    return {}


def _learned(value: object) -> _Ratio | None:
    match value:
        case [int() | float() as ratio, int() as seen] if math.isfinite(ratio) and LOWEST <= ratio <= HIGHEST:
            return _Ratio(float(ratio), min(max(1, seen), STEADY))
        case _:
            return None


class UsageCalibrator:
    """core.agent.Interceptor: compares each request's estimate with the usage of its answer, after the answer, so that
    no request waits. It adds no message.

    ``estimate``: tokens of a request with these messages, without the ratio; ``learn`` gets estimate and usage.
    ``beside``: a value that changes with the rest of the request. It runs last, when the request is complete.
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
            # Sub-agents have other tools and another prompt, which the estimate does not know.
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
            # The conversation was compressed after the request.
            return
        if beside is not self._beside():
            # The estimate would include tools that were not sent.
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


class Tokens:
    """Counts tokens for the ``model`` in use: by the ``encoders`` files, corrected by ``calibration``. ``pixels`` gives
    the width and height of a picture. For the event loop: cheap, and no message is counted twice."""

    def __init__(
        self,
        model: Callable[[], ModelInfo],
        encoders: Sequence[Path],
        calibration: TokenCalibration,
        pixels: Pixels = unmeasured,
    ) -> None:
        self._model = model
        self._files = encoders
        self._pixels = pixels
        self._registry: ModelEncoderRegistry | None = None
        self._calibration = calibration
        self._counters: dict[str, DynamicTokenCounter] = {}

    @property
    def counter(self) -> DynamicTokenCounter:
        """Return the counter of the model in use."""
        info = self._model()
        if info.id not in self._counters:
            self._counters[info.id] = self._made(info)
        return self._counters[info.id]

    @property
    def problems(self) -> Sequence[str]:
        """Return the entries that were left out of the user's or the project's token_encoders.yaml."""
        return self._encoders().problems if len(self._files) > 1 else ()

    def text(self, text: str) -> int:
        return self.counter.text(text)

    def count(self, messages: Sequence[Message]) -> int:
        return self.counter.conversation(messages)

    def aside(self, messages: Sequence[Message]) -> int:
        """Count messages that are not in the conversation, whose counts stay remembered."""
        return self._made(self._model()).conversation(messages)

    def count_tools(self, tools: Sequence[Tool]) -> int:
        return self.counter.tools(tools)

    def calibrating(self, fixed: Callable[[], int], tools: Callable[[], Sequence[Tool]]) -> UsageCalibrator:
        """Return the interceptor that learns. ``fixed``: tokens of the system prompt and ``tools``, as counted here."""

        def estimated(messages: Sequence[Message]) -> float:
            return (fixed() + self.count(messages)) / self._calibration.ratio(self._model().id)

        return UsageCalibrator(estimated, self._calibration.learn, tools)

    def _made(self, info: ModelInfo) -> DynamicTokenCounter:
        config = self._encoders().find(info.name)
        return DynamicTokenCounter(
            factor=lambda: config.margin * self._calibration.ratio(info.id), family=config.family, pixels=self._pixels
        )

    def _encoders(self) -> ModelEncoderRegistry:
        if self._registry is None:
            self._registry = load_encoders(self._files)
        return self._registry
