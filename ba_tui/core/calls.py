"""One call of a tool: started, run, finished. The agent, commands of the person and workflows all call tools here."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ba_tui.core.errors import StopTurn, no_thread
from ba_tui.core.events import MAIN, PERSON, ToolFinished, ToolStarted
from ba_tui.core.messages import ToolUse
from ba_tui.core.results import ToolResult, failure, identified
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.tool import Call, Tool
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen

CIRCLES = 3


async def run_call(tool: Tool, use: ToolUse, call: Call) -> ToolResult:
    """Run one call and return its result: one result, whatever happens.

    Raises:
        StopTurn, NoThread, asyncio.CancelledError: after the call has got a result that says so.
    """
    call.branch.emit(ToolStarted(use, tool.target(use.input)))
    start = time.monotonic()

    def finish(result: ToolResult) -> ToolResult:
        seconds = max(0.0, time.monotonic() - start - call.waited)
        result = identified(result, use.id)
        call.branch.emit(ToolFinished(use.id, result, seconds))
        return result

    try:
        result = await tool.run(use.input, call)
    except asyncio.CancelledError:
        if made := call.progress.changed:
            finish(_although(ToolResult(paintable(made)), call))
            raise
        printed = tool.so_far(call.tail) if call.tail else ""
        so_far = f"\nOutput so far:\n{paintable(printed)}" if printed else ""
        finish(failure("interrupted", f"{_why_stopped(call.branch)}{so_far}"))
        raise
    except StopTurn as stop:
        finish(failure("interrupted", str(stop)))
        stop.closing = stop.closing or str(stop)
        raise
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        if refused := no_thread(error):
            # No further call would get any further, and the model can't do anything about it.
            finish(failure("resource_error", str(refused), hint=refused.hint))
            raise refused from error
        result = failure("internal_error", f"{type(error).__name__}: {error}")
    if call.progress.outlasted:
        # An interrupt waited for the change.
        finish(_although(result, call))
        raise asyncio.CancelledError
    return finish(result)


def _although(result: ToolResult, call: Call) -> ToolResult:
    note = f"Note: {_why_stopped(call.branch)} The files were being written or were written already."
    return replace(result, text=f"{result.text}\n{note}")


class Commit:
    """Decides between an interrupt and a change: whichever comes first. For one call; any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun = self._stopped = False

    def begin(self) -> None:
        """The change begins now. Raises CallStopped when an interrupt came before."""
        with self._lock:
            if self._stopped:
                raise CallStopped
            self._begun = True

    def stop(self) -> bool:
        """Whether the change has not begun, and so never will."""
        with self._lock:
            self._stopped = not self._begun
            return self._stopped


class CallStopped(Exception):
    """The call was cancelled before its change began."""


async def commit_whole(work: Callable[[Commit], ToolResult], call: Call) -> ToolResult:
    """Run ``work`` in a thread. A cancel before its ``Commit.begin`` stops it, and nothing is changed. A later cancel
    waits for the end of ``work``, so that the result says what was done; ``run_call`` then goes on with the cancel.

    Raises:
        asyncio.CancelledError: nothing was changed. What ``work`` raises.
    """
    commit, cancelled = Commit(), False
    running = asyncio.ensure_future(asyncio.to_thread(work, commit))
    while not running.done():
        try:
            await asyncio.wait({running})
        except asyncio.CancelledError:
            if commit.stop():
                running.add_done_callback(lambda task: task.cancelled() or task.exception())
                raise
            cancelled = call.progress.committing = True
    call.progress.committing, call.progress.outlasted = False, cancelled
    result = running.result()
    call.progress.changed = result.text
    return result


def _why_stopped(branch: Branch) -> str:
    if branch.closed:
        return "Interrupted: the session was closed."
    mine = branch.name in {MAIN, PERSON}
    return "Interrupted by the person." if mine else "Interrupted: this agent was stopped."


def callable_tool(use: ToolUse, tool: Tool | None, known: Sequence[Tool]) -> Tool:
    """Return what a call runs: ``tool``, or one that says why the call is impossible, with the names of ``known``."""
    if tool is not None and use.malformed is None:
        return tool
    run = _Impossible(use, [each.name for each in known]).run
    return Tool(use.name, "", {}, run) if tool is None else replace(tool, run=run)


@frozen
class _Impossible:
    """A call that no tool, and so no guard, gets to see."""

    use: ToolUse
    known: Sequence[str]

    async def run(self, args: Mapping[str, Any], call: Call) -> ToolResult:
        """Raises StopTurn when the model was told so before, twice."""
        use = self.use
        if (times := _times(use, call.branch.transcript.calls_since_prompt())) >= CIRCLES:
            message = f"Stopped: the same impossible call of {use.name!r} was made {times} times."
            raise StopTurn(message, "Say what to do differently.")
        if use.malformed is None:
            return unknown_tool(use.name, self.known)
        message = f"The arguments of {use.name} were not a JSON object: {use.malformed[:200]}"
        return failure("invalid_parameters", message)


def _times(use: ToolUse, made: Sequence[ToolUse]) -> int:
    """How many times the call was made by now, itself included. Ids may come again: the newest is meant."""
    until = next((at for at in reversed(range(len(made))) if made[at].id == use.id), len(made)) + 1
    wanted = (use.name, use.input, use.malformed)
    return sum((call.name, call.input, call.malformed) == wanted for call in made[:until])


def unknown_tool(name: str, known: Sequence[str]) -> ToolResult:
    """The observation for a tool that does not exist: the closest names first."""
    import difflib  # noqa: PLC0415 - rare path

    close = difflib.get_close_matches(name, known, 3, 0.5)
    nearest = f" Did you mean {', '.join(close)}?" if close else ""
    return failure("not_found", f"There is no tool {name!r}.{nearest}", hint=f"Available: {', '.join(known)}.")
