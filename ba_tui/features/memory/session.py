"""The memory of a session: entries recalled for prompts, proposed and stored facts, the tools, and the port for
faces.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from ba_tui.core.events import Event, MemoryChanged, Notice, Steered, TurnStarted
from ba_tui.core.messages import Message
from ba_tui.core.ports.memory import WorkingMemory
from ba_tui.core.tool import Tool
from ba_tui.core.turn import Branch
from ba_tui.core.values import Once, late
from ba_tui.feature import OpenFeature, SessionContext, Stage, for_main
from ba_tui.features.memory.engine.setup import setup_of
from ba_tui.features.memory.tools.proposing import FORGETTING, REMEMBERING, FactProposals
from ba_tui.features.memory.tools.recalling import MemoryRecall
from ba_tui.features.memory.tools.storing import EntryWriter, Owner, PendingFacts
from ba_tui.features.memory.tools.summarizing import SessionSummary
from ba_tui.resources import folder_slug, project_root

if TYPE_CHECKING:
    from ba_tui.features.memory.engine.store import MemoryStore
    from ba_tui.features.memory.tools.session_memory import SessionMemory

log = logging.getLogger(__name__)
REMEMBER, FORGET = "remember", "forget"
OFF = "Memory is off (setting memory.enabled)."
PRIVATE = "This session is private: nothing is stored or recalled."


class MemorySession:
    """core.agent.Interceptor of the main agent, and a listener. One per session; nothing starts before the first
    prompt.
    """

    def __init__(self, context: SessionContext) -> None:
        scope, where, settings = context.scope, context.where, context.loaded.settings
        root = project_root(context.permissions.workspace.root)
        self.problems: Sequence[Notice] = ()
        """Notices of unused settings."""
        if settings.memory.url:
            named = late("ba_tui.features.memory.tools.names:named_settings")
            settings, self.problems = named(context.loaded, where, root)
        choices, project = settings.memory, folder_slug(root)
        self._transcript = transcript = scope.transcript
        self._enabled = choices.enabled and bool(scope.id)
        self._private = choices.private
        self._redis = choices.redis
        self._wanted: dict[str, None] = {}

        def make() -> MemoryStore:
            from ba_tui.features.memory.engine.store import MemoryStore  # noqa: PLC0415 - see EntryWriter.store

            return MemoryStore(where.memory, project, setup_of(choices, project, _variable))

        owner = Owner(project, scope.id, lambda: transcript.turns, self.off)
        self._storing = storing = EntryWriter(make, where.memory.is_dir, owner)
        waiting = PendingFacts(storing)
        recalling = MemoryRecall(storing, choices)
        made = late("ba_tui.features.memory.tools.session_memory:SessionMemory")
        self._memory: Once[SessionMemory] = Once(lambda: made(storing, waiting, lambda: recalling.used))
        self.tools: tuple[Tool, ...] = (
            context.definitions[REMEMBER].late(storing),
            context.definitions[FORGET].late(self._memory, storing),
        )
        # Where no user can accept proposals, the small model is not asked for any.
        ask = scope.ask if settings.small.model and context.attended else None
        self._parts: tuple[MemoryRecall | FactProposals | SessionSummary, ...] = (
            recalling,
            *((FactProposals(waiting, self.off, ask),) if choices.proposals else ()),
            *((SessionSummary(storing, scope.history),) if choices.summaries else ()),
        )

    @property
    def memory(self) -> SessionMemory:
        """Return the port that faces use."""
        return self._memory()

    def off(self) -> str:
        """Return why nothing is stored or recalled; empty while memory is on."""
        if self._private or self._transcript.private:
            return PRIVATE
        return "" if self._enabled else OFF

    def working(self, branch: Branch, task: str) -> AbstractAsyncContextManager[WorkingMemory]:
        """Return the working memory of ``task``, over Redis if a server is set; see ``task_memory``."""
        from ba_tui.features.memory.tools.working import task_memory  # noqa: PLC0415 - few sessions run tasks

        return task_memory(branch, task, self._redis)

    def needed(self) -> Sequence[str]:
        """Return the tools to list now: none before the user mentions remembering or forgetting."""
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
            # A private session stays private when it is resumed.
            branch.emit(MemoryChanged(private=True))
        for part in self._parts:
            await _shielded(part.before(branch))

    async def after(self, reply: Message, branch: Branch) -> None:
        for part in self._parts:
            await _shielded(part.after(reply, branch))
        await _shielded(self._storing.settle())

    async def close(self) -> None:
        """Update the summary, and end the helper."""
        for part in self._parts:
            await _shielded(part.close())
        await _shielded(self._storing.close())


async def _shielded(work: Awaitable[object]) -> None:
    """Wait for ``work``. A failure of memory never costs an answer: it is logged."""
    try:
        await work
    except Exception:
        log.exception("memory failed")


def _variable(name: str) -> str:
    return os.environ.get(name, "")


def open_memory(context: SessionContext) -> OpenFeature:
    """Offer Memory to faces and TaskMemory to features that run tasks."""
    session = MemorySession(context)
    return OpenFeature(
        session.tools,
        needed=session.needed,
        interceptors=((Stage.RECALL, for_main(session)),),
        listeners=(session.apply,),
        ports={
            "ba_tui.core.ports.memory:Memory": lambda: session.memory,
            "ba_tui.core.ports.memory:TaskMemory": lambda: session,
        },
        notices=tuple(session.problems),
        close=session.close,
    )
