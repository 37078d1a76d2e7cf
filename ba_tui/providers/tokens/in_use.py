"""Token counts for the model in use: estimates by its family, which real usage corrects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ba_tui.core.messages import Message
from ba_tui.core.provider import ModelInfo
from ba_tui.core.tool import Tool
from ba_tui.providers.tokens.calibration import Calibrating, Calibration
from ba_tui.providers.tokens.counter import DynamicTokenCounter, Scale
from ba_tui.providers.tokens.registry import ModelEncoderRegistry, load_encoders


def _unmeasured(data: bytes) -> tuple[int, int] | None:
    return None


class Tokens:
    """``model`` in use; the ``encoders`` files say how tokens are counted, ``calibration`` corrects estimates by real
    usage, and ``pixels`` gives the width and height of a picture. For the event
    loop: cheap, and no message is counted twice."""

    def __init__(
        self,
        model: Callable[[], ModelInfo],
        encoders: Sequence[Path],
        calibration: Calibration,
        pixels: Callable[[bytes], tuple[int, int] | None] = _unmeasured,
    ) -> None:
        self._model = model
        self._files = encoders
        self._pixels = pixels
        self._registry: ModelEncoderRegistry | None = None
        self._calibration = calibration
        self._counters: dict[str, DynamicTokenCounter] = {}

    @property
    def counter(self) -> DynamicTokenCounter:
        """Of the model in use."""
        info = self._model()
        if info.id not in self._counters:
            self._counters[info.id] = self._made(info)
        return self._counters[info.id]

    @property
    def problems(self) -> Sequence[str]:
        """Entries that were left out of a token_encoders.yaml of the person's or the project's."""
        return self._encoders().problems if len(self._files) > 1 else ()

    def text(self, text: str) -> int:
        return self.counter.text(text)

    def count(self, messages: Sequence[Message]) -> int:
        return self.counter.conversation(messages)

    def aside(self, messages: Sequence[Message]) -> int:
        """Of messages that are not in the conversation; what is known of that stays known."""
        return self._made(self._model()).conversation(messages)

    def count_tools(self, tools: Sequence[Tool]) -> int:
        return self.counter.tools(tools)

    def parts(self, messages: Sequence[Message]) -> tuple[int, int]:
        """What was said and called, and what tools returned; together they are ``count``."""
        return self.counter.parts(messages)

    def calibrating(self, fixed: Callable[[], int], tools: Callable[[], Sequence[Tool]]) -> Calibrating:
        """The interceptor that learns. ``fixed``: tokens of system prompt and ``tools``, as counted here."""

        def estimated(messages: Sequence[Message]) -> float:
            return (fixed() + self.count(messages)) / self._calibration.ratio(self._model().id)

        return Calibrating(estimated, self._calibration.learn, tools)

    def _made(self, info: ModelInfo) -> DynamicTokenCounter:
        config = self._encoders().find(info.name)
        scale = Scale(lambda: config.margin * self._calibration.ratio(info.id), config.family, self._pixels)
        return DynamicTokenCounter(scale=scale)

    def _encoders(self) -> ModelEncoderRegistry:
        if self._registry is None:
            self._registry = load_encoders(self._files)
        return self._registry
