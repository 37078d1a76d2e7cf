"""Lists the files that run or instruct models and that a call writes. Inside permission: a denied call writes nothing.

What is listed, and until when, is decided in ``permissions.trust.session_writes``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ba_tui.core.errors import StorageError
from ba_tui.core.results import Diff, Diffs, Display, ToolResult, failure
from ba_tui.core.tool import Call, Effect, Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import PathRefused, Workspace
from ba_tui.permissions.sandbox.protected_files import is_protected, respelled
from ba_tui.permissions.secrets.scanner import redact
from ba_tui.permissions.trust.session_writes import SessionWrites

log = logging.getLogger(__name__)
UNKEPT = "ba can't record which files tools write here, so {what} was not {done}: {why} Make BA_HOME writable."


@frozen
class Recording:
    """core.tool.Guard for the tools of one conversation. ``holds``: whether a sandbox keeps readers from writing.
    Blocks."""

    writes: SessionWrites
    workspace: Workspace
    holds: Callable[[], bool]

    def guard(self, tool: Tool) -> Tool:
        """``tool`` within the guard; tools that only read, and those that only start agents, stay as they are."""
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
            except Unrecorded as error:
                if await asyncio.to_thread(self._harmless, tool, paths):
                    return await tool.run(args, call)
                what, done = (tool.name, "run") if tool.effect is Effect.EXECUTE or not paths else (paths[0], "written")
                return failure("permission_denied", UNKEPT.format(what=what, done=done, why=error))

        return replace(tool, run=run)

    def _reading(self, tool: Tool, call: Call) -> bool:
        """Whether a command runs where it can't write the workspace."""
        return tool.effect is Effect.EXECUTE and call.profile.name == "reading" and not call.steps and self.holds()

    def _approved(self, seen: Display | None) -> Mapping[str, str]:
        """By path, the texts that the user has seen and allowed."""
        diffs = seen.items if isinstance(seen, Diffs) else [seen] if isinstance(seen, Diff) else []
        return {path: each.after for each in diffs for path in self._paths([each.path])}

    def _paths(self, texts: Iterable[str]) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for text in texts:
            with suppress(PathRefused):
                found.update(dict.fromkeys(map(str, self.workspace.both(text))))
        return tuple(found)

    def _harmless(self, tool: Tool, paths: tuple[str, ...]) -> bool:
        """Whether a call writes files that it names, and none of them runs something or instructs models."""
        if tool.effect is not Effect.WRITE or not paths:
            return False
        named = [Path(path) for path in paths]
        places = [Path(place) for path in named for place in (self.workspace.places(path) or (str(path),))]
        return not any(map(is_protected, places)) and not any(
            respelled(path) or self.writes.counts(path) for path in named
        )


class Unrecorded(StorageError):
    """The record can't be kept, so nothing was run."""


@asynccontextmanager
async def recorded(
    writes: SessionWrites, by: str, approved: Mapping[str, str] = MappingProxyType({})
) -> AsyncGenerator[None]:
    """Within it ``by`` runs; what it writes is listed. ``approved``: see SessionWrites.end.

    Raises:
        Unrecorded: the record can't be kept; then nothing has begun.
    """
    try:
        await asyncio.to_thread(writes.begin, by)
    except StorageError as error:
        raise Unrecorded(str(error), error.hint) from error
    try:
        yield
    finally:
        await asyncio.shield(asyncio.to_thread(_ended, writes, by, approved))


def _ended(writes: SessionWrites, by: str, approved: Mapping[str, str]) -> None:
    try:
        writes.end(by, approved)
    except StorageError as error:
        # The record stays open: what differs from it counts as written by tools at the next start.
        log.warning("what %s wrote could not be listed: %s", by, error)
