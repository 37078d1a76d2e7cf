"""core.ports.memory.Memory for one session: the view of faces and tools on its memory, with undo; and the tools
remember and forget.

The tools ask in every mode: only an allow rule that names them lets them run without a question.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ba_tui.core.errors import UsageError
from ba_tui.core.events import MemoryChanged
from ba_tui.core.ports.memory import Draft, Entry, MemoryState, RecalledEntry, Recollection, Scope, StoreResult, line_of
from ba_tui.core.results import Display, Prose, ToolResult
from ba_tui.core.text.wording import count, one_line
from ba_tui.core.tool import Call, Tool
from ba_tui.features.memory.engine.entries import day_of
from ba_tui.features.memory.tools.recalling import recalled
from ba_tui.features.memory.tools.storing import EntryWriter, PendingFacts, checked
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failures import ToolFailure

_FILTERED = 5
"""Factor for the number of entries searched when only one scope is wanted."""


class SessionMemory:
    """core.ports.memory.Memory. What users view, change or forget by hand works while memory is off, too.

    ``used``: the entries that were sent with the newest prompt.
    """

    def __init__(
        self, storing: EntryWriter, waiting: PendingFacts, used: Callable[[], Sequence[RecalledEntry]]
    ) -> None:
        self._storing = storing
        self._waiting = waiting
        self._recalled = used
        self._forgotten: dict[str, Entry] = {}
        self.proposals, self.dismiss = waiting.all, waiting.dismiss

    async def state(self) -> MemoryState:
        from ba_tui.features.memory.engine.helper_process import STARTING  # noqa: PLC0415 - see EntryWriter.store

        state = await self._storing.store.state()
        # The newest search used words, but the next one does not.
        started = state.why == STARTING and self._storing.store.helper.ready
        return replace(state, why="" if started else state.why, off=self._storing.owner.off())

    async def remember(self, draft: Draft) -> StoreResult:
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
        # A stored and then forgotten entry is restored: forgetting it was the newer change.
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
        return await self._storing.store.history(id)

    def used(self) -> Sequence[RecalledEntry]:
        return tuple(each for each in self._recalled() if each.entry.id not in self._forgotten)

    async def accept(self, id: str) -> StoreResult:
        stored = await self.remember(self._waiting.get(id).draft)
        self._waiting.drop(id)
        return stored


SHOWN = 200


def remember_tool(definition: Definition, storing: EntryWriter) -> Tool:
    async def preview(args: Mapping[str, Any]) -> Display:
        stored = await storing.foreseen(_draft(args))
        where = "For this project" if stored.entry.project else "For all projects"
        lines = [f"{where}: {stored.entry.text}"]
        if stored.older:
            lines.append(f"Replaces{_day(stored.older)}: {stored.older.text}")
        if stored.outcome == "known":
            lines = [f"Known already{_day(stored.entry)}: {stored.entry.text}"]
        return Prose("\n".join(lines))

    async def concern(args: Mapping[str, Any]) -> str:
        return "it is for all projects" if args.get("scope") == "global" else ""

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        stored = await storing.remember(_draft(args))
        entry = stored.entry
        if stored.outcome == "known":
            return ToolResult(f"Known already as {entry.id}: {entry.text}", Prose(entry.text), summary="known already")
        older = stored.older.text if stored.older else ""
        call.branch.emit(MemoryChanged((line_of(entry, older=older),)))
        said = f"Stored as {entry.id}." + (f" It replaces: {older}" if older else "")
        return ToolResult(said, Prose(_shown(stored)), summary="replaced" if older else "remembered")

    return definition.tool(run, preview=preview, concern=concern)


def forget_tool(definition: Definition, memory: SessionMemory, storing: EntryWriter) -> Tool:
    async def preview(args: Mapping[str, Any]) -> Display:
        return Prose("\n".join(f"-{_day(entry)} {entry.text}" for entry in await found(args)))

    async def found(args: Mapping[str, Any]) -> list[Entry]:
        entries = await storing.store.get(args["ids"])
        if missing := [id for id in args["ids"] if id not in entries]:
            raise ToolFailure(
                "not_found", f"No memory has the id {missing[0]!r}.", "Take ids from a reminder of memories."
            )
        return [entries[id] for id in dict.fromkeys(args["ids"])]

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        entries = await found(args)
        gone = await memory.forget([entry.id for entry in entries])
        call.branch.emit(MemoryChanged(forgotten=tuple(entry.id for entry in entries)))
        told = count(gone, "memory")
        return ToolResult(f"Forgot {told}.", summary=f"forgot {told}")

    return definition.tool(run, preview=preview)


def _draft(args: Mapping[str, Any]) -> Draft:
    return Draft(
        args["text"],
        args.get("kind", "fact"),
        args.get("scope", "project"),
        args.get("subject", ""),
        args.get("attribute", ""),
        origin="assistant",
    )


def _shown(stored: StoreResult) -> str:
    return stored.entry.text + (f"\nReplaces: {one_line(stored.older.text, SHOWN)}" if stored.older else "")


def _day(entry: Entry) -> str:
    day = day_of(entry.at)
    return f" ({day:%Y-%m-%d})" if day else ""
