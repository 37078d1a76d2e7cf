"""Ends a call that takes too long, or that does not let itself be cancelled. People's thinking time lies outside.

Tools with ``timeout=None`` keep time themselves or wait for people; they pass untouched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from ba_tui.core.results import ToolResult, failure
from ba_tui.core.tool import Call, Tool
from ba_tui.processes.terminal_text import plain

LONGEST = 300.0
"""Seconds that a call which timed out may be given at most when it is tried again."""

GRACE = 0.15
"""Seconds a cancelled tool has to tidy up before the turn goes on without it."""


def timeout(tool: Tool) -> Tool:
    if tool.timeout is None:
        return tool
    seconds = tool.timeout

    async def guarded(args: Mapping[str, Any], call: Call) -> ToolResult:
        try:
            return await tool.run(args, call)
        except (SystemExit, KeyboardInterrupt) as error:
            # Either would tear down the event loop when it leaves a task.
            return failure("internal_error", f"{tool.name} failed: {type(error).__name__}: {error}")

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        limit = min(seconds * call.patience, max(seconds, LONGEST))
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
            # That this guard wanted to stop it ends no turn.
            call.progress.outlasted = cancelled
            return work.result()
        failed = failure("timeout", f"{tool.name} took longer than {limit:g} s and was ended.")
        if not call.tail:
            return failed
        so_far = f"{failed.text}\nOutput so far (partial):\n{plain(call.tail)}"
        return replace(failed, text=so_far, meta={"partial": True})

    return replace(tool, run=run)


async def _done(work: asyncio.Task[ToolResult], limit: float) -> bool:
    """Whether ``work`` is over within ``limit`` seconds: asyncio.wait for a single task, at half its price."""
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
    """Cancel ``work``, wait a moment (for a change that has begun, until its end), and keep asyncio from reporting its
    late errors. Return whether the call was cancelled meanwhile."""
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
