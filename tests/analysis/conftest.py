"""One engine for the tests of a worker process that only read: starting one costs more than most of them."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from ba_tui.features.data.analysis.engine import Analysis
from tests.analysis.engines import engine_in


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the shared engine reads."""
    return tmp_path_factory.mktemp("data")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(files: Path) -> AsyncGenerator[Analysis]:
    """An engine that the tests of a module share."""
    made = engine_in(files)
    yield made
    await made.close()


@pytest.fixture
def put(files: Path) -> Callable[[str, bytes | str], str]:
    """Writes a file under a name of its own, and returns that name."""
    numbers = itertools.count(len(list(files.iterdir())))

    def write(name: str, content: bytes | str) -> str:
        path = files / f"d{next(numbers)}" / name
        path.parent.mkdir()
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path.relative_to(files))

    return write
