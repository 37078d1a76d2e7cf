"""A trusted folder, and a model that plays a script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ba_tui.permissions.trust.grants import trust_folder
from tests.remembering.world import Model, playing


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    trust_folder(work)
    return work


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    with playing(monkeypatch) as steps:
        yield steps
