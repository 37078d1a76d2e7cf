"""Exports of several files: all of them or none. What a kill leaves is a program's to find out (exports.py)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ba_tui.tools.failures import ToolFailure
from tests.killing.changes import held, litter, make, start
from tests.killing.exports import NAMES, NEW, OLD, export
from tests.killing.operations import killed_before, unsynced
from tests.killing.test_killed_changes import faults


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make(tmp_path / "made", {name.replace("/", "-"): NEW[name] for name in NAMES})
    make(tmp_path / "work", OLD)
    return tmp_path / "work"


def test_a_fault_at_any_operation_leaves_all_or_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", unsynced)
    template = root.with_name("template")
    shutil.copytree(root, template)
    refused = 0
    for failed, patch in faults():
        told = ""
        try:
            export(root)
        except ToolFailure as error:
            told = str(error)
        patch.undo()
        if failed in (["unlink"], ["open"]):
            # What can't be removed stays, under the name of a temporary file.
            for left in root.rglob(".*.tmp"):
                left.unlink()
        assert held(root) == (OLD if told else {**OLD, **NEW}), (failed, told)
        assert start(root) == []
        assert litter() == [], failed
        refused += bool(told)
        shutil.rmtree(root)
        shutil.copytree(template, root)
    assert refused > 8


@pytest.mark.parametrize(
    ("ended_before", "told"),
    [
        (1, "No file is changed."),
        (3, "ba put back the file that it had changed."),
        (4, "It had written the 2 files, which stay as they are now."),
    ],
)
def test_the_user_reads_what_became_of_an_export_that_was_killed(root: Path, ended_before: int, told: str) -> None:
    assert killed_before(ended_before, lambda: export(root), ("link", "rename", "ftruncate"))
    assert start(root) == [f"ba was stopped while the export of a report changed 2 files. {told}"]


def test_what_someone_wrote_before_it_was_set_aside_is_not_removed(root: Path) -> None:
    assert killed_before(3, lambda: export(root), ("link", "rename", "ftruncate"))
    (aside,) = root.glob("r-data/.R1.*.tmp")
    aside.write_bytes(b"theirs")
    (told,) = start(root)
    assert told.endswith("changed 2 files. Something else changed r-data/R1: left as found.")
    assert aside.read_bytes() == b"theirs"
