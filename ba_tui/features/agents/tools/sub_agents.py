"""core.ports.delegation.Delegation: the agents below others in one session, in the foreground and the background."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from ba_tui.core.agent_spec import AgentSpec
from ba_tui.core.effects import READ_ONLY
from ba_tui.core.errors import BaError, ErrorInfo, UsageError
from ba_tui.core.events import Event, Notice, Rewound, TurnEnded
from ba_tui.core.events.teamwork import ActivityChanged, AgentStarted
from ba_tui.core.messages import Message, Usage, user
from ba_tui.core.ports.delegation import Order, RunningAgent
from ba_tui.core.spawning import ChildResult, MakeAgent, run_child
from ba_tui.core.teamwork.agents import AgentActivity
from ba_tui.core.teamwork.copies import AgentCopies, not_copied
from ba_tui.core.text.wording import clipped, one_line
from ba_tui.core.tool import Effect
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.features.agents.tools.agent_types import AgentTypes
from ba_tui.features.agents.tools.limits import MOST_BACKGROUND, Failures, Places
from ba_tui.features.agents.tools.lineage import check_lineage, kind_of
from ba_tui.features.agents.tools.past_agents import resumable
from ba_tui.settings.sections.agents import AgentSettings
from ba_tui.tools.builtin.recall import ReadHistory

log = logging.getLogger(__name__)
MOST_KEPT = 200
"""Agents that ended and that lists still show."""
_ENDED: dict[str, AgentActivity] = {"error": "error", "cancelled": "cancelled"}


Skilled: TypeAlias = Callable[[AgentSpec], tuple[AgentSpec, Sequence[str]]]
"""An agent with the instructions of its skills, and why some of them are not there. Reads files."""
COPY_NOTE = (
    "You work in a copy of the project. Name its files by paths from its folder. Your changes come into the project "
    "only when whoever started you applies them: say which files you changed. You can't run commands here."
)
UNCOPIED = "Agents can't work in a copy of the project here."


def _isolated(order: Order, asked: bool, worktree: str, copies: AgentCopies | None) -> bool:
    """Whether an agent works in a copy: as it was asked for, or as it did before. Raises UsageError when it can't."""
    if order.isolation not in {"", "worktree"}:
        raise UsageError(
            f"isolation can be worktree, not {clipped(order.isolation, 40)!r}.", "Leave it out, or correct it."
        )
    if order.resume and asked and not worktree:
        raise UsageError(f"{order.resume} works in the project itself, not in a copy.", "Start a new agent.")
    wanted = asked or bool(worktree)
    if wanted and copies is None:
        # In the project, its changes would go where whoever asked for this does not expect them.
        raise UsageError(UNCOPIED, "Start it without isolation.")
    return wanted


class Child:
    """A sub-agent of this session. ``task``: its work in the background, until its owner was told of the end."""

    def __init__(self, order: Order, spec: AgentSpec, branch: Branch, *, background: bool) -> None:
        self.spec = spec
        self.branch = branch
        self.description = order.description or one_line(order.prompt, 80)
        self.background = background
        self.activity: AgentActivity = "idle"
        self.began = time.time()
        self.turn = 0
        self.model = ""
        self.stopped = False
        self.taken_back = False
        self.isolated = False
        self.result: ChildResult | None = None
        self.task: asyncio.Task[ChildResult] | None = None

    @property
    def id(self) -> str:
        return self.branch.name

    def shown(self) -> RunningAgent:
        return RunningAgent(self.id, self.spec.name, self.description, self.activity, self.began, self.background)


@frozen
class Surroundings:
    """What agents are made from and with: their ``types``, ``make``, the main agent's ``model``, the ``tools`` that
    there are, all events so far, the turn that runs, whether only reading is allowed now (plan mode), what puts the
    instructions of ``skills`` into their prompts, and the copies of the project for isolated ones."""

    types: AgentTypes
    make: MakeAgent
    model: Callable[[], str]
    history: ReadHistory
    turn: Callable[[], int]
    reading: Callable[[], bool]
    skills: Skilled
    copies: AgentCopies | None = None
    attended: bool = True


class SubAgents:
    """Made once for a session."""

    def __init__(self, around: Surroundings, limits: AgentSettings) -> None:
        self._around = around
        self._limits = limits
        self._places = Places(limits.at_once)
        self._children: dict[str, Child] = {}
        self._closed = False

    def effect(self, agent: str) -> Effect:
        """See core.ports.delegation.Delegation."""
        return self._around.types.effect(self._around.types.spec(agent))

    async def run(self, order: Order, parent: Branch) -> ChildResult:
        """See core.ports.delegation.Delegation."""
        child = await self._child(order, parent, background=False)
        async with self._places.lent(parent.name):
            return await self._work(child, order, parent)

    async def start(self, order: Order, parent: Branch) -> str:
        """See core.ports.delegation.Delegation."""
        child = await self._child(order, parent, background=True)
        child.task = asyncio.create_task(self._background(child, order, parent))
        return child.id

    def running(self) -> Sequence[RunningAgent]:
        """See core.ports.delegation.Delegation."""
        return [child.shown() for child in self._children.values()]

    def works(self, agent_id: str) -> bool:
        """Whether the agent was started here and has not ended."""
        return self._alive(agent_id) is not None

    def tell(self, agent_id: str, text: str) -> bool:
        """See core.ports.delegation.Delegation."""
        child = self._alive(agent_id)
        if child:
            child.branch.post(user(text, origin="steer"))
        return child is not None

    def pause(self, agent_id: str, *, on: bool) -> bool:
        """See core.ports.delegation.Delegation."""
        child = self._alive(agent_id)
        return child is not None and child.branch.pause(agent_id, on=on)

    def cancel(self, agent_id: str) -> bool:
        """See core.ports.delegation.Delegation."""
        child = self._alive(agent_id)
        if child:
            child.stopped = True
            child.branch.stop()
        return child is not None

    def news(self, owner: str) -> Sequence[Child]:
        """Background agents of ``owner`` that ended and that it was not told of; they count as told from now on. Those
        whose turn was taken back are left out: nobody in the conversation knows of them."""
        ended = [child for child in self._below(owner) if child.task and child.result]
        for child in ended:
            child.task = None
        return [child for child in ended if not child.taken_back]

    async def wait(self, owner: str) -> bool:
        """Wait for the background agents of ``owner``; False when it has none that it was not told of."""
        tasks = [child.task for child in self._below(owner) if child.task]
        if tasks:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return bool(tasks)

    def apply(self, event: Event) -> None:
        """Follow what the agents do; end those whose turn was taken back."""
        match event:
            case ActivityChanged(agent=name, activity=activity) if name in self._children:
                self._children[name].activity = activity
            case TurnEnded(agent=name, reason=reason) if name in self._children:
                self._children[name].activity = _ENDED.get(reason, "finished")
            case Rewound(agent="main", turns=int(kept)):
                for child in self._children.values():
                    if child.turn > kept:
                        child.taken_back = True
                        self.cancel(child.id)
            case _:
                pass

    async def close(self) -> None:
        """Stop what still runs in the background; its state is in the journal, so it can be resumed."""
        self._closed = True
        tasks = [child.task for child in self._children.values() if child.task and not child.task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _check_room(self) -> None:
        """Raise UsageError when no further agent may work in the background."""
        if sum(child.background and child.result is None for child in self._children.values()) >= MOST_BACKGROUND:
            message = f"{MOST_BACKGROUND} agents already work in the background, and no more may."
            raise UsageError(message, "Wait until some of them have ended, or do this work yourself.")

    def _below(self, owner: str) -> list[Child]:
        return [child for child in self._children.values() if child.id.rpartition("/")[0] == owner]

    def _alive(self, agent_id: str) -> Child | None:
        child = self._children.get(agent_id)
        return child if child and child.result is None else None

    async def _child(self, order: Order, parent: Branch, *, background: bool) -> Child:
        """The agent of ``order``, ready to be made. Raises UsageError."""
        around, transcript, worktree = self._around, None, ""
        kind = order.agent if isinstance(order.agent, str) else order.agent.name
        if self._closed:
            raise UsageError("The session is being closed; no agent is started any more.")
        if order.resume:
            if self._alive(order.resume) or self._alive(f"{parent.name}/{order.resume}"):
                raise UsageError(f"{order.resume} still works.", "Wait for its end.")
            past = await asyncio.to_thread(resumable, await around.history(), order.resume, parent.name)
            kind, transcript, worktree = past.kind, await asyncio.to_thread(past.transcript), past.worktree
        spec = order.agent
        if isinstance(spec, str):
            spec = await asyncio.to_thread(around.types.spec, kind)
        described = isinstance(order.agent, str) and not order.resume
        asked = order.isolation or (described and await asyncio.to_thread(around.types.isolated, kind))
        isolated = _isolated(order, bool(asked), worktree, around.copies)
        check_lineage(kind_of(transcript.agent) if transcript else spec.name, parent.name, self._limits.depth)
        parent.state(Failures).check(spec.name)
        most = spec.ceiling.within(READ_ONLY) if around.reading() else spec.ceiling
        spec = replace(
            spec,
            ceiling=parent.ceiling.within(most),
            max_loops=order.max_loops or spec.max_loops,
            budget=order.budget or spec.budget,
            expected_output=order.expected_output or spec.expected_output,
        )
        lost: Sequence[str] = ()
        if spec.skills:
            spec, lost = await asyncio.to_thread(around.skills, spec)
        if isolated:
            spec = replace(spec, prompt=f"{spec.prompt.rstrip()}\n\n{COPY_NOTE}")
        if background:
            # Nothing is waited for from here to where the agent is known: calls of one message come side by side.
            self._check_room()
        child = Child(order, spec, parent.fork(spec.name, spec.ceiling, transcript), background=background)
        child.isolated = isolated
        above = self._children.get(parent.name)
        child.model = spec.model or (above.model if above else "") or around.model()
        child.turn = around.turn()
        self._children.pop(child.id, None)
        self._children[child.id] = child
        self._forget()
        for line in around.types.news(spec.name):
            parent.emit(Notice(line, "warning", "See ba agents list."))
        for line in lost:
            parent.emit(Notice(line, "warning", "See ba skills list."))
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
        finally:
            # Nobody would be told of agents that it left in the background.
            for other in self._below(child.id):
                self.cancel(other.id)
        child.result = result
        child.activity = _ENDED.get(result.status, "finished")
        parent.state(Failures).note(child.spec.name, result)
        return result

    async def _made(self, child: Child, order: Order) -> ChildResult:
        if child.stopped:
            return self._none(child, "cancelled")
        child.activity = "thinking"
        seconds, copies, copy = order.deadline or self._limits.deadline, self._around.copies, None
        try:
            if copies and child.isolated:
                copy = await (copies.find if order.resume else copies.make)(child.id)
            if child.stopped:
                # While its copy was made. There was nothing yet that could be cancelled.
                return await self._noted(self._none(child, "cancelled"), copies if copy else None)
            started = AgentStarted(
                child.spec.name,
                child.description,
                order.call_id,
                child.model,
                child.background,
                bool(order.resume),
                str(copy.files) if copy else "",
            )
            spec = replace(child.spec, copy=copy)
            if copy and copy.left:
                spec = replace(spec, prompt=f"{spec.prompt}\n\n{not_copied(copy.left)}")
            async with self._around.make(spec, child.model) as agent:
                result = await run_child(agent, child.branch, order.prompt, deadline=seconds, started=started)
        except BaError as error:
            # Its copy can't be made, its model can't be asked, or its folder can't be made.
            result = replace(self._none(child, "error"), error=error.info())
        except Exception as error:
            # Without a result, its owner would wait for it for ever.
            log.exception("a sub-agent could not be run")
            why = ErrorInfo("internal_error", f"{type(error).__name__}: {error}")
            result = replace(self._none(child, "error"), error=why)
        return await self._noted(result, copies if copy else None)

    @staticmethod
    async def _noted(result: ChildResult, copies: AgentCopies | None) -> ChildResult:
        """``result`` with what became of the agent's copy, if it had one."""
        return replace(result, note=await copies.told(result.agent_id)) if copies else result

    @staticmethod
    def _none(child: Child, status: str) -> ChildResult:
        ending = "cancelled" if status == "cancelled" else "error"
        return ChildResult(child.id, ending, Message("assistant", ()), Usage())

    async def _background(self, child: Child, order: Order, parent: Branch) -> ChildResult:
        result = await self._work(child, order, parent)
        if result.status in {"limit", "error"}:
            # Faces say by themselves that it has finished; why it has not is said here.
            how = "was stopped at a limit" if result.status == "limit" else "failed"
            text = f"The agent {child.id} ({child.description}) {how}."
            parent.emit(Notice(text, "warning", result.error.message if result.error else ""))
        return result
