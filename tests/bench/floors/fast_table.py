"""``python -m tests.bench.floors.fast_table FILE ROUNDS``: the keys of ``grid`` in textual-fastdatatable, as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from textual.app import ComposeResult

from tests.bench.grid import KEYS, Shown, pressed

THEIRS = {"end": "ctrl+right", "home": "ctrl+left", "G": "ctrl+end", "g": "ctrl+home"}


class Peer(Shown):
    """The file in its table."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self._file = file

    def compose(self) -> ComposeResult:
        from textual_fastdatatable import ArrowBackend, DataTable  # pyright: ignore

        table: Any = DataTable(backend=ArrowBackend.from_parquet(self._file), cursor_type="range")
        yield table

    def on_mount(self) -> None:
        self.query("DataTable").first().focus()


async def main(file: str, rounds: int) -> list[float]:
    app = Peer(file)
    async with app.run_test(size=(200, 50)) as pilot:
        return await pressed(app, pilot, [THEIRS.get(key, key) for key in KEYS] * rounds, lambda: True)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[1], int(sys.argv[2])))))
