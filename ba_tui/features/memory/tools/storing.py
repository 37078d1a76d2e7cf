"""Rules for storing: limits, secrets, and whether an entry is known already: equal, reworded, or with another value.

``engine.store`` keeps and finds the entries.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ba_tui.core.errors import MemoryOff, SecretRefused, UsageError
from ba_tui.core.messages import clean_text
from ba_tui.core.ports.memory import Draft, Entry, Proposal, StoreResult
from ba_tui.core.values import frozen
from ba_tui.features.memory.engine.entries import new_id
from ba_tui.features.memory.engine.stated import classified, value_changed
from ba_tui.features.memory.engine.terms import Sameness, compare, fingerprint
from ba_tui.permissions.secrets.scanner import find

if TYPE_CHECKING:
    from ba_tui.features.memory.engine.recall import RecallResult
    from ba_tui.features.memory.engine.store import MemoryStore


LONGEST = 8_000
"""Maximum characters of one memory."""
SOON = 0.25
"""Seconds for a search by meaning while a user waits; then words are used."""
LATE = f"The search by meaning did not answer within {SOON:g} s."
_ALIKE = 12
"""Number of entries that a new one is compared with."""
_REPORTS = frozenset({"summary", "outcome", "turn"})
"""Kinds whose entries are about different things, however similar they sound."""


@frozen
class Owner:
    """The owner of entries: the ``project`` by its slug, the ``session``, its number of turns, and why memory is
    ``off`` (empty while it is on).
    """

    project: str
    session: str = ""
    turns: Callable[[], int] = int
    off: Callable[[], str] = str


class EntryWriter:
    """Stores the entries of one session; ``stored`` are those of this run, by their ids."""

    def __init__(self, make: Callable[[], MemoryStore], begun: Callable[[], bool], owner: Owner) -> None:
        self._make = make
        self._begun = begun
        self._made = False
        self._unwritten = False
        self.owner = owner
        self.stored: dict[str, StoreResult] = {}

    @cached_property
    def store(self) -> MemoryStore:
        """Return the store, created on first use: it needs SQLite, which most short runs do not."""
        self._made = True
        return self._make()

    @cached_property
    def _words(self) -> MemoryStore:
        """Search by words in this process instead."""
        from ba_tui.features.memory.engine.setup import BY_WORDS, StoreSetup  # noqa: PLC0415 - see store
        from ba_tui.features.memory.engine.store import MemoryStore  # noqa: PLC0415 - see store

        return MemoryStore(self.store.folder, self.owner.project, StoreSetup(BY_WORDS))

    @property
    def begun(self) -> bool:
        """Return whether anything was ever stored. Checks the disk, without the store."""
        return self._made or self._begun()

    async def search(self, text: str, limit: int, **more: Any) -> RecallResult:
        """Search the store; ``more`` are fields of recall.SearchRequest.

        Only an explicit search waits for a slow helper; others use words after ``SOON``.
        """
        from ba_tui.features.memory.engine.recall import SearchRequest  # noqa: PLC0415 - see store

        ask = SearchRequest(text, limit, today=datetime.now().astimezone().date(), **more)
        try:
            async with asyncio.timeout(None if ask.explicit else SOON):
                return await self.store.search(ask)
        except TimeoutError:
            return replace(await self._words.search(ask), why=LATE)

    async def settle(self) -> None:
        """Wait until the entries of this session are on the disk."""
        if self._unwritten:
            self._unwritten = False
            await self.store.sync()

    async def close(self) -> None:
        if self._made:
            await self.store.sync()
            await self.store.close()

    async def remember(self, draft: Draft) -> StoreResult:
        """See core.ports.memory.Memory."""
        stored = await self.foreseen(draft)
        if stored.outcome != "known":
            await self.store.add([stored.entry])
            self.stored[stored.entry.id], self._unwritten = stored, True
        return stored

    async def foreseen(self, draft: Draft) -> StoreResult:
        """Return what storing ``draft`` would do. Raises MemoryOff, SecretRefused, UsageError."""
        if off := self.owner.off():
            raise MemoryOff(off, "Start a session with memory to store anything.")
        check_secrets(f"{draft.subject}\n{draft.attribute}")
        draft = _complete(replace(draft, text=checked(draft.text)))
        at, owner = time.time(), self.owner
        entry = Entry(
            new_id(at),
            draft.text,
            draft.kind,
            clean_text(draft.subject),
            clean_text(draft.attribute),
            project="" if draft.scope == "global" else owner.project,
            session=owner.session,
            sequence=owner.turns(),
            origin=draft.origin,
            source=draft.source,
            at=at,
            valid_from=at,
            importance=draft.importance,
            pinned=draft.pinned,
        )
        known, older = await self._alike(entry)
        if known:
            return StoreResult(known, "known")
        if older is None and entry.subject and entry.attribute:
            older = await self.store.slot(entry.subject, entry.attribute, draft.scope)
        return (
            StoreResult(replace(entry, supersedes=older.id), "replaces", older) if older else StoreResult(entry, "new")
        )

    async def _alike(self, entry: Entry) -> tuple[Entry | None, Entry | None]:
        """Return the entry that says the same as ``entry``, and the one that says it with another value."""
        same = [each for each in await self.store.same(entry.text) if _same_place(each, entry)]
        if same:
            return same[0], None
        if entry.kind in _REPORTS:
            return None, None
        found = await self.search(entry.text, _ALIKE)
        for hit in found.hits:
            if not _same_place(hit.entry, entry) or hit.entry.kind in _REPORTS:
                continue
            sameness = compare(hit.entry.text, entry.text)
            if sameness in {Sameness.EQUAL, Sameness.REWORDED}:
                return hit.entry, None
            if sameness is Sameness.NUMBERS and value_changed(hit.entry.text, entry.text):
                return None, hit.entry
        return None, None


def checked(text: str) -> str:
    """Return ``text`` as it is stored. Raises UsageError if it is empty or too long, SecretRefused."""
    text = clean_text(text).strip()
    if not text:
        raise UsageError("There is nothing to remember.", "Write what to remember: /remember TEXT.")
    if len(text) > LONGEST:
        raise UsageError(
            f"A memory has at most {LONGEST:,} characters, and this text has {len(text):,}.",
            "Store a shorter one; long texts belong in a file.",
        )
    check_secrets(text)
    return text


def check_secrets(text: str) -> None:
    """Raise SecretRefused if ``text`` contains a secret."""
    if secrets := find(text):
        raise SecretRefused(
            f"Not stored: the text holds a secret ({secrets[0].kind}).", "Memory never keeps keys or passwords."
        )


def _complete(draft: Draft) -> Draft:
    """Return ``draft`` with missing kind, subject and attribute taken from its words."""
    if draft.subject or draft.attribute or draft.kind not in {"fact", "preference"}:
        return draft
    found = classified(draft.text)
    kind = found.kind if draft.kind == "fact" else draft.kind
    return replace(draft, kind=kind, subject=found.subject, attribute=found.attribute)


def _same_place(one: Entry, other: Entry) -> bool:
    return one.project == other.project


class PendingFacts:
    """The proposals of one session. A dismissed fact is not proposed again."""

    def __init__(self, storing: EntryWriter) -> None:
        self._storing = storing
        self._proposals: dict[str, Proposal] = {}
        self._dismissed: set[str] = set()

    def all(self) -> Sequence[Proposal]:
        return tuple(self._proposals.values())

    async def add(self, drafts: Sequence[Draft]) -> Sequence[Proposal]:
        """Add those of the ``drafts`` that are neither known nor dismissed nor waiting; return these.

        Raises:
            MemoryOff, StorageError: nothing can be stored.
        """
        new: list[Proposal] = []
        for draft in drafts:
            if fingerprint(draft.text) in self._dismissed or self._waits(draft.text):
                continue
            try:
                stored = await self._storing.foreseen(draft)
            except (SecretRefused, UsageError):
                continue
            if stored.outcome != "known":
                proposal = Proposal(stored.entry.id, draft, stored.older)
                self._proposals[proposal.id] = proposal
                new.append(proposal)
        return new

    def get(self, id: str) -> Proposal:
        """Return the proposal ``id``. Raises UsageError if it was stored or dismissed."""
        if (proposal := self._proposals.get(id)) is None:
            raise UsageError("This proposal was stored or dropped already.", "/remember TEXT stores a memory.")
        return proposal

    def drop(self, id: str) -> Proposal | None:
        return self._proposals.pop(id, None)

    def dismiss(self, id: str) -> None:
        if proposal := self.drop(id):
            self._dismissed.add(fingerprint(proposal.draft.text))

    def _waits(self, text: str) -> bool:
        return any(compare(each.draft.text, text) in {Sameness.EQUAL, Sameness.REWORDED} for each in self.all())
