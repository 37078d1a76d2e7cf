"""Summaries of old rounds: one request to a model, a check against the source, and a cache.

The model reads the record as text: it gets no tools, and results of tools are shortened.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from ba_tui.context.compression.rounds import Count
from ba_tui.core.errors import ProviderError, StorageError
from ba_tui.core.messages import Document, Image, Message, Opaque, Text, ToolOutput, ToolUse, Usage, is_reminder, user
from ba_tui.core.provider import ModelInfo, Provider, charged
from ba_tui.core.values import frozen
from ba_tui.providers.agent_model import one_answer
from ba_tui.resources import read_regular, save_whole
from ba_tui.settings.sections.models import CompressionSettings

# The cache has one small file for each summary, named by the hash of its source. Errors with its files are logged, and
# the summary is written again.

log = logging.getLogger(__name__)
SUFFIX = ".json"
LARGEST = 1_000_000
LOOK_EVERY = 20
"""Summaries that are written between two clean-ups."""


def digest(parts: Iterable[str]) -> str:
    """Return the name of a summary: the same for the same parts in the same order."""
    hashed = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "replace")
        hashed.update(len(data).to_bytes(8, "big") + data)
    return hashed.hexdigest()


class SummaryCache:
    """At most ``size`` summaries in ``folder``, none older than ``hours``. Blocks: call it off the event loop."""

    def __init__(self, folder: Path, size: int, hours: float, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._size = size
        self._seconds = hours * 3_600
        self._clock = clock
        self._written = 0

    def get(self, key: str) -> str | None:
        path = self._folder / f"{key}{SUFFIX}"
        try:
            found: Any = json.loads(read_regular(path, LARGEST))
            text, at = str(found["text"]), float(found["at"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.info("the summary %s can't be read: %s", path, error)
            return None
        return text if 0 <= self._clock() - at < self._seconds else None

    def put(self, key: str, text: str) -> None:
        if not self._size or not self._seconds:
            return
        path = self._folder / f"{key}{SUFFIX}"
        try:
            save_whole(path, json.dumps({"text": text, "at": self._clock()}), mode=0o600)
            self._written += 1
            if self._written % LOOK_EVERY == 1:
                self._prune()
        except (OSError, StorageError) as error:
            log.info("the summary %s can't be kept: %s", path, error)

    def _prune(self) -> None:
        aged: list[tuple[float, Path]] = []
        for path in self._folder.glob(f"*{SUFFIX}"):
            with contextlib.suppress(FileNotFoundError):
                aged.append((path.stat().st_mtime, path))
        aged.sort(reverse=True)
        for place, (at, path) in enumerate(aged):
            if place >= self._size or self._clock() - at > self._seconds:
                path.unlink(missing_ok=True)


RESULTS = (2_000, 600, 160)
"""Characters of a tool's result in the record: the largest number that fits the model's window."""
WORDS = 12_000
"""Characters of one message's text."""
SHARE = 0.6
"""Words of a summary for each token that it may have."""
HEADROOM = 0.9


@frozen
class Writer:
    """The model of summaries: ``model`` returns its facts, ``provider`` its connection, which is slow to import."""

    model: Callable[[], ModelInfo]
    provider: Callable[[], Awaitable[Provider]]
    prompt: str
    """With the placeholders ``{words}`` and ``{focus}``."""


@frozen
class Bill:
    """The cost of summaries in US dollars, None when unknown; ``estimate``: for limits, where no usage was reported."""

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
    """``bill``: empty for one of the cache; ``added``: the number of facts that the model left out."""

    text: str
    bill: Bill = NOTHING
    added: int = 0


class NoSummary(ProviderError):
    """The model's answer was no summary; it has to be paid for nevertheless."""

    bill: Bill = NOTHING


class Summarizer:
    """Writes summaries, or reads them from ``cache``."""

    def __init__(self, writer: Writer, choices: CompressionSettings, cache: SummaryCache, count: Count) -> None:
        self._writer = writer
        self._choices = choices
        self._cache = cache
        self._count = count

    def expected(self, source: Sequence[Message]) -> float | None:
        """Return the highest cost of a summary of ``source`` in US dollars; None when the model's price is unknown."""
        prices = self._writer.model().prices
        if prices is None:
            return None
        return prices.cost(Usage(self._count([user(self._record(source))]), self._choices.summary_tokens))

    async def summarize(self, source: Sequence[Message], focus: str = "") -> Summary:
        """Write a summary. Raises ProviderError when the model fails, takes too long, or writes no summary."""
        model = self._writer.model()
        record = await asyncio.to_thread(self._record, source)
        about = f"\n\nThe user asks for attention to this above all: {focus}" if focus else ""
        words = str(round(self._choices.summary_tokens * SHARE))
        system = self._writer.prompt.replace("{words}", words).replace("{focus}", about)
        key = digest((model.id, system, record))
        text, bill = await asyncio.to_thread(self._cache.get, key), NOTHING
        if text is None:
            answer = await self._ask(system, record)
            bill = Bill(answer.usage or Usage(), *charged(model.prices, answer.usage))
            if answer.calls or not answer.text.strip() or answer.stop == "refusal":
                failure = NoSummary("The model wrote no summary.")
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
        """Return as much of the record as the model can read: with shorter results, then without the middle."""
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
        from ba_tui.context.compression.notes import completed  # noqa: PLC0415 - not before there is a summary

        return completed(source, text, self._choices.summary_tokens // 2, self._count)

    def _clipped(self, text: str) -> str:
        """Return whole lines up to the limit; facts after it are checked like all others."""
        if self._fits(text):
            return text
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._fits(text[:middle]) else (low, middle - 1)
        return text[:low].rpartition("\n")[0] or text[:low]

    def _fits(self, text: str) -> bool:
        return self._count([user(text)]) <= self._choices.summary_tokens


def record(source: Sequence[Message], longest: int) -> str:
    """Return ``source`` as text, with at most ``longest`` characters of each tool result."""
    return "\n\n".join(part for message in source for part in _parts(message, longest))


def _parts(message: Message, longest: int) -> list[str]:
    """Return the texts of a message without reminders that were added to a prompt: they applied to that time."""
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
