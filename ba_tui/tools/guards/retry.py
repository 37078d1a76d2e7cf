"""Tries a call again when its failure may pass: only tools that may safely run twice, with growing waits.

Waiting and counting are tenacity's. A time-out is tried again with twice the time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ba_tui.core.errors import RETRYABLE
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Effect, Guard, Tool
from ba_tui.core.values import frozen
from ba_tui.tools.failed import outcome

if TYPE_CHECKING:
    from tenacity import RetryCallState


@frozen
class Patience:
    """Waits in seconds: ``first``, then ``factor`` times as long each, up to ``longest``, plus up to ``jitter``.

    A wait that was asked for (``retry_after`` in the result's meta) is kept to, up to ``most``.
    """

    retries: int = 3
    first: float = 1.0
    factor: float = 1.5
    longest: float = 10.0
    jitter: float = 0.5
    most: float = 60.0


def may_repeat(tool: Tool) -> bool:
    """Whether a second run does no harm: reading tools, and those that say so of themselves."""
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
