"""The context window of one agent: when its conversation is compressed, by which strategy, and how full it is then."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from ba_tui.context.compression.gauge import Gauge, uncounted
from ba_tui.context.compression.rounds import Compression, Keep, is_compressed, opening, turn_start
from ba_tui.context.compression.summarize import NOTHING, Bill, NoSummary, Summarizer, Summary, SummaryCache, Writer
from ba_tui.context.reminders import without_stale
from ba_tui.context.system_prompt import PromptNotes
from ba_tui.core.agent import Interceptor
from ba_tui.core.errors import ProviderError, UsageError
from ba_tui.core.events import Compressed, Event, Notice, Steered
from ba_tui.core.messages import Message, Usage
from ba_tui.core.provider import ModelRequest
from ba_tui.core.results import Todo
from ba_tui.core.tool import Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.providers.access import ProviderAccess
from ba_tui.providers.agent_model import AgentModel, SmallModel
from ba_tui.providers.token_calibration import TokenCalibration, Tokens
from ba_tui.providers.token_counter import Pixels
from ba_tui.resources import UserFolders, bundled
from ba_tui.settings import Settings
from ba_tui.settings.sections.models import CompressionSettings

if TYPE_CHECKING:
    from ba_tui.context.compression.strategies import Split, SummaryDraft


Way: TypeAlias = Literal["truncate", "extract", "summarize"]
HOUR = 3_600.0


class SummaryBudget:
    """A budget in US dollars for summaries within any hour, over all conversations of this process."""

    def __init__(self, limit: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit = limit
        self._clock = clock
        self._spent: deque[tuple[float, float]] = deque()

    def spend(self, cost: float) -> None:
        self._spent.append((self._clock(), cost))

    def left(self) -> float:
        while self._spent and self._clock() - self._spent[0][0] >= HOUR:
            self._spent.popleft()
        return max(0.0, self.limit - sum(cost for _, cost in self._spent))


@frozen
class Case:
    """``cost`` of a summary in US dollars, None when the model's price is unknown; ``left`` of the hour's budget."""

    messages: int
    cost: float | None = None
    left: float = 0.0


def choose(choices: CompressionSettings, case: Case) -> Way:
    """Return the strategy of the settings. By default a model is asked for long conversations only, and never at an
    unknown price."""
    if choices.strategy != "auto":
        return choices.strategy
    if not choices.enable_llm_summarization or case.messages < choices.extract_below:
        return "extract"
    if case.messages < choices.summarize_from or case.cost is None or case.cost > case.left:
        return "extract"
    return "summarize"


log = logging.getLogger(__name__)
Trigger: TypeAlias = Literal["auto", "manual", "overflow"]
LEAST = 400
"""The least tokens for messages, even if the system prompt and the tools leave no room."""
TOOLS = 300
"""Tokens reserved for the tools that are added by a compression."""
WORTH = 0.98
"""A compression to more than this share is discarded."""


async def no_veto(trigger: str, focus: str) -> str | None:
    return None


async def _no_events() -> Sequence[Event]:
    return ()


def _nothing_again(transcript: Transcript) -> Sequence[Message]:
    return ()


@frozen
class CompressorContext:
    """``veto`` returns why compression is forbidden, by trigger and focus; ``again`` returns notes that a compression
    removed and that must be repeated; ``events`` returns all events of the session; ``tools`` lists the tools that read
    what was compressed, and returns all listed tools."""

    gauge: Gauge
    summarizer: Summarizer
    budget: SummaryBudget
    veto: Callable[[str, str], Awaitable[str | None]] = no_veto
    again: Callable[[Transcript], Sequence[Message]] = _nothing_again
    events: Callable[[], Awaitable[Sequence[Event]]] = _no_events
    tools: Callable[[], Sequence[Tool]] | None = None


@frozen
class Task:
    """One compression: its messages, its reason, and how many tokens the messages may have (``target``, at worst
    ``limit``). ``used``: tokens of the current request; ``ratio``: the vendor's tokens for each of ours."""

    messages: tuple[Message, ...]
    starts: Mapping[str, int]
    todos: tuple[Todo, ...]
    trigger: Trigger
    focus: str
    used: int
    ratio: float
    target: int
    limit: int


class Compressor(Interceptor):
    """Compresses one conversation and those of its sub-agents."""

    def __init__(self, choices: CompressionSettings, context: CompressorContext) -> None:
        self._choices = choices
        self._context = context
        self._transcripts: dict[str, Transcript] = {}
        self._drafts: dict[str, SummaryDraft] = {}
        self._left: dict[str, int] = {}
        """The size at which compressing a branch failed or was forbidden."""
        self._again: set[str] = set()
        self._listed = False
        """Whether the tools that read what was compressed are listed."""
        self._owed = NOTHING
        """The cost of failed summaries, reported with the next compression."""

    async def before(self, branch: Branch) -> None:
        """Compress when the window is too full for the next request."""
        transcript = branch.transcript
        if self._transcripts.get(branch.name) is not transcript and any(map(is_compressed, transcript.messages)):
            # A resumed session: its notes name tools.
            self.tools()
        self._transcripts[branch.name] = transcript
        await self._adopt(branch)
        if self._choices.enabled and not self._context.gauge.spacious(transcript.messages, self._choices.trigger):
            await self._context.gauge.ready(transcript.messages)
            used = self._context.gauge.used(transcript.messages)
            if used > self._context.gauge.room * self._choices.trigger and used > self._left.get(branch.name, 0):
                await self._make_room(branch, used)
        if branch.name in self._again:
            self._again.discard(branch.name)
            for note in self._context.again(transcript):
                branch.emit(Steered(note))

    async def _make_room(self, branch: Branch, used: int) -> None:
        # Not tried again for every further message.
        self._left[branch.name] = used + used // 50
        if reason := await self._context.veto("auto", ""):
            text = f"The conversation is long, and a hook blocks compression: {reason}"
            branch.emit(Notice(text, "warning", "/compact tries again."))
            return
        if done := await self._compress(branch.name, branch.transcript, "auto"):
            branch.emit(done)

    async def now(self, branch: Branch, focus: str = "") -> None:
        """Compress on the user's command. Raises UsageError when a hook forbids it or nothing can be made smaller."""
        if reason := await self._context.veto("manual", focus):
            raise UsageError(f"A hook blocks compression: {reason}")
        done = await self._compress(branch.name, branch.transcript, "manual", focus)
        if done is None:
            raise UsageError("Nothing to compress yet: the conversation is short.", "/context shows what fills it.")
        branch.emit(done)

    async def undo(self, branch: Branch) -> None:
        events = await self._context.events()
        back = await asyncio.to_thread(_strategies().undone, events, branch.transcript)
        if back is None:
            raise UsageError("There is no compression to undo.", "/compact compresses.")
        messages, start = uncounted(back[0]), back[1]
        self._drop(branch.name)
        gauge = self._context.gauge
        before, after = gauge.used(branch.transcript.messages), gauge.used(messages)
        kept = "everything before it and since"
        bill, used = self._billed(NOTHING)
        branch.emit(Compressed(messages, "undo", before, after, bill.cost, kept, start, used, bill.estimate))

    async def rescue(self, messages: Sequence[Message], words: str) -> Compressed | None:
        """Compress ``messages``, which a provider refused in these ``words`` as too long; None when nothing helps."""
        self._context.gauge.learn(words)
        name, transcript = self._owner(messages)
        if await self._context.veto("auto", ""):
            return None
        return await self._compress(name, transcript, "overflow", messages=messages)

    async def shorten(self, request: ModelRequest, words: str) -> tuple[Compressed, ModelRequest] | None:
        """Return the compression of a request that a provider refused as too long in these ``words``, and the shorter
        request; None when nothing helps."""
        done = await self.rescue(request.messages, words)
        return done and (done, replace(request, messages=done.messages, tools=self.tools(request.tools)))

    def tools(self, given: Sequence[Tool] = ()) -> Sequence[Tool]:
        """List the tools that read what was compressed; return all tools of the next request, by default ``given``."""
        self._listed = True
        return self._context.tools() if self._context.tools else given

    async def close(self) -> None:
        """Cancel summaries that are being written."""
        for draft in self._drafts.values():
            draft.task.cancel()
        await asyncio.gather(*(draft.task for draft in self._drafts.values()), return_exceptions=True)

    def _owner(self, messages: Sequence[Message]) -> tuple[str, Transcript]:
        """Return the branch of a request with ``messages``."""
        for name, transcript in self._transcripts.items():
            here = transcript.messages
            if here and messages and here[-1].id == messages[-1].id:
                return name, transcript
        return "", Transcript()

    async def _compress(
        self,
        name: str,
        transcript: Transcript,
        trigger: Trigger,
        focus: str = "",
        *,
        messages: Sequence[Message] | None = None,
    ) -> Compressed | None:
        given = without_stale(transcript.messages if messages is None else messages)
        task = await asyncio.to_thread(self._task, given, transcript, trigger, focus)
        way, parts = await asyncio.to_thread(self._way, task)
        self._drop(name)
        failed = ""
        if way == "summarize" and parts and (trigger == "manual" or task.used > self._context.gauge.room):
            try:
                summary = await self._summary(parts.source, focus)
            except ProviderError as error:
                log.info("no summary: %s", error)
                self._owe(error)
                failed = f" (no summary: {str(error).rstrip('.')})"
            else:
                made = await asyncio.to_thread(self._with_summary, task, parts, summary)
                if done := self._finished(name, task, made, "summarize", summary.bill):
                    return done
                self._owed += summary.bill
        by_rules: Literal["truncate", "extract"] = "truncate" if way == "truncate" else "extract"
        made = await asyncio.to_thread(self._by_rules, task, by_rules)
        done = self._finished(name, task, replace(made, kept=made.kept + failed), by_rules)
        if done and way == "summarize" and parts and not failed and trigger != "manual":
            self._begin_draft(name, parts, done)
        return done

    def _task(self, messages: tuple[Message, ...], transcript: Transcript, trigger: Trigger, focus: str) -> Task:
        gauge, choices = self._context.gauge, self._choices
        ratio, fixed = gauge.ratio(messages), gauge.fixed() + (0 if self._listed or not self._context.tools else TOOLS)
        used = round(ratio * gauge.estimate(messages))
        goal = gauge.room * choices.target
        if trigger != "auto":
            goal = min(goal, used * choices.target)
        target = max(LEAST, int(goal / ratio) - fixed)
        limit = max(target, int(gauge.room * choices.trigger / ratio) - fixed)
        starts = dict(transcript.rounds)
        return Task(messages, starts, transcript.todos, trigger, focus, used, ratio, target, limit)

    def _way(self, task: Task) -> tuple[Way, Split | None]:
        """Return the strategy, and the parts of the conversation for a summary; None where everything is too new."""
        summarizer, count = self._context.summarizer, self._context.gauge.count
        keep = Keep(self._choices.keep_rounds, task.starts)
        room = task.target - self._choices.summary_tokens
        parts = _strategies().split(task.messages, keep, room, count)
        many = len(task.messages) >= self._choices.summarize_from
        cost = summarizer.expected(parts.source) if parts and many else None
        return choose(self._choices, Case(len(task.messages), cost, self._context.budget.left())), parts

    async def _summary(self, source: Sequence[Message], focus: str) -> Summary:
        """Write a summary. Its expected price is taken from the hour's budget at the start."""
        summarizer, budget = self._context.summarizer, self._context.budget
        expected = await asyncio.to_thread(summarizer.expected, source) or 0.0
        budget.spend(expected)
        summary = await summarizer.summarize(source, focus)
        cost = summary.bill.cost
        budget.spend((expected if cost is None else cost) - expected)
        return summary

    def _by_rules(self, task: Task, way: Literal["truncate", "extract"]) -> Compression:
        keep = Keep(self._choices.keep_rounds, task.starts)
        count = self._context.gauge.count
        if way == "truncate":
            return self._checked(task, _strategies().truncate(task.messages, task.target, count, keep))
        return self._checked(task, _strategies().extract(task.messages, task.target, count, keep, task.focus))

    def _with_summary(self, task: Task, parts: Split, summary: Summary) -> Compression:
        messages = (*self._noted(task, parts, summary), *parts.rest)
        count, keep = self._context.gauge.count, Keep(parts.keep, task.starts)
        kept = _kept(parts, summary)
        made = _strategies().extract(messages, task.target, count, keep)
        kept += "; long results of these were shortened" if made.stubs else ""
        return self._checked(task, replace(made, kept=kept, stubs=()))

    def _noted(self, task: Task, parts: Split, summary: Summary) -> tuple[Message, ...]:
        notes = _strategies().with_summary(summary, task.todos, parts.source, task.starts)
        return opening(_strategies().within(notes, task.target, self._context.gauge.count))

    def _checked(self, task: Task, made: Compression) -> Compression:
        """Return a compression that fits and breaks no rule."""
        count = self._context.gauge.count
        wrong = _strategies().faults(made.messages, task.messages)
        if wrong:
            log.error("a compression broke a rule: %s", wrong[0])
            made = _strategies().truncate(task.messages, task.target, count, Keep(0, task.starts))
        if wrong and _strategies().faults(made.messages, task.messages):
            messages = _strategies().fit(task.messages, task.target, count, task.starts)
            made = Compression(messages, turn_start(messages, task.starts), "the last words of the user")
        if count(made.messages) > task.limit:
            messages = _strategies().fit(made.messages, task.target, count, task.starts)
            made = Compression(messages, turn_start(messages, task.starts), made.kept, made.stubs)
        return made

    def _finished(self, name: str, task: Task, made: Compression, way: Way, bill: Bill = NOTHING) -> Compressed | None:
        """Return the event of a compression, or None when it saves too little."""
        gauge = self._context.gauge
        after = round(task.ratio * gauge.estimate(made.messages))
        if after >= task.used * WORTH:
            return None
        self._left.pop(name, None)
        if name:
            self._again.add(name)
        return self._event(task, made, way, after, bill)

    def _event(self, task: Task, made: Compression, way: Way, after: int, bill: Bill) -> Compressed:
        self.tools()
        bill, used = self._billed(bill)
        facts = (bill.cost, made.kept, made.turn_start, used, bill.estimate)
        return Compressed(uncounted(made.messages), way, task.used, after, *facts)

    def _billed(self, bill: Bill) -> tuple[Bill, Usage | None]:
        """Return cost and usage for an event, including unreported costs."""
        bill, self._owed = bill + self._owed, NOTHING
        return bill, bill.usage if bill.usage.prompt or bill.usage.output else None

    def _owe(self, error: BaseException | None) -> None:
        if isinstance(error, NoSummary):
            self._owed += error.bill

    def _drop(self, name: str) -> None:
        """Cancel the summary of a branch; the cost of a finished one is reported later."""
        draft = self._drafts.pop(name, None)
        if draft is None or draft.task.cancel() or draft.task.cancelled():
            return
        if error := draft.task.exception():
            self._owe(error)
        else:
            self._owed += draft.task.result().bill

    def _begin_draft(self, name: str, parts: Split, done: Compressed) -> None:
        """Start a summary that replaces the result of the rules when it is written."""
        work = self._summary(parts.source, "")
        if (draft := _strategies().drafted(parts, done.messages)) is None:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work)
        self._drafts[name] = _strategies().SummaryDraft(task, draft, parts)

    async def _adopt(self, branch: Branch) -> None:
        """Replace the result of the rules by a finished summary, if the conversation still begins with it."""
        draft = self._drafts.get(branch.name)
        if draft is None or not draft.task.done():
            return
        del self._drafts[branch.name]
        try:
            summary = draft.task.result()
        except (ProviderError, asyncio.CancelledError) as error:
            log.info("no summary: %s", error)
            self._owe(error)
            return
        transcript = branch.transcript
        rest = _strategies().placed(draft, transcript.messages)
        if rest is None:
            self._owed += summary.bill
            return
        given = tuple(transcript.messages)
        task = await asyncio.to_thread(self._task, given, transcript, "auto", "")
        messages = (*self._noted(task, draft.parts, summary), *without_stale(rest))
        made = Compression(messages, turn_start(messages, task.starts), _kept(draft.parts, summary))
        gauge = self._context.gauge
        after = round(task.ratio * gauge.estimate(messages))
        if _strategies().faults(messages, given) or after > gauge.room * self._choices.target:
            self._owed += summary.bill
            return
        self._again.add(branch.name)
        branch.emit(self._event(task, made, "summarize", after, summary.bill))


def _strategies():
    """Load the strategies with the first compression: most conversations need none."""
    from ba_tui.context.compression import strategies  # noqa: PLC0415

    return strategies


def _kept(parts: Split, summary: Summary) -> str:
    rounds = f"the last {parts.keep + 1} rounds" if parts.keep else "the running round"
    facts = f" with {summary.added} fact{'s' * (summary.added != 1)} added" if summary.added else ""
    return f"a summary{facts}, and {rounds} word for word"


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

        def fixed() -> int:
            prompt, listed = model.request_head(system, tools())
            return self.tokens.text(prompt) + self.tokens.count_tools(listed)

        def size() -> int:
            prompt, listed = model.request_head(system, tools())
            shown = (f"{tool.name}{tool.description}{tool.input_schema}" for tool in listed)
            return sum(len(text.encode()) for text in (prompt, *shown))

        self.gauge = Gauge(model.info, fixed, self.tokens.count, model.longest, size)
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
