"""Answers the same reading call from memory while all it depends on is unchanged. Opt-in: facts.cacheable.

What it depends on are its arguments and the files they name; every write through us, and every command, forgets.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ba_tui.core.errors import BaError
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Effect, Guard, Tool
from ba_tui.core.values import frozen

if TYPE_CHECKING:
    from cachetools import TTLCache

ENTRIES = 10_000
LIFETIME = 3600.0


@frozen
class CachedResult:
    """A result, the files it came from and when that was (seconds of the clock)."""

    result: ToolResult
    paths: frozenset[str]
    at: float


class Memory:
    """What one conversation's calls brought. ``resolve`` turns a path argument into the file it names."""

    def __init__(
        self, resolve: Callable[[str], Path], clock: Callable[[], float] = time.monotonic, lifetime: float = LIFETIME
    ) -> None:
        self._resolve = resolve
        self._clock = clock
        self._lifetime = lifetime
        self._kept: TTLCache[str, CachedResult] | None = None

    def key(self, tool: Tool, args: Mapping[str, Any]) -> tuple[str, frozenset[str]] | None:
        """The call with the state of its files; None when that can't be told."""
        paths: list[str] = []
        marks: list[tuple[str, int, int]] = []
        for name in tool.facts.paths:
            value = args.get(name)
            if value is None:
                continue
            try:
                path = self._resolve(str(value))
                state = path.stat()
            except (OSError, ValueError, BaError):
                return None
            paths.append(str(path))
            marks.append((str(path), state.st_mtime_ns, state.st_size))
        try:
            said = json.dumps([tool.name, tool.facts.version, dict(args), marks], sort_keys=True)
        except (TypeError, ValueError, RecursionError):
            return None
        return said, frozenset(paths)

    def find(self, key: str) -> ToolResult | None:
        kept = self._cache().get(key)
        if kept is None:
            return None
        age = max(0.0, self._clock() - kept.at)
        note = f"(From memory: the same call, {age:.0f} s ago; the file has not changed since.)"
        meta = {**kept.result.meta, "cached_s": round(age)}
        return replace(kept.result, text=f"{kept.result.text}\n{note}", meta=meta)

    def keep(self, key: str, paths: frozenset[str], result: ToolResult) -> None:
        self._cache()[key] = CachedResult(result, paths, self._clock())

    def forget(self, tool: Tool, args: Mapping[str, Any]) -> None:
        """After a call that changes something: what depends on its files, or all of it when those are unknown."""
        if self._kept is None:
            return
        touched = {args[name] for name in tool.facts.paths if name in args}
        if tool.effect is not Effect.WRITE or not touched:
            self._kept.clear()
            return
        try:
            files = {str(self._resolve(str(value))) for value in touched}
        except (OSError, ValueError, BaError):
            self._kept.clear()
            return
        for key in [key for key, kept in self._kept.items() if kept.paths & files]:
            self._kept.pop(key, None)

    def _cache(self) -> TTLCache[str, CachedResult]:
        if self._kept is None:
            from cachetools import TTLCache  # noqa: PLC0415 - loads with the first call that can be remembered

            self._kept = TTLCache(ENTRIES, self._lifetime, timer=self._clock)
        return self._kept


def once(memory: Memory) -> Guard:
    def guard(tool: Tool) -> Tool:
        if tool.effect in {Effect.WRITE, Effect.EXECUTE}:
            return replace(tool, run=_changing(tool, memory))
        return replace(tool, run=_remembering(tool, memory)) if tool.facts.cacheable else tool

    return guard


def _changing(tool: Tool, memory: Memory) -> Callable[..., Any]:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        try:
            return await tool.run(args, call)
        finally:
            memory.forget(tool, args)

    return run


def _remembering(tool: Tool, memory: Memory) -> Callable[..., Any]:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        before = memory.key(tool, args)
        if before is None:
            return await tool.run(args, call)
        if known := memory.find(before[0]):
            return known
        result = await tool.run(args, call)
        # Only what was the same before and after: the file may have changed while it was read.
        if not result.is_error and memory.key(tool, args) == before:
            memory.keep(*before, result)
        return result

    return run
