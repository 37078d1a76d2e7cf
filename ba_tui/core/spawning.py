"""Starts an agent below another. Whatever becomes of the child is a value for the parent, never an exception."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

from ba_tui.core.agent import Agent
from ba_tui.core.agent_spec import AgentSpec
from ba_tui.core.contents import broken_command
from ba_tui.core.errors import BaError, ErrorInfo, StopTurn, no_thread
from ba_tui.core.events import Ending, TurnEnded, TurnStarted
from ba_tui.core.events.teamwork import AgentStarted
from ba_tui.core.messages import Message, Usage, user
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen

log = logging.getLogger(__name__)
GLANCE = 0.05
"""Seconds between two looks at the clock of an agent that was paused just before its deadline."""

MakeAgent: TypeAlias = Callable[[AgentSpec, str], AbstractAsyncContextManager[Agent]]
"""Makes an agent to be run, which the model answers unless its spec names another; what the agent holds is closed on
leaving. Raises UsageError, AuthFailed."""


@frozen
class ChildResult:
    """How a sub-agent ended. ``agent_id`` is its name in events, such as ``main/explore-1``.

    ``status``: ``done``, ``limit`` (of steps, budget or time), ``cancelled`` (the child alone) or ``error``.
    ``message`` is its answer; the last one that it gave when it did not finish, and empty when it gave none.
    ``usage`` includes its own sub-agents. ``error`` says why it is not ``done``. ``note``: what
    became of its copy of the project; empty for an agent without one. ``broken``: the last command that it ran, where
    that failed.
    """

    agent_id: str
    status: Ending
    message: Message
    usage: Usage
    error: ErrorInfo | None = None
    note: str = ""
    broken: str = ""


async def run_child(
    agent: Agent, branch: Branch, task: str, *, deadline: float | None = None, started: AgentStarted | None = None
) -> ChildResult:
    """Run ``agent`` on ``task`` in its own ``branch`` and return how it ended, after at most ``deadline`` seconds.
    ``started`` says in events what begins.

    Raises:
        asyncio.CancelledError: the parent is cancelled; by then the child and all below it have ended, too.
    """
    if started:
        branch.emit(started)
    before = {message.id for message in branch.transcript.messages}
    branch.emit(TurnStarted(user(task)))
    work = asyncio.create_task(agent.run(branch))
    branch.runs(work)
    late, cancelled = False, False
    while not work.done():
        try:
            if late or cancelled or deadline is None:
                await asyncio.wait({work})
            else:
                await _until(work, branch, deadline)
        except asyncio.CancelledError:
            cancelled = True
        if not work.done():
            late = not cancelled
            work.cancel()
    ending = _ending(work, deadline if late else None)
    # A resumed agent has said things before: the answer is what it said now.
    now = (message for message in reversed(branch.transcript.messages) if message.id not in before)
    said = (message for message in now if message.role == "assistant")
    branch.emit(ending)
    if cancelled:
        raise asyncio.CancelledError
    message = next(said, Message("assistant", ()))
    broken = broken_command([each for each in branch.transcript.messages if each.id not in before])
    return ChildResult(branch.name, ending.reason, message, branch.account.usage, ending.error, broken=broken)


async def _until(work: asyncio.Task[Message], branch: Branch, deadline: float) -> None:
    """Until ``work`` is done, or has run for ``deadline`` seconds; those in which the agent was paused do not count."""
    began = time.monotonic()
    while not work.done():
        paused = branch.pauses.seconds(branch.name)
        left = deadline + paused - (time.monotonic() - began)
        if left <= 0:
            return
        await asyncio.wait({work}, timeout=max(left, GLANCE if paused else 0))


def _ending(work: asyncio.Task[Message], deadline: float | None) -> TurnEnded:
    """How ``work`` ended; ``deadline``: the seconds after which it was cancelled, None when it was not."""
    try:
        work.result()
    except asyncio.CancelledError:
        if deadline is None:
            return TurnEnded("cancelled", ErrorInfo("cancelled", "The work of this agent was cancelled."))
        return TurnEnded("limit", ErrorInfo("deadline", f"Stopped at the deadline of {deadline:g} s."))
    except StopTurn as stop:
        return TurnEnded("limit", stop.info())
    except BaError as error:
        return TurnEnded("error", error.info())
    except Exception as error:
        log.exception("sub-agent failed")
        if refused := no_thread(error):
            return TurnEnded("error", refused.info())
        return TurnEnded("error", ErrorInfo("internal_error", f"{type(error).__name__}: {error}"))
    return TurnEnded("done")
