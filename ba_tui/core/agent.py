"""The agent loop, its limits, and sub-agents.

The loop knows a provider, tools and its branch; each policy is a guard or an interceptor.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import field
from typing import Protocol, TypeAlias

from ba_tui.core.calls import callable_tool, run_call
from ba_tui.core.effects import UNLIMITED, AgentCeiling, Effect
from ba_tui.core.errors import BaError, BudgetUsed, ErrorInfo, ErrorsOnly, ProviderError, StepsUsed, StopTurn, no_thread
from ba_tui.core.events import (
    MAIN,
    AgentStarted,
    Ending,
    MessageDone,
    MessageRestarted,
    SideRequest,
    Steered,
    TextDelta,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import Message, Text, ToolUse, Usage, broken_command, partial, reminder, user
from ba_tui.core.provider import ModelRequest, Provider, answer_of, charged
from ba_tui.core.questions import Question
from ba_tui.core.teamwork import AgentSpec, Budget
from ba_tui.core.tool import Call, Tool, Toolset
from ba_tui.core.transcript import ASKING, WaitingCalls
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen

AskModel: TypeAlias = Callable[[str, str, str], Awaitable[tuple[str, SideRequest]]]
"""Returns the answer of a model to a system prompt and a text for a purpose, and its cost."""


class Interceptor(Protocol):
    """Observes the loop. Acts only through the branch: emits events, posts notes, or raises StopTurn."""

    async def before(self, branch: Branch) -> None:
        """Run before each model request."""
        return

    async def after(self, reply: Message, branch: Branch) -> bool | None:
        """Run when the agent is about to stop; a note posted here makes it continue. Return True to continue without
        asking the later interceptors."""
        return None


CONTINUATIONS = 3
"""How often an answer is continued in one turn without asking the user."""


class Reasoner:
    """The fallback model for an agent that repeats itself, for one agent and turn. ``asked``: requests go to the model
    of the slot ``reasoning`` from now on."""

    asked = False

    def __init__(self) -> None:
        self.name: Callable[[], str] = str
        """Returns the fallback model; empty if there is none."""


class _Count:
    """A counter for one agent and one turn."""

    def __init__(self) -> None:
        self.number = 0


class _Requests(_Count):
    closing = False
    """The last request, without tools, was sent."""


class StepLimit(Interceptor):
    """Interceptor that asks the user to continue after ``max_loops`` model requests in one turn."""

    def __init__(self, max_loops: int) -> None:
        self.max_loops = max_loops

    async def before(self, branch: Branch) -> None:
        """Count the request. Raises StopTurn if the user declines to continue."""
        made = branch.state(_Requests)
        if made.closing:
            return
        left = self.max_loops - made.number
        if left <= 0:
            if not await self._go_on(branch):
                made.closing = True
                message = f"Stopped at the limit of {self.max_loops} steps."
                closing = "The step limit of this turn is reached."
                raise StepsUsed(message, "Say “go on”, or raise max_loops.", closing=closing)
            made.number = 0
        elif made.number and left == max(1, self.max_loops // 20):
            note = f"{left} more model requests are allowed in this turn. Come to an end."
            branch.emit(Steered(reminder(note)))
        made.number += 1

    async def _go_on(self, branch: Branch) -> bool:
        text = f"{self.max_loops} steps were taken in this turn. Go on?"
        reply = await branch.ask(Question("continue", text))
        return reply.choice != "deny"


class ErrorBudget(Interceptor):
    """Interceptor that ends a turn after ``most`` failed calls and sub-agents in a row, over all agents."""

    def __init__(self, most: int) -> None:
        self.most = most

    async def before(self, branch: Branch) -> None:
        """Raise StopTurn when the budget is used up; the main agent first sums up its progress."""
        stopped = branch.state(_Requests)
        if branch.failures.number < self.most or stopped.closing:
            return
        stopped.closing = True
        message = f"Stopped: {branch.failures.number} calls in a row failed, and none succeeded."
        hint = f"The last one: {branch.failures.last} Say what to do differently, or raise error_budget."
        closing = "Too many calls in a row have failed." if branch.name == MAIN else ""
        raise ErrorsOnly(message, hint, closing=closing)


class Escalation(Interceptor):
    """Interceptor that names the fallback model for an agent that repeats itself; ``name`` returns its id, or
    nothing."""

    def __init__(self, name: Callable[[], str]) -> None:
        self.name = name

    async def before(self, branch: Branch) -> None:
        branch.state(Reasoner).name = self.name


class CutAnswers(Interceptor):
    """Interceptor that lets the model continue an answer that was cut at the output limit, or paused."""

    async def before(self, branch: Branch) -> None:
        """Advise a model whose last call was cut."""
        transcript = branch.transcript
        reply = next((each for each in reversed(transcript.messages) if each.role == "assistant"), None)
        if reply is None or reply.stop != "max_tokens" or not reply.calls or reply.calls[-1].malformed is None:
            return
        if reply.calls[-1] in transcript.calls_since_prompt():
            note = "Your last call was cut at the output limit. Do it in several smaller calls."
            branch.emit(Steered(reminder(note)))

    async def after(self, reply: Message, branch: Branch) -> bool:
        cut = branch.state(_Count)
        if reply.stop not in {"max_tokens", "pause_turn"} or cut.number >= CONTINUATIONS:
            return False
        cut.number += 1
        if reply.stop == "max_tokens":
            branch.post(reminder("Your answer was cut at the output limit. Go on exactly where it stopped."))
        return True


class BudgetLimit(Interceptor):
    """Interceptor that stops requests once an agent, with all agents below it, has spent its budget."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget

    async def before(self, branch: Branch) -> None:
        """Raise StopTurn at a limit, or if a dollar limit cannot be enforced because a price is unknown."""
        most, account = self.budget, branch.account
        if most.cost is not None and account.spent is None:
            hint = "Use a budget in tokens, or give the prices of the model in models.yaml: ba guide prices."
            raise BudgetUsed("Stopped: what the model costs is not known, so the budget can't be kept.", hint)
        if most.cost is not None and (account.spent or 0.0) >= most.cost:
            raise BudgetUsed(f"Stopped at the budget of ${most.cost:g} for {branch.name}.", "Give it a larger budget.")
        used = account.usage.prompt + account.usage.output
        if most.tokens is not None and used >= most.tokens:
            message = f"Stopped at the budget of {most.tokens:,} tokens for {branch.name}: {used:,} were used."
            raise BudgetUsed(message, "Give it a larger budget.")


def own_limits(
    spec: AgentSpec, error_budget: int, reasoning: Callable[[], str]
) -> tuple[StepLimit, CutAnswers, ErrorBudget, Escalation]:
    """Return the limits of one agent's loop in their order. They run before all other interceptors, so that at the end
    of a turn no other one can continue it."""
    return (StepLimit(spec.max_loops), CutAnswers(), ErrorBudget(error_budget), Escalation(reasoning))


LANES = 8


class FixedToolset:
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
    """An agent: provider, toolset and interceptors keep their state from turn to turn, so concurrent agents need
    separate ones. ``ceiling``: the most that it may do below another agent."""

    provider: Provider
    tools: Sequence[Tool] | Toolset
    system: str
    interceptors: Sequence[Interceptor] = ()
    ceiling: AgentCeiling = UNLIMITED
    toolset: Toolset = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "toolset", FixedToolset(self.tools) if isinstance(self.tools, Sequence) else self.tools
        )

    async def run(self, branch: Branch) -> Message:
        """Run until a final answer, whose ``stop`` says why it ended.

        Raises:
            StopTurn: a limit was reached; the best answer so far is the branch's last message.
            ProviderError, asyncio.CancelledError: the partial answer is in the branch.
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
        """Ask about the waiting calls, run the calls after them, and continue until a final answer. Returns False and
        stops if a call was settled without a question: then the turn should not continue without the user. Raises what
        ``run`` does."""
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
            # Close the stream as soon as the message arrived: otherwise the event loop closes it later in another task.
            async with answer_of(self.provider, request) as chunks:
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
                # The usual case: a separate task would add a tenth to its cost. The sleep lets listeners run.
                await self._call(calls[0], Call(calls[0].id, branch))
                await asyncio.sleep(0)
                return
            reading = all(self._effect(call) is Effect.READ for call in calls)
            # Calls that start agents only wait for them; the number of concurrent agents is limited elsewhere.
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


log = logging.getLogger(__name__)
GLANCE = 0.05
"""Seconds between checks of an agent that was paused just before its deadline."""

MakeAgent: TypeAlias = Callable[[AgentSpec, str], AbstractAsyncContextManager[Agent]]
"""Makes an agent from a spec and the model for specs without one; the agent's resources are closed on exit.

Raises UsageError, AuthFailed.
"""


@frozen
class ChildResult:
    """How a sub-agent ended. ``agent_id`` is its name in events, such as ``main/explore-1``.

    ``status``: ``done``, ``limit`` (of steps, budget or time), ``cancelled`` (the child alone) or ``error``.
    ``message`` is its answer; its last message if it did not finish, empty if it wrote none. ``usage`` includes its own
    sub-agents. ``error`` says why it is not ``done``. ``note``: the outcome of its project copy, empty without one.
    ``broken``: the last command that it ran, if it failed.
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
    """Run ``agent`` on ``task`` in its own ``branch`` for at most ``deadline`` seconds, and return how it ended.

    ``started`` is the event that announces it.

    Raises:
        asyncio.CancelledError: the parent was cancelled; the child and all agents below it have ended.
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
    # A resumed agent has earlier messages: only new ones can be the answer.
    now = (message for message in reversed(branch.transcript.messages) if message.id not in before)
    said = (message for message in now if message.role == "assistant")
    branch.emit(ending)
    if cancelled:
        raise asyncio.CancelledError
    message = next(said, Message("assistant", ()))
    broken = broken_command([each for each in branch.transcript.messages if each.id not in before])
    return ChildResult(branch.name, ending.reason, message, branch.account.usage, ending.error, broken=broken)


async def _until(work: asyncio.Task[Message], branch: Branch, deadline: float) -> None:
    """Return when ``work`` is done or has run for ``deadline`` seconds, excluding pauses of the agent."""
    began = time.monotonic()
    while not work.done():
        paused = branch.pauses.seconds(branch.name)
        left = deadline + paused - (time.monotonic() - began)
        if left <= 0:
            return
        await asyncio.wait({work}, timeout=max(left, GLANCE if paused else 0))


def _ending(work: asyncio.Task[Message], deadline: float | None) -> TurnEnded:
    """Return how ``work`` ended; ``deadline``: the seconds after which it was cancelled, None if it was not."""
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
