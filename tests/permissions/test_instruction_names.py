"""Instruction files: whatever ba loads is protected and counted, by one list; ordinary pages are not."""

from __future__ import annotations

from pathlib import Path, PurePath

import pytest

from ba_tui.context.instructions import InstructionPlace
from ba_tui.core.instruction_names import FOREIGN, LOADED, RULE_FOLDERS
from ba_tui.permissions.sandbox.workspace_scan import WorkspaceScan, is_protected
from ba_tui.permissions.trust.session_writes import CountedFiles, WatchedPlace
from ba_tui.permissions.trust.write_records import FileKey


@pytest.mark.parametrize("folder", ["", "a/b/"])
def test_every_instruction_file_that_ba_loads_is_protected(tmp_path: Path, folder: str) -> None:
    place = InstructionPlace(tmp_path / folder, tmp_path, None, foreign=("gemini", "cursor"))
    names = [*LOADED, *(name for files, _ in FOREIGN.values() for name in files)]
    names += [f"{rules}/deep/x{suffix}" for rules, suffix in RULE_FOLDERS]
    for name in names:
        path = tmp_path / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        assert is_protected(path.relative_to(tmp_path)), name
        assert any(path == found for found, _ in place.files()) or name == "AGENTS.md", name
    scan = WorkspaceScan([tmp_path]).look()
    counted = CountedFiles(WatchedPlace(tmp_path, tmp_path / "own", WorkspaceScan([tmp_path]))).look()
    for name in names:
        path = tmp_path / folder / name
        assert any(path.is_relative_to(found) for found in scan.protected), name
        assert FileKey("told", str(path)) in counted, name


@pytest.mark.parametrize(
    "name", ["README.md", "docs/agents.md", "docs/memory.md", "claude.md", "rules/a.md", "agents/AGENTS.txt"]
)
def test_ordinary_pages_are_not_protected(name: str) -> None:
    assert not is_protected(PurePath(name))
