"""Conversations that are too long for a small window, and a compressor around the scripted provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ba_tui.context.compression.compressor import Compressor, CompressorContext, SummaryBudget
from ba_tui.context.compression.gauge import Gauge
from ba_tui.context.compression.summarize import Summarizer, SummaryCache, Writer
from ba_tui.core.conversation import Conversation
from ba_tui.core.events import Compressed, Event, MessageDone, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from ba_tui.core.messages import Message, Text, ToolOutput, ToolUse, Usage, user
from ba_tui.core.provider import ModelInfo, Prices, Provider
from ba_tui.core.results import ToolResult
from ba_tui.providers.pipeline import OverflowRetry
from ba_tui.settings import CompressionSettings
from tests.script import Memory, Mind, Script, says, thinking

MODEL = ModelInfo("test/model", "test", "model", window=10_000, max_output=1_000, prices=Prices(1, 2, 0.1, 1.25))
FIXED = 100
PROMPT = "Write notes of at most {words} words.{focus}"


def count(messages: Sequence[Message]) -> int:
    """A token for four characters of everything."""
    size = 0
    for message in messages:
        for block in message.blocks:
            match block:
                case Text(text=text) | ToolOutput(content=text):
                    size += len(text)
                case ToolUse(input=given):
                    size += len(str(given))
                case _:
                    size += 400
    return size // 4 + 4 * len(messages)


def history(rounds: int, *, result: int = 1_500, words: str = "") -> list[Event]:
    """Rounds with one call each, whose result is so many characters."""
    events: list[Event] = []
    for number in range(1, rounds + 1):
        call = ToolUse(f"call-{number}", "read_file", {"path": f"src/part_{number}.py"})
        answer = Message("assistant", (Text(f"I read part {number}."), call), stop="tool_use", origin="assistant")
        last = Message("assistant", (Text(f"Part {number} is fine."),), stop="end_turn", origin="assistant")
        events += [
            TurnStarted(user(f"Look at part {number}. {words}".strip())),
            MessageDone(answer),
            ToolStarted(call),
            ToolFinished(call.id, ToolResult(f"line {number} of it\n" * (result // 14))),
            MessageDone(last),
            TurnEnded("done"),
        ]
    return events


class Room:
    """A conversation with its compressor; ``writer`` plays the model that writes summaries, ``means`` are further ones
    of the compressor."""

    def __init__(
        self,
        script: Script,
        events: Sequence[Event] = (),
        *,
        writer: Script | None = None,
        folder: Path = Path("/nowhere"),
        budget: float = 1.0,
        window: int = MODEL.window,
        means: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        script.model = replace(MODEL, window=window)
        self.script, self.writer = script, writer or Script()
        chosen: dict[str, Any] = {"enable_llm_summarization": writer is not None, **settings}
        self.settings = CompressionSettings(**chosen)

        async def provider() -> Provider:
            return self.writer

        def model() -> ModelInfo:
            return script.model

        self.gauge = Gauge(model, lambda: FIXED, count)
        cache = SummaryCache(folder, self.settings.cache_size, self.settings.cache_hours)
        summarizer = Summarizer(Writer(model, provider, PROMPT), self.settings, cache, count)
        self.memory = Memory(events)

        async def journal() -> Sequence[Event]:
            return self.memory.read()

        self.budget = SummaryBudget(budget)
        context = CompressorContext(self.gauge, summarizer, self.budget, events=journal, **(means or {}))
        self.compressor = Compressor(self.settings, context)
        fitting = OverflowRetry(script, self.compressor.shorten)
        mind = Mind(fitting, interceptors=(self.compressor,))
        mind.condenser = self.compressor
        self.talk: Conversation = thinking(mind, self.memory)

    def size(self) -> int:
        """Tokens of the next request."""
        return FIXED + count(self.talk.transcript.messages)


def compressions(events: Sequence[Event]) -> list[Compressed]:
    return [event for event in events if isinstance(event, Compressed)]


def told(text: str, tokens: int = 0) -> Message:
    """An answer for which the vendor counted ``tokens`` in the prompt."""
    return replace(says(text), usage=Usage(tokens, 10) if tokens else None)
