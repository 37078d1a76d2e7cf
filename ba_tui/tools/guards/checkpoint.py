"""Guards that save files before a turn changes them, and record changes of files that run code or instruct models.

Both run inside permission: a denied call saves and records nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
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
from ba_tui.core.results import Diff, Diffs, Display, ToolResult, failure
from ba_tui.core.tool import Call, Effect, Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import PathRefused, Workspace
from ba_tui.permissions.sandbox.workspace_scan import is_protected, respelled
from ba_tui.permissions.secrets.scanner import redact
from ba_tui.permissions.trust.session_writes import SessionWrites
from ba_tui.sessions.checkpoints.git import GitWatch
from ba_tui.sessions.checkpoints.keeper import TurnWrites

log = logging.getLogger(__name__)
SOON, OFTEN = 0.4, 0.25
"""Delay before the first progress message, and between messages, in seconds."""
CHANGING = frozenset({Effect.WRITE, Effect.EXECUTE})
PATIENCE = 5.0
"""Seconds after which a failed checkpoint is not retried, because each turn would wait as long."""


class CheckpointGuard:
    """core.tool.Guard that takes a checkpoint before the first change of a turn, and another state when the turn ends.

    ``take`` and ``settle`` run in a thread with the number of the turn; ``turns`` returns the number of turns that have
    begun. ``take`` also gets a watch of its progress, ``settle`` the files that calls wrote. ``loose``: see
    ``TurnWrites``.
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
        # Calls that run between a prompt and its turn belong to that turn.
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
        """Return the checkpoint's id. Reports progress; a cancel need not wait for the end."""
        watch = GitWatch()
        work = asyncio.get_running_loop().run_in_executor(None, self._take, turn, watch)
        try:
            wait = SOON
            while not (await asyncio.wait({work}, timeout=wait))[0]:
                wait = OFTEN
                far = f": {watch.done:,} of {watch.total:,}" if watch.total else ""
                # Not through the call's own output, which the model reads if the call is interrupted.
                call.branch.emit(ToolProgress(call.id, f"Saving the files before the first change{far}\n"))
            return work.result()
        except asyncio.CancelledError:
            watch.stop()
            work.add_done_callback(_heard)
            raise

    def apply(self, event: Event) -> None:
        """Save the state of files after a turn that may have changed some, in a thread."""
        if isinstance(event, ToolFinished):
            # Changes by hooks after the call count as the call's.
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
            # The next checkpoint reports the error.
            log.warning("the end of turn %d is not kept: %s", turn, error)

    async def close(self) -> None:
        """Wait until the last state is saved."""
        if self._settling:
            await self._settling


def _heard(work: asyncio.Future[str]) -> None:
    """Ignore the error of a task that is no longer awaited."""
    if not work.cancelled():
        work.exception()


UNKEPT = "ba can't record which files tools write here, so {what} was not {done}: {why} Make BA_HOME writable."


@frozen
class RecordingGuard:
    """core.tool.Guard that records which files that run code or instruct models a call writes. ``holds``: whether a
    sandbox keeps readers from writing; may block.

    ``permissions.trust.session_writes`` decides what is listed, and until when.
    """

    writes: SessionWrites
    workspace: Workspace
    holds: Callable[[], bool]

    def guard(self, tool: Tool) -> Tool:
        """Return ``tool`` within the guard. Tools that only read or only start agents are returned unchanged."""
        reads = tool.effect is Effect.READ and not tool.facts.writes
        if reads or tool.facts.reads or tool.facts.below or tool.facts.category == "web":
            return tool

        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            if tool.effect_of(args) is Effect.READ or await asyncio.to_thread(self._reading, tool, call):
                return await tool.run(args, call)
            by = redact(
                f"`{tool.target(args)}`" if tool.effect is Effect.EXECUTE else f"{tool.name} {tool.target(args)}"
            )
            paths = await asyncio.to_thread(self._paths, tool.paths(args))
            try:
                async with recorded(self.writes, by, self._approved(call.approved)):
                    return await tool.run(args, call)
            except NoRecord as error:
                if await asyncio.to_thread(self._harmless, tool, paths):
                    return await tool.run(args, call)
                what, done = (tool.name, "run") if tool.effect is Effect.EXECUTE or not paths else (paths[0], "written")
                return failure("permission_denied", UNKEPT.format(what=what, done=done, why=error))

        return replace(tool, run=run)

    def _reading(self, tool: Tool, call: Call) -> bool:
        """Return whether the call is a command that can't write the workspace."""
        return tool.effect is Effect.EXECUTE and call.profile.name == "reading" and not call.steps and self.holds()

    def _approved(self, seen: Display | None) -> Mapping[str, str]:
        """Return the texts that the user has seen and allowed, by path."""
        diffs = seen.items if isinstance(seen, Diffs) else [seen] if isinstance(seen, Diff) else []
        return {path: each.after for each in diffs for path in self._paths([each.path])}

    def _paths(self, texts: Iterable[str]) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for text in texts:
            with suppress(PathRefused):
                found.update(dict.fromkeys(map(str, self.workspace.both(text))))
        return tuple(found)

    def _harmless(self, tool: Tool, paths: tuple[str, ...]) -> bool:
        """Return whether a call writes only named files, none of which runs code or instructs models."""
        if tool.effect is not Effect.WRITE or not paths:
            return False
        named = [Path(path) for path in paths]
        places = [Path(place) for path in named for place in (self.workspace.places(path) or (str(path),))]
        return not any(map(is_protected, places)) and not any(
            respelled(path) or self.writes.counts(path) for path in named
        )


class NoRecord(StorageError):
    """The record could not be written, so nothing was run."""


@asynccontextmanager
async def recorded(
    writes: SessionWrites, by: str, approved: Mapping[str, str] = MappingProxyType({})
) -> AsyncGenerator[None]:
    """Record what ``by`` writes within the block. ``approved``: see SessionWrites.end.

    Raises:
        NoRecord: the record can't be written; nothing has begun.
    """
    try:
        await asyncio.to_thread(writes.begin, by)
    except StorageError as error:
        raise NoRecord(str(error), error.hint) from error
    try:
        yield
    finally:
        await asyncio.shield(asyncio.to_thread(_ended, writes, by, approved))


def _ended(writes: SessionWrites, by: str, approved: Mapping[str, str]) -> None:
    try:
        writes.end(by, approved)
    except StorageError as error:
        # The record stays open: at the next start, differences count as written by tools.
        log.warning("what %s wrote could not be listed: %s", by, error)
