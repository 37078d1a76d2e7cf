"""The store of memory as one process uses it: the project's shelf and the global one, written and searched.

A shelf is an append-only log with the indexes made from it (``shelf``). Vectors live in a helper process
(``helper_process``); without it, entries are found by words in this process, else the newest ones are.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ba_tui.core.errors import BaError, StorageError, UsageError
from ba_tui.core.ports.memory import Entry, MemoryState, Scope, Step
from ba_tui.features.memory.engine import recall
from ba_tui.features.memory.engine.exchange import Exchange, placed
from ba_tui.features.memory.engine.helper_process import STARTING, Helper, NoHelper
from ba_tui.features.memory.engine.lookup import Lookup
from ba_tui.features.memory.engine.recall import Ask, Found, Recall
from ba_tui.features.memory.engine.setup import StoreSetup
from ba_tui.features.memory.engine.shelf import Shelf
from ba_tui.features.memory.engine.trimming import expired, of_least_use
from ba_tui.features.memory.engine.wire import CATCH_UP, FORGET, REBUILD, SEARCH, asked, found_of

_LONGEST = 100
"""Entries of a history: a chain that leads back to itself must end."""


class Catalog:
    """``fresh`` brings the indexes of the ``shelves`` up to date."""

    def __init__(self, shelves: Sequence[Shelf], fresh: Callable[[], Awaitable[None]]) -> None:
        self._shelves = shelves
        self._fresh = fresh

    async def same(self, text: str) -> list[Entry]:
        """Current entries with the words of ``text`` in the same order, oldest first."""
        return await self._each(lambda lookup: lookup.printed(text))

    async def pinned(self) -> list[Entry]:
        """Pinned entries that nothing supersedes, oldest first."""
        return await self._each(lambda lookup: lookup.pinned())

    async def history(self, id: str) -> list[Entry]:
        """An entry and those it superseded, newest first."""
        chain: list[Entry] = []
        while id and len(chain) < _LONGEST:
            found = await self._each(lambda lookup, id=id: list(lookup.entries([id]).values()))
            if not found:
                break
            chain.append(found[0])
            id = found[0].supersedes
        return chain

    async def _each(self, question: Callable[[Lookup], list[Entry]]) -> list[Entry]:
        await self._fresh()
        found: list[Entry] = []
        for shelf in self._shelves:
            if shelf.exists:
                found += await asyncio.to_thread(question, shelf.lookup)
        return found


log = logging.getLogger(__name__)

_FRESH = 500
"""New lines of a log that a search by words takes in itself, in 0.1 s; the helper takes in the rest."""
_LARGE = 2_000_000
"""Bytes of a log from which the helper, not this process, brings the index up to date."""
_TRIM_SECONDS = 3_600.0
_GLOBAL = "global"
_BROKEN = (BaError, OSError, sqlite3.Error)

Progress = Callable[[int, int], None]
"""What is done, and all there is to do; in entries or bytes."""


class MemoryStore:
    """Entries of ``project`` (a slug) and global ones, below ``folder`` (``Places.memory``).

    Making one touches no disk and starts nothing. Methods raise StorageError when nothing could be written and
    UsageError for a text that cannot be kept; both are one line for people. Use it on one event loop.
    """

    def __init__(
        self,
        folder: Path,
        project: str,
        setup: StoreSetup = StoreSetup(),  # noqa: B008 - a value
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder = folder
        self._project = project
        self._setup = setup
        self._clock = clock
        self._shelves: dict[Scope, Shelf] = {
            "project": Shelf(folder / "projects" / project),
            "global": Shelf(folder / _GLOBAL),
        }
        self.helper = Helper(folder, [shelf.folder for shelf in self._shelves.values()], setup)
        self._step: Step = "words"
        self._why = ""
        self._said = ""
        self._trimmed = float("-inf")
        self.catalog = Catalog(tuple(self._shelves.values()), self._fresh)
        """Further questions: ``same(text)``, ``pinned()``, ``history(id)``."""
        self.exchange = Exchange(tuple(self._shelves.values()), self._fresh, self.add, self.get)
        """``export(path)`` and ``import_(path)``."""

    async def add(self, entries: Sequence[Entry]) -> None:
        """Store new entries: global ones have no ``project``. When it returns they are in the log.

        An id that is there already is ignored. Make ids with ``entries.new_id(at)``. An entry with ``supersedes``
        marks that entry as superseded.
        """
        for scope, shelf in self._shelves.items():
            fitting = [placed(entry, self._project) for entry in entries if bool(entry.project) == (scope == "project")]
            if fitting:
                await asyncio.to_thread(shelf.add, fitting)

    async def change(self, id: str, **fields: Any) -> Entry:
        """Set fields of an entry; returns it as it is then. ``project=""`` makes it global.

        Raises UsageError when there is none.
        """
        shelf, entry = await self._of(id)
        project = fields.pop("project", entry.project)
        changed = replace(entry, **fields)
        if bool(project) != bool(entry.project):
            changed = replace(changed, project=project)
            await self.add([changed])
            await self._forget(shelf, [id])
        elif fields:
            await asyncio.to_thread(shelf.change, id, fields)
        return changed

    async def forget(self, ids: Collection[str]) -> int:
        """Remove entries from the logs, the indexes and the vectors, and verify it by a query; how many there were."""
        gone: set[str] = set()
        for shelf in self._shelves.values():
            gone.update(await self._forget(shelf, ids))
        return len(gone)

    async def mark_used(self, ids: Collection[str], at: float) -> None:
        """Note that these entries went with a request."""
        for shelf in self._shelves.values():
            if there := await asyncio.to_thread(shelf.found, ids):
                await asyncio.to_thread(shelf.used, there, at)

    async def search(self, ask: Ask) -> Found:
        """What memory knows of a request, by vectors when the helper is ready, else by words, else the newest.

        Never raises. Waits for a helper that must start first only when ``ask.explicit``; otherwise it starts it in the
        background and says in ``Found.why`` that this search went by words.
        """
        if not self._anything:
            return Found()
        found = await self._by_helper(ask)
        if found is None:
            found = await asyncio.to_thread(self._by_words, ask, self.helper.why or STARTING)
        self._step, self._why = found.step, found.why
        self._tell(found)
        return found

    async def get(self, ids: Collection[str]) -> dict[str, Entry]:
        """The entries that there are, by id."""
        found: dict[str, Entry] = {}
        for shelf in self._shelves.values():
            found.update(await asyncio.to_thread(shelf.found, ids))
        return found

    async def listed(self, scope: Scope | None = None, offset: int = 0, limit: int = 200) -> list[Entry]:
        """Entries, newest first, pinned ones before all others, superseded ones too."""
        await self._fresh()
        shelves = [shelf for name, shelf in self._shelves.items() if scope in (None, name) and shelf.exists]
        each = [await asyncio.to_thread(shelf.lookup.newest, offset + limit) for shelf in shelves]
        merged = sorted((entry for entries in each for entry in entries), key=lambda one: (not one.pinned, -one.at))
        return merged[offset : offset + limit]

    async def slot(self, subject: str, attribute: str, scope: Scope = "project") -> Entry | None:
        """The newest current entry on this subject and attribute; upper case and spaces do not matter."""
        await self._fresh()
        shelf, wanted = self._shelves[scope], Entry("", "", subject=subject, attribute=attribute)
        if not subject.strip() or not attribute.strip() or not shelf.exists:
            return None
        found = await asyncio.to_thread(shelf.lookup.in_slot, wanted)
        return found[-1] if found else None

    async def state(self) -> MemoryState:
        """Counts, bytes on the disk, and why it is not searched by vectors when it is not."""
        looked = await self.helper.look()
        entries, size, skipped, newer = await asyncio.to_thread(self._counted)
        why = (looked.why if looked else self.helper.why) or self._why
        indexed = (looked.done, looked.total) if looked and looked.done < looked.total else None
        return MemoryState("", entries, size, self._step, why, indexed, skipped, newer)

    async def rebuild(self, progress: Progress | None = None) -> None:
        """Make all indexes anew from the logs. Kept vectors are used again."""
        if not self._anything:
            return
        if await self.helper.started():
            try:
                await self.helper.ask(REBUILD, timeout=None, progress=progress)
            except NoHelper as error:
                log.warning("memory: the vectors are not rebuilt: %s", error)
            else:
                return
        for shelf in self._shelves.values():
            if shelf.exists:
                await asyncio.to_thread(shelf.index.rebuild, progress)

    def warm(self) -> None:
        """Start the helper in the background, when there is something to search."""
        if self._anything:
            self.helper.warm()

    async def sync(self) -> None:
        """Wait until what was stored is on the disk: at the end of a turn. Once an hour also removes what expired."""
        shelves = [shelf for shelf in self._shelves.values() if shelf.exists]
        for shelf in shelves:
            await asyncio.to_thread(shelf.log.sync)
        if time.monotonic() - self._trimmed < _TRIM_SECONDS:
            return
        self._trimmed = time.monotonic()
        for shelf in shelves:
            await self._trim(shelf)

    async def close(self) -> None:
        """End the helper."""
        await self.helper.close()

    @property
    def _anything(self) -> bool:
        """Whether there may be something to search: entries here, or a team's."""
        return self._setup.server is not None or any(shelf.exists for shelf in self._shelves.values())

    async def _of(self, id: str) -> tuple[Shelf, Entry]:
        for shelf in self._shelves.values():
            if entry := (await asyncio.to_thread(shelf.found, [id])).get(id):
                return shelf, entry
        raise UsageError(f"There is no memory {id}.", "List them with: ba memory list")

    async def _forget(self, shelf: Shelf, ids: Collection[str]) -> list[str]:
        gone = await asyncio.to_thread(shelf.forget, ids, self._models())
        if gone and self.helper.ready:
            try:
                left = await self.helper.ask(FORGET, {"folder": str(shelf.folder), "ids": gone})
            except NoHelper as error:
                # The helper that starts next reads in the log that they are gone.
                log.warning("memory: vectors are removed later: %s", error)
            else:
                if left:
                    what = f"{len(left)} of {len(gone)} memories are still in the vector index."
                    raise StorageError(what, "Make it anew: ba memory rebuild")
        return gone

    async def _by_helper(self, ask: Ask) -> Found | None:
        if not self.helper.ready:
            self.helper.warm()
            if not ask.explicit or not await self.helper.started():
                return None
        try:
            return found_of(await self.helper.ask(SEARCH, asked(ask)))
        except NoHelper:
            return None

    def _by_words(self, ask: Ask, why: str) -> Found:
        try:
            lookups = [each for shelf in self._shelves.values() if (each := shelf.fresh(_FRESH))]
            found = Recall([recall.Shelf(each) for each in lookups]).search(ask)
        except _BROKEN as error:
            return Found((), "recent", str(error))
        return replace(found, why=why) if found.step == "words" else found

    def _tell(self, found: Found) -> None:
        """Log a step down once, and the step up after it."""
        if found.why == self._said:
            return
        self._said = found.why
        if found.why == STARTING:
            log.info("this search of memory goes by %s: %s", found.step, found.why)
        elif found.why:
            log.warning("memory is searched by %s: %s", found.step, found.why)
        else:
            log.info("memory is searched by %s again", found.step)

    async def _fresh(self) -> None:
        """Bring the indexes up to date: a little here, a lot in the helper."""
        for shelf in self._shelves.values():
            if not shelf.exists:
                continue
            health = await asyncio.to_thread(shelf.index.health)
            if health.behind > _LARGE and await self.helper.started():
                try:
                    await self.helper.ask(CATCH_UP, timeout=None)
                except NoHelper as error:
                    log.warning("memory: the index is brought up to date here: %s", error)
            await asyncio.to_thread(shelf.fresh)

    async def _trim(self, shelf: Shelf) -> None:
        await self._fresh()
        now = self._clock()
        gone = await asyncio.to_thread(expired, shelf.lookup, self._setup.expiry, now)
        if gone:
            log.info("memory: %d entries of %s expired", len(await self._forget(shelf, gone)), shelf.folder.name)
        gone = await asyncio.to_thread(of_least_use, shelf.lookup, self._setup.most, now)
        if gone:
            log.info("memory: %d entries of %s evicted", len(await self._forget(shelf, gone)), shelf.folder.name)
        if (await asyncio.to_thread(shelf.index.health)).bad:
            await asyncio.to_thread(shelf.set_bad_aside)
        await asyncio.to_thread(shelf.compact)

    def _counted(self) -> tuple[int, int, int, str]:
        entries = size = skipped = 0
        newer = ""
        for shelf in self._shelves.values():
            if shelf.fresh(_FRESH):
                health = shelf.index.health()
                entries += health.entries
                skipped += shelf.skipped(health)
                size += shelf.size()
                newer = newer or shelf.newer(health)
        return entries, size, skipped, newer

    def _models(self) -> list[str]:
        """The names of the embedders that may have made vectors here."""
        from ba_tui.features.memory.engine.embedding import E5, Fuse  # noqa: PLC0415 - with the first entry that is forgotten

        endpoint = self._setup.endpoint
        return [Fuse.traits.name, E5.traits.name, *([endpoint.model] if endpoint else [])]
