"""The context window of one agent: token counts, fill level, and compression."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from ba_tui.context.compression.compressor import Compressor, CompressorContext, SummaryBudget, no_veto
from ba_tui.context.compression.gauge import Gauge
from ba_tui.context.compression.summarize import Summarizer, SummaryCache, Writer
from ba_tui.context.nested_instructions import PromptNotes
from ba_tui.core.events import Event
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.providers.access import ProviderAccess
from ba_tui.providers.agent_model import AgentModel, SmallModel
from ba_tui.providers.tokens.calibration import TokenCalibration, Tokens
from ba_tui.providers.tokens.counter import Pixels
from ba_tui.resources import UserFolders, bundled
from ba_tui.settings import Settings


class RequestOverhead:
    """The size of the system prompt and the tools, which ``head`` returns."""

    def __init__(self, head: Callable[[], tuple[str, Sequence[Tool]]], tokens: Tokens) -> None:
        self._head = head
        self._tokens = tokens

    def tokens(self) -> int:
        system, tools = self._head()
        return self._tokens.text(system) + self._tokens.count_tools(tools)

    def size(self) -> int:
        """Return their bytes."""
        system, tools = self._head()
        shown = (f"{tool.name}{tool.description}{tool.input_schema}" for tool in tools)
        return sum(len(text.encode()) for text in (system, *shown))


SUMMARIES = "summaries"


@frozen
class WindowSources:
    """The parts that the windows of all agents of a session share. ``encoders``: files of token counts; ``pixels``
    gives width and height of a picture; ``veto``, ``notes`` and ``history`` are for the compressor."""

    settings: Settings
    access: ProviderAccess
    where: UserFolders
    budget: SummaryBudget
    encoders: Sequence[Path]
    calibration: TokenCalibration
    pixels: Pixels
    notes: PromptNotes
    history: Callable[[], Awaitable[Sequence[Event]]]
    veto: Callable[[str, str], Awaitable[str | None]] = no_veto


class AgentWindow:
    """Counts tokens and compresses for one agent. ``system`` and ``tools`` are in every request; ``recalling`` returns
    the tools that are listed once notes replace earlier rounds."""

    def __init__(
        self,
        shared: WindowSources,
        model: AgentModel,
        system: str,
        tools: Callable[[], Sequence[Tool]],
        recalling: Callable[[], Sequence[Tool]],
    ) -> None:
        settings = shared.settings.compression
        self.tokens = Tokens(model.info, shared.encoders, shared.calibration, shared.pixels)
        self.overhead = RequestOverhead(lambda: model.request_head(system, tools()), self.tokens)
        self.gauge = Gauge(model.info, self.overhead.tokens, self.tokens.count, model.longest, self.overhead.size)
        # Twice the cap: some models reason before they write.
        self._summaries = SmallModel(shared.access, model.info, 2 * settings.summary_tokens)
        prompt = (bundled("config") / "prompts" / "compaction.md").read_text(encoding="utf-8")
        cache = SummaryCache(shared.where.cache / SUMMARIES, settings.cache_size, settings.cache_hours)
        writer = Writer(self._summaries.model, self._summaries.provider, prompt)
        summarizer = Summarizer(writer, settings, cache, self.tokens.count)
        self.compressor = Compressor(
            settings,
            CompressorContext(
                self.gauge, summarizer, shared.budget, shared.veto, shared.notes.again, shared.history, recalling
            ),
        )

    async def close(self) -> None:
        await self.compressor.close()
        await self._summaries.close()
