"""Real processes that write one store and are killed at any instant, its index deleted or broken meanwhile."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_tui.features.memory.engine.setup import StoreSetup
from ba_tui.features.memory.engine.store import MemoryStore
from tests.memory.entries import PROJECT, entry

WRITER = Path(__file__).with_name("writer.py")
INDEX = Path("projects") / PROJECT / "words.sqlite"


def _nothing(index: Path) -> None: ...


def _delete(index: Path) -> None:
    for path in index.parent.glob("words.sqlite*"):
        path.unlink()


def _break(index: Path) -> None:
    index.write_bytes(b"nonsense" * 500)


def _killed(
    folder: Path, first: int, second: int, damage: Callable[[Path], None]
) -> tuple[set[str], set[str], set[str]]:
    """Ids that two writers stored, were to forget, and forgot, before they were killed after so many lines."""
    writers = [
        subprocess.Popen([sys.executable, "-m", "tests.memory.writer", folder, name], stdout=subprocess.PIPE, text=True)
        for name in ("Ines", "Omar")
    ]
    said: list[str] = []
    for writer, lines in zip(writers, (first, second), strict=True):
        assert writer.stdout
        said += [writer.stdout.readline().strip() for _ in range(lines)]
        damage(folder / INDEX)
        writer.kill()
    for writer in writers:
        said += [line.strip() for line in writer.communicate()[0].splitlines(keepends=True) if line.endswith("\n")]
    by_mark = {mark: {line[1:] for line in said if line[:1] == mark} for mark in "+~-"}
    return by_mark["+"], by_mark["~"], by_mark["-"]


@pytest.mark.timeout(180)
@settings(max_examples=4)
@given(st.integers(1, 60), st.integers(1, 60), st.sampled_from([_nothing, _delete, _break]))
def test_nothing_acknowledged_is_lost(
    new_folder: Callable[[str], Path], first: int, second: int, damage: Callable[[Path], None]
) -> None:
    folder = new_folder("killed")
    stored, meant, forgotten = _killed(folder, first, second, damage)
    assert len(stored) > 1

    async def look() -> None:
        store = MemoryStore(folder, PROJECT, StoreSetup(embedder="off"))
        last = entry("the last sheep")
        await store.add([last])
        there = (await store.get(stored | {last.id})).keys()
        assert stored - meant <= there
        assert last.id in there
        assert not forgotten & there
        data = (folder / INDEX).with_name("log.jsonl").read_bytes()
        assert not [id for id in forgotten if f'"add","id":"{id}"'.encode() in data]
        assert (await store.state()).skipped <= 2

    asyncio.run(look())
