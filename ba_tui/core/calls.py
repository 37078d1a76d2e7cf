"""Run one call of a tool, for the agent, workflows and the user's own commands."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ba_tui.core.errors import BaError, StopTurn, UsageError, no_thread
from ba_tui.core.events import MAIN, PERSON, Event, Steered, ToolFinished, ToolStarted, TurnEnded
from ba_tui.core.messages import Message, ToolUse, clean_text, new_id
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import ToolResult, failure, identified
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import similar
from ba_tui.core.tool import Call, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.core.values import frozen

CIRCLES = 3


async def run_call(tool: Tool, use: ToolUse, call: Call) -> ToolResult:
    """Run one call and return its result. Emits exactly one result in every case.

    Raises:
        StopTurn, NoThread, asyncio.CancelledError: after a result with the reason was emitted.
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
            # Further calls would fail too, and the model cannot solve the problem.
            finish(failure("resource_error", str(refused), hint=refused.hint))
            raise refused from error
        result = failure("internal_error", f"{type(error).__name__}: {error}")
    if call.progress.outlasted:
        # An interrupt waited for the end of the change.
        finish(_although(result, call))
        raise asyncio.CancelledError
    return finish(result)


def _although(result: ToolResult, call: Call) -> ToolResult:
    note = f"Note: {_why_stopped(call.branch)} The files were being written or were written already."
    return replace(result, text=f"{result.text}\n{note}")


class Commit:
    """Decides whether an interrupt or a change of files comes first. For one call; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun = self._stopped = False

    def begin(self) -> None:
        """Begin the change. Raises CallStopped if an interrupt came before."""
        with self._lock:
            if self._stopped:
                raise CallStopped
            self._begun = True

    def stop(self) -> bool:
        """Stop the call; returns True if its change has not begun, and so never will."""
        with self._lock:
            self._stopped = not self._begun
            return self._stopped


class CallStopped(Exception):
    """The call was cancelled before its change began."""


async def commit_whole(work: Callable[[Commit], ToolResult], call: Call) -> ToolResult:
    """Run ``work`` in a thread. A cancel before ``Commit.begin`` stops it without any change.

    A later cancel waits for the end of ``work``, so that the result describes the change; ``run_call`` then continues
    the cancel.

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
    return "Interrupted by the user." if mine else "Interrupted: this agent was stopped."


def callable_tool(use: ToolUse, tool: Tool | None, known: Sequence[Tool]) -> Tool:
    """Return ``tool``, or a tool that explains why the call is impossible, with the ``known`` names."""
    if tool is not None and use.malformed is None:
        return tool
    run = _Impossible(use, [each.name for each in known]).run
    return Tool(use.name, "", {}, run) if tool is None else replace(tool, run=run)


@frozen
class _Impossible:
    """An impossible call, which no tool or guard receives."""

    use: ToolUse
    known: Sequence[str]

    async def run(self, args: Mapping[str, Any], call: Call) -> ToolResult:
        """Return the failure. Raises StopTurn if the model repeated the call."""
        use = self.use
        if (times := _times(use, call.branch.transcript.calls_since_prompt())) >= CIRCLES:
            message = f"Stopped: the same impossible call of {use.name!r} was made {times} times."
            raise StopTurn(message, "Say what to do differently.")
        if use.malformed is None:
            return unknown_tool(use.name, self.known)
        message = f"The arguments of {use.name} were not a JSON object: {use.malformed[:200]}"
        return failure("invalid_parameters", message)


def _times(use: ToolUse, made: Sequence[ToolUse]) -> int:
    """Return how often the call was made, itself included. Ids may repeat: the newest one is meant."""
    until = next((at for at in reversed(range(len(made))) if made[at].id == use.id), len(made)) + 1
    wanted = (use.name, use.input, use.malformed)
    return sum((call.name, call.input, call.malformed) == wanted for call in made[:until])


def unknown_tool(name: str, known: Sequence[str]) -> ToolResult:
    """Return the failure for a tool that does not exist, with the closest names."""
    close = similar(name, known)
    nearest = f" Did you mean {', '.join(close)}?" if close else ""
    return failure("not_found", f"There is no tool {name!r}.{nearest}", hint=f"Available: {', '.join(known)}.")


_SOURCE = regex(r"(?s)@(\w+)\s+(.+)")
"""A query on a source: ``@warehouse SELECT …``."""


class SharedCommands:
    """Interceptor that adds the output of commands that the user shared."""

    async def before(self, branch: Branch) -> None:
        for message in branch.transcript.shared.waiting:
            branch.emit(Steered(message))

    async def after(self, reply: Message, branch: Branch) -> None:
        """Do nothing: a command that ended meanwhile goes with the next request."""


class OwnShell:
    """Runs commands and queries of the user, several at a time; each is a turn to follow and to cancel. ``shell`` and
    ``query`` are the tools, None if missing. ``begin`` makes a turn whose events are stored, ``history`` reads the
    events of the session. The commands share a working directory, which is that of the conversation until one of them
    changes it."""

    def __init__(
        self,
        shell: Tool | None,
        query: Tool | None,
        begin: Callable[[], Turn],
        conversation: Transcript,
        history: Callable[[], Coroutine[None, None, list[Event]]],
    ) -> None:
        self._shell, self._query = shell, query
        self._begin = begin
        self._conversation = conversation
        self._history = history
        self._own: Transcript | None = None
        self._running: set[Turn] = set()

    @property
    def folder(self) -> str | None:
        """Return where the next command starts; None for the root of the workspace."""
        return (self._own.cwd if self._own else None) or self._conversation.cwd

    def run(self, command: str, *, private: bool) -> Turn:
        """Start ``command``. A private one is stored with the session, but no model reads it.

        Raises:
            UsageError: the command is empty, or there is no shell.
        """
        if self._shell is None:
            raise UsageError("This session has no shell.", "Install bash to run commands.")
        if not command.strip():
            raise UsageError("There is no command after the “!”.", "Type one, such as !ls.")
        given = {"command": clean_text(command), **({"private": True} if private else {})}
        return self._started(self._shell, given)

    def query(self, sql: str) -> Turn:
        """Run a query on the session's data, or on the source given as ``@NAME`` before it. The model reads the result.

        Raises:
            UsageError: the query is empty, or there is no data engine.
        """
        if self._query is None:
            raise UsageError("This session has no data engine.")
        if not sql.strip():
            raise UsageError("There is no query after /sql.", "Type one, such as /sql FROM 'sales.csv'")
        text = clean_text(sql).strip()
        found = _SOURCE.fullmatch(text)
        given = {"sql": found[2], "source": found[1]} if found else {"sql": text}
        return self._started(self._query, given)

    def _started(self, tool: Tool, given: dict[str, Any]) -> Turn:
        turn = self._begin()
        self._running.add(turn)
        use = ToolUse(f"own-{new_id()[:12]}", tool.name, given)
        turn.run(asyncio.get_running_loop().create_task(self._run(tool, use, turn)))
        return turn

    async def _run(self, tool: Tool, use: ToolUse, turn: Turn) -> None:
        private = bool(use.input.get("private"))
        ending = TurnEnded("done")
        try:
            events = await self._history()
            if self._own is None:
                self._own = Transcript(PERSON, events)
            self._own.cwd = self._own.cwd or self._conversation.cwd
            await run_call(tool, use, Call(use.id, Branch(turn, self._own), consults=(_agreed,), private=private))
        except asyncio.CancelledError:
            ending = TurnEnded("cancelled")
        except BaError as error:
            ending = TurnEnded("error", error.info())
        finally:
            self._running.discard(turn)
            turn.deliver(ending)

    async def close(self) -> None:
        """Stop running commands."""
        running = tuple(self._running)
        for turn in running:
            turn.close()
        for turn in running:
            await turn.wait()


async def _agreed(question: Question) -> Reply:
    """Allow what the user typed, but deny sharing secrets without a question."""
    return Reply("deny" if question.kind != "permission" or "shares a secret" in question.risks else "once")
