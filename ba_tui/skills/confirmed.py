"""Remembers which skills may use their tools without asking, each by the hash of the content it had then.

Kept in the person's config folder, never in a project. What follows from it is the permission policy's business.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
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
        self._now: dict[tuple[str, str], frozenset[str]] = {}
        self._read: tuple[object, Mapping[tuple[str, str], frozenset[str]]] = (None, {})

    def has(self, id: str, digest: str, tools: Iterable[str]) -> bool:
        """Whether the user allowed all of ``tools`` for this content of the skill."""
        known = [kept[id, digest] for kept in (self._now, self._kept()) if (id, digest) in kept]
        return bool(known) and frozenset(tools) <= frozenset().union(*known)

    def add(self, id: str, digest: str, tools: Sequence[str]) -> None:
        """Raises StorageError when it can't be kept; it holds for now all the same."""
        import yaml  # noqa: PLC0415 - not before the first paint

        self._now[id, digest] = self._now.get((id, digest), frozenset()) | frozenset(tools)
        with exclusive(self.path.parent):
            kept = load_mapping(self.path)
            entries: Any = kept.get(id)
            before = cast("list[Any]", entries) if isinstance(entries, list) else []
            others = [entry for entry in before if _digest(entry) != digest]
            # The same content elsewhere may name other paths: both count.
            earlier = [rule for entry in before if _digest(entry) == digest for rule in _rules(entry)]
            kept[id] = [*others, {"hash": digest, "tools": list(dict.fromkeys([*earlier, *tools]))}][-KEPT:]
            save_whole(self.path, HEADER + yaml.safe_dump(kept, allow_unicode=True, sort_keys=True), mode=0o600)

    def _kept(self) -> Mapping[tuple[str, str], frozenset[str]]:
        try:
            status = self.path.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        except OSError:
            return {}
        with self._lock:
            if self._read[0] != stamp:
                document = read_document(self.path)
                data = document.data if document and not document.problems else {}
                self._read = (stamp, _confirmed(data))
            return self._read[1]


def _confirmed(data: dict[str, Any]) -> dict[tuple[str, str], frozenset[str]]:
    """The allowed rules, by id and hash of the content."""
    lists = {id: cast("list[Any]", entries) for id, entries in data.items() if isinstance(entries, list)}
    found = ((id, _digest(entry), _rules(entry)) for id, entries in lists.items() for entry in entries)
    return {(id, digest): frozenset(rules) for id, digest, rules in found if digest}


def _rules(entry: Any) -> list[str]:
    rules: Any = cast("dict[str, Any]", entry).get("tools") if isinstance(entry, dict) else None
    return [rule for rule in cast("list[Any]", rules) if isinstance(rule, str)] if isinstance(rules, list) else []


def _digest(entry: Any) -> str:
    digest: Any = cast("dict[str, Any]", entry).get("hash") if isinstance(entry, dict) else None
    return digest if isinstance(digest, str) else ""
