"""Starting other agents: what planning, teams and the tool delegate_task share. Protocols and values only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias

from ba_tui.core.agent_spec import AgentSpec, Budget
from ba_tui.core.effects import Effect
from ba_tui.core.spawning import ChildResult
from ba_tui.core.teamwork.agents import AgentActivity
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen

Work: TypeAlias = Callable[[Branch], Awaitable[None]]
"""Answers a prompt in place of the main agent, on its branch; the answer is the last MessageDone that it emits."""


@frozen
class Order:
    """``agent``: the type of the agent, by name, or what it is made from. ``prompt``: all that it is told.

    ``resume``: the id of an agent that ended, which goes on with ``prompt``. ``deadline`` in seconds. ``max_loops`` and
    ``budget``: None for those of its type. ``call_id``: the call that starts it. ``expected_output``: what its answer
    must give, which is checked before it ends; empty for what its type says. ``isolation``: "worktree" for an agent
    that works in a copy of the project; empty for what its type says.
    """

    agent: str | AgentSpec
    prompt: str
    description: str = ""
    resume: str = ""
    deadline: float | None = None
    max_loops: int | None = None
    budget: Budget | None = None
    call_id: str = ""
    expected_output: str = ""
    isolation: str = ""


@frozen
class RunningAgent:
    """A sub-agent of the session as lists show it; ended ones stay. ``agent_id`` is its name in events."""

    agent_id: str
    kind: str
    description: str
    activity: AgentActivity
    began: float
    background: bool = False


class Delegation(Protocol):
    """Agents below others. One for a session."""

    def effect(self, agent: str) -> Effect:
        """The worst that an agent of that type can do. Reads files. Raises UsageError, naming the nearest."""
        ...

    async def run(self, order: Order, parent: Branch) -> ChildResult:
        """Run an agent to its end. Whatever becomes of it is in the result.

        Raises:
            UsageError: there is no such agent, it calls itself, or agents are nested too deep.
            asyncio.CancelledError: the parent was cancelled.
        """
        ...

    async def start(self, order: Order, parent: Branch) -> str:
        """Begin an agent in the background and return its id; its end is told to the parent, and shown. Raises as
        ``run``."""
        ...

    def running(self) -> Sequence[RunningAgent]: ...

    def tell(self, agent_id: str, text: str) -> bool:
        """Hand words to a running agent; False when it has ended."""
        ...

    def pause(self, agent_id: str, *, on: bool) -> bool:
        """Let it stand still before its next request, or go on; False when it has ended."""
        ...

    def cancel(self, agent_id: str) -> bool: ...
