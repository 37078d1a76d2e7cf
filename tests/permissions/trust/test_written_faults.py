"""The record of what tools wrote when a file operation fails or the process ends at any one of them."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from ba_tui.core.errors import StorageError
from tests.noticing.file_faults import crashes, failures, readable_by_others
from tests.permissions.test_written_files import World

PLANTED = {".ba/tools/x.py": "X = 1\n", "AGENTS.md": "planted\n"}


@pytest.fixture
def made(tmp_path: Path) -> Callable[[], Path]:
    """Makes a folder with a project that has an instruction file, and whose tools have run before."""
    numbers = count()

    def new() -> Path:
        folder = tmp_path / f"world{next(numbers)}"
        folder.mkdir()
        world = World(folder)
        world.write("AGENTS.md", "mine\n")
        return folder

    return new


def plant(folder: Path, acknowledge: Callable[[str], None] = lambda line: None) -> None:
    """One call that writes files. Raises StorageError before it is made, or after."""
    world = World(folder)
    session = world.session()
    try:
        session.begin("`make`")
        acknowledge("begun")
        for name, text in PLANTED.items():
            with suppress(OSError):
                world.write(name, text)
        session.end("`make`")
    finally:
        session.close()


def planted(world: World) -> set[str]:
    return {name for name, text in PLANTED.items() if text in _text(world.root / name)}


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def test_what_a_tool_wrote_is_listed_though_any_operation_fails(made: Callable[[], Path]) -> None:
    told: list[StorageError] = []
    begun: list[str] = []

    def work(folder: Path) -> None:
        told.clear()
        begun.clear()
        try:
            plant(folder, begun.append)
        except StorageError as error:
            told.append(error)

    refused = 0
    for folder, layer in failures(work, made, errno.ENOSPC, lasting=(False,)):
        failed = layer.done[layer.at or 0]
        world = World(folder)
        assert begun or told, failed
        assert not planted(world) or begun, failed
        assert dict.fromkeys(planted(world), "`make`") == world.listed(), failed
        if ".ba/tools/x.py" in planted(world):
            assert ".ba/tools/x.py" in world.refused()
        # The notes of what runs now are private by their folder alone.
        assert [path for path in readable_by_others(world.where.written) if not path.endswith(".now")] == [], failed
        assert not [*world.where.written.glob("*.tmp")], failed
        refused += not begun
        world.accept()
        assert world.listed() == {}
    assert refused > 5


def test_what_a_killed_tool_wrote_is_listed_by_the_next_start(made: Callable[[], Path]) -> None:
    for folder, told in crashes(plant, made):
        world = World(folder)
        assert not planted(world) or told
        assert planted(world) <= world.listed().keys()
        # The start has closed the record of the killed session; what it lists is there at the next one too.
        assert planted(world) <= world.listed().keys()
        world.accept()
        assert world.listed() == {}
        assert world.trust.trusted(world.root)
