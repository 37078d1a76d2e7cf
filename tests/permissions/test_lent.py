"""Folders that are lent: read by a name of their own, never written, and never in the way of the workspace's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ba_tui.permissions.paths import ReadOnlyFolder, Workspace
from ba_tui.permissions.policy import Allow, Ask, Deny, Policy
from ba_tui.permissions.verdicts import JudgedCall
from tests.permissions.toolset import EDIT, READ


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "work" / "data").mkdir(parents=True)
    (tmp_path / "work" / "data" / "own.csv").write_text("own")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "abc").write_text("kept")
    (tmp_path / "store" / "own.csv").write_text("hidden by the workspace's")
    return Workspace(tmp_path / "work", lent=(ReadOnlyFolder("data", tmp_path / "store"),))


def test_what_is_lent_is_found_by_its_name(workspace: Workspace, tmp_path: Path) -> None:
    assert workspace.resolve("data/abc") == tmp_path / "store" / "abc"
    assert workspace.shown(tmp_path / "store" / "abc") == "data/abc"


def test_the_workspace_comes_first_and_new_files_are_its_own(workspace: Workspace) -> None:
    assert workspace.resolve("data/own.csv") == workspace.root / "data" / "own.csv"
    assert workspace.resolve("data/new.csv") == workspace.root / "data" / "new.csv"


def test_it_is_read_without_asking_and_never_written(workspace: Workspace) -> None:
    policy = Policy(workspace)
    assert policy.judge(JudgedCall(READ, {"path": "data/abc"}, workspace.root)) == Allow()
    refused = policy.judge(JudgedCall(EDIT, {"path": "data/abc"}, workspace.root))
    assert isinstance(refused, Deny)
    assert "data/abc can only be read" in refused.reason


@pytest.mark.parametrize("text", ["data/../../other", "data/abc/../../../etc/passwd"])
def test_there_is_no_way_out_through_it(workspace: Workspace, text: str) -> None:
    assert isinstance(Policy(workspace).judge(JudgedCall(READ, {"path": text}, workspace.root)), Ask)
