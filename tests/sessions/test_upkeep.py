"""Runs that nobody attends clean up as well, once an hour."""

from __future__ import annotations

import os
import time
from pathlib import Path

from ba_tui.resources import open_places
from ba_tui.sessions.artifacts import Artifacts
from ba_tui.sessions.upkeep import STAMP, tidy
from ba_tui.settings.sections.agents import CheckpointSettings
from tests.sessions.shelf import folder_of, stored, turn

OLD = "20260101-000000-aaaa"


def old_result(home: Path) -> Path:
    stored(home, OLD, turn("x"))
    folder = folder_of(home, OLD)
    Artifacts(folder / "data").store("long")
    then = time.time() - 30 * 3600
    for path in (folder / "events.jsonl", folder / "lock", *(folder / "data").iterdir()):
        if path.exists():
            os.utime(path, (then, then))
    return folder / "data"


def test_old_results_go_once_an_hour(ba_home: Path) -> None:
    where = open_places()
    data = old_result(where.sessions.parent)
    assert tidy(where, CheckpointSettings())
    assert not [path for path in data.iterdir() if path.suffix != ".json"]
    assert not tidy(where, CheckpointSettings())
    stamp = where.state / STAMP
    os.utime(stamp, (0, 0))
    assert tidy(where, CheckpointSettings())
