"""What is known of the vector index of a shelf: which folder, made with which model, and how far it follows the log."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

from ba_tui.core.values import frozen
from ba_tui.features.memory.engine.entries import loads
from ba_tui.features.memory.engine.log import Mark
from ba_tui.resources import read_regular

_LIMIT = 10_000


@frozen
class IndexRecord:
    """``openings``: how often the index was opened since it was last found healthy; a crash leaves it there."""

    folder: str
    model: str
    mark: Mark = Mark()
    openings: int = 0

    def save(self, path: Path) -> None:
        """Replace the file. Raises OSError."""
        mark = [self.mark.head.hex(), self.mark.offset, self.mark.guard.hex()]
        text = json.dumps({"folder": self.folder, "model": self.model, "mark": mark, "openings": self.openings})
        temporary = path.with_suffix(".new")
        temporary.write_text(text, "utf-8")
        temporary.replace(path)


def load_record(path: Path) -> IndexRecord | None:
    """The record in a file; None without one that can be read."""
    try:
        given = loads(read_regular(path, _LIMIT)) or {}
        head, offset, guard = given["mark"]
        mark = Mark(bytes.fromhex(head), int(offset), bytes.fromhex(guard))
        name = str(given["folder"])
        return IndexRecord(name, str(given["model"]), mark, int(given["openings"])) if _own(name) else None
    except (OSError, KeyError, TypeError, ValueError):
        return None


def new_folder() -> str:
    """A name that no index folder had before: Chroma remembers the folders that it has opened."""
    return f"chroma-{secrets.token_hex(6)}"


def _own(name: str) -> bool:
    return name.startswith("chroma-") and "/" not in name
