"""One shelf in the helper: its vector index, which follows the log, is checked, and is made anew when it is suspect."""

from __future__ import annotations

import contextlib
import logging
import random
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy

from ba_tui.core.errors import BaError
from ba_tui.features.memory.engine.entries import ids_of, loads
from ba_tui.features.memory.engine.log import Mark
from ba_tui.features.memory.engine.meaning import embedded_text
from ba_tui.features.memory.engine.nearest import Exact
from ba_tui.features.memory.engine.shelf import Shelf
from ba_tui.features.memory.engine.store_process.mind import Mind
from ba_tui.features.memory.engine.store_process.ownership import Ownership
from ba_tui.features.memory.engine.store_process.record import IndexRecord, load_record, new_folder
from ba_tui.features.memory.engine.store_process.turns import Turns, give_way
from ba_tui.resources import open_regular

if TYPE_CHECKING:
    from ba_tui.features.memory.engine.embedding import Vectors

log = logging.getLogger(__name__)

_LINES = 500
"""Lines of the log that are taken in at a time."""
_AT_ONCE = 50
"""Vectors that the index takes in while questions wait: 50 to 100 ms with 100,000 entries."""
_EXACT = 20_000
"""Entries up to which a process that does not own the index holds the vectors itself: 40 MB."""
_SAMPLE = 24
_MISSES = 8
"""Own vectors of the sample that may not be found: the search is approximate, the more so among many duplicates."""
_OWN = 0.98
_SUSPECT = 4
"""Openings without a healthy end after which an index counts as broken."""
DAMAGED = "damaged"


class VectorIndex(Protocol):
    """Where the vectors of a shelf are searched. Raises BaError when it is broken."""

    def close(self) -> None: ...
    def add(self, ids: Sequence[str], vectors: Vectors) -> None: ...
    def remove(self, ids: Iterable[str]) -> None: ...
    def nearest(self, vector: Vectors, limit: int) -> Mapping[str, float]: ...
    def cosines(self, vector: Vectors, ids: Iterable[str]) -> Mapping[str, float]: ...


class Desk:
    """Implements ``recall.Nearest`` for the shelf in ``folder``. ``why`` says what is wrong, for people."""

    def __init__(self, folder: Path, mind: Mind) -> None:
        self.shelf = Shelf(folder)
        self.why = ""
        self.done = 0
        """Entries that have a vector in the index, as far as it is being filled; ``total`` once it is."""
        self.full = False
        self._mind = mind
        self._ownership = Ownership(folder / "chroma.lock")
        self._record_path = folder / "chroma.json"
        self._record = IndexRecord("", mind.traits.name)
        self._index: VectorIndex | None = None
        self._turns = Turns()

    def open(self) -> None:
        """Open the index, or make it; what cannot be used is said in ``why``. Nothing without a log."""
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
        """Let the index read its files, so that the first question does not: a second with 100,000 entries."""
        with contextlib.suppress(BaError):
            self.nearest(numpy.eye(1, self._mind.traits.dimensions, dtype=numpy.float32)[0], 1)

    def follow(self) -> bool:
        """Take in some of what was appended to the log; False when there was nothing.

        Raises BaError when texts cannot be embedded now or the index is broken: they are taken in later.
        """
        self.open()
        if not self.shelf.exists:
            return False
        self.shelf.index.update(lambda done, total: give_way())
        with self._turns.work():
            if self._index is None:
                return False
            if not self.shelf.log.continues(self._record.mark):
                # The log was rewritten. Its vectors are kept, its places are not.
                self.renew()
            index = self._index
            touched, gone, mark, lines = self._news()
            if not lines:
                self.full = True
                self.why = ""
                return False
        texts = self._texts(touched)
        # The model works outside of the turn: questions go on meanwhile.
        vectors = self._mind.vectors(list(texts.values()), self.shelf.vectors) if texts else None
        self._take_in(index, gone, list(texts), vectors, mark)
        return True

    def _take_in(
        self, index: VectorIndex, gone: Sequence[str], ids: Sequence[str], vectors: Vectors | None, mark: Mark
    ) -> None:
        """Change ``index`` in short turns, unless it was made anew meanwhile and knows nothing of the lines before."""
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
        """Query own entries for themselves; an index that does not find them is moved aside and made anew."""
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
        """Make the index anew from the log and the kept vectors, from now on."""
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
        """Put a suspect index away and make a new one."""
        log.warning("memory: the vector index of %s is made anew, because %s", self.shelf.folder.name, why)
        with self._turns.lock:
            self._drop_index()
            aside = self.shelf.folder / DAMAGED
            shutil.rmtree(aside, ignore_errors=True)
            with contextlib.suppress(OSError):
                (self.shelf.folder / self._record.folder).rename(aside)
            self._start_anew()
            self.why = (
                self.why or "The vector index was damaged. It is made anew; entries are found by words meanwhile."
            )
            self.done, self.full = 0, False

    def forget(self, ids: Collection[str]) -> list[str]:
        """Remove entries from the index; those that it still finds."""
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
                    # It opened and answers. Whether it answers well is for ``check``.
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
        """Hold the vectors in memory, when they are few, or have none."""
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
        """Own the index as soon as nobody else does."""
        with self._turns.lock, contextlib.suppress(OSError):
            if self._ownership.held or not self.shelf.exists or not self._ownership.take():
                return
            self._drop_index()
            self.full, self.done = False, 0
            self._open_chroma()
        self.check()

    def _news(self) -> tuple[list[str], list[str], Mark, int]:
        """Ids that were added or changed, ids that were forgotten, the mark behind them, and the number of lines."""
        touched: dict[str, None] = {}
        gone: dict[str, None] = {}
        mark, lines = self._record.mark, 0
        for line, after in self.shelf.log.read(mark):
            record = loads(line) or {}
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
        """What the vectors of those entries are made of that are still there, by id."""
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
        """Ids of some entries that the index has taken in: drawn from the log before its mark."""
        end = self._record.mark.offset
        ids: dict[str, None] = {}
        with open_regular(self.shelf.log.path) as file:
            for _ in range(4 * _SAMPLE if end else 0):
                file.seek(random.randrange(end))  # noqa: S311 - a sample
                file.readline()
                record = loads(file.readline()) or {}
                if file.tell() <= end and record.get("op") == "add":
                    ids.update(dict.fromkeys(ids_of(record)))
        return list(ids)[:_SAMPLE]

    def _save(self, mark: Mark) -> None:
        self._record = replace(self._record, mark=mark)
        if self._record.folder:
            try:
                self._record.save(self._record_path)
            except OSError as error:
                # Then some entries are taken in twice, which does no harm.
                log.warning("memory: %s cannot be written: %s", self._record_path, error)
