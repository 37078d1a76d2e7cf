"""core.ports.delegation.Delegation: the agents below others in one session, in the foreground and the background."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TypeAlias

from ba_tui.core.agent import Agent
from ba_tui.core.agent_spec import AgentSpec
from ba_tui.core.errors import BaError
from ba_tui.core.events import Notice
from ba_tui.core.events.teamwork import AgentStarted
from ba_tui.core.messages import Message, Usage
from ba_tui.core.ports.delegation import Order, RunningAgent
from ba_tui.core.spawning import ChildResult, run_child
from ba_tui.core.teamwork.agents import AgentActivity
from ba_tui.core.text.wording import one_line
from ba_tui.core.turn import Branch
from ba_tui.tools.delegating.limits import Failures

MOST_KEPT = 200
"""Agents that ended and that lists still show."""
_ENDED: dict[str, AgentActivity] = {"error": "error", "cancelled": "cancelled"}


MakeAgent: TypeAlias = Callable[[AgentSpec, str], AbstractAsyncContextManager[Agent]]
"""Makes an agent to be run, which the model answers unless its spec names another; what the agent holds is closed on
leaving. Raises UsageError, AuthFailed."""


class Child:
    """A sub-agent of this session. ``until``: when it ended, in seconds since the epoch."""

    def __init__(self, order: Order, spec: AgentSpec, branch: Branch, *, background: bool) -> None:
        self.spec = spec
        self.branch = branch
        self.description = order.description or one_line(order.prompt, 80)
        self.background = background
        self.activity: AgentActivity = "idle"
        self.began = time.time()
        self.turn = 0
        self.worktree = ""
        self.model = ""
        self.stopped = False
        self.result: ChildResult | None = None
        self.task: asyncio.Task[ChildResult] | None = None

    @property
    def id(self) -> str:
        return self.branch.name

    def shown(self) -> RunningAgent:
        kind, text = self.spec.name, self.description
        return RunningAgent(self.id, kind, text, self.activity, self.began, self.background, self.worktree)
        child = Child(order, spec, parent.fork(spec.name, spec.ceiling, transcript), background=background)
        above = self._children.get(parent.name)
        child.model = spec.model or (above.model if above else "") or around.model()
        child.turn = around.turn()
        self._children.pop(child.id, None)
        self._children[child.id] = child
        self._forget()
        for line in around.types.news(spec.name):
            parent.emit(Notice(line, "warning", "See ba agents list."))
        return child

    def _forget(self) -> None:
        ended = [name for name, child in self._children.items() if child.result and child.task is None]
        for name in ended[: max(0, len(ended) - MOST_KEPT)]:
            del self._children[name]

    async def _work(self, child: Child, order: Order, parent: Branch) -> ChildResult:
        try:
            async with self._places.taken(child.id):
                result = await self._made(child, order)
        except asyncio.CancelledError:
            child.result = self._none(child, "cancelled")
            child.activity = "cancelled"
            raise
        child.result = result
        child.activity = _ENDED.get(result.status, "finished")
        parent.state(Failures).note(child.spec.name, result)
        return result

    async def _made(self, child: Child, order: Order) -> ChildResult:
        if child.stopped:
            return self._none(child, "cancelled")
        child.activity = "thinking"
        started = AgentStarted(
            child.spec.name,
            child.description,
            order.call_id,
            child.model,
            child.background,
            bool(order.resume),
            child.worktree,
        )
        seconds = order.deadline or self._limits.deadline
        try:
            async with self._around.make(child.spec, child.model) as agent:
                return await run_child(agent, child.branch, order.prompt, deadline=seconds, started=started)
        except BaError as error:
            # Its model can't be asked, or its folder can't be made.
            return replace(self._none(child, "error"), error=error.info())

    @staticmethod
    def _none(child: Child, status: str) -> ChildResult:
        ending = "cancelled" if status == "cancelled" else "error"
        return ChildResult(child.id, ending, Message("assistant", ()), Usage())

    async def _background(self, child: Child, order: Order, parent: Branch) -> ChildResult:
        result = await self._work(child, order, parent)
        how = {"done": "has finished", "limit": "was stopped at a limit", "cancelled": "was cancelled"}
        text = f"The agent {child.id} ({child.description}) {how.get(result.status, 'failed')}."
        why = result.error.message if result.error and result.status != "cancelled" else ""
        parent.emit(Notice(text, "info" if result.status == "done" else "warning", why))
        return result
