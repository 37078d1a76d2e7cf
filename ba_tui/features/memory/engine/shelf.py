"""One shelf of memory: the log of a project, or the global one, with its indexes. All methods block: call them in
threads.

``store`` decides which entry belongs on which shelf.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ba_tui.core.errors import StorageError, UsageError, written_by_newer
from ba_tui.core.messages import clean_text
from ba_tui.core.ports.memory import Entry
from ba_tui.core.text.json_text import read_object
from ba_tui.core.text.wording import count
from ba_tui.features.memory.engine.entries import VERSION, added, entry_of, ids_of, line, version_of
from ba_tui.features.memory.engine.index import Health, Index
from ba_tui.features.memory.engine.log import Log, Mark
from ba_tui.features.memory.engine.lookup import Lookup
from ba_tui.features.memory.engine.vectors import VectorFile, content_hash

MOST_CHARACTERS = 20_000
"""Maximum characters of a text; this is also the part that is split into terms."""
_BEFORE = 500
"""Characters of a turn that are part of the next turn's vector, as in ``store_process.desk``."""
_COMPACT = 1_000_000
"""Bytes up to which a log is not compacted."""
_FEW = 20
"""Maximum ids for which a search in the raw line is faster than parsing it."""
_TEXTS = tuple(field.name for field in fields(Entry) if isinstance(field.default, str) or field.name in {"id", "text"})


class Shelf:
    """The files in ``folder``, which is created with the first entry."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = Log(folder / "log.jsonl")
        self.index = Index(folder / "words.sqlite", self.log)
        self.lookup = Lookup(self.index)
        self.vectors = VectorFile(folder / "vectors.sqlite")

    @property
    def exists(self) -> bool:
        """Return whether anything was ever stored here."""
        return self.log.path.exists()

    def add(self, entries: Iterable[Entry]) -> None:
        """Append entries. Raises UsageError for a text that can't be stored, StorageError if nothing was written."""
        lines: list[bytes] = []
        for entry in map(_checked, entries):
            lines.append(added(entry))
            if entry.superseded_by:
                lines.append(line("change", {"id": entry.id, "superseded_by": entry.superseded_by}))
        self.append(b"".join(lines))

    def append(self, lines: bytes) -> None:
        """Append whole lines. Raises StorageError if nothing was written."""
        try:
            # mkdir applies its mode only to the last folder.
            for folder in (self.folder.parent.parent, self.folder.parent, self.folder):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            hint = "Check the rights of the folder, or set BA_HOME to a folder that you can write to."
            raise StorageError(f"{self.folder} cannot be made: {error.strerror or error}.", hint) from error
        self.log.append(lines)

    def change(self, id: str, values: dict[str, Any]) -> None:
        """Append changed fields. Raises as ``add``."""
        values = {name: clean_text(value) if isinstance(value, str) else value for name, value in values.items()}
        _check_text(values.get("text", "-"))
        self.append(line("change", {"id": id, **values}))

    def used(self, ids: Collection[str], at: float) -> None:
        """Append that entries were used."""
        self.append(line("used", {"ids": sorted(ids), "at": at}))

    def fresh(self, most: int | None = None) -> Lookup | None:
        """Return the queries of the index, after ``most`` new lines of the log were added to it; None without a log."""
        if not self.exists:
            return None
        self.index.update(most=most)
        return self.lookup

    def found(self, ids: Collection[str]) -> dict[str, Entry]:
        """Return the existing entries by id."""
        lookup = self.fresh()
        return lookup.entries(ids) if lookup else {}

    def forget(self, ids: Collection[str], models: Iterable[str]) -> list[str]:
        """Remove entries from log, index and the vectors of ``models``; return the ids that existed.

        Raises:
            StorageError: not all could be removed. A second call removes the rest.
        """
        there = self.found(ids)
        if not there:
            return self._forget_rest(ids)
        texts = self._embedded_texts(there)
        self.append(line("forget", {"ids": sorted(there)}))
        self.log.sync()
        # The index comes first, so that its position in the log stays valid.
        self.index.update()
        self.log.blank(_said_of(there))
        self.log.forget_rejected(there)
        with contextlib.suppress(FileNotFoundError):
            self.index.tidy()
        if self.vectors.exists:
            self.vectors.drop(content_hash(model, text) for model in models for text in texts)
        if left := self.lookup.entries(there):
            what = f"{len(left)} of {len(there)} memories are still in the index, because another process writes it."
            raise StorageError(what, "Run it again.")
        return list(there)

    def set_bad_aside(self) -> None:
        """Move unreadable lines out of the log."""
        self.log.blank(_is_bad, keep=True)

    def compact(self) -> None:
        """Rewrite the log when more than half of it was forgotten. The indexes are then rebuilt."""
        size = self.log.size()
        if size > _COMPACT and 2 * sum(len(data) for data, _ in self.log.read(Mark()) if data.isspace()) > size:
            self.log.rewrite(lambda data: None if data.isspace() else data)

    def skipped(self, health: Health) -> int:
        """Return the number of unreadable lines."""
        try:
            aside = self.log.rejected.read_bytes().count(b"\n")
        except OSError:
            aside = 0
        return max(aside, health.bad)

    def newer(self, health: Health) -> str:
        """Return a message about lines written by a newer ba; empty if this one reads all of them."""
        if not health.later:
            return ""
        version = max(version_of(read_object(data) or {}) for data, _ in self.log.read(Mark()))
        lines = count(health.later, "line")
        return f"{written_by_newer(f'A part of {self.log.path} ({lines})', version, VERSION)} Update ba."

    def size(self) -> int:
        """Return the bytes on the disk."""
        total = 0
        for path in self.folder.rglob("*"):
            with contextlib.suppress(OSError):
                total += path.stat().st_size
        return total

    def _embedded_texts(self, entries: dict[str, Entry]) -> list[str]:
        """Return the texts of all vectors that contain ``entries``: their own, with the turn before them, and with the
        one after.
        """
        lookup = self.lookup
        rows = lookup.rows(lookup.numbers(entries))
        nearby = lookup.nearby(rows.values())
        beside = lookup.rows({number for each in nearby.values() for number in (each.previous, each.next)})
        known = {**lookup.entries(row.id for row in beside.values()), **entries}
        texts = [entry.text for entry in entries.values()]
        for number, each in nearby.items():
            turn = known[rows[number].id]
            if each.previous in beside:
                texts.append(f"{known[beside[each.previous].id].text[-_BEFORE:]} {turn.text}")
            if each.next in beside:
                texts.append(f"{turn.text[-_BEFORE:]} {known[beside[each.next].id].text}")
        return texts

    def _forget_rest(self, ids: Collection[str]) -> list[str]:
        """Remove what an earlier call could not: the index no longer knows these ids, but the files may still contain
        them.
        """
        left = self.exists and self.log.blank(_said_of(ids)) + self.log.forget_rejected(ids)
        return sorted(ids) if left else []


def _said_of(ids: Collection[str]) -> Callable[[bytes], bool]:
    """Return whether a line contains data of one of the entries ``ids``."""
    few = [id.encode() for id in ids] if len(ids) <= _FEW else []

    def said(data: bytes) -> bool:
        if few and not any(id in data for id in few):
            return False
        record = read_object(data)
        if record is None:
            return any(id.encode() in data for id in ids)
        return record.get("op") in {"add", "change"} and record.get("id") in ids

    return said


def _is_bad(data: bytes) -> bool:
    """Return whether a line is unusable, by this ba or a later one."""
    if data.isspace():
        return False
    record = read_object(data)
    version = version_of(record) if record else 0
    if record is None or not version:
        return True
    match record.get("op"):
        case _ if version > VERSION:
            return False
        case "add":
            return entry_of(record) is None
        case "change" | "forget" | "used":
            return not ids_of(record)
        case operation:
            return operation != "log"


def _checked(entry: Entry) -> Entry:
    """Return ``entry`` with texts that a line can store. Raises UsageError."""
    _check_text(entry.text)
    return replace(entry, **{name: clean_text(getattr(entry, name)) for name in _TEXTS})


def _check_text(text: str) -> None:
    if not clean_text(text).strip("\N{REPLACEMENT CHARACTER} \t\r\n"):
        raise UsageError(
            "There is no text to remember.", "Say what to remember, such as: /remember we use British spelling"
        )
    if len(text) > MOST_CHARACTERS:
        raise UsageError(
            f"The text has {len(text):,} characters; a memory holds up to {MOST_CHARACTERS:,}.",
            "Shorten it, or keep it in a file and remember the file's name.",
        )
