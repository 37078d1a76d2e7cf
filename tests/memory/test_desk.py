"""The vector index of one shelf, in this process, with a model that knows nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast
from zlib import crc32

import numpy
import pytest

from ba_tui.features.memory.engine.embedding import Traits
from ba_tui.features.memory.engine.store_process.desk import DAMAGED, Desk
from ba_tui.features.memory.engine.store_process.mind import Mind
from ba_tui.features.memory.engine.vectors import VectorFile
from tests.memory.entries import entry


class Random:
    """Implements ``Embedder``."""

    traits = Traits("random", 26)

    def entries(self, texts: Sequence[str]) -> Any:
        rows = numpy.array([numpy.random.default_rng(crc32(text.encode())).normal(size=26) for text in texts])
        return rows / numpy.linalg.norm(rows, axis=1, keepdims=True)

    def question(self, text: str) -> Any:
        return self.entries([text])[0]


@pytest.fixture(scope="session")
def chroma() -> None:
    """The first client of a process opens two sockets for signals, which no client closes.

    Imported here, not in each worker: that takes half a second or more."""
    import chromadb
    from chromadb.api.client import Client
    from chromadb.config import Settings

    cast("Client", chromadb.EphemeralClient(Settings(anonymized_telemetry=False))).close()


@pytest.mark.usefixtures("chroma")
def test_an_index_that_is_being_filled_is_healthy_and_one_that_lost_entries_is_not(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "projects" / "shop", Mind(Random(), VectorFile(tmp_path / "words.sqlite")))
    facts = [entry(f"fact {number}") for number in range(700)]
    desk.shelf.add(facts)
    assert desk.follow()
    desk.check()
    assert not (desk.shelf.folder / DAMAGED).exists()
    assert not desk.full
    while desk.follow():
        pass
    assert desk.full
    desk.check()
    assert not (desk.shelf.folder / DAMAGED).exists()

    assert desk.forget([fact.id for fact in facts]) == []
    desk.check()
    assert (desk.shelf.folder / DAMAGED).exists()
    while desk.follow():
        pass
    vector = Random().question(facts[9].text)
    assert max(desk.cosines(vector, [facts[9].id]).values()) > 0.99
    desk.close()
