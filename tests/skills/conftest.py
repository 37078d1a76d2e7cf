"""A world of one's own for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.skills.world import World


@pytest.fixture
def world(tmp_path: Path, ba_home: Path) -> World:
    return World(tmp_path / "project", ba_home).trusted()
