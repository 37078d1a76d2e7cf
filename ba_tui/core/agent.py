"""The loop: think, act, again. It knows a provider, tools and its branch; every policy is a guard or an interceptor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import field
from typing import Protocol, TypeAlias, cast

from ba_tui.core.calls import callable_tool, run_call
from ba_tui.core.effects import UNLIMITED, Ceiling, Effect
from ba_tui.core.errors import ProviderError, StopTurn
from ba_tui.core.events import (
    MessageDone,
    MessageRestarted,
    SideRequest,
    Steered,
    TextDelta,
)
from ba_tui.core.loop_limits import Reasoner
from ba_tui.core.messages import Message, Text, ToolUse, partial, reminder
from ba_tui.core.open_turn import ASKING, WaitingCalls
from ba_tui.core.provider import ModelRequest, Provider, ReplyChunk, charged
from ba_tui.core.questions import Question
from ba_tui.core.tool import Call, Tool, Toolset
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen

LANES = 8


AskModel: TypeAlias = Callable[[str, str, str], Awaitable[tuple[str, SideRequest]]]
"""Returns the answer of a model to a system prompt and a text for a purpose, and what it cost."""


class Interceptor(Protocol):
    """Speaks only through the branch: emits events, posts notes, or raises StopTurn."""

    async def before(self, branch: Branch) -> None:
        """Before each request."""
        ...

    async def after(self, reply: Message, branch: Branch) -> bool | None:
        """The agent would stop now; a note posted here makes it go on. True makes it go on at once, unheard by those
        that come later."""
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
    """One line of conversation: its provider, toolset and interceptors keep what belongs to it from turn to turn, so
    that agents that run at the same time are made apart. ``ceiling``: the most that it may do below another agent."""

    provider: Provider
    tools: Sequence[Tool] | Toolset
    system: str
    interceptors: Sequence[Interceptor] = ()
    ceiling: Ceiling = UNLIMITED
    toolset: Toolset = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "toolset", Fixed(self.tools) if isinstance(self.tools, Sequence) else self.tools)

    async def run(self, branch: Branch) -> Message:
        """Until a final answer. Its ``stop`` tells why it ended.

        Raises:
            StopTurn: a limit was reached; the best answer so far is the branch's last message.
            ProviderError, asyncio.CancelledError: what arrived until then is in the branch.
        """
        branch.ceiling = branch.ceiling.within(self.ceiling)
        while True:
            await branch.unpaused()
            branch.drain()
            try:
                reply = await self._think(branch)
                if reply.calls:
                    await self._act(reply.calls, branch)
                elif not await self._goes_on(reply, branch):
                    return reply
            except StopTurn as stop:
                if stop.closing:
                    await self._conclude(stop.closing, branch)
                raise

    async def go_on(self, waiting: WaitingCalls, branch: Branch) -> bool:
        """Ask about the calls that wait, make those behind them, and run until a final answer.

        Returns False, with nothing more done, when a call was settled without a question: nobody wants the turn to go
        on by itself. Raises what ``run`` does.
        """
        branch.ceiling = branch.ceiling.within(self.ceiling)
        asked: list[Question] = []

        async def hear(question: Question) -> None:
            asked.append(question)

        with branch.calling():
            for use, question in waiting.ask:
                asked.clear()
                await self._call(use, Call(use.id, branch, consults=(hear,), again=question.kind not in ASKING))
                if not asked:
                    return False
            for use in waiting.later:
                await self._call(use, Call(use.id, branch))
        await self.run(branch)
        return True

    async def _goes_on(self, reply: Message, branch: Branch) -> bool:
        for interceptor in self.interceptors:
            if await interceptor.after(reply, branch):
                return True
        return branch.drain()

    async def _conclude(self, reason: str, branch: Branch) -> None:
        branch.drain()
        note = f"{reason} No tool can be called now. Give the best answer so far and say what is missing."
        branch.emit(Steered(reminder(note)))
        await self._think(branch, call_tools=False)

    async def _think(self, branch: Branch, *, call_tools: bool = True) -> Message:
        for interceptor in self.interceptors:
            await interceptor.before(branch)
        messages, reasoning = branch.transcript.messages, branch.state(Reasoner).asked
        request = ModelRequest(self.system, messages, self.toolset.visible(), call_tools, reasoning)
        words: list[str] = []
        earlier = ""
        try:
            # Left as soon as the message is there: what is not closed then, the loop closes later in a task of its own.
            async with aclosing(cast("AsyncGenerator[ReplyChunk, None]", self.provider.stream(request))) as chunks:
                async for chunk in chunks:
                    match chunk:
                        case Message():
                            branch.emit(MessageDone(chunk, *charged(self.provider.model.prices, chunk.usage)))
                            return chunk
                        case TextDelta(text=text):
                            words.append(text)
                            branch.emit(chunk)
                        case MessageRestarted():
                            earlier = "".join(words) or earlier
                            words.clear()
                            branch.emit(chunk)
                        case _:
                            branch.emit(chunk)
        except (asyncio.CancelledError, ProviderError) as error:
            stop = "error" if isinstance(error, ProviderError) else "cancelled"
            if kept := partial([Text("".join(words) or earlier)], stop, self.provider.model.id):
                branch.emit(MessageDone(kept))
            raise
        raise ProviderError("The model's answer ended without a message.", "Send the request again.")

    async def _act(self, calls: Sequence[ToolUse], branch: Branch) -> None:
        with branch.calling():
            if len(calls) == 1:
                # The usual step: a task of its own would be a tenth of its cost. Listeners get their turn as well.
                await self._call(calls[0], Call(calls[0].id, branch))
                await asyncio.sleep(0)
                return
            reading = all(self._effect(call) is Effect.READ for call in calls)
            # Calls that start agents only wait for them; how many agents work at once is limited elsewhere.
            waiting = sum(self._starts_agents(call) for call in calls)
            lanes = asyncio.Semaphore(LANES + waiting if reading else 1)
            try:
                async with asyncio.TaskGroup() as group:
                    for call in calls:
                        group.create_task(self._lane(lanes, call, branch))
            except ExceptionGroup as group:
                raise group.exceptions[0] from None

    async def _lane(self, lanes: asyncio.Semaphore, call: ToolUse, branch: Branch) -> None:
        async with lanes:
            await self._call(call, Call(call.id, branch))

    def _starts_agents(self, call: ToolUse) -> bool:
        tool = self.toolset.find(call.name)
        return tool is not None and tool.facts.below is not None

    def _effect(self, call: ToolUse) -> Effect:
        tool = self.toolset.find(call.name)
        return tool.reach(call.input) if tool else Effect.READ

    async def _call(self, use: ToolUse, call: Call) -> None:
        tool = callable_tool(use, self.toolset.find(use.name), self.toolset.visible())
        await run_call(tool, use, call)
