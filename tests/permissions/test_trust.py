"""Trust in a folder's own code: granted by a person, for exactly the files that were there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ba_tui.core.errors import UsageError
from ba_tui.permissions.trust import MOST_FILES, Trust, code_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    tools = folder / ".ba" / "tools"
    tools.mkdir(parents=True)
    (tools / "a.py").write_text("A = 1\n")
    (folder / ".ba" / "workflows").mkdir()
    (folder / ".ba" / "workflows" / "flow.yaml").write_text("steps: []\n")
    return folder


@pytest.fixture
def trust(tmp_path: Path) -> Trust:
    return Trust(tmp_path / "config" / "trusted.yaml")


def test_nothing_is_trusted_before_a_person_says_so(trust: Trust, root: Path):
    assert not trust.trusted(root)
    trust.grant(root)
    assert trust.trusted(root)
    assert Trust(trust.path).trusted(root), "it is kept"
    assert not trust.trusted(root.parent)


def test_a_grant_can_be_taken_back(trust: Trust, root: Path):
    assert not trust.revoke(root)
    trust.grant(root)
    assert trust.revoke(root)
    assert not trust.trusted(root)


@pytest.mark.parametrize(
    "path",
    ["tools/a.py", "tools/new.py", "tools/data.txt", "tools/sub/part.py", "workflows/flow.yaml", "tools.yaml"],
)
def test_any_change_of_what_runs_takes_the_trust_away(trust: Trust, root: Path, path: str):
    trust.grant(root)
    assert trust.trusted(root)
    file = root / ".ba" / path
    file.parent.mkdir(exist_ok=True)
    file.write_text("changed\n")
    assert not trust.trusted(root)
    trust.grant(root)
    assert trust.trusted(root)


def test_a_removed_or_renamed_file_is_a_change(trust: Trust, root: Path):
    trust.grant(root)
    file = root / ".ba" / "tools" / "a.py"
    renamed = file.rename(file.with_name("b.py"))
    assert not trust.trusted(root)
    renamed.rename(file)
    assert trust.trusted(root), "the same files as before"
    file.unlink()
    assert not trust.trusted(root)


def test_a_change_that_keeps_size_and_time_is_seen(trust: Trust, root: Path):
    file = root / ".ba" / "tools" / "a.py"
    status = file.stat()
    trust.grant(root)
    assert trust.trusted(root)
    file.write_text("A = 2\n")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert not trust.trusted(root)


def test_what_links_lead_to_counts(trust: Trust, root: Path, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "far.py").write_text("FAR = 1\n")
    (root / ".ba" / "tools" / "linked").symlink_to(elsewhere)
    (root / ".ba" / "tools" / "round").symlink_to(root / ".ba" / "tools")
    trust.grant(root)
    assert trust.trusted(root)
    (elsewhere / "far.py").write_text("FAR = 2\n")
    assert not trust.trusted(root)


def test_what_does_not_run_does_not_count(trust: Trust, root: Path):
    trust.grant(root)
    (root / "README.md").write_text("changed\n")
    (root / ".ba" / "notes.md").write_text("changed\n")
    (root / ".ba" / "tools" / "__pycache__").mkdir()
    (root / ".ba" / "tools" / "__pycache__" / "a.pyc").write_text("x")
    assert trust.trusted(root)


def test_an_empty_folder_can_be_trusted_and_its_first_file_ends_that(trust: Trust, tmp_path: Path):
    empty = tmp_path / "empty"
    empty.mkdir()
    trust.grant(empty)
    assert trust.trusted(empty)
    (empty / ".ba" / "tools").mkdir(parents=True)
    (empty / ".ba" / "tools" / "a.py").write_text("A = 1\n")
    assert not trust.trusted(empty)


def test_a_pipe_among_the_files_blocks_nothing(trust: Trust, root: Path):
    os.mkfifo(root / ".ba" / "tools" / "pipe.py")
    trust.grant(root)
    assert trust.trusted(root)


def test_more_than_a_person_can_look_at_is_not_trusted(trust: Trust, root: Path):
    trust.grant(root)
    for number in range(MOST_FILES):
        (root / ".ba" / "tools" / f"f{number}.py").touch()
    with pytest.raises(UsageError, match="holds more than"):
        trust.grant(root)
    assert not trust.trusted(root)


@pytest.mark.parametrize("text", ["", "[", "- a", "{{}}", "? x : y", "'{root}': yes", "'{root}': {{fingerprint: 3}}"])
def test_a_file_that_can_not_be_understood_trusts_nothing(trust: Trust, root: Path, text: str):
    trust.path.parent.mkdir()
    trust.path.write_text(text.format(root=root))
    assert not trust.trusted(root)


def test_the_file_is_the_persons_alone(trust: Trust, root: Path):
    trust.grant(root)
    assert trust.path.stat().st_mode & 0o777 == 0o600
    assert str(root) in trust.path.read_text()


def test_code_is_listed_in_stable_order(root: Path):
    assert [file.name for file in code_of(root)] == ["a.py", "flow.yaml"]
    assert code_of(root.parent) == []
