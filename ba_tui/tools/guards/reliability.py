"""Guards for unreliable tools: a time limit, retries, and a circuit breaker.

The breaker of a tool opens after five failures in a row; its pause doubles from one to ten minutes. Invalid arguments
are no failures. A time-out is retried with twice the time. Time in which the user is asked is not limited.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from ba_tui.core.errors import PERMANENT, RETRYABLE
from ba_tui.core.events import Notice
from ba_tui.core.results import ToolResult, failure
from ba_tui.core.tool import Call, Effect, Guard, Tool
from ba_tui.core.values import frozen
from ba_tui.processes.terminal_text import plain
from ba_tui.tools.failures import outcome

if TYPE_CHECKING:
    from purgatory.domain.model import Context
    from tenacity import RetryCallState


FAILURES = 5
COOL_DOWN = 60.0
LONGEST = 600.0
SLOW = 2
"""Time-outs after which a tool is called slow."""

BreakerState: TypeAlias = Literal["closed", "opened", "half-opened"]


@frozen
class ToolHealth:
    """The condition of a tool. ``rest``: remaining pause of an open breaker, in seconds."""

    state: BreakerState = "closed"
    timeouts: int = 0
    rest: float = 0.0

    @property
    def slow(self) -> bool:
        return self.timeouts >= SLOW


class _FailureSignal(Exception):
    """Signals a failed result to purgatory."""


def circuit_open() -> type[Exception]:
    """Return the exception that purgatory raises for a call while the breaker is open."""
    from purgatory.domain.model import OpenedState  # noqa: PLC0415 - loads with the first failure

    return OpenedState


class Breakers:
    """The breakers of a conversation's tools. ``tools`` are offered as alternatives to each other."""

    def __init__(self, tools: Iterable[Tool] = (), cool_down: float = COOL_DOWN) -> None:
        self._categories = {tool.name: tool.facts.category for tool in tools}
        self._cool_down = cool_down
        self._circuits: dict[str, Context] = {}
        self._timeouts: Counter[str] = Counter()

    def condition(self, name: str) -> ToolHealth:
        circuit = self._circuits.get(name)
        if circuit is None:
            return ToolHealth(timeouts=self._timeouts[name])
        return ToolHealth(circuit.state, self._timeouts[name], circuit.ttl)

    def alternatives(self, name: str) -> str:
        """Return a hint that names tools of the same category; empty if there are none."""
        category = self._categories.get(name, "other")
        others = [other for other, kind in self._categories.items() if kind == category and other != name]
        return f"Others that may serve: {', '.join(others)}." if others and category != "other" else ""

    def admits(self, name: str) -> bool:
        """Return whether a call is allowed now. After the pause one call is allowed as a test."""
        circuit = self._circuits.get(name)
        if circuit is None:
            return True
        try:
            circuit.handle_new_request()
        except circuit_open():
            return False
        return True

    def note(self, name: str, result: ToolResult) -> bool:
        """Count a result; return whether it opened the breaker."""
        kind = result.error.kind if result.error else ""
        if kind == "timeout":
            self._timeouts[name] += 1
        failed = result.is_error and kind not in PERMANENT and kind != "interrupted"
        circuit = self._circuits.get(name)
        if circuit is None:
            if not failed:
                return False
            circuit = self._circuits[name] = self._circuit(name)
        before = circuit.state
        if failed:
            circuit.handle_exception(_FailureSignal())
        else:
            circuit.handle_end_request()
        # purgatory collects a message for each change, which nothing here reads.
        circuit.messages.clear()
        if circuit.state == "opened":
            circuit.ttl = min(LONGEST, circuit.ttl * 2) if before == "half-opened" else self._cool_down
        return circuit.state == "opened"

    def _circuit(self, name: str) -> Context:
        from purgatory.domain.model import Context  # noqa: PLC0415 - see circuit_open

        return Context(name, FAILURES, self._cool_down)


def breaker(health: Breakers) -> Guard:
    def guard(tool: Tool) -> Tool:
        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            if not health.admits(tool.name):
                return _off(tool, health)
            result = await outcome(tool, args, call)
            if health.note(tool.name, result):
                rest = health.condition(tool.name).rest
                text = f"{tool.name} failed {FAILURES} times in a row and is paused for {rest:.0f} s."
                call.branch.emit(Notice(text, "warning"))
            return _with_advice(tool, health, result)

        return replace(tool, run=run)

    return guard


def _off(tool: Tool, health: Breakers) -> ToolResult:
    rest = health.condition(tool.name).rest
    message = f"{tool.name} failed {FAILURES} times in a row and is paused for up to {rest:.0f} s."
    return failure("resource_error", message, hint=f"Do not call it now. {health.alternatives(tool.name)}".strip())


def _with_advice(tool: Tool, health: Breakers, result: ToolResult) -> ToolResult:
    if result.error is None or result.error.kind != "timeout":
        return result
    condition = health.condition(tool.name)
    if not condition.slow:
        return result
    advice = f"{tool.name} timed out {condition.timeouts} times: it is slow. {health.alternatives(tool.name)}".strip()
    return replace(result, text=f"{result.text}\n{advice}", meta={**result.meta, "slow": True})


@frozen
class Patience:
    """Waits between attempts, in seconds: ``first``, then ``factor`` times longer each, up to ``longest``, plus up to
    ``jitter``.

    A wait that the result asks for (``retry_after`` in its meta) is respected up to ``most``.
    """

    retries: int = 3
    first: float = 1.0
    factor: float = 1.5
    longest: float = 10.0
    jitter: float = 0.5
    most: float = 60.0


def may_repeat(tool: Tool) -> bool:
    """Return whether a second run is harmless: for reading tools, and tools that declare it."""
    return tool.effect is Effect.READ if tool.idempotent is None else tool.idempotent


def retry(patience: Patience | None = None, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> Guard:
    limits = patience or Patience()

    def guard(tool: Tool) -> Tool:
        if not may_repeat(tool):
            return tool

        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            result = await outcome(tool, args, call)
            if not _passing(result) or _asks_too_long(result, limits):
                return result
            return await _again(tool, args, call, (result, limits, sleep))

        return replace(tool, run=run)

    return guard


def _passing(result: ToolResult) -> bool:
    return result.error is not None and result.error.kind in RETRYABLE


def _asked(result: ToolResult) -> float | None:
    value = result.meta.get("retry_after")
    return float(value) if isinstance(value, int | float) and value >= 0 else None


def _asks_too_long(result: ToolResult, patience: Patience) -> bool:
    return (_asked(result) or 0) > patience.most


async def _again(
    tool: Tool,
    args: Mapping[str, Any],
    call: Call,
    how: tuple[ToolResult, Patience, Callable[[float], Awaitable[None]]],
) -> ToolResult:
    from tenacity import AsyncRetrying, retry_if_result, stop_after_attempt, wait_exponential, wait_random  # noqa: PLC0415 - only after a failure

    last, patience, sleep = how
    trying = call
    growing = wait_exponential(patience.first, patience.longest, patience.factor) + wait_random(0, patience.jitter)

    def wait(state: RetryCallState) -> float:
        return _asked(last) if _asked(last) is not None else growing(state)  # type: ignore[return-value]

    def told(state: RetryCallState) -> None:
        nonlocal trying
        message = last.error.message if last.error else ""
        delay = state.next_action.sleep if state.next_action else 0.0
        call.report(f"{message} Trying again in {delay:.1f} s ({state.attempt_number} of {patience.retries}).\n")
        if last.error and last.error.kind == "timeout":
            trying = replace(trying, patience=trying.patience * 2)

    async def attempt() -> ToolResult:
        nonlocal last, first
        if first:
            first = False
            return last
        last = await outcome(tool, args, trying)
        return last

    first = True
    retrying = AsyncRetrying(
        retry=retry_if_result(lambda result: _passing(result) and not _asks_too_long(result, patience)),
        stop=stop_after_attempt(patience.retries + 1),
        wait=wait,
        sleep=sleep,
        before_sleep=told,
        retry_error_callback=lambda _: last,
    )
    result: ToolResult = await retrying(attempt)
    count = int(retrying.statistics.get("attempt_number", 1)) - 1
    if result.error is None:
        return replace(result, meta={**result.meta, "retries": count})
    return replace(result, error=replace(result.error, retries=count), meta={**result.meta, "retries": count})


LONGEST_LIMIT = 300.0
"""Longest time limit of a retry, in seconds."""

GRACE = 0.15
"""Seconds in which a cancelled tool can clean up."""


def timeout(tool: Tool) -> Tool:
    if tool.timeout is None:
        return tool
    seconds = tool.timeout

    async def guarded(args: Mapping[str, Any], call: Call) -> ToolResult:
        try:
            return await tool.run(args, call)
        except (SystemExit, KeyboardInterrupt) as error:
            # An exception of these types that leaves a task would stop the event loop.
            return failure("internal_error", f"{tool.name} failed: {type(error).__name__}: {error}")

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        limit = min(seconds * call.patience, max(seconds, LONGEST_LIMIT))
        work = asyncio.create_task(guarded(args, call))
        try:
            done = await _done(work, limit)
        except asyncio.CancelledError:
            await _let_go(work, call)
            if call.progress.outlasted:
                return work.result()
            raise
        if done:
            return work.result()
        cancelled = await _let_go(work, call)
        if call.progress.outlasted:
            # The call finished despite this guard's cancellation, so the turn continues.
            call.progress.outlasted = cancelled
            return work.result()
        failed = failure("timeout", f"{tool.name} took longer than {limit:g} s and was ended.")
        if not call.tail:
            return failed
        so_far = f"{failed.text}\nOutput so far (partial):\n{plain(call.tail)}"
        return replace(failed, text=so_far, meta={"partial": True})

    return replace(tool, run=run)


async def _done(work: asyncio.Task[ToolResult], limit: float) -> bool:
    """Return whether ``work`` ends within ``limit`` seconds: asyncio.wait for one task at half its cost."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()

    def wake(_: object = None) -> None:
        if not over.done():
            over.set_result(None)

    timer = loop.call_later(limit, wake)
    work.add_done_callback(wake)
    try:
        await over
    finally:
        timer.cancel()
        work.remove_done_callback(wake)
    return work.done()


async def _let_go(work: asyncio.Task[ToolResult], call: Call) -> bool:
    """Cancel ``work`` and wait briefly, or until a change that has begun is complete; later errors of it are
    ignored. Return whether the call was cancelled meanwhile."""
    work.cancel()
    work.add_done_callback(lambda task: task.cancelled() or task.exception())
    cancelled, seconds = False, cast("float | None", GRACE)
    while not work.done():
        try:
            await asyncio.wait({work}, timeout=seconds)
        except asyncio.CancelledError:
            cancelled = True
        if not call.progress.committing:
            break
        seconds = None
    if cancelled and not call.progress.outlasted:
        raise asyncio.CancelledError
    return cancelled
