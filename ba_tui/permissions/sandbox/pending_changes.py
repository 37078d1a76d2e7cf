"""Keeps in a file which protected files appeared or changed while a command ran, until the person decided about them.

So a later session knows of them too. What is done about them stands in ``protected_watch``.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import StorageError
from ba_tui.core.values import frozen
from ba_tui.resources import read_regular, save_whole

log = logging.getLogger(__name__)
LARGEST = 1_000_000


@frozen
class Pending:
    """A file that the command ``by`` made (``new``) or changed; ``outermost``: what appeared with it."""

    path: Path
    outermost: Path
    by: str
    new: bool


@frozen
class PendingChanges:
    """``folder``: where the file lies, beside what was set aside."""

    folder: Path

    @property
    def _file(self) -> Path:
        return self.folder / "pending.json"

    def read(self) -> list[Pending]:
        """The files; none where nothing is kept, or nothing that can be read."""
        try:
            entries: Any = json.loads(read_regular(self._file, LARGEST))
        except (OSError, ValueError, RecursionError):
            return []
        found = cast("list[Any]", entries) if isinstance(entries, list) else []
        return [_read(cast("dict[str, Any]", entry)) for entry in found if isinstance(entry, dict) and "path" in entry]

    def write(self, pending: Iterable[Pending]) -> None:
        """Keep these instead of the ones before. A failure is logged: they still count in this session."""
        entries = [
            {"path": str(each.path), "outermost": str(each.outermost), "by": each.by, "new": each.new}
            for each in pending
        ]
        try:
            if entries or self._file.exists():
                save_whole(self._file, json.dumps(entries, indent=1))
        except (StorageError, OSError, UnicodeError) as error:
            log.warning("protected files that wait for a decision could not be kept: %s", error)


def _read(entry: Mapping[str, Any]) -> Pending:
    path = str(entry["path"])
    outermost, by = str(entry.get("outermost", path)), str(entry.get("by", ""))
    return Pending(Path(path), Path(outermost), by, entry.get("new") is not False)
