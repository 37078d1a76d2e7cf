"""How often rules decided, kept for a project in one small file that grows by a line a conversation.

Lost counts are no loss: nothing here raises, and nothing waits for another process.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import StorageError
from ba_tui.resources import Places, folder_slug, read_regular, save_whole

LARGEST = 262_144
FOLDER = "rule-hits"


def hits_of(own: Places, project: Path) -> Path:
    """The file of a project's counts."""
    return own.state / FOLDER / f"{folder_slug(project)}.jsonl"


def read_hits(path: Path) -> Counter[str]:
    """How often each rule decided so far; a line that can't be read is left out."""
    found: Counter[str] = Counter()
    with suppress(OSError):
        for line in read_regular(path, 4 * LARGEST).splitlines():
            with suppress(ValueError):
                read: Any = json.loads(line)
                if isinstance(read, dict):
                    counts = cast("dict[str, Any]", read)
                    found.update({key: n for key, n in counts.items() if isinstance(n, int) and 0 < n < 10**9})
    return found


def add_hits(path: Path, counts: Mapping[str, int]) -> None:
    """Add ``counts`` to the file. One write at its end, so that two processes never mix; takes as long as a disk."""
    if not counts:
        return
    with suppress(OSError, StorageError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        handle = os.open(path, flags, 0o600)
        try:
            os.write(handle, json.dumps(counts, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
            large = os.fstat(handle).st_size > LARGEST
        finally:
            os.close(handle)
        if large:
            save_whole(path, json.dumps(read_hits(path), ensure_ascii=False) + "\n", mode=0o600)
