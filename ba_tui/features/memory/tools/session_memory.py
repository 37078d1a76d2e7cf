"""core.ports.memory.Memory for one session: what faces and tools see of its memory, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.memory import (
    Draft,
    Entry,
    MemoryState,
    Recalled,
    Recollection,
    Scope,
    Stored,
)
from ba_tui.features.memory.tools.recalling import recalled
from ba_tui.features.memory.tools.storing import Storing, checked
from ba_tui.features.memory.tools.waiting import Waiting

_FILTERED = 5
"""How many times as many entries are searched when only one scope is wanted."""


class SessionMemory:
    """core.ports.memory.Memory. What a person sees, changes or forgets by hand works while memory is off, too.

    ``used`` are the entries that went with the newest prompt.
    """

    def __init__(self, storing: Storing, waiting: Waiting, used: Callable[[], Sequence[Recalled]]) -> None:
        self._storing = storing
        self._waiting = waiting
        self._recalled = used
        self._forgotten: dict[str, Entry] = {}
        self.proposals, self.dismiss = waiting.all, waiting.dismiss

    async def state(self) -> MemoryState:
        from ba_tui.features.memory.engine.helper_process import STARTING  # noqa: PLC0415 - see Storing.store

        state = await self._storing.store.state()
        # The newest search went by words, but the next one does not.
        started = state.why == STARTING and self._storing.store.helper.ready
        return replace(state, why="" if started else state.why, off=self._storing.owner.off())

    async def remember(self, draft: Draft) -> Stored:
        return await self._storing.remember(draft)

    async def edit(self, id: str, text: str) -> Entry:
        return await self._storing.store.change(id, text=checked(text), server="")

    async def pin(self, id: str, *, pinned: bool) -> Entry:
        return await self._storing.store.change(id, pinned=pinned)

    async def promote(self, id: str) -> Entry:
        return await self._storing.store.change(id, project="")

    async def forget(self, ids: Collection[str]) -> int:
        entries = await self._storing.store.get(ids)
        gone = await self._storing.store.forget(ids)
        self._forgotten.update(entries)
        return gone

    async def restore(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self._forgotten.pop(entry.id, None)
        there = await self._storing.store.get([entry.id for entry in entries])
        await self._storing.store.add([entry for entry in entries if entry.id not in there])
        for entry in there.values():
            if entry.superseded_by:
                await self._storing.store.change(entry.id, superseded_by="")

    async def undo(self, ids: Collection[str]) -> None:
        unknown = [id for id in ids if id not in self._storing.stored and id not in self._forgotten]
        if unknown:
            raise UsageError("This change of memory can't be undone any more.", "/memory shows what is stored.")
        # What was stored and then forgotten comes back: its forgetting is the newer change.
        forgotten = [self._forgotten.pop(id) for id in ids if id in self._forgotten]
        back = {entry.id for entry in forgotten}
        if stored := [self._storing.stored.pop(id) for id in ids if id in self._storing.stored and id not in back]:
            await self._storing.store.forget([each.entry.id for each in stored])
            await self.restore([each.older for each in stored if each.older])
        if forgotten:
            await self.restore(forgotten)

    async def find(self, text: str, *, limit: int = 20, scope: Scope | None = None) -> Recollection:
        most = limit * _FILTERED if scope else limit
        found = await self._storing.search(text, most, explicit=True)
        hits = [hit for hit in found.hits if scope is None or bool(hit.entry.project) == (scope == "project")]
        return Recollection(tuple(recalled(hit) for hit in hits[:limit]), found.step, found.why)

    async def listed(self, *, scope: Scope | None = None, offset: int = 0, limit: int = 200) -> Sequence[Entry]:
        return await self._storing.store.listed(scope, offset, limit)

    async def history(self, id: str) -> Sequence[Entry]:
        return await self._storing.store.catalog.history(id)

    def used(self) -> Sequence[Recalled]:
        return tuple(each for each in self._recalled() if each.entry.id not in self._forgotten)

    async def accept(self, id: str) -> Stored:
        stored = await self.remember(self._waiting.get(id).draft)
        self._waiting.drop(id)
        return stored
