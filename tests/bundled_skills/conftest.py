"""A workspace for the scripts of skills."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bundled_skills.bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    (tmp_path / "work").mkdir()
    return Bench(tmp_path / "work")
