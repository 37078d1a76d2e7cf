"""The loop: think, act, again. It knows a provider, tools and its branch; every policy is a guard or an interceptor."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import field
from typing import Protocol, cast

from ba_tui.core.effects import UNLIMITED, Ceiling
from ba_tui.core.errors import ProviderError, StopTurn
from ba_tui.core.events import (
    Compressed,
    MessageDone,
    MessageRestarted,
    Retrying,
    Steered,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolInputDelta,
    ToolStarted,
)
from ba_tui.core.messages import Message, Text, ToolUse, partial, reminder
from ba_tui.core.provider import ModelRequest, Provider, ReplyChunk
from ba_tui.core.questions import Question
from ba_tui.core.results import ToolResult, failure, identified
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.tool import Call, Effect, Tool, Toolset
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen

LANES = 8
CONTINUATIONS = 3
CIRCLES = 3


class Interceptor(Protocol):
    """Speaks only through the branch: emits events, posts notes, or raises StopTurn."""

    async def before(self, branch: Branch) -> None:
        """Before each request."""
        ...

    async def after(self, reply: Message, branch: Branch) -> None:
        """The agent would stop now; a note posted here makes it go on."""
        ...


class Fixed:
    """A toolset that never changes."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = tools
        self._by_name = {tool.name: tool for tool in tools}

    def visible(self) -> Sequence[Tool]:
        return self._tools

    def find(self, name: str) -> Tool | None:
        return self._by_name.get(name)


@frozen
class Agent:
    """``max_loops``: model requests within one turn before the person is asked whether to go on."""

    provider: Provider
    tools: Sequence[Tool] | Toolset
    system: str
    interceptors: Sequence[Interceptor] = ()
    max_loops: int = 100
    ceiling: Ceiling = UNLIMITED
    """The most that it may do when another agent starts it."""
    toolset: Toolset = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "toolset", Fixed(self.tools) if isinstance(self.tools, Sequence) else self.tools)

    async def run(self, branch: Branch) -> Message:
        """Until a final answer. Its ``stop`` tells why it ended.

        Raises:
            StopTurn: a limit was reached; the best answer so far is the branch's last message.
            ProviderError, asyncio.CancelledError: what arrived until then is in the branch.
        """
        left, cut = self.max_loops, 0
        while True:
            branch.drain()
            reply = await self._think(branch)
            left -= 1
            if reply.calls:
                try:
                    with branch.calling():
                        await self._act(reply.calls, branch)
                except StopTurn as stop:
                    await self._conclude(str(stop), branch)
                    raise
                if reply.stop == "max_tokens" and reply.calls[-1].malformed is not None:
                    branch.post(reminder("Your last call was cut at the output limit. Do it in several smaller calls."))
            elif reply.stop in {"max_tokens", "pause_turn"} and cut < CONTINUATIONS:
                cut += 1
                if reply.stop == "max_tokens":
                    branch.post(reminder("Your answer was cut at the output limit. Go on exactly where it stopped."))
            else:
                for interceptor in self.interceptors:
                    await interceptor.after(reply, branch)
                if not branch.drain():
                    return reply
            if left == max(1, self.max_loops // 20):
                branch.post(reminder(f"{left} more model requests are allowed in this turn. Come to an end."))
            if left <= 0:
                if not await self._go_on(branch):
                    await self._conclude("The step limit of this turn is reached.", branch)
                    raise StopTurn(
                        f"Stopped at the limit of {self.max_loops} steps.", "Say “go on”, or raise max_loops."
                    )
                left = self.max_loops

    async def _go_on(self, branch: Branch) -> bool:
        text = f"{self.max_loops} steps were taken in this turn. Go on?"
        reply = await branch.ask(Question("continue", text))
        return reply.choice != "deny"

    async def _conclude(self, reason: str, branch: Branch) -> None:
        branch.drain()
        note = f"{reason} No tool can be called now. Give the best answer so far and say what is missing."
        branch.emit(Steered(reminder(note)))
        await self._think(branch, call_tools=False)

    async def _think(self, branch: Branch, *, call_tools: bool = True) -> Message:
        for interceptor in self.interceptors:
            await interceptor.before(branch)
        request = ModelRequest(self.system, branch.transcript.messages, self.toolset.visible(), call_tools)
        words: list[str] = []
        earlier = ""
        try:
            # Left as soon as the message is there: what is not closed then, the loop closes later in a task of its own.
            async with aclosing(cast("AsyncGenerator[ReplyChunk, None]", self.provider.stream(request))) as chunks:
                async for chunk in chunks:
                    match chunk:
                        case Message():
                            prices = self.provider.model.prices
                            cost = prices.cost(chunk.usage) if prices and chunk.usage else None
                            branch.emit(MessageDone(chunk, cost))
                            return chunk
                        case TextDelta(text=text):
                            words.append(text)
                            branch.emit(chunk)
                        case MessageRestarted():
                            earlier = "".join(words) or earlier
                            words.clear()
                            branch.emit(chunk)
                        case ThinkingDelta() | ToolInputDelta() | Retrying() | Compressed():
                            branch.emit(chunk)
        except (asyncio.CancelledError, ProviderError) as error:
            stop = "error" if isinstance(error, ProviderError) else "cancelled"
            if kept := partial([Text("".join(words) or earlier)], stop, self.provider.model.id):
                branch.emit(MessageDone(kept))
            raise
        raise ProviderError("The model's answer ended without a message.", "Send the request again.")

    async def _act(self, calls: Sequence[ToolUse], branch: Branch) -> None:
        if len(calls) == 1:
            # The usual step: a task of its own would be a tenth of what it costs. Listeners get their turn as well.
            await self._call(calls[0], branch)
            await asyncio.sleep(0)
            return
        reading = all(self._effect(call) is Effect.READ for call in calls)
        lanes = asyncio.Semaphore(LANES if reading else 1)
        try:
            async with asyncio.TaskGroup() as group:
                for call in calls:
                    group.create_task(self._lane(lanes, call, branch))
        except ExceptionGroup as group:
            raise group.exceptions[0] from None

    async def _lane(self, lanes: asyncio.Semaphore, call: ToolUse, branch: Branch) -> None:
        async with lanes:
            await self._call(call, branch)

    def _effect(self, call: ToolUse) -> Effect:
        tool = self.toolset.find(call.name)
        return tool.effect if tool else Effect.READ

    async def _call(self, use: ToolUse, branch: Branch) -> None:
        """One call, one result, whatever happens; only cancellation passes through, after leaving a result."""
        tool = self.toolset.find(use.name)
        branch.emit(ToolStarted(use, tool.target(use.input) if tool else ""))
        call = Call(use.id, branch)
        start = time.monotonic()

        def finish(result: ToolResult) -> None:
            seconds = max(0.0, time.monotonic() - start - call.waited)
            branch.emit(ToolFinished(use.id, identified(result, use.id), seconds))

        try:
            if tool is None or use.malformed is not None:
                result = self._impossible(use, branch)
            else:
                result = await tool.run(use.input, call)
        except asyncio.CancelledError:
            so_far = f"\nOutput so far:\n{paintable(call.tail)}" if call.tail else ""
            finish(failure("interrupted", f"Interrupted by the person.{so_far}"))
            raise
        except StopTurn as stop:
            finish(failure("interrupted", str(stop)))
            raise
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - a tool's failure becomes a result
            result = failure("internal_error", f"{type(error).__name__}: {error}")
        finish(result)

    def _impossible(self, use: ToolUse, branch: Branch) -> ToolResult:
        """What the model is told of a call that no tool, and so no guard, gets to see.

        Raises:
            StopTurn: it was told so before, twice.
        """
        if (times := _times(use, branch.transcript.calls_since_prompt())) >= CIRCLES:
            message = f"Stopped: the same impossible call of {use.name!r} was made {times} times."
            raise StopTurn(message, "Say what to do differently.")
        if use.malformed is None:
            return unknown_tool(use.name, [known.name for known in self.toolset.visible()])
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
