"""Export and import: entries as the lines of JSON that a log holds, so that nothing is lost between two homes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.memory import Entry
from ba_tui.core.values import frozen
from ba_tui.features.memory.engine.entries import VERSION, as_record, entry_of, line, loads, version_of
from ba_tui.features.memory.engine.index import unpacked
from ba_tui.features.memory.engine.log import Mark
from ba_tui.features.memory.engine.shelf import Shelf
from ba_tui.resources import open_regular, save_whole

_AT_ONCE = 500


@frozen
class LaterLine:
    """A line that a later ba wrote: kept word for word."""

    data: bytes


@frozen
class Imported:
    """Lines of an imported file: ``new`` ones, those that were ``known`` already, and ``bad`` ones."""

    new: int = 0
    known: int = 0
    bad: int = 0


Read: TypeAlias = Entry | LaterLine | None
"""A line of an exported file; None for one that cannot be read."""


def placed(entry: Entry, project: str) -> Entry:
    """``entry`` as one of ``project``, unless it is a global one."""
    return replace(entry, project=project) if entry.project else entry


class Exchange:
    """``shelves``: that of the project first. ``fresh`` brings their indexes up to date; ``add`` and ``get`` are those
    of the store.
    """

    def __init__(
        self,
        shelves: Sequence[Shelf],
        fresh: Callable[[], Awaitable[None]],
        add: Callable[[Sequence[Entry]], Awaitable[None]],
        get: Callable[[Collection[str]], Awaitable[Mapping[str, Entry]]],
    ) -> None:
        self._shelves = shelves
        self._fresh = fresh
        self._add = add
        self._get = get

    async def export(self, path: Path) -> int:
        """Write all entries as JSON lines, those of a later ba included; how many there are. Raises StorageError."""
        await self._fresh()

        def write() -> int:
            lines = [data for shelf in self._shelves for data in _exported(shelf)]
            save_whole(path, lines)
            return len(lines)

        return await asyncio.to_thread(write)

    async def import_(self, path: Path) -> Imported:
        """Add the entries of an exported file that are not there yet. Those of any project become this project's.

        Raises UsageError when it cannot be read, StorageError when nothing more can be written.
        """
        total = Imported()
        shelf = self._shelves[0]
        later = set(await asyncio.to_thread(lambda: list(_later_lines(shelf))))
        for batch in await asyncio.to_thread(lambda: list(_read_lines(path))):
            entries = {each.id: each for each in reversed(batch) if isinstance(each, Entry)}
            known = await self._get(entries)
            new = [entry for id, entry in reversed(entries.items()) if id not in known]
            await self._add(new)
            lines = dict.fromkeys(each.data for each in batch if isinstance(each, LaterLine))
            if fresh := [data for data in lines if data not in later]:
                await asyncio.to_thread(shelf.append, b"".join(fresh))
                later.update(fresh)
            bad = sum(each is None for each in batch)
            added = len(new) + len(fresh)
            total = Imported(total.new + added, total.known + len(batch) - added - bad, total.bad + bad)
        return total


def _exported(shelf: Shelf) -> Iterator[str]:
    """The lines of a shelf: its entries in their order, with all that is known of them, then those of a later ba."""
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
    """The lines of a shelf that a later ba wrote."""
    for data, _ in shelf.log.read(Mark()):
        if version_of(loads(data) or {}) > VERSION:
            yield data


def _read_lines(path: Path) -> Iterator[Sequence[Read]]:
    """The lines of an exported file, some at a time. Raises UsageError when it cannot be read."""
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
    record = loads(data)
    if record is None:
        return None
    if version_of(record) > VERSION:
        return LaterLine(data if data.endswith(b"\n") else data + b"\n")
    return entry_of(record) if record.get("op", "add") == "add" else None
