"""The store of memory in one process: the project's shelf and the global one, written and searched.

A shelf is an append-only log with the indexes built from it (``shelf``). Vectors live in a helper process
(``helper_process``); without it, entries are found by words in this process, else the newest ones are returned.
"""

from __future__ import annotations

import asyncio
import logging
import math
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from ba_tui.core.errors import BaError, StorageError, UsageError
from ba_tui.core.ports.memory import Entry, Kind, MemoryState, Scope, Step
from ba_tui.core.text.json_text import read_object
from ba_tui.core.values import frozen
from ba_tui.features.memory.engine import recall
from ba_tui.features.memory.engine.entries import VERSION, as_record, entry_of, line, version_of
from ba_tui.features.memory.engine.helper_process import (
    CATCH_UP,
    FORGET,
    REBUILD,
    SEARCH,
    STARTING,
    Helper,
    NoHelper,
    asked,
    found_of,
)
from ba_tui.features.memory.engine.index import unpacked
from ba_tui.features.memory.engine.log import Mark
from ba_tui.features.memory.engine.lookup import Lookup
from ba_tui.features.memory.engine.recall import Recall, RecallResult, SearchRequest
from ba_tui.features.memory.engine.setup import StoreSetup
from ba_tui.features.memory.engine.shelf import Shelf
from ba_tui.resources import open_regular, save_whole

# Removal of entries from a shelf: expired ones, and the least used beyond its limit. Never pinned ones.

_DAY = 86_400.0
_HALF_LIFE = 180 * _DAY
"""Seconds after which an unused entry has half its weight."""
_ROOM = 0.95
"""Share of the limit that is left after an eviction, so that not every new entry causes one."""
_SUPERSEDED = 0.25
_USES = (
    "max(at, coalesce(json_extract(record, '$.last_used'), 0))",
    "coalesce(json_extract(record, '$.importance'), 0.5)",
    "coalesce(json_extract(record, '$.used'), 0)",
)


def expired(lookup: Lookup, expiry: Mapping[Kind, float], now: float) -> list[str]:
    """Return the ids of the entries that were unused for longer than their kind is kept.

    The newest entries never expire, because the clock may be wrong.
    """

    def look(db: sqlite3.Connection) -> list[str]:
        newest = db.execute("SELECT max(at) FROM entries").fetchone()[0] or 0.0
        today = min(now, newest + _DAY)
        query = f"SELECT id FROM entries WHERE kind = ? AND at > 0 AND at < ? AND NOT pinned AND {_USES[0]} < ?"  # noqa: S608 - ours
        return [
            row[0]
            for kind, seconds in expiry.items()
            for row in db.execute(query, (kind, today - seconds, today - seconds))
        ]

    return lookup.index.ask(look) if expiry else []


def of_least_use(lookup: Lookup, most: int, now: float) -> list[str]:
    """Return the ids of the entries to evict: none up to ``most`` of them; beyond, those with the lowest product of
    importance, age and use.
    """
    total = lookup.total()
    if total <= most:
        return []
    query = f"SELECT id, current, {', '.join(_USES)} FROM entries WHERE NOT pinned"  # noqa: S608 - ours
    rows: list[tuple[Any, ...]] = lookup.index.ask(lambda db: db.execute(query).fetchall())
    worth = {id: _worth(current, last, importance, used, now) for id, current, last, importance, used in rows}
    return sorted(worth, key=worth.__getitem__)[: total - int(most * _ROOM)]


def _worth(current: bool, last: float, importance: float, used: int, now: float) -> float:
    age = max(0.0, now - last)
    return (1 if current else _SUPERSEDED) * max(importance, 0.01) * 0.5 ** (age / _HALF_LIFE) * (1 + math.log1p(used))


# Export and import: entries as the log's lines of JSON, so that no field is lost.

_AT_ONCE = 500


@frozen
class LaterLine:
    """A line that a later ba wrote, stored unchanged."""

    data: bytes


@frozen
class ImportedMemory:
    """Counts of an import: ``new`` lines, ``known`` ones, and ``bad`` ones."""

    new: int = 0
    known: int = 0
    bad: int = 0


Read: TypeAlias = Entry | LaterLine | None
"""A line of an exported file; None for an unreadable one."""


def placed(entry: Entry, project: str) -> Entry:
    """Return ``entry`` as one of ``project``, unless it is global."""
    return replace(entry, project=project) if entry.project else entry


def _exported(shelf: Shelf) -> Iterator[str]:
    """Yield the lines of a shelf: its entries in order with all their fields, then those of a later ba."""
    lookup = shelf.fresh()
    if lookup is None:
        return
    query = "SELECT number, record FROM entries WHERE number > ? ORDER BY number LIMIT ?"
    since = 0
    while rows := lookup.index.ask(lambda db, since=since: db.execute(query, (since, _AT_ONCE)).fetchall()):
        yield from (line("add", as_record(unpacked(record))).decode() for _, record in rows)
        since = rows[-1][0]
    for data in _later_lines(shelf):
        yield data.decode("utf-8", "replace")


def _later_lines(shelf: Shelf) -> Iterator[bytes]:
    """Yield the lines of a shelf that a later ba wrote."""
    for data, _ in shelf.log.read(Mark()):
        if version_of(read_object(data) or {}) > VERSION:
            yield data


def _read_lines(path: Path) -> Iterator[Sequence[Read]]:
    """Yield the lines of an exported file in batches. Raises UsageError if it can't be read."""
    try:
        with open_regular(path) as file:
            batch: list[Read] = []
            for data in file:
                if data.strip():
                    batch.append(_read(data))
                if len(batch) >= _AT_ONCE:
                    yield batch
                    batch = []
            yield batch
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror or error}.", "Name a file that `ba memory export` wrote."
        ) from error


def _read(data: bytes) -> Read:
    record = read_object(data)
    if record is None:
        return None
    if version_of(record) > VERSION:
        return LaterLine(data if data.endswith(b"\n") else data + b"\n")
    return entry_of(record) if record.get("op", "add") == "add" else None


log = logging.getLogger(__name__)

_LONGEST = 100
"""Maximum entries of a history, because a chain may be circular."""

_FRESH = 500
"""New lines of a log that a search by words adds to the index itself, in 0.1 s; the helper adds the rest."""
_LARGE = 2_000_000
"""Bytes of a log from which the helper, not this process, updates the index."""
_TRIM_SECONDS = 3_600.0
_GLOBAL = "global"
_BROKEN = (BaError, OSError, sqlite3.Error)

Progress = Callable[[int, int], None]
"""Called with the completed and the total number of entries or bytes."""


class MemoryStore:
    """Entries of ``project`` (a slug) and global ones, below ``folder`` (``Places.memory``).

    Constructing one touches no disk and starts nothing. Methods raise StorageError if nothing could be written and
    UsageError for a text that can't be stored, with messages for users. Use it on one event loop.
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

    async def add(self, entries: Sequence[Entry]) -> None:
        """Store new entries: global ones have no ``project``. On return they are in the log.

        An existing id is ignored. Make ids with ``entries.new_id(at)``. An entry with ``supersedes`` marks that entry
        as superseded.
        """
        for scope, shelf in self._shelves.items():
            fitting = [placed(entry, self._project) for entry in entries if bool(entry.project) == (scope == "project")]
            if fitting:
                await asyncio.to_thread(shelf.add, fitting)

    async def change(self, id: str, **fields: Any) -> Entry:
        """Set fields of an entry; return the changed entry. ``project=""`` makes it global.

        Raises UsageError if it does not exist.
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
        """Remove entries from the logs, the indexes and the vectors, and verify it by a query; return their number."""
        gone: set[str] = set()
        for shelf in self._shelves.values():
            gone.update(await self._forget(shelf, ids))
        return len(gone)

    async def mark_used(self, ids: Collection[str], at: float) -> None:
        """Record that these entries were sent with a request."""
        for shelf in self._shelves.values():
            if there := await asyncio.to_thread(shelf.found, ids):
                await asyncio.to_thread(shelf.used, there, at)

    async def search(self, ask: SearchRequest) -> RecallResult:
        """Search by vectors when the helper is ready, else by words, else return the newest entries.

        Never raises. Only with ``ask.explicit`` it waits for a helper that must start first; otherwise it starts the
        helper in the background, and ``RecallResult.why`` says that this search used words.
        """
        if not self._anything:
            return RecallResult()
        found = await self._by_helper(ask)
        if found is None:
            found = await asyncio.to_thread(self._by_words, ask, self.helper.why or STARTING)
        self._step, self._why = found.step, found.why
        self._tell(found)
        return found

    async def get(self, ids: Collection[str]) -> dict[str, Entry]:
        """Return the existing entries by id."""
        found: dict[str, Entry] = {}
        for shelf in self._shelves.values():
            found.update(await asyncio.to_thread(shelf.found, ids))
        return found

    async def listed(self, scope: Scope | None = None, offset: int = 0, limit: int = 200) -> list[Entry]:
        """Return entries, pinned ones first, then newest first, including superseded ones."""
        await self._fresh()
        shelves = [shelf for name, shelf in self._shelves.items() if scope in (None, name) and shelf.exists]
        each = [await asyncio.to_thread(shelf.lookup.newest, offset + limit) for shelf in shelves]
        merged = sorted((entry for entries in each for entry in entries), key=lambda one: (not one.pinned, -one.at))
        return merged[offset : offset + limit]

    async def slot(self, subject: str, attribute: str, scope: Scope = "project") -> Entry | None:
        """Return the newest current entry on this subject and attribute, ignoring case and spaces."""
        await self._fresh()
        shelf, wanted = self._shelves[scope], Entry("", "", subject=subject, attribute=attribute)
        if not subject.strip() or not attribute.strip() or not shelf.exists:
            return None
        found = await asyncio.to_thread(shelf.lookup.in_slot, wanted)
        return found[-1] if found else None

    async def same(self, text: str) -> list[Entry]:
        """Return the current entries with the words of ``text`` in the same order, oldest first."""
        return await self._each(lambda lookup: lookup.printed(text))

    async def pinned(self) -> list[Entry]:
        """Return the pinned entries that are not superseded, oldest first."""
        return await self._each(lambda lookup: lookup.pinned())

    async def history(self, id: str) -> list[Entry]:
        """Return an entry and those it superseded, newest first."""
        chain: list[Entry] = []
        while id and len(chain) < _LONGEST:
            found = await self._each(lambda lookup, id=id: list(lookup.entries([id]).values()))
            if not found:
                break
            chain.append(found[0])
            id = found[0].supersedes
        return chain

    async def export(self, path: Path) -> int:
        """Write all entries as JSON lines, including those of a later ba; return their number. Raises StorageError."""
        await self._fresh()

        def write() -> int:
            lines = [data for shelf in self._shelves.values() for data in _exported(shelf)]
            save_whole(path, lines)
            return len(lines)

        return await asyncio.to_thread(write)

    async def import_(self, path: Path) -> ImportedMemory:
        """Add the unknown entries of an exported file. Those of any project become this project's.

        Raises UsageError if it can't be read, StorageError if nothing more can be written.
        """
        total = ImportedMemory()
        shelf = self._shelves["project"]
        later = set(await asyncio.to_thread(lambda: list(_later_lines(shelf))))
        for batch in await asyncio.to_thread(lambda: list(_read_lines(path))):
            entries = {each.id: each for each in reversed(batch) if isinstance(each, Entry)}
            known = await self.get(entries)
            new = [entry for id, entry in reversed(entries.items()) if id not in known]
            await self.add(new)
            lines = dict.fromkeys(each.data for each in batch if isinstance(each, LaterLine))
            if fresh := [data for data in lines if data not in later]:
                await asyncio.to_thread(shelf.append, b"".join(fresh))
                later.update(fresh)
            bad = sum(each is None for each in batch)
            added = len(new) + len(fresh)
            total = ImportedMemory(total.new + added, total.known + len(batch) - added - bad, total.bad + bad)
        return total

    async def state(self) -> MemoryState:
        """Return counts, bytes on the disk, and why vectors are not searched, if they are not."""
        looked = await self.helper.look()
        entries, size, skipped, newer = await asyncio.to_thread(self._counted)
        why = (looked.why if looked else self.helper.why) or self._why
        indexed = (looked.done, looked.total) if looked and looked.done < looked.total else None
        return MemoryState("", entries, size, self._step, why, indexed, skipped, newer)

    async def rebuild(self, progress: Progress | None = None) -> None:
        """Rebuild all indexes from the logs. Stored vectors are reused."""
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

    async def sync(self) -> None:
        """Wait until stored entries are on the disk; called at the end of a turn. Once an hour also remove expired
        entries.
        """
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
        """Return whether there may be something to search: entries here, or a team's."""
        return self._setup.server is not None or any(shelf.exists for shelf in self._shelves.values())

    async def _each(self, question: Callable[[Lookup], list[Entry]]) -> list[Entry]:
        await self._fresh()
        found: list[Entry] = []
        for shelf in self._shelves.values():
            if shelf.exists:
                found += await asyncio.to_thread(question, shelf.lookup)
        return found

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
                # The next helper learns from the log that they are gone.
                log.warning("memory: vectors are removed later: %s", error)
            else:
                if left:
                    what = f"{len(left)} of {len(gone)} memories are still in the vector index."
                    raise StorageError(what, "Rebuild it: ba memory rebuild")
        return gone

    async def _by_helper(self, ask: SearchRequest) -> RecallResult | None:
        if not self.helper.ready:
            self.helper.warm()
            if not ask.explicit or not await self.helper.started():
                return None
        try:
            return found_of(await self.helper.ask(SEARCH, asked(ask)))
        except NoHelper:
            return None

    def _by_words(self, ask: SearchRequest, why: str) -> RecallResult:
        try:
            lookups = [each for shelf in self._shelves.values() if (each := shelf.fresh(_FRESH))]
            found = Recall([recall.SearchShelf(each) for each in lookups]).search(ask)
        except _BROKEN as error:
            return RecallResult((), "recent", str(error))
        return replace(found, why=why) if found.step == "words" else found

    def _tell(self, found: RecallResult) -> None:
        """Log a degradation once, and the recovery after it."""
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
        """Update the indexes: a little here, a lot in the helper."""
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
        """Return the names of the embedders that may have made vectors here."""
        from ba_tui.features.memory.engine.embedding import E5, Fuse  # noqa: PLC0415 - with the first entry that is forgotten

        endpoint = self._setup.endpoint
        return [Fuse.traits.name, E5.traits.name, *([endpoint.model] if endpoint else [])]
