"""Whether a folder has data: found at any step, and cheap while there is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ba_tui.features.data.analysis.nearby import MOST_ENTRIES, DataNearby

LONG_AGO = (1_000_000_000, 1_000_000_000)


def settle(*folders: Path) -> None:
    """As folders are that did not change for a while."""
    for folder in folders:
        os.utime(folder, LONG_AGO)


@pytest.mark.parametrize("name", ["sales.csv", "data/sales.parquet", "data/book.xlsx"])
def test_data_is_found_when_it_comes(tmp_path: Path, name: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "notes.md").write_text("")
    (tmp_path / "settings.json").write_text("{}")
    nearby = DataNearby(tmp_path, bool)
    settle(tmp_path, tmp_path / "data")
    assert not nearby.found()
    assert not nearby.found()
    (tmp_path / name).write_text("")
    assert nearby.found()
    (tmp_path / name).unlink()
    assert nearby.found(), "the tools stay listed"


def test_a_folder_that_did_not_change_is_not_read_again(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    nearby = DataNearby(tmp_path, bool)
    settle(tmp_path, tmp_path / "data")
    assert not nearby.found()
    (tmp_path / "data" / "hidden.csv").write_text("")
    settle(tmp_path / "data")
    assert not nearby.found()


def test_a_folder_that_changed_a_moment_ago_is_read_again(tmp_path: Path) -> None:
    nearby = DataNearby(tmp_path, bool)
    before = tmp_path.stat()
    assert not nearby.found()
    (tmp_path / "sales.csv").write_text("")
    os.utime(tmp_path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert nearby.found()


def test_many_names_are_read_over_several_steps(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for number in range(MOST_ENTRIES * 2 // 3):
            (tmp_path / folder / f"{number}.txt").touch()
    (tmp_path / "zoo").mkdir()
    (tmp_path / "zoo" / "sales.csv").touch()
    settle(*(tmp_path / folder for folder in (".", "one", "two", "zoo")))
    nearby = DataNearby(tmp_path, bool)
    assert any(nearby.found() for _ in range(3))
