"""Queries of the full-text index: entries that contain a term, the turns around them, the newest and the pinned."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ba_tui.core.ports.memory import Entry, Kind
from ba_tui.core.values import frozen
from ba_tui.features.memory.engine.dates import Span
from ba_tui.features.memory.engine.index import Index, slot, unpacked
from ba_tui.features.memory.engine.terms import fingerprint

POSTINGS = 10_000
"""Maximum entries that the terms of one search may match together: further common terms are left out."""
_AT_ONCE = 500
_COLUMNS = "number, id, kind, session, sequence, speaker, at, size, asks, timed, days, terms, print"


def _beside(way: str, order: str, place: int) -> str:
    """Return the query for the number of the turn that is ``place`` turns before or after the entry ``one``."""
    return (
        "(SELECT number FROM entries other WHERE other.session = one.session AND other.kind = 'turn'"  # noqa: S608
        f" AND (other.sequence, other.number) {way} (one.sequence, one.number)"
        f" ORDER BY other.sequence {order}, other.number {order} LIMIT 1 OFFSET {place})"
    )


_NEARBY = (
    f"SELECT number, {_beside('<', 'DESC', 0)}, {_beside('>', 'ASC', 0)}, {_beside('<', 'DESC', 1)},"  # noqa: S608
    f" {_beside('>', 'ASC', 1)} FROM entries one WHERE number IN"
)


@frozen
class Row:
    """The fields of an entry that scoring needs."""

    number: int
    """Place in the log: larger is newer."""
    id: str
    kind: Kind
    session: str
    sequence: int
    speaker: str
    at: float
    size: int
    """Number of terms in the text, with repetitions."""
    asks: bool
    """The text ends with a question."""
    timed: int
    """The number of words about time, at most 2."""
    days: tuple[Span, ...]
    """The days that the text names."""
    terms: frozenset[str]
    print: str
    """Equal for entries with the same words in the same order."""


@frozen
class Nearby:
    """Numbers of the turns around a turn, in the same session; 0 where there is no turn."""

    previous: int = 0
    next: int = 0
    second_previous: int = 0
    second_next: int = 0

    @property
    def all(self) -> tuple[int, ...]:
        return (self.previous, self.next, self.second_previous, self.second_next)


class Lookup:
    """Queries ``index`` without updating it."""

    def __init__(self, index: Index) -> None:
        self.index = index

    def total(self) -> int:
        return self._all("SELECT count(*) FROM entries")[0][0]

    def counts(self, stems: Iterable[str]) -> dict[str, int]:
        """Return the number of entries with each of the stems. Stems without entries are left out."""
        rows = self._among("SELECT stem, entries FROM words WHERE entries > 0 AND stem IN", set(stems))
        return dict(rows)

    def words(self, stems: Iterable[str]) -> dict[str, str]:
        """For each stem a word of an entry with that stem."""
        return dict(self._among("SELECT stem, word FROM words WHERE stem IN", set(stems)))

    def matching(self, stems: Iterable[str], limit: int) -> list[int]:
        """Numbers of the entries that match the rarest of the stems best, best first."""
        counts = self.counts(stems)
        chosen: list[str] = []
        for stem in sorted(counts, key=lambda stem: counts[stem]):
            if chosen and sum(counts[each] for each in (*chosen, stem)) > POSTINGS:
                break
            chosen.append(stem)
        if not chosen:
            return []
        phrase = " OR ".join(f'"{stem}"' for stem in chosen)
        query = "SELECT rowid FROM found WHERE found MATCH ? ORDER BY rank LIMIT ?"
        return [row[0] for row in self._all(query, (phrase, limit))]

    def numbers(self, ids: Iterable[str]) -> list[int]:
        return [row[0] for row in self._among("SELECT number FROM entries WHERE id IN", set(ids))]

    def rows(self, numbers: Iterable[int]) -> dict[int, Row]:
        """Return the existing rows among ``numbers``, by number."""
        query = f"SELECT {_COLUMNS} FROM entries WHERE number IN"  # noqa: S608 - names of ours
        return {row[0]: _row(row) for row in self._among(query, set(numbers))}

    def nearby(self, rows: Iterable[Row]) -> dict[int, Nearby]:
        """Return the turns around each of the ``rows`` that is a turn itself."""
        turns = [row.number for row in rows if row.kind == "turn"]
        return {row[0]: Nearby(*(each or 0 for each in row[1:])) for row in self._among(_NEARBY, turns)}

    def speakers(self) -> frozenset[str]:
        return frozenset(row[0] for row in self._all("SELECT DISTINCT speaker FROM entries WHERE speaker != ''"))

    def entries(self, ids: Iterable[str]) -> dict[str, Entry]:
        """Return the existing entries among ``ids``, by id."""
        return {row[0]: unpacked(row[1]) for row in self._among("SELECT id, record FROM entries WHERE id IN", set(ids))}

    def pinned(self) -> list[Entry]:
        """Return the pinned entries that are not superseded, oldest first."""
        return self._unpacked("SELECT record FROM entries WHERE pinned AND current ORDER BY number")

    def recent(self, limit: int) -> list[Entry]:
        """Return the newest entries without superseded ones, newest first."""
        return self._unpacked("SELECT record FROM entries WHERE current ORDER BY number DESC LIMIT ?", (limit,))

    def newest(self, limit: int) -> list[Entry]:
        """Return all entries, pinned ones first, then newest first."""
        query = "SELECT record FROM entries ORDER BY pinned DESC, at DESC, number DESC LIMIT ?"
        return self._unpacked(query, (limit,))

    def in_slot(self, entry: Entry) -> list[Entry]:
        """Current entries on the subject and attribute of ``entry``, which has both, oldest first."""
        return self._unpacked("SELECT record FROM entries WHERE slot = ? AND current ORDER BY number", (slot(entry),))

    def printed(self, text: str) -> list[Entry]:
        """Current entries with the words of ``text`` in the same order, oldest first."""
        query = "SELECT record FROM entries WHERE print = ? AND current ORDER BY number"
        return self._unpacked(query, (fingerprint(text),))

    def _unpacked(self, query: str, values: Sequence[Any] = ()) -> list[Entry]:
        return [unpacked(row[0]) for row in self._all(query, values)]

    def _all(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.index.ask(lambda db: db.execute(query, values).fetchall())

    def _among(self, query: str, values: Iterable[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of ``query``, which ends with IN, for all ``values``."""
        wanted = list(values)
        rows: list[tuple[Any, ...]] = []
        for at in range(0, len(wanted), _AT_ONCE):
            part = wanted[at : at + _AT_ONCE]
            rows += self._all(f"{query} ({','.join('?' * len(part))})", part)
        return rows


def _row(row: Sequence[Any]) -> Row:
    number, id, kind, session, sequence, speaker, at, size, asks, timed, days, spaced, print = row
    named = tuple(Span(*each) for each in json.loads(days)) if days != "[]" else ()
    return Row(
        *(number, id, kind, session, sequence, speaker, at, size, bool(asks), timed, named),
        *(frozenset(spaced.split()), print),
    )


def merged(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the sums of several ``counts``."""
    total: dict[str, int] = {}
    for each in counts:
        for stem, count in each.items():
            total[stem] = total.get(stem, 0) + count
    return total
