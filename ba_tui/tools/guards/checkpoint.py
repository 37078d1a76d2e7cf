"""Keeps the files before the first call of a turn that may change any. Inside permission: a denied call keeps nothing.

How files are kept is the business of whoever gives ``take``; what is kept goes out as ``Checkpointed``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ba_tui.core.errors import StorageError
from ba_tui.core.events import (
    Checkpointed,
    Event,
    Notice,
    ToolFinished,
    ToolProgress,
    TurnEnded,
    TurnResumed,
    TurnStarted,
)
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Effect, Tool
from ba_tui.sessions.checkpoints.git import GitWatch
from ba_tui.sessions.checkpoints.turn_writes import TurnWrites

log = logging.getLogger(__name__)
SOON, OFTEN = 0.4, 0.25
"""Seconds until it is said how far it is, and between two times."""
CHANGING = frozenset({Effect.WRITE, Effect.EXECUTE})
PATIENCE = 5.0
"""Seconds after which a failure is not tried again: each turn would wait as long."""


class Checkpointing:
    """core.tool.Guard for the tools of one conversation, and what is to be done when its turns end.

    ``take`` and ``settle`` are called in a thread with the number of the turn: ``turns`` counts those that have begun.
    ``take`` is watched as well; ``settle`` gets what the calls wrote. ``loose``: see ``TurnWrites``.
    """

    def __init__(
        self,
        take: Callable[[int, GitWatch], str],
        settle: Callable[[int, TurnWrites], None],
        turns: Callable[[], int],
        loose: Callable[[], bool] = lambda: False,
    ) -> None:
        self._turns = turns
        self._loose = loose
        self._writes = TurnWrites(loose)
        self._begun = False
        self._take = take
        self._settle = settle
        self._lock = asyncio.Lock()
        self._looked = 0
        self._taken = 0
        self._told = False
        self._given_up = False
        self._settling: asyncio.Future[None] | None = None

    def guard(self, tool: Tool) -> Tool:
        if tool.effect not in CHANGING and not tool.facts.writes:
            return tool

        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            if tool.effect_of(args) in CHANGING:
                await self._before(call)
                folder = Path(call.branch.transcript.cwd or "")
                named = tool.paths(args) if tool.effect_of(args) is Effect.WRITE else ()
                self._writes.begin(call.id, [str(folder / path) for path in named])
            return await tool.run(args, call)

        return replace(tool, run=run)

    async def _before(self, call: Call) -> None:
        # What a prompt runs before its turn begins belongs to that turn.
        turn, branch = self._turns() + (not self._begun), call.branch
        async with self._lock:
            if turn == self._looked or self._given_up:
                return
            begun = time.monotonic()
            try:
                id = await self._watched(turn, call)
            except StorageError as error:
                self._looked = turn
                self._given_up = time.monotonic() - begun > PATIENCE
                log.warning("no checkpoint: %s", error)
                if not self._told:
                    self._told = True
                    branch.emit(Notice(str(error), "warning", error.hint))
                return
            self._looked = self._taken = turn
            self._told = False
            branch.emit(Checkpointed(id, turn))

    async def _watched(self, turn: int, call: Call) -> str:
        """The id of the checkpoint. Who waits is told how far it is, and need not wait for the end to cancel."""
        watch = GitWatch()
        work = asyncio.get_running_loop().run_in_executor(None, self._take, turn, watch)
        try:
            wait = SOON
            while not (await asyncio.wait({work}, timeout=wait))[0]:
                wait = OFTEN
                far = f": {watch.done:,} of {watch.total:,}" if watch.total else ""
                # Not of the call's own output, which the model is given when the call is interrupted.
                call.branch.emit(ToolProgress(call.id, f"Saving the files before the first change{far}\n"))
            return work.result()
        except asyncio.CancelledError:
            watch.stop()
            work.add_done_callback(_heard)
            raise

    def apply(self, event: Event) -> None:
        """A turn that may have changed files has ended: how it left them is kept too, in a thread."""
        if isinstance(event, ToolFinished):
            # Hooks that ran after the call belong to it.
            self._writes.end(event.call_id)
        if event.agent != "main" or not isinstance(event, TurnStarted | TurnResumed | TurnEnded):
            return
        self._begun = not isinstance(event, TurnEnded)
        if isinstance(event, TurnResumed) and event.checkpointed:
            self._looked = self._taken = self._turns()
            self._writes.forget()
        if self._begun:
            self._writes.look()
            return
        writes, self._writes = self._writes, TurnWrites(self._loose)
        if self._taken:
            turn, self._taken = self._taken, 0
            writes.close()
            self._settling = asyncio.get_running_loop().run_in_executor(None, self._settled, turn, writes)

    def _settled(self, turn: int, writes: TurnWrites) -> None:
        try:
            self._settle(turn, writes)
        except StorageError as error:
            # The next checkpoint will tell.
            log.warning("the end of turn %d is not kept: %s", turn, error)

    async def close(self) -> None:
        """Wait for what is still being kept."""
        if self._settling:
            await self._settling


def _heard(work: asyncio.Future[str]) -> None:
    """Nobody waits for it any more; what went wrong with it is no news."""
    if not work.cancelled():
        work.exception()
