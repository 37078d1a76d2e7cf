"""Small stores for tests of retrieval: a real log and index, and an embedder that counts letters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy

from ba_tui.core.ports.memory import Entry
from ba_tui.features.memory.engine.embedding import NoEmbedder, Traits
from ba_tui.features.memory.engine.entries import added
from ba_tui.features.memory.engine.index import Index
from ba_tui.features.memory.engine.log import Log
from ba_tui.features.memory.engine.lookup import Lookup

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Letters:
    """An embedder whose vectors count letters. ``broken`` makes each call fail."""

    def __init__(self) -> None:
        self.traits = Traits("letters", len(_LETTERS))
        self.broken = False

    def entries(self, texts: Sequence[str]) -> Any:
        if self.broken:
            raise NoEmbedder("The embedding package letters cannot be used: wrong CPU.")
        rows = [[1e-3 + text.lower().count(letter) for letter in _LETTERS] for text in texts]
        found = numpy.asarray(rows, dtype=numpy.float32)
        return found / numpy.linalg.norm(found, axis=1, keepdims=True)

    def question(self, text: str) -> Any:
        return self.entries([text])[0]


def lookup_of(folder: Path, entries: Sequence[Entry]) -> Lookup:
    """The index of a new log with ``entries``."""
    folder.mkdir(parents=True, exist_ok=True)
    log = Log(folder / "memory.jsonl")
    log.append(b"".join(map(added, entries)))
    index = Index(folder / "memory.sqlite", log)
    index.update()
    return Lookup(index)


def facts(*texts: str) -> list[Entry]:
    """Facts with the ids f0, f1, … stored a second apart."""
    return [Entry(f"f{place}", text, at=1e9 + place) for place, text in enumerate(texts)]


def turns(*texts: str, session: str = "s") -> list[Entry]:
    """Turns with the ids t0, t1, … of two speakers."""
    return [
        Entry(f"t{place}", text, "turn", session=session, sequence=place, speaker=("Devon", "Aiko")[place % 2], at=1e9)
        for place, text in enumerate(texts)
    ]
