"""All that a session has for memory: what goes with prompts, what is proposed and stored, its tools, what faces see."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from ba_tui.core.agent import AskModel
from ba_tui.core.events import Event, MemoryChanged, Steered, TurnStarted
from ba_tui.core.messages import Message
from ba_tui.core.ports.memory import Memory
from ba_tui.core.ports.working import TaskMemory, WorkingMemory
from ba_tui.core.tool import Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.feature import OpenFeature, SessionContext, Stage, for_main
from ba_tui.features.memory.engine.setup import setup_of
from ba_tui.features.memory.tools.memory_tools import FORGET, REMEMBER, forget_tool, remember_tool
from ba_tui.features.memory.tools.names import proposed_names, with_shared_name
from ba_tui.features.memory.tools.proposing import FORGETTING, REMEMBERING, Proposing
from ba_tui.features.memory.tools.recalling import Bounds, Recalling
from ba_tui.features.memory.tools.session_memory import SessionMemory
from ba_tui.features.memory.tools.storing import Owner, Storing
from ba_tui.features.memory.tools.summarizing import SessionSummary
from ba_tui.features.memory.tools.waiting import Waiting
from ba_tui.features.memory.tools.working import task_memory
from ba_tui.resources import Places, folder_slug, project_root
from ba_tui.settings import Loaded, Settings
from ba_tui.tools.builtin.recall import ReadHistory
from ba_tui.tools.definitions import Definition

if TYPE_CHECKING:
    from ba_tui.features.memory.engine.store import MemoryStore

log = logging.getLogger(__name__)
OFF = "Memory is off (setting memory.enabled)."
PRIVATE = "This session is private: nothing is stored or recalled."


@frozen
class MemoryScope:
    """The session: its ``id`` (empty where no conversation is kept), the ``root`` of its project, what was said, all
    events (``history``), and the small model, which ``ask`` asks."""

    id: str
    root: Path
    transcript: Transcript
    history: ReadHistory
    ask: AskModel | None


class MemorySession:
    """core.agent.Interceptor of the main agent, and a listener. Made once for a session; nothing starts before the
    first prompt."""

    def __init__(
        self,
        definitions: Mapping[str, Definition],
        given: Loaded | Settings,
        where: Places,
        scope: MemoryScope,
    ) -> None:
        settings, shared = with_shared_name(given, where, scope.root)
        choices, project = settings.memory, folder_slug(scope.root)
        self.problems = proposed_names(shared)
        """Notices of what is not used."""
        self._transcript = transcript = scope.transcript
        self._enabled = choices.enabled and bool(scope.id)
        self._private = choices.private
        self._redis = choices.redis
        self._wanted: dict[str, None] = {}

        def make() -> MemoryStore:
            from ba_tui.features.memory.engine.store import MemoryStore  # noqa: PLC0415 - see Storing.store

            return MemoryStore(where.memory, project, setup_of(choices, project, _variable))

        owner = Owner(project, scope.id, lambda: transcript.turns, self.off)
        self._storing = storing = Storing(make, where.memory.is_dir, owner)
        waiting = Waiting(storing)
        recalling = Recalling(storing, Bounds(choices.most_recalled, choices.recalled_tokens))
        self.memory = SessionMemory(storing, waiting, lambda: recalling.used)
        """What faces see."""
        self.tools: tuple[Tool, ...] = (
            remember_tool(definitions[REMEMBER], storing),
            forget_tool(definitions[FORGET], self.memory, storing),
        )
        ask = scope.ask if settings.small.model else None
        self._parts: tuple[Recalling | Proposing | SessionSummary, ...] = (
            recalling,
            *((Proposing(waiting, self.off, ask),) if choices.proposals else ()),
            *((SessionSummary(storing, scope.history),) if choices.summaries else ()),
        )

    def off(self) -> str:
        """Why nothing is stored or recalled; empty while memory is on."""
        if self._private or self._transcript.private:
            return PRIVATE
        return "" if self._enabled else OFF

    def working(self, branch: Branch, task: str) -> AbstractAsyncContextManager[WorkingMemory]:
        """The working memory of ``task``, over Redis where a server is set; see ``task_memory``."""
        return task_memory(branch, task, self._redis)

    def needed(self) -> Sequence[str]:
        """The tools to list now: none before the person speaks of remembering or forgetting."""
        return tuple(self._wanted)

    def _hear(self, words: str) -> None:
        asked = ((REMEMBER, REMEMBERING), (FORGET, FORGETTING))
        if not self.off():
            self._wanted |= {name: None for name, pattern in asked if pattern.search(words)}

    def apply(self, event: Event) -> None:
        match event:
            case (
                TurnStarted(agent="main", prompt=message)
                | Steered(agent="main", message=Message(origin="steer") as message)
            ):
                self._hear(message.said.lower())
            case _:
                pass
        for part in self._parts:
            part.apply(event)

    async def before(self, branch: Branch) -> None:
        if self._private and not branch.transcript.private:
            # It stays private when it goes on later.
            branch.emit(MemoryChanged(private=True))
        for part in self._parts:
            await _shielded(part.before(branch))

    async def after(self, reply: Message, branch: Branch) -> None:
        for part in self._parts:
            await _shielded(part.after(reply, branch))
        await _shielded(self._storing.settle())

    async def close(self) -> None:
        """Bring the summary up to date, and end the helper."""
        for part in self._parts:
            await _shielded(part.close())
        await _shielded(self._storing.close())


async def _shielded(work: Awaitable[None]) -> None:
    """Wait for ``work``. A memory that is broken costs nobody an answer: what is wrong goes into the log."""
    try:
        await work
    except Exception:
        log.exception("memory failed")


def _variable(name: str) -> str:
    return os.environ.get(name, "")


def open_memory(context: SessionContext) -> OpenFeature:
    """Offer Memory to faces and TaskMemory to features that run tasks."""
    scope = context.scope
    # Where no user can accept proposals, the small model is not asked for any.
    ask = scope.ask if context.attended else None
    root = project_root(context.permissions.workspace.root)
    session = MemorySession(
        context.definitions,
        context.loaded,
        context.where,
        MemoryScope(scope.id, root, scope.transcript, scope.history, ask),
    )
    return OpenFeature(
        session.tools,
        needed=session.needed,
        interceptors=((Stage.RECALL, for_main(session)),),
        listeners=(session.apply,),
        ports={Memory: session.memory, TaskMemory: session},
        notices=tuple(session.problems),
        close=session.close,
    )
