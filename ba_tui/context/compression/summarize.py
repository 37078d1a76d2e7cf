"""A summary of old rounds: one request to a model, checked against what it stands for. When, is compressor's business.

The model is given the record as text: it sees no tools, and what tools returned is shortened.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from typing import Protocol

from ba_tui.context.compression.rounds import Count
from ba_tui.context.compression.summary_cache import SummaryCache, digest
from ba_tui.core.errors import ProviderError
from ba_tui.core.messages import Document, Image, Message, Opaque, Text, ToolOutput, ToolUse, Usage, is_reminder, user
from ba_tui.core.provider import ModelInfo, Provider, charged
from ba_tui.core.values import frozen
from ba_tui.providers.small_model import one_answer

RESULTS = (2_000, 600, 160)
"""Characters of a tool's result that the model is shown: the most that fits its window."""
WORDS = 12_000
"""Characters of one message's own words."""
SHARE = 0.6
"""Words of a summary for each token that it may have."""
HEADROOM = 0.9


class SummarySettings(Protocol):
    """What a person may set about summaries (settings.Compression)."""

    @property
    def summary_tokens(self) -> int: ...

    @property
    def summary_timeout(self) -> float: ...


@frozen
class Writer:
    """Who writes: ``model`` for its window and its prices, ``provider`` to ask it; the latter is slow to import."""

    model: Callable[[], ModelInfo]
    provider: Callable[[], Awaitable[Provider]]
    prompt: str
    """With ``{words}`` and ``{focus}``."""


@frozen
class Bill:
    """What was paid for summaries: tokens, and US dollars; None when that is not known. ``estimate``: what limits count
    instead, where the server reported no usage."""

    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0
    estimate: float | None = None

    def __add__(self, other: Bill) -> Bill:
        known = self.cost is not None and other.cost is not None
        usage, spent = self.usage + other.usage, (self.spent, other.spent)
        if known:
            return Bill(usage, (self.cost or 0.0) + (other.cost or 0.0))
        return Bill(usage, None, None if None in spent else sum(each or 0.0 for each in spent))

    @property
    def spent(self) -> float | None:
        return self.estimate if self.cost is None else self.cost


NOTHING = Bill()


@frozen
class Summary:
    """``bill``: nothing from the cache; ``added``: facts that the model had left out."""

    text: str
    bill: Bill = NOTHING
    added: int = 0


class NoSummary(ProviderError):
    """The model answered with something else; that was paid for all the same."""

    bill: Bill = NOTHING


class Summarizer:
    """Writes summaries; those written before come from ``cache``."""

    def __init__(self, writer: Writer, choices: SummarySettings, cache: SummaryCache, count: Count) -> None:
        self._writer = writer
        self._choices = choices
        self._cache = cache
        self._count = count

    def expected(self, source: Sequence[Message]) -> float | None:
        """What a summary of ``source`` would cost at most, in US dollars; None when the model has no known price."""
        prices = self._writer.model().prices
        if prices is None:
            return None
        return prices.cost(Usage(self._count([user(self._record(source))]), self._choices.summary_tokens))

    async def summarize(self, source: Sequence[Message], focus: str = "") -> Summary:
        """Raises ProviderError when the model fails, takes too long, or answers with something else."""
        model = self._writer.model()
        record = await asyncio.to_thread(self._record, source)
        about = f"\n\nThe person asks for attention to this above all: {focus}" if focus else ""
        words = str(round(self._choices.summary_tokens * SHARE))
        system = self._writer.prompt.replace("{words}", words).replace("{focus}", about)
        key = digest((model.id, system, record))
        text, bill = await asyncio.to_thread(self._cache.get, key), NOTHING
        if text is None:
            answer = await self._ask(system, record)
            bill = _bill(answer, model)
            if wrong := _unsound(answer):
                failure = NoSummary(wrong)
                failure.bill = bill
                raise failure
            text = await asyncio.to_thread(self._clipped, answer.text.strip())
            await asyncio.to_thread(self._cache.put, key, text)
        whole, added = await asyncio.to_thread(self._completed, source, text)
        return Summary(whole, bill, added)

    async def _ask(self, system: str, record: str) -> Message:
        try:
            async with asyncio.timeout(self._choices.summary_timeout):
                return await one_answer(await self._writer.provider(), system, record)
        except TimeoutError:
            raise ProviderError(f"No summary came within {self._choices.summary_timeout:g} s.") from None

    def _record(self, source: Sequence[Message]) -> str:
        """As much of the record as the model can read: results shorter and shorter, then without the middle."""
        model = self._writer.model()
        room = int((model.window - self._choices.summary_tokens) * HEADROOM) - self._count([user(self._writer.prompt)])
        text = ""
        for longest in RESULTS:
            text = record(source, longest)
            if (size := self._count([user(text)])) <= room:
                return text
            if longest == RESULTS[-1]:
                half = max(200, int(len(text) * room / size * HEADROOM) // 2)
                return f"{text[:half]}\n\n[… the middle is left out …]\n\n{text[-half:]}"
        return text

    def _completed(self, source: Sequence[Message], text: str) -> tuple[str, int]:
        from ba_tui.context.compression.fact_check import completed  # noqa: PLC0415 - not before there is a summary

        return completed(source, text, self._choices.summary_tokens // 2, self._count)

    def _clipped(self, text: str) -> str:
        """Whole lines up to the cap; what stood behind is checked like everything else."""
        if self._count([user(text)]) <= self._choices.summary_tokens:
            return text
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._fits(text[:middle]) else (low, middle - 1)
        return text[:low].rpartition("\n")[0] or text[:low]

    def _fits(self, text: str) -> bool:
        return self._count([user(text)]) <= self._choices.summary_tokens


def _bill(answer: Message, model: ModelInfo) -> Bill:
    return Bill(answer.usage or Usage(), *charged(model.prices, answer.usage))


def _unsound(answer: Message) -> str:
    bad = answer.calls or not answer.text.strip() or answer.stop == "refusal"
    return "The model wrote no summary." if bad else ""


def record(source: Sequence[Message], longest: int) -> str:
    """``source`` as text, results of tools in at most ``longest`` characters."""
    return "\n\n".join(part for message in source for part in _parts(message, longest))


def _parts(message: Message, longest: int) -> list[str]:
    """Without the reminders that went with a prompt: what they say was true then."""
    who = "agent" if message.role == "assistant" else "person"
    if message.origin == "compaction":
        who = "earlier notes"
    elif message.hidden and message.role == "user":
        who = "system note"
    parts: list[str] = []
    for block in message.blocks:
        match block:
            case Text(text=text) if text.strip() and (message.role == "assistant" or not is_reminder(text)):
                parts.append(f"[{who}]\n{_short(text.strip(), WORDS)}")
            case ToolUse(name=name, input=given):
                shown = json.dumps(given, ensure_ascii=False, default=str)
                parts.append(f"[agent calls {name}]\n{_short(shown, longest)}")
            case ToolOutput(content=content, is_error=failed):
                parts.append(f"[result{', failed' if failed else ''}]\n{_short(content.strip(), longest)}")
            case Image() | Document() | Opaque():
                parts.append(f"[{who} shows: {block.type}]")
            case _:
                pass
    return parts


def _short(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    head = longest * 2 // 3
    return f"{text[:head]} … {text[head - longest :]}"
