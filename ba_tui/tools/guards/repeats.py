"""Guards for repeated calls: a warning or a question for calls in circles, and a cache for reading calls.

The second identical call in a turn gets a warning. At the third, the reasoning model takes over once per turn if one is
configured; else the user is asked. A successful change of a file in between resets the count (edit, test, edit, test),
and so does a new result of a tool that is meant to be polled (``facts.repeatable``).

The cache answers calls of tools with ``facts.cacheable``. Its key is the call with the state of the files that it
names; writes clear the entries of their files, commands clear all.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ba_tui.core.agent import Reasoner
from ba_tui.core.errors import BaError, StopTurn
from ba_tui.core.events import Notice
from ba_tui.core.messages import ToolOutput, ToolUse
from ba_tui.core.questions import Question
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Effect, Guard, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.values import frozen
from ba_tui.tools.failures import outcome

if TYPE_CHECKING:
    from cachetools import TTLCache


WINDOW = 10
WARNING = (
    "Note: this call is the same as an earlier one of this turn. If it did not bring you further, "
    "change the approach; a third time the user is asked."
)
ESCALATED = (
    "Note: the same call of {tool} was made {count} times in this turn, which did not help. Another model made those "
    "calls; you go on from here. Find out why they repeat and take another way: one more, and the user is asked."
)


class _AllowedCalls(set[str]):
    """The repeated calls of an agent and turn that the user allowed."""


class _Results(dict[str, bytes]):
    """Hashes of the newest results of repeatable tools in an agent's turn, by call id."""

    def keep(self, id: str, result: ToolResult) -> bytes:
        given = f"{result.text}\0{result.meta}"
        found = self[id] = sha256(given.encode("utf-8", "surrogatepass")).digest()
        while len(self) > WINDOW:
            del self[next(iter(self))]
        return found


def repeats(writers: Collection[str]) -> Guard:
    """Return the guard against repeated calls. ``writers``: names of the tools that change files."""

    def guard(tool: Tool) -> Tool:
        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            allowed = call.branch.state(_AllowedCalls)
            before = call.branch.state(_Results) if tool.facts.repeatable else None
            same = _same_calls(call, writers, allowed)
            count = _fruitless(same, before)
            escalated = count >= 3 and _escalate(tool, call, count)
            if count >= 3 and not escalated:
                await _ask(tool, args, call, count)
                allowed.add(call.id)
            result = await outcome(tool, args, call)
            if before is not None:
                news = before.get(same[0].id if same else "") != before.keep(call.id, result)
                count = 1 if news else count
            if count < 2:
                return result
            note = ESCALATED.format(tool=tool.name, count=count) if escalated else WARNING
            return replace(result, text=f"{result.text}\n\n{note}")

        return replace(tool, run=run)

    return guard


def _escalate(tool: Tool, call: Call, count: int) -> bool:
    """Let the reasoning model answer for the rest of the turn; return False if it already did, or none is
    configured."""
    reasoner = call.branch.state(Reasoner)
    name = "" if reasoner.asked else reasoner.name()
    if not name:
        return False
    reasoner.asked = True
    text = f"The same call of {tool.name} was made {count} times. {name} answers for the rest of this turn."
    call.branch.emit(Notice(text, "warning"))
    return True


def _fruitless(same: Sequence[ToolUse], results: Mapping[str, bytes] | None) -> int:
    """Return how often a call was made in vain, including this one. With ``results``, earlier calls count only if
    they returned the same as the newest."""
    if results is None or not same:
        return 1 + len(same)
    newest = results.get(same[0].id)
    if newest is None:
        # The other call still runs, so its result is unknown.
        return 1
    return 1 + sum(1 for _ in takewhile(lambda each: results.get(each.id) == newest, same))


def _same_calls(call: Call, writers: Collection[str], allowed: Collection[str]) -> Sequence[ToolUse]:
    """Return the identical calls since the last progress, the newest first."""
    transcript = call.branch.transcript
    recent = _recent(transcript, call.id)
    if not recent or not any(_same(earlier, recent[0]) for earlier in recent[1:]):
        return ()
    calls = transcript.calls_since_prompt()
    same: list[ToolUse] = []
    for earlier in recent[1:]:
        if _same(earlier, recent[0]):
            if earlier.id in allowed:
                break
            same.append(earlier)
        elif earlier.name in writers and _new(calls, earlier) and _succeeded(transcript, earlier.id):
            break
    return same


def _recent(transcript: Transcript, call_id: str) -> list[ToolUse]:
    """Return this call and those just before it in this turn, the newest first. Takes the same time in turns of any
    length."""
    found: list[ToolUse] = []
    for message in reversed(transcript.messages):
        if message.role == "user":
            if message.origin == "user":
                break
            continue
        if len(found) >= WINDOW:
            break
        for use in reversed(message.calls):
            if found or use.id == call_id:
                found.append(use)
    return found[:WINDOW]


def _same(one: ToolUse, other: ToolUse) -> bool:
    """Return whether both call the same tool with equal arguments, in any order."""
    try:
        return one.name == other.name and one.input == other.input
    except RecursionError:
        return False


def _new(calls: Sequence[ToolUse], use: ToolUse) -> bool:
    """Return whether no earlier call was identical."""
    return next(earlier for earlier in (*calls, use) if _same(earlier, use)).id == use.id


def _succeeded(transcript: Transcript, call_id: str) -> bool:
    for message in reversed(transcript.messages):
        for block in message.blocks:
            if isinstance(block, ToolOutput) and block.tool_use_id == call_id:
                return not block.is_error
    return False


async def _ask(tool: Tool, args: Mapping[str, Any], call: Call, count: int) -> None:
    text = f"Identical call of {tool.name}, {count} times. Continue?"
    reason = "The agent seems stuck in a loop."
    question = Question("continue", text, call_id=call.id, tool=tool.name, args=dict(args), reason=reason)
    reply = await call.ask(question)
    if reply.choice == "deny":
        words = f" They said: {reply.text.strip()}" if reply.text.strip() else ""
        raise StopTurn(f"Stopped after {count} identical calls of {tool.name}.{words}", "Say what to do differently.")


ENTRIES = 10_000
LIFETIME = 3600.0


@frozen
class CachedResult:
    """A cached result, its files, and its time by the clock, in seconds."""

    result: ToolResult
    paths: frozenset[str]
    at: float


class CallMemory:
    """The cached results of a conversation. ``resolve`` turns a path argument into the file's path."""

    def __init__(
        self, resolve: Callable[[str], Path], clock: Callable[[], float] = time.monotonic, lifetime: float = LIFETIME
    ) -> None:
        self._resolve = resolve
        self._clock = clock
        self._lifetime = lifetime
        self._kept: TTLCache[str, CachedResult] | None = None

    def key(self, tool: Tool, args: Mapping[str, Any]) -> tuple[str, frozenset[str]] | None:
        """Return a key of the call and the state of its files; None if that is unknown."""
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
        """Remove the entries that a changing call may have made stale: those of its files, or all if its files are
        unknown."""
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
            from cachetools import TTLCache  # noqa: PLC0415 - loads with the first cacheable call

            self._kept = TTLCache(ENTRIES, self._lifetime, timer=self._clock)
        return self._kept


def once(memory: CallMemory) -> Guard:
    def guard(tool: Tool) -> Tool:
        if tool.effect in {Effect.WRITE, Effect.EXECUTE}:
            return replace(tool, run=_changing(tool, memory))
        return replace(tool, run=_remembering(tool, memory)) if tool.facts.cacheable else tool

    return guard


def _changing(tool: Tool, memory: CallMemory) -> Callable[..., Any]:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        try:
            return await tool.run(args, call)
        finally:
            memory.forget(tool, args)

    return run


def _remembering(tool: Tool, memory: CallMemory) -> Callable[..., Any]:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        before = memory.key(tool, args)
        if before is None:
            return await tool.run(args, call)
        if known := memory.find(before[0]):
            return known
        result = await tool.run(args, call)
        # The file may have changed while it was read.
        if not result.is_error and memory.key(tool, args) == before:
            memory.keep(*before, result)
        return result

    return run
