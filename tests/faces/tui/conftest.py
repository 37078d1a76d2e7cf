"""A world around the app, and a pilot that waits for the app's work instead of sleeping."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faces.tui.fakes import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    folder = tmp_path / "app"
    folder.mkdir()
    return World(folder)
