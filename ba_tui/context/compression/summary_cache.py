"""Summaries that were written before, one small file each, found by the hash of what they stand for.

Only a cache: whatever goes wrong with its files is logged, and the summary is written anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ba_tui.core.errors import StorageError
from ba_tui.resources import read_regular, save_whole

log = logging.getLogger(__name__)
SUFFIX = ".json"
LARGEST = 1_000_000
LOOK_EVERY = 20
"""Summaries that are written between two clean-ups."""


def digest(parts: Iterable[str]) -> str:
    """The name of a summary: the same for the same parts in the same order."""
    hashed = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "replace")
        hashed.update(len(data).to_bytes(8, "big") + data)
    return hashed.hexdigest()


class SummaryCache:
    """At most ``size`` summaries in ``folder``, none older than ``hours``. Reads and writes files: off the loop."""

    def __init__(self, folder: Path, size: int, hours: float, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._size = size
        self._seconds = hours * 3_600
        self._clock = clock
        self._written = 0

    def get(self, key: str) -> str | None:
        path = self._folder / f"{key}{SUFFIX}"
        try:
            found: Any = json.loads(read_regular(path, LARGEST))
            text, at = str(found["text"]), float(found["at"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.info("the summary %s can't be read: %s", path, error)
            return None
        return text if 0 <= self._clock() - at < self._seconds else None

    def put(self, key: str, text: str) -> None:
        if not self._size or not self._seconds:
            return
        path = self._folder / f"{key}{SUFFIX}"
        try:
            save_whole(path, json.dumps({"text": text, "at": self._clock()}), mode=0o600)
            self._written += 1
            if self._written % LOOK_EVERY == 1:
                self._prune()
        except (OSError, StorageError) as error:
            log.info("the summary %s can't be kept: %s", path, error)

    def _prune(self) -> None:
        aged: list[tuple[float, Path]] = []
        for path in self._folder.glob(f"*{SUFFIX}"):
            with contextlib.suppress(FileNotFoundError):
                aged.append((path.stat().st_mtime, path))
        aged.sort(reverse=True)
        for place, (at, path) in enumerate(aged):
            if place >= self._size or self._clock() - at > self._seconds:
                path.unlink(missing_ok=True)
