"""Keeps in a file which protected files appeared while a command ran, until the person has decided about them.

So a later session knows of them too. What is done about them stands in ``protected_watch``.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ba_tui.core.errors import StorageError
from ba_tui.core.values import frozen
from ba_tui.resources import read_regular, save_whole

log = logging.getLogger(__name__)
LARGEST = 1_000_000


@frozen
class PendingChanges:
    """``folder``: where the file lies, beside what was set aside."""

    folder: Path

    @property
    def _file(self) -> Path:
        return self.folder / "pending.json"

    def read(self) -> list[tuple[Path, str]]:
        """The files, each with the command that ran; none where nothing is kept, or nothing that can be read."""
        try:
            entries: Any = json.loads(read_regular(self._file, LARGEST))
        except (OSError, ValueError, RecursionError):
            return []
        if not isinstance(entries, list):
            return []
        return [
            (Path(str(entry["path"])), str(entry.get("by", "")))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
            for entry in entries  # pyright: ignore[reportUnknownVariableType]
            if isinstance(entry, dict) and "path" in entry
        ]

    def write(self, pending: Iterable[tuple[Path, str]]) -> None:
        """Keep these instead of the ones before. A failure is logged: they still count in this session."""
        entries = [{"path": str(path), "by": by} for path, by in pending]
        try:
            if entries or self._file.exists():
                save_whole(self._file, json.dumps(entries, indent=1))
        except (StorageError, OSError, UnicodeError) as error:
            log.warning("protected files that wait for a decision could not be kept: %s", error)
