"""Remembers which skills were used last: a long catalogue keeps their descriptions whole."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import StorageError
from ba_tui.resources import exclusive, read_regular, save_whole

log = logging.getLogger(__name__)
KEPT = 50
LARGEST = 100_000


class RecentSkills:
    """Kept in a file of the state folder; without one it remembers nothing."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path

    def ids(self) -> Sequence[str]:
        """The newest first. Blocks."""
        try:
            data: Any = json.loads(read_regular(self._path, LARGEST)) if self._path else []
        except (OSError, ValueError):
            return ()
        return tuple(id for id in cast("list[Any]", data) if isinstance(id, str)) if isinstance(data, list) else ()

    def used(self, id: str) -> None:
        """Blocks. What can't be kept is only logged: nobody waits for it."""
        if self._path is None:
            return
        try:
            with exclusive(self._path.parent):
                kept = [id, *(each for each in self.ids() if each != id)][:KEPT]
                save_whole(self._path, json.dumps(kept))
        except (OSError, StorageError) as error:
            log.warning("the skills used last can't be kept: %s", error)
