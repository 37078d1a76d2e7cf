"""A rewind brings back what git keeps of no file: rights and empty folders; what it can't bring back it names."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.sessions.test_checkpoints import back, session, work

__all__ = ["work"]


def rights(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_rights_come_back_with_files_and_without(work: Path) -> None:
    modes = {"secret": 0o600, "usual": 0o644, "other": 0o644, "read only": 0o444, "tool": 0o750, "shared": 0o666}
    for name, mode in modes.items():
        (work / name).write_text(name)
        (work / name).chmod(mode)
    own = session(work)
    id = own.take(1)
    (work / "secret").unlink()
    (work / "read only").unlink()
    (work / "usual").chmod(0o600)
    (work / "tool").chmod(0o700)
    (work / "shared").write_text("changed")
    (work / "shared").chmod(0o640)
    shown = {change.path for change in own.undoing(id, [])}
    assert shown == {"secret", "read only", "usual", "tool", "shared"}
    undo = own.begin(id)
    assert set(own.restore(id, undo).done) == shown
    assert {name: rights(work / name) for name in modes} == modes
    # The way forth brings back how it was left.
    own.restore(undo, own.begin(undo))
    assert not (work / "secret").exists()
    assert [rights(work / name) for name in ("usual", "tool", "shared")] == [0o600, 0o700, 0o640]


def test_a_file_that_could_not_be_read_any_more_gets_its_rights_back(work: Path) -> None:
    (work / "a").write_text("a")
    (work / "b").write_text("b")
    own = session(work)
    id = own.take(1)
    (work / "a").chmod(0)
    done = back(own, id)
    assert rights(work / "a") == 0o644 or done.left[0][0] == "a"


def test_empty_folders_come_and_go(work: Path) -> None:
    (work / "kept").write_text("x")
    (work / "deep" / "er").mkdir(parents=True)
    (work / "logs").mkdir()
    (work / ".gitignore").write_text("*.log\n")
    (work / "full").mkdir()
    (work / "full" / "a.log").write_text("ignored")
    own = session(work)
    id = own.take(1)
    shutil.rmtree(work / "deep")
    (work / "logs" / "new").write_text("x")
    (work / "made" / "by" / "it").mkdir(parents=True)
    shown = {change.path: change.kind for change in own.undoing(id, [])}
    assert shown == {"logs/new": "gone", "logs/": "new", "deep/er/": "new", "made/by/it/": "gone"}
    done = back(own, id)
    assert set(done.done) >= {"logs/new", "deep/er/", "made/by/it/"}
    folders = {str(path.relative_to(work)) for path in work.rglob("*") if path.is_dir()}
    assert folders == {"deep", "deep/er", "logs", "full"}
    assert (work / "full" / "a.log").read_text() == "ignored"


def test_a_folder_that_gets_its_file_back_is_not_named_as_one_that_goes(work: Path) -> None:
    (work / "deep" / "er").mkdir(parents=True)
    (work / "deep" / "er" / "file").write_text("x")
    own = session(work)
    id = own.take(1)
    (work / "deep" / "er" / "file").unlink()
    assert [change.path for change in own.undoing(id, [])] == ["deep/er/file"]
    done = back(own, id)
    assert (done.done, done.left) == (("deep/er/file",), ())


def test_no_folder_of_the_person_goes_that_is_not_empty(work: Path) -> None:
    own = session(work)
    id = own.take(1)
    (work / "made").mkdir()
    undo = own.begin(id)
    (work / "made" / "new.bin").write_bytes(b"x")
    done = own.restore(id, undo)
    assert (work / "made" / "new.bin").exists()
    assert "made/" in dict(done.left)


def test_what_is_too_large_to_be_kept_is_named_when_it_has_changed(work: Path) -> None:
    for name in ("changed", "gone", "same"):
        (work / name).write_bytes(b"x" * 2_000)
    own = session(work, largest=1_000)
    id = own.take(1)
    (work / "changed").write_bytes(b"y" * 2_000)
    (work / "gone").unlink()
    left = dict(back(own, id).left)
    assert set(left) == {"changed", "gone"}
    assert "too large" in left["gone"]


def test_no_link_leads_rights_or_folders_out_of_the_project(work: Path) -> None:
    outside = work.parent / "outside"
    outside.mkdir()
    (outside / "a").write_text("theirs")
    (outside / "a").chmod(0o640)
    (work / "in").mkdir()
    (work / "in" / "a").write_text("ours")
    (work / "in" / "empty").mkdir()
    own = session(work)
    id = own.take(1)
    shutil.rmtree(work / "in")
    (work / "in").symlink_to(outside)
    back(own, id)
    assert rights(outside / "a") == 0o640
    assert [path.name for path in outside.iterdir()] == ["a"]
