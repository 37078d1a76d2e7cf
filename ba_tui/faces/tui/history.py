"""Prompts of earlier days, in the person's state folder with rights 0600.

All of it is file work and meant for a thread; a folder that can't be written costs the memory, never the prompt.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ba_tui.core.errors import StorageError
from ba_tui.core.messages import clean_text
from ba_tui.resources import open_regular, save_whole

KEPT = 1_000
FILE_LIMIT = 20_000_000
"""Bytes of the newest prompts that are read and kept; one that is longer than that is remembered for this run only."""


class PromptHistory:
    """What was typed, oldest first. ``entries`` is filled by ``load``; ``add`` appends to memory and file."""

    def __init__(self, state: Path) -> None:
        self._file = state / "history.jsonl"
        self.entries: list[str] = []

    def load(self) -> None:
        """Read the file, and shorten it when it has grown."""
        with suppress(OSError), open_regular(self._file) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - FILE_LIMIT))
            # A line that is cut in two is none.
            lines = file.read(FILE_LIMIT).decode("utf-8", "replace").splitlines()
            loaded = [text for line in lines if (text := _text(line))]
            self.entries = loaded[-KEPT:] + self.entries
            if len(lines) > 2 * KEPT or size > FILE_LIMIT:
                with suppress(StorageError):
                    save_whole(self._file, "".join(map(_line, self.entries)), mode=0o600)

    def remember(self, text: str) -> bool:
        """Keep ``text`` for this run; False when there is nothing new to write to the file."""
        if not text.strip() or (self.entries and self.entries[-1] == text):
            return False
        self.entries.append(text)
        return True

    def shelve(self, text: str) -> bool:
        """Keep ``text`` for this run and in the file; False when it can't be written."""
        return not self.remember(text) or self.append(text)

    def append(self, text: str) -> bool:
        """Add one prompt to the file; False when it can't be written."""
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC
            with open(os.open(self._file, flags, 0o600), "a", encoding="utf-8") as file:
                file.write(_line(text))
            return True
        return False

    def search(self, words: str, limit: int = 50) -> Iterator[str]:
        """Prompts that hold all of ``words``, newest first, each once."""
        wanted = words.casefold().split()
        seen: set[str] = set()
        for text in reversed(self.entries):
            folded = text.casefold()
            if text not in seen and all(word in folded for word in wanted):
                seen.add(text)
                yield text
                if len(seen) >= limit:
                    return


def _line(text: str) -> str:
    return json.dumps({"text": clean_text(text)}, ensure_ascii=False) + "\n"


def _text(line: str) -> str:
    """The prompt of one line; empty for a line that is torn or foreign."""
    try:
        value: Any = json.loads(line)
        return str(value["text"])
    except (ValueError, TypeError, KeyError):
        return ""
