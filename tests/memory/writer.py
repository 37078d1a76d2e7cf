"""Writes entries until it is killed, and prints what the store has acknowledged: ``+id`` stored, ``~id`` to be
forgotten, ``-id`` forgotten. Run in a process of its own.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from ba_tui.features.memory.engine.recall import SearchRequest
from ba_tui.features.memory.engine.setup import StoreSetup
from ba_tui.features.memory.engine.store import MemoryStore
from tests.memory.entries import PROJECT, entry


def _say(mark: str, id: str) -> None:
    sys.stdout.write(f"{mark}{id}\n")
    sys.stdout.flush()


async def _write(folder: Path, name: str) -> None:
    store = MemoryStore(folder, PROJECT, StoreSetup(embedder="off"))
    number = 0
    while True:
        number += 1
        new = entry(f"{name} counts {number} sheep")
        await store.add([new])
        _say("+", new.id)
        if number % 5 == 0:
            await store.search(SearchRequest(f"{number} sheep"))
        if number % 20 == 0:
            _say("~", new.id)
            await store.forget([new.id])
            _say("-", new.id)


asyncio.run(_write(Path(sys.argv[1]), sys.argv[2]))
