"""What the tests of workflows share."""

from __future__ import annotations

import pytest

from tests.planning.stage import Stage


@pytest.fixture
async def stage() -> Stage:
    return Stage()
