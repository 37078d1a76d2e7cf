"""Remembers which skills may use their tools without asking, each by the hash of the content it had then.

Kept in the person's config folder, never in a project. What follows from it is the permission policy's business.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from ba_tui.resources import exclusive, save_whole
from ba_tui.settings.document import load_mapping, read_document

HEADER = """\
# Skills and /commands whose tools you allowed, each with the hash of its content at that time.
# Remove a line to be asked again.
"""
KEPT = 8
"""Contents of one skill that are remembered: a project's and one's own may differ."""


class Confirmed:
    """What can't be kept holds until the program ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._now: set[tuple[str, str]] = set()
        self._read: tuple[object, frozenset[tuple[str, str]]] = (None, frozenset())

    def has(self, id: str, digest: str) -> bool:
        return (id, digest) in self._now or (id, digest) in self._kept()

    def add(self, id: str, digest: str, tools: Sequence[str]) -> None:
        """Raises StorageError when it can't be kept; it holds for now all the same."""
        import yaml  # noqa: PLC0415 - not before the first paint

        self._now.add((id, digest))
        with exclusive(self.path.parent):
            kept = load_mapping(self.path)
            entries: Any = kept.get(id)
            before = cast("list[Any]", entries) if isinstance(entries, list) else []
            others = [entry for entry in before if _digest(entry) != digest]
            kept[id] = [*others, {"hash": digest, "tools": list(tools)}][-KEPT:]
            save_whole(self.path, HEADER + yaml.safe_dump(kept, allow_unicode=True, sort_keys=True), mode=0o600)

    def _kept(self) -> frozenset[tuple[str, str]]:
        try:
            status = self.path.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        except OSError:
            return frozenset()
        with self._lock:
            if self._read[0] != stamp:
                document = read_document(self.path)
                data = document.data if document and not document.problems else {}
                self._read = (stamp, frozenset(_pairs(data)))
            return self._read[1]


def _pairs(data: dict[str, Any]) -> list[tuple[str, str]]:
    lists = {id: cast("list[Any]", entries) for id, entries in data.items() if isinstance(entries, list)}
    return [(id, digest) for id, entries in lists.items() for entry in entries if (digest := _digest(entry))]


def _digest(entry: Any) -> str:
    digest: Any = cast("dict[str, Any]", entry).get("hash") if isinstance(entry, dict) else None
    return digest if isinstance(digest, str) else ""
