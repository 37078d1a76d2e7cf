"""One line in the log for every tool call and every turn, and what else is logged says which of them it is about.

A listener to events; the figures about them are in ``metrics``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import Context, copy_context

from ba_tui.core.events import Event, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from ba_tui.observe.logs import WHERE

log = logging.getLogger(__name__)
SOON = 0.05
"""Seconds until the lines of calls are written."""
TARGET = 200
"""Characters of what a call is about."""


Later = Callable[[Callable[[], None]], object]
"""Does what it is given in a moment."""


def _now(work: Callable[[], None]) -> None:
    work()


def soon(work: Callable[[], None]) -> None:
    """``work`` a little later on the running loop."""
    asyncio.get_running_loop().call_later(SOON, work)


class CallLog:
    """Of one conversation; feed it every event in the task that emits it, which is marked so. The lines of calls are
    written ``later``: the next request need not wait for them."""

    def __init__(self, session: str, later: Later = _now) -> None:
        self._session = session
        self._later = later
        self._finished: list[tuple[Context, ToolStarted, ToolFinished]] = []
        self._round = ""
        self._running: dict[tuple[str, str], ToolStarted] = {}

    def apply(self, event: Event) -> None:
        match event:
            case TurnStarted(prompt=prompt, agent="main"):
                self._round = prompt.id
                self._mark("main")
            case ToolStarted(call=call, agent=agent):
                self._running[agent, call.id] = event
                self._mark(agent, call.id)
            case ToolFinished(call_id=call_id, agent=agent):
                if started := self._running.pop((agent, call_id), None):
                    self._finished.append((copy_context(), started, event))
                    if len(self._finished) == 1:
                        self._later(self._write)
                self._mark(agent)
            case TurnEnded(reason=reason, agent="main"):
                self._write()
                kind = event.error.kind if event.error else ""
                log.info("turn ended", extra={"facts": {"outcome": reason, **({"error": kind} if kind else {})}})
                self._running.clear()
            case _:
                pass

    def _mark(self, agent: str, call: str = "") -> None:
        where = {"session": self._session, "round": self._round, "agent": agent}
        WHERE.set({**where, "call": call} if call else where)

    def _write(self) -> None:
        """The lines of all calls that have finished, each marked as its call was."""
        finished, self._finished = self._finished, []
        for context, started, event in finished:
            context.run(_log, started, event)


def _log(started: ToolStarted, event: ToolFinished) -> None:
    result = event.result
    failed = (result.error.kind if result.error else "error") if result.failed else ""
    facts = {
        "tool": started.call.name,
        "about": started.target[:TARGET],
        "outcome": failed or "ok",
        "ms": round(event.duration * 1000),
        "characters": len(result.text),
    }
    log.info("tool call", extra={"facts": facts})
