"""Schema versions: ours and older ones pass, newer ones are refused."""

from __future__ import annotations

import pytest

from ba_tui.core.errors import NewerSchema
from ba_tui.sessions.migrations import SCHEMA_VERSION, STEPS, check, migrate


def test_there_is_a_step_for_every_older_version() -> None:
    assert sorted(STEPS) == list(range(1, SCHEMA_VERSION))


def test_a_record_of_today_is_not_changed() -> None:
    assert migrate({"type": "titled", "title": "x"}, SCHEMA_VERSION) == {"type": "titled", "title": "x"}


def test_a_newer_version_is_refused_and_ours_is_not() -> None:
    check(SCHEMA_VERSION, "20261121-120000-ab12")
    with pytest.raises(NewerSchema, match="20261121-120000-ab12"):
        check(SCHEMA_VERSION + 1, "20261121-120000-ab12")
