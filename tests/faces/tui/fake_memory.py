"""The memory of a session without a disk: it stores, finds by words and proposes as a test tells it to."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from ba_tui.core.errors import SecretRefused, UsageError
from ba_tui.core.ports.memory import (
    Draft,
    Entry,
    MemoryState,
    Proposal,
    RecalledEntry,
    Recollection,
    Scope,
    StoreResult,
)


@dataclass
class KeptMemory:
    """``entries`` by id, the newest last."""

    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    waiting: list[Proposal] = field(default_factory=list[Proposal])
    recalled: list[RecalledEntry] = field(default_factory=list[RecalledEntry])
    standing: MemoryState = field(default_factory=lambda: MemoryState(size=2_400, step="vectors"))

    def put(self, *entries: Entry) -> None:
        for entry in entries:
            if entry.supersedes:
                older = self.entries[entry.supersedes]
                self.entries[older.id] = replace(older, superseded_by=entry.id)
            self.entries[entry.id] = entry

    async def state(self) -> MemoryState:
        return replace(self.standing, entries=len(self.entries))

    async def remember(self, draft: Draft) -> StoreResult:
        if "password" in draft.text:
            raise SecretRefused("The text holds a password, so it is not stored.", "Leave the password out.")
        if same := next((each for each in self.entries.values() if each.text == draft.text), None):
            return StoreResult(same, "known")
        subject = draft.subject or ("tabs" if "tabs" in draft.text else "")
        older = next((each for each in self.entries.values() if subject and each.subject == subject), None)
        project = "app" if draft.scope == "project" else ""
        id = f"m{len(self.entries)}"
        new = Entry(id, draft.text, draft.kind, subject, project=project, supersedes=older.id if older else "")
        self.put(new)
        return StoreResult(new, "replaces" if older else "new", older)

    async def undo(self, ids: Collection[str]) -> None:
        for id in ids:
            if id not in self.entries:
                raise UsageError("This change of memory can't be undone any more.")
            older = self.entries.pop(id).supersedes
            if older:
                self._change(older, superseded_by="")

    async def edit(self, id: str, text: str) -> Entry:
        if "password" in text:
            raise SecretRefused("The text holds a password, so it is not stored.", "Leave the password out.")
        return self._change(id, text=text)

    async def pin(self, id: str, *, pinned: bool) -> Entry:
        return self._change(id, pinned=pinned)

    async def promote(self, id: str) -> Entry:
        return self._change(id, project="")

    def _change(self, id: str, **fields: object) -> Entry:
        if id not in self.entries:
            raise UsageError(f"There is no memory {id}.")
        self.entries[id] = replace(self.entries[id], **fields)  # pyright: ignore[reportArgumentType] - any field
        return self.entries[id]

    async def forget(self, ids: Collection[str]) -> int:
        return sum(self.entries.pop(id, None) is not None for id in ids)

    async def restore(self, entries: Sequence[Entry]) -> None:
        self.entries |= {entry.id: entry for entry in entries}

    async def find(self, text: str, *, limit: int = 20, scope: Scope | None = None) -> Recollection:
        wanted = text.casefold().split()
        found = [
            each for each in await self.listed(scope=scope) if any(word in each.text.casefold() for word in wanted)
        ]
        return Recollection(tuple(RecalledEntry(each, 1.0, f"shares “{text}”") for each in found[:limit]))

    async def listed(self, *, scope: Scope | None = None, offset: int = 0, limit: int = 200) -> Sequence[Entry]:
        listed = [each for each in reversed(self.entries.values()) if scope in {None, _scope(each)}]
        return sorted(listed, key=lambda each: not each.pinned)[offset : offset + limit]

    async def history(self, id: str) -> Sequence[Entry]:
        found: list[Entry] = []
        while entry := self.entries.get(id):
            found.append(entry)
            id = entry.supersedes
        return found

    def used(self) -> Sequence[RecalledEntry]:
        return self.recalled

    def proposals(self) -> Sequence[Proposal]:
        return self.waiting

    async def accept(self, id: str) -> StoreResult:
        proposal = next(each for each in self.waiting if each.id == id)
        self.waiting.remove(proposal)
        return await self.remember(proposal.draft)

    def dismiss(self, id: str) -> None:
        self.waiting = [each for each in self.waiting if each.id != id]


def _scope(entry: Entry) -> Scope:
    return "project" if entry.project else "global"
