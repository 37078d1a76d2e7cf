"""One shelf in the helper: fills the vector index from the log, checks it, and rebuilds a damaged one."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import secrets
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy

from ba_tui.core.errors import BaError
from ba_tui.core.ports.memory import Entry
from ba_tui.core.text.json_text import read_object
from ba_tui.core.values import frozen
from ba_tui.features.memory.engine.entries import ids_of
from ba_tui.features.memory.engine.log import Mark, mark_in
from ba_tui.features.memory.engine.shelf import Shelf
from ba_tui.features.memory.engine.store_process.mind import Mind, WorkQueue, give_way
from ba_tui.resources import open_regular, read_regular
from ba_tui.shared_files import open_lock_file, take_lock, write_owner

if TYPE_CHECKING:
    from ba_tui.features.memory.engine.embedding import Vectors


_CONTEXT = 500
"""Maximum characters of the previous turn that are embedded with a short turn."""
_ALONE = 400
"""Maximum characters of a turn that is embedded with the previous one."""


class Exact:
    """Exact search with numpy, in memory: for stores without Chroma, and for evaluation and tests.

    Compares with every vector: 0.1 ms for 1,000 entries; 20 ms and 200 MB for 100,000.
    """

    def __init__(self, dimensions: int) -> None:
        self._places: dict[str, int] = {}
        self._ids: list[str] = []
        self._vectors: Vectors = numpy.empty((0, dimensions), dtype=numpy.float32)

    def close(self) -> None:
        """Do nothing: no file is open."""

    def add(self, ids: Sequence[str], vectors: Vectors) -> None:
        self.remove(ids)
        self._places.update({id: len(self._ids) + at for at, id in enumerate(ids)})
        self._ids += ids
        self._vectors = numpy.vstack([self._vectors, numpy.asarray(vectors, dtype=numpy.float32)])

    def remove(self, ids: Iterable[str]) -> None:
        gone = {self._places[id] for id in ids if id in self._places}
        if not gone:
            return
        kept = [at for at in range(len(self._ids)) if at not in gone]
        self._ids = [self._ids[at] for at in kept]
        self._places = {id: at for at, id in enumerate(self._ids)}
        self._vectors = self._vectors[kept]

    def nearest(self, vector: Vectors, limit: int) -> Mapping[str, float]:
        if not self._ids or limit <= 0:
            return {}
        cosines = self._vectors @ vector
        few = min(limit, len(self._ids))
        best = numpy.argpartition(-cosines, few - 1)[:few]
        return {self._ids[at]: float(cosines[at]) for at in best[numpy.argsort(-cosines[best], kind="stable")]}

    def cosines(self, vector: Vectors, ids: Iterable[str]) -> Mapping[str, float]:
        known = [id for id in ids if id in self._places]
        found = self._vectors[[self._places[id] for id in known]] @ vector if known else ()
        return {id: float(cosine) for id, cosine in zip(known, found, strict=True)}


def embedded_text(entry: Entry, before: Entry | None = None) -> str:
    """Return the text to embed for ``entry``: a short turn follows the end of the turn ``before`` it."""
    return f"{before.text[-_CONTEXT:]} {entry.text}" if before and len(entry.text) <= _ALONE else entry.text


# The record of a shelf's vector index: its folder, its model, and the last indexed line of the log.

_LIMIT = 10_000


@frozen
class IndexRecord:
    """``openings``: number of openings since the index was last healthy; a crash does not reset the number."""

    folder: str
    model: str
    mark: Mark = Mark()
    openings: int = 0

    def save(self, path: Path) -> None:
        """Replace the file. Raises OSError."""
        record = {"folder": self.folder, "model": self.model, "mark": self.mark.packed(), "openings": self.openings}
        text = json.dumps(record)
        temporary = path.with_suffix(".new")
        temporary.write_text(text, "utf-8")
        temporary.replace(path)


def load_record(path: Path) -> IndexRecord | None:
    """Return the record in a file; None if it is missing or unreadable."""
    try:
        given = read_object(read_regular(path, _LIMIT)) or {}
        name, mark = str(given["folder"]), mark_in(given["mark"])
        return IndexRecord(name, str(given["model"]), mark, int(given["openings"])) if _own(name) else None
    except (OSError, KeyError, TypeError, ValueError):
        return None


def new_folder() -> str:
    """Return a new name for an index folder: Chroma remembers the folders that it has opened."""
    return f"chroma-{secrets.token_hex(6)}"


def _own(name: str) -> bool:
    return name.startswith("chroma-") and "/" not in name


# The process with the lock owns the vector index of a shelf. The kernel releases the lock of a dead process.
#
# Two writers damage a Chroma folder silently, so only the owner opens it.


class Ownership:
    """The lock file ``path``; it contains the id of the owning process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    @property
    def held(self) -> bool:
        return self._fd >= 0

    def take(self) -> bool:
        """Take the lock; return whether this process owns the index. Raises OSError if files can't be locked."""
        if self.held:
            return True
        fd = open_lock_file(self._path)
        try:
            if take_lock(fd):
                self._fd = fd
        finally:
            if not self.held:
                os.close(fd)
        if self.held:
            write_owner(fd, f"{os.getpid()}\n")
        return self.held

    def release(self) -> None:
        """Let another process take the index."""
        if self.held:
            os.close(self._fd)
            self._fd = -1

    def owner(self) -> str:
        """Return the process id in the file; empty if unknown."""
        try:
            return self._path.read_text("ascii", "replace").strip()[:20]
        except OSError:
            return ""


log = logging.getLogger(__name__)

_LINES = 500
"""Maximum lines of the log that are indexed in one step."""
_AT_ONCE = 50
"""Vectors that are added while questions wait: 50 to 100 ms with 100,000 entries."""
_EXACT = 20_000
"""Maximum entries whose vectors a process without the index keeps in memory: 40 MB."""
_SAMPLE = 24
_MISSES = 8
"""Maximum vectors of the sample that a healthy index may miss: the search is approximate, above all with duplicates."""
_OWN = 0.98
_SUSPECT = 4
"""Number of openings without a healthy end after which an index is treated as broken."""
DAMAGED = "damaged"


class VectorIndex(Protocol):
    """Searches the vectors of a shelf. Raises BaError when the index is broken."""

    def close(self) -> None: ...
    def add(self, ids: Sequence[str], vectors: Vectors) -> None: ...
    def remove(self, ids: Iterable[str]) -> None: ...
    def nearest(self, vector: Vectors, limit: int) -> Mapping[str, float]: ...
    def cosines(self, vector: Vectors, ids: Iterable[str]) -> Mapping[str, float]: ...


class Desk:
    """Implements ``recall.Nearest`` for the shelf in ``folder``. ``why`` describes a failure for the user."""

    def __init__(self, folder: Path, mind: Mind) -> None:
        self.shelf = Shelf(folder)
        self.why = ""
        self.done = 0
        """Number of entries with a vector in the index so far; all entries once the index is full."""
        self.full = False
        self._mind = mind
        self._ownership = Ownership(folder / "chroma.lock")
        self._record_path = folder / "chroma.json"
        self._record = IndexRecord("", mind.traits.name)
        self._index: VectorIndex | None = None
        self._turns = WorkQueue()

    def open(self) -> None:
        """Open or create the index; ``why`` describes a failure. Do nothing without a log."""
        with self._turns.lock:
            if self._index is not None or not self.shelf.exists:
                return
            try:
                owned = self._ownership.take()
            except OSError as error:
                self._do_without(f"The vector index cannot be locked: {error.strerror or error}.")
                return
            if owned:
                self._open_chroma()
            else:
                self._do_without(f"Another ba (process {self._ownership.owner() or 'unknown'}) keeps the vector index.")

    def close(self) -> None:
        """Close the index and let another process own it."""
        with self._turns.lock:
            self._drop_index()
            self._ownership.release()

    def load(self) -> None:
        """Query the index once, so that its files are loaded before the first question: 1 s with 100,000 entries."""
        with contextlib.suppress(BaError):
            self.nearest(numpy.eye(1, self._mind.traits.dimensions, dtype=numpy.float32)[0], 1)

    def follow(self) -> bool:
        """Index some of the new lines of the log; return False if there were none.

        Raises BaError if texts can't be embedded now or the index is broken; a later call indexes the lines.
        """
        self.open()
        if not self.shelf.exists:
            return False
        self.shelf.index.update(lambda done, total: give_way())
        with self._turns.work():
            if self._index is None:
                return False
            if not self.shelf.log.continues(self._record.mark):
                # The log was rewritten: vectors stay valid, positions do not.
                self.renew()
            index = self._index
            touched, gone, mark, lines = self._news()
            if not lines:
                self.full = True
                self.why = ""
                return False
        texts = self._texts(touched)
        # The model runs outside of the turn, so that questions are answered meanwhile.
        vectors = self._mind.vectors(list(texts.values()), self.shelf.vectors) if texts else None
        self._take_in(index, gone, list(texts), vectors, mark)
        return True

    def _take_in(
        self, index: VectorIndex, gone: Sequence[str], ids: Sequence[str], vectors: Vectors | None, mark: Mark
    ) -> None:
        """Change ``index`` in short turns; stop if the index was replaced, because the new one lacks earlier lines."""
        for at in range(0, max(1, len(ids)), _AT_ONCE):
            part = ids[at : at + _AT_ONCE]
            with self._turns.work():
                if index is not self._index:
                    return
                if gone and not at:
                    index.remove(gone)
                if vectors is not None:
                    index.add(part, vectors[at : at + _AT_ONCE])
                self.done += len(part)
                if at + _AT_ONCE >= len(ids):
                    self._save(mark)

    def check(self) -> None:
        """Search for a sample of entries by their own vectors; replace an index that does not find them."""
        index = self._index
        if index is None or isinstance(index, Exact):
            return
        try:
            healthy = self._finds_own(index)
        except (BaError, OSError) as error:
            log.warning("memory: %s", error)
            healthy = False
        with self._turns.lock:
            if index is not self._index:
                return
            if healthy:
                self._record = replace(self._record, openings=0)
                self._save(self._record.mark)
            else:
                self.move_aside("it does not find its own entries")

    def renew(self) -> None:
        """Start a new index, to be filled from the log and the stored vectors."""
        with self._turns.lock:
            if isinstance(self._index, Exact):
                self._index = Exact(self._mind.traits.dimensions)
                self._record = replace(self._record, mark=Mark())
            elif self._index is not None:
                old = self._record.folder
                self._drop_index()
                self._start_anew()
                shutil.rmtree(self.shelf.folder / old, ignore_errors=True)
            self.done, self.full = 0, False

    def move_aside(self, why: str) -> None:
        """Move a suspect index to ``damaged`` and start a new one."""
        log.warning("memory: the vector index of %s is rebuilt, because %s", self.shelf.folder.name, why)
        with self._turns.lock:
            self._drop_index()
            aside = self.shelf.folder / DAMAGED
            shutil.rmtree(aside, ignore_errors=True)
            with contextlib.suppress(OSError):
                (self.shelf.folder / self._record.folder).rename(aside)
            self._start_anew()
            self.why = (
                self.why or "The vector index was damaged and is being rebuilt. Entries are found by words meanwhile."
            )
            self.done, self.full = 0, False

    def forget(self, ids: Collection[str]) -> list[str]:
        """Remove entries from the index; return the ids that it still finds."""
        with self._turns.lock:
            if self._index is None:
                return []
            self._index.remove(ids)
            from_index = self._index.cosines(self._mind.question("-"), ids)
            return list(from_index)

    def nearest(self, vector: Vectors, limit: int) -> Mapping[str, float]:
        return self._asked(lambda index: index.nearest(vector, limit))

    def cosines(self, vector: Vectors, ids: Iterable[str]) -> Mapping[str, float]:
        return self._asked(lambda index: index.cosines(vector, ids))

    def _asked(self, question: Callable[[VectorIndex], Mapping[str, float]]) -> Mapping[str, float]:
        with self._turns.question():
            if self._index is None:
                return {}
            try:
                found = question(self._index)
                if self._record.openings:
                    # The index opened and answers. ``check`` judges the quality of its answers.
                    self._record = replace(self._record, openings=0)
                    self._save(self._record.mark)
                return found
            except BaError:
                self.move_aside("it does not answer")
                raise

    def _open_chroma(self) -> None:
        found = load_record(self._record_path)
        model = self._mind.traits.name
        if found is None or found.model != model or not (self.shelf.folder / found.folder).is_dir():
            for old in self.shelf.folder.glob("chroma-*"):
                shutil.rmtree(old, ignore_errors=True)
            self._start_anew()
            return
        self._record = replace(found, openings=found.openings + 1)
        if found.openings >= _SUSPECT:
            self.move_aside("it did not answer after it was opened, several times")
            return
        self._save(found.mark)
        try:
            self._index = self._chroma(found.folder)
        except ImportError as error:
            self._do_without(f"Chroma cannot be used: {error}.")
        except BaError as error:
            self.move_aside(str(error))
        else:
            self.done = self.shelf.lookup.total()

    def _start_anew(self) -> None:
        self._record = IndexRecord(new_folder(), self._mind.traits.name)
        try:
            self._index = self._chroma(self._record.folder)
            self._save(Mark())
        except (ImportError, BaError, OSError) as error:
            self._do_without(f"Chroma cannot be used: {error}.")

    def _chroma(self, folder: str) -> VectorIndex:
        from ba_tui.features.memory.engine.store_process.chroma_index import ChromaIndex  # noqa: PLC0415 - it may be missing

        self.why = ""
        return ChromaIndex(self.shelf.folder / folder, self.shelf.folder.name, self._mind.traits.name)

    def _drop_index(self) -> None:
        if self._index:
            self._index.close()
        self._index = None

    def _do_without(self, why: str) -> None:
        """Keep the vectors in memory if they are few, else search without vectors."""
        self._drop_index()
        self._record = IndexRecord("", self._mind.traits.name)
        self.done, self.full = 0, False
        self.shelf.index.update()
        if (total := self.shelf.lookup.total()) <= _EXACT:
            self._index = Exact(self._mind.traits.dimensions)
            log.info("memory: vectors are searched without Chroma: %s", why)
        else:
            self.why = f"{why} Its {total:,} entries are searched by words."

    def take_over(self) -> None:
        """Take the index once no other process owns it."""
        with self._turns.lock, contextlib.suppress(OSError):
            if self._ownership.held or not self.shelf.exists or not self._ownership.take():
                return
            self._drop_index()
            self.full, self.done = False, 0
            self._open_chroma()
        self.check()

    def _news(self) -> tuple[list[str], list[str], Mark, int]:
        """Return added or changed ids, forgotten ids, the mark after them, and the number of lines."""
        touched: dict[str, None] = {}
        gone: dict[str, None] = {}
        mark, lines = self._record.mark, 0
        for line, after in self.shelf.log.read(mark):
            record = read_object(line) or {}
            match record.get("op"):
                case "add":
                    touched.update(dict.fromkeys(ids_of(record)))
                case "change" if "text" in record:
                    touched.update(dict.fromkeys(ids_of(record)))
                case "forget":
                    gone.update(dict.fromkeys(ids_of(record)))
                case _:
                    pass
            mark, lines = after, lines + 1
            if lines == _LINES:
                break
        return list(touched), list(gone), mark, lines

    def _texts(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the texts to embed, by id, for those entries that still exist."""
        lookup = self.shelf.lookup
        entries = lookup.entries(ids)
        turns = lookup.rows(lookup.numbers(id for id, entry in entries.items() if entry.kind == "turn"))
        before = {turns[number].id: each.previous for number, each in lookup.nearby(turns.values()).items()}
        rows = lookup.rows(number for number in before.values() if number)
        spoken = lookup.entries(row.id for row in rows.values())
        previous = {id: spoken[rows[number].id] for id, number in before.items() if number in rows}
        return {id: embedded_text(entry, previous.get(id)) for id, entry in entries.items()}

    def _finds_own(self, index: VectorIndex) -> bool:
        texts = self._texts(self._drawn())
        vectors = self._mind.vectors(list(texts.values()), self.shelf.vectors) if texts else ()
        misses = 0
        for id, vector in zip(texts, vectors, strict=True):
            with self._turns.work():
                if id not in index.cosines(vector, [id]):
                    return False
                misses += max(index.nearest(vector, 1).values(), default=0.0) < _OWN
        return misses <= _MISSES

    def _drawn(self) -> list[str]:
        """Return the ids of some indexed entries, drawn from the log before the mark."""
        end = self._record.mark.offset
        ids: dict[str, None] = {}
        with open_regular(self.shelf.log.path) as file:
            for _ in range(4 * _SAMPLE if end else 0):
                file.seek(random.randrange(end))  # noqa: S311 - a sample
                file.readline()
                record = read_object(file.readline()) or {}
                if file.tell() <= end and record.get("op") == "add":
                    ids.update(dict.fromkeys(ids_of(record)))
        return list(ids)[:_SAMPLE]

    def _save(self, mark: Mark) -> None:
        self._record = replace(self._record, mark=mark)
        if self._record.folder:
            try:
                self._record.save(self._record_path)
            except OSError as error:
                # Some entries are then indexed twice, which is harmless.
                log.warning("memory: %s cannot be written: %s", self._record_path, error)
