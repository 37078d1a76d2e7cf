"""What keeps a conversation within the window and the budget: compressor, limits and reminders, out of settings."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Protocol

from ba_tui.assembly.models import provider_for
from ba_tui.context.compression.compressor import Compressor, CompressorParts
from ba_tui.context.compression.gauge import Gauge
from ba_tui.context.compression.overflow import Fitting
from ba_tui.context.compression.rounds import Count
from ba_tui.context.compression.selection import Budget
from ba_tui.context.compression.summarize import Summarizer, Writer
from ba_tui.context.compression.summary_cache import SummaryCache
from ba_tui.context.limits import BudgetLimits, Spending
from ba_tui.context.reminders import NearlyFull, Refocus
from ba_tui.core.agent import Interceptor
from ba_tui.core.errors import ProviderError, UsageError
from ba_tui.core.events import Event
from ba_tui.core.messages import Message
from ba_tui.core.provider import ModelInfo, Provider
from ba_tui.core.tool import Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.values import frozen
from ba_tui.providers.access import ProviderAccess
from ba_tui.providers.retrying import Persistent
from ba_tui.resources import Places, bundled
from ba_tui.settings import Settings

SUMMARIES = "summaries"


class Counter(Protocol):
    """What the workshop lends."""

    settings: Settings
    access: ProviderAccess
    where: Places
    budget: Budget


@frozen
class Sizes:
    """``model`` in use, the tokens of ``messages``, and those of system prompt and tools, with their bytes."""

    model: Callable[[], ModelInfo]
    count: Count
    fixed: Callable[[], int]
    size: Callable[[], int]


@frozen
class Ties:
    """What else a compression has to do with, as in Means: hooks, notes to be said again, the events so far, tools."""

    veto: Callable[[str, str], Awaitable[str | None]]
    again: Callable[[Transcript], Sequence[Message]]
    events: Callable[[], Awaitable[Sequence[Event]]]
    tools: Callable[[], Sequence[Tool]]


class Pen:
    """The provider that writes summaries. Not the conversation's own, which keeps the body of its last request."""

    def __init__(self, shop: Counter, model: Callable[[], ModelInfo]) -> None:
        self._shop = shop
        self._own = model
        self._provider: Provider | None = None

    def model(self) -> ModelInfo:
        name = self._shop.settings.compression.model
        try:
            return self._shop.access.model(name) if name else self._own()
        except UsageError:
            return self._own()

    async def provider(self) -> Provider:
        info = self.model()
        if self._provider is None or self._provider.model.id != info.id:
            await self.close()
            self._provider = await asyncio.to_thread(self._made, info)
        return self._provider

    def _made(self, info: ModelInfo) -> Provider:
        settings = self._shop.settings
        # Twice the cap: some models think before they write.
        chosen = replace(settings, max_output_tokens=2 * settings.compression.summary_tokens, effort=None)
        try:
            return Persistent(provider_for(info, chosen, self._shop.access))
        except UsageError as error:
            raise ProviderError(str(error), error.hint) from error

    async def close(self) -> None:
        if self._provider:
            await self._provider.close()
        self._provider = None


class Condensing:
    """All of it, for one conversation."""

    def __init__(self, shop: Counter, sizes: Sizes, ties: Ties) -> None:
        settings, chosen = shop.settings, shop.settings.compression
        self._pen = Pen(shop, sizes.model)
        self.spending = Spending()
        gauge = Gauge(sizes.model, sizes.fixed, sizes.count, lambda: _longest(settings, sizes.model()), sizes.size)
        prompt = (bundled("config") / "prompts" / "compaction.md").read_text(encoding="utf-8")
        cache = SummaryCache(shop.where.cache / SUMMARIES, chosen.cache_size, chosen.cache_hours)
        writer = Writer(self._pen.model, self._pen.provider, prompt)
        summarizer = Summarizer(writer, chosen, cache, sizes.count)
        means = CompressorParts(gauge, summarizer, shop.budget, ties.veto, ties.again, ties.events, ties.tools)
        self.compressor = Compressor(chosen, means)
        self._limits = BudgetLimits(self.spending, sizes.model, settings.max_cost, settings.max_tokens)
        self._nearly = NearlyFull(gauge, chosen.trigger, automatic=chosen.enabled)
        self._refocus = Refocus(chosen.refocus_rounds)

    def around(self, first: Sequence[Interceptor], rest: Sequence[Interceptor]) -> tuple[Interceptor, ...]:
        """In their order: ``first``, limits, ``rest`` (hooks are the last of them), then what looks at the window."""
        return (*first, self._limits, *rest, self._refocus, self._nearly, self.compressor)

    def fitting(self, provider: Provider) -> Provider:
        return Fitting(provider, self.compressor)

    async def close(self) -> None:
        await self.compressor.close()
        await self._pen.close()


def _longest(settings: Settings, model: ModelInfo) -> int:
    return min(settings.max_output_tokens or model.max_output, model.max_output)
