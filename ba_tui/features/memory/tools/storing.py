"""What may be stored, and what of it is known already: the same, in other words, or with another value.

How entries lie on the disk and how they are found is the store's business.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ba_tui.core.errors import MemoryOff, SecretRefused, UsageError
from ba_tui.core.messages import clean_text
from ba_tui.core.ports.memory import Draft, Entry, Stored
from ba_tui.core.values import frozen
from ba_tui.features.memory.engine.entries import new_id
from ba_tui.features.memory.engine.sameness import Sameness, compare
from ba_tui.features.memory.engine.stated import classified, value_changed
from ba_tui.permissions.secrets.scanner import find

if TYPE_CHECKING:
    from ba_tui.features.memory.engine.recall import Found
    from ba_tui.features.memory.engine.store import MemoryStore

LONGEST = 8_000
"""Characters of one memory."""
SOON = 0.25
"""Seconds that a search by meaning has where somebody waits; then words answer."""
LATE = f"The search by meaning did not answer within {SOON:g} s."
_ALIKE = 12
"""Entries that a new one is compared with."""
_REPORTS = frozenset({"summary", "outcome", "turn"})
"""Kinds of which two are about different things, however alike they sound."""


@frozen
class Owner:
    """Whose memory it is: the ``project`` by its slug, the ``session``, how many turns it has had, and why memory is
    ``off`` (empty while it is on)."""

    project: str
    session: str = ""
    turns: Callable[[], int] = int
    off: Callable[[], str] = str


class Storing:
    """Stores the entries of one session; ``stored`` are those of this run, by their ids."""

    def __init__(self, make: Callable[[], MemoryStore], begun: Callable[[], bool], owner: Owner) -> None:
        self._make = make
        self._begun = begun
        self._made = False
        self._unwritten = False
        self.owner = owner
        self.stored: dict[str, Stored] = {}

    @cached_property
    def store(self) -> MemoryStore:
        """The store itself, made when it is first needed: it needs SQLite, which most short runs do not."""
        self._made = True
        return self._make()

    @cached_property
    def _words(self) -> MemoryStore:
        """The same entries, searched by words in this process."""
        from ba_tui.features.memory.engine.setup import BY_WORDS, StoreSetup  # noqa: PLC0415 - see store
        from ba_tui.features.memory.engine.store import MemoryStore  # noqa: PLC0415 - see store

        return MemoryStore(self.store.folder, self.owner.project, StoreSetup(BY_WORDS))

    @property
    def begun(self) -> bool:
        """Whether anything was ever stored. Looks at the disk, without the store."""
        return self._made or self._begun()

    async def search(self, text: str, limit: int, **more: Any) -> Found:
        """What the store finds; ``more`` are fields of memory.recall.Ask.

        Only an explicit search waits for a slow helper; others go by words after ``SOON``.
        """
        from ba_tui.features.memory.engine.recall import Ask  # noqa: PLC0415 - see store

        ask = Ask(text, limit, today=datetime.now().astimezone().date(), **more)
        try:
            async with asyncio.timeout(None if ask.explicit else SOON):
                return await self.store.search(ask)
        except TimeoutError:
            return replace(await self._words.search(ask), why=LATE)

    async def settle(self) -> None:
        """Wait until what this session stored is on the disk."""
        if self._unwritten:
            self._unwritten = False
            await self.store.sync()

    async def close(self) -> None:
        if self._made:
            await self.store.sync()
            await self.store.close()

    async def remember(self, draft: Draft) -> Stored:
        """See core.ports.memory.Memory."""
        stored = await self.foreseen(draft)
        if stored.outcome != "known":
            await self.store.add([stored.entry])
            self.stored[stored.entry.id], self._unwritten = stored, True
        return stored

    async def foreseen(self, draft: Draft) -> Stored:
        """What would become of ``draft``. Raises MemoryOff, SecretRefused, UsageError."""
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
            return Stored(known, "known")
        if older is None and entry.subject and entry.attribute:
            older = await self.store.slot(entry.subject, entry.attribute, draft.scope)
        return Stored(replace(entry, supersedes=older.id), "replaces", older) if older else Stored(entry, "new")

    async def _alike(self, entry: Entry) -> tuple[Entry | None, Entry | None]:
        """The entry that says the same as ``entry``, and the one that says it with another value."""
        same = [each for each in await self.store.catalog.same(entry.text) if _same_place(each, entry)]
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
    """Return ``text`` as it is stored. Raises UsageError for one that is empty or too long, SecretRefused."""
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
    """Raises SecretRefused when ``text`` holds one."""
    if secrets := find(text):
        raise SecretRefused(
            f"Not stored: the text holds a secret ({secrets[0].kind}).", "Memory never keeps keys or passwords."
        )


def _complete(draft: Draft) -> Draft:
    """``draft`` with kind, subject and attribute as its words tell, where it has none."""
    if draft.subject or draft.attribute or draft.kind not in {"fact", "preference"}:
        return draft
    found = classified(draft.text)
    kind = found.kind if draft.kind == "fact" else draft.kind
    return replace(draft, kind=kind, subject=found.subject, attribute=found.attribute)


def _same_place(one: Entry, other: Entry) -> bool:
    return one.project == other.project
