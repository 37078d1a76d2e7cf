"""Changes of several files that belong together: all of them or none, whatever ends or fails in between."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from ba_tui.resources import places, temporary_name, unfinished
from ba_tui.settings.model import Settings
from ba_tui.tools.editing.transaction import KIND, FileStep, commit, described
from ba_tui.tools.failures import ToolFailure
from ba_tui.tools.toolbox import recover_changes
from ba_tui.write_ahead import recover, write_ahead
from tests.killing.changes import AFTER, BEFORE, change, held, litter, make, start, steps
from tests.killing.operations import counted, unsynced
from tests.tools.conftest import CHECKOUT

Edit: TypeAlias = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize("program", ["changes first", "changes second", "rewinds", "exports"])
def test_a_kill_before_any_operation_leaves_all_or_nothing(tmp_path: Path, program: str) -> None:
    name, *which = program.split()
    command = [sys.executable, "-m", f"tests.killing.{name}", *which, str(tmp_path)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stderr, json.loads(done.stdout or "null")) == ("", [])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make(tmp_path / "work", BEFORE)
    return tmp_path / "work"


def left_behind(root: Path, given: list[FileStep], edit: Edit = lambda head: None) -> Path:
    """A list as a killed process leaves it, changed by ``edit``."""
    ahead = write_ahead(root, "s1")
    with ahead.listed(KIND, "apply_patch", described(given), [step.before or b"" for step in given]):
        (held_list,) = ahead.folder.glob("*.list")
        data = held_list.read_bytes()
    line, _, contents = data.partition(b"\n")
    head = json.loads(line)
    edit(head)
    path = ahead.folder / "999999999-0123abcd.list"
    path.write_bytes(json.dumps(head).encode() + b"\n" + contents)
    return path


def test_a_file_that_someone_else_changed_in_between_is_kept_and_named(root: Path) -> None:
    left_behind(root, steps(root))
    (root / "a").write_bytes(b"new")
    (root / "sub/b").write_bytes(b"")
    (root / "last").write_bytes(b"someone else's")
    assert start(root) == [
        "ba was stopped while apply_patch changed 5 files. ba put back the 2 files that it had changed. "
        "Something else changed last: left as found."
    ]
    assert held(root) == {**BEFORE, "last": b"someone else's"}
    assert start(root) == []


def test_work_on_files_that_were_all_written_stays(root: Path) -> None:
    given = [FileStep(root / name, name, b"old", b"new") for name in ("a", "last")]
    left_behind(root, given)
    (root / "a").write_bytes(b"new")
    (root / "last").write_bytes(b"new and edited by the user")
    (told,) = start(root)
    assert "It had written the file, which stays as it is now." in told
    assert "last: left as found" in told
    assert (root / "a").read_bytes() == b"new"


def test_a_list_of_a_process_that_still_works_is_left_alone(root: Path) -> None:
    given = steps(root)
    ahead = write_ahead(root, "s1")
    with ahead.listed(KIND, "apply_patch", described(given), [step.before or b"" for step in given]):
        (root / "a").write_bytes(b"new")
        assert start(root) == []
        assert len(list(ahead.folder.iterdir())) == 1
    assert (root / "a").read_bytes() == b"new"
    assert litter() == []


def test_what_cannot_be_put_back_or_removed_is_named_and_stays(root: Path) -> None:
    left_behind(root, steps(root))
    (root / "a").write_bytes(b"new")
    (root / "a").chmod(0o444)
    (root / "new" / "deep").mkdir(parents=True)
    (root / "new" / "deep" / "c").write_bytes(b"c")
    (root / "new" / "theirs").write_bytes(b"someone else's")
    (said,) = start(root)
    assert "ba put back the file that it had changed." in said
    assert said.endswith("Something else changed a: left as found.")
    assert held(root) == {**BEFORE, "a": b"new", "new": None, "new/theirs": b"someone else's"}


def test_a_start_clears_up_after_killed_processes_in_all_folders_of_the_workspace(root: Path, tmp_path: Path) -> None:
    settings = Settings(add_dirs=(tmp_path / "extra",))
    make(tmp_path / "extra", {"a": b"new"})
    temporary = root / temporary_name("a")
    if not (child := os.fork()):
        with unfinished(temporary):
            temporary.touch()
            os._exit(0)
    os.waitpid(child, 0)
    assert recover_changes(places(), root, settings) == []
    assert not temporary.exists()
    given = [FileStep(tmp_path / "extra" / "a", "a", b"old", b"new"), *steps(root)[1:]]
    path = left_behind(root, given)
    (said,) = recover_changes(places(), root, Settings())
    assert "Outside this workspace, so left as found" in said
    left_behind(root, given)
    assert "put back the file" in recover_changes(places(), root, settings)[0]
    assert (tmp_path / "extra" / "a").read_bytes() == b"old"
    head = {"version": 1, "kind": "rewind", "by": "a rewind", "session": "", "size": 0}
    path.write_text(json.dumps({**head, "body": {"to": "0" * 40, "undo": "0" * 40}}) + "\n")
    assert "Its checkpoint was deleted" in recover_changes(places(), root, settings)[0]


def moved(path: Path) -> Edit:
    return lambda head: head["body"]["files"][0].update(path=str(path))


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path / "outside"
    path.mkdir()
    (path / "a").write_bytes(b"new")
    return path


def test_a_list_has_no_power_outside_the_workspace_or_through_a_link(root: Path, outside: Path) -> None:
    (root / "way").symlink_to(outside)
    (root / "name").symlink_to(outside / "a")
    for path in (outside / "a", root / ".." / "outside" / "a", root / "way" / "a", root / "name", Path("../outside/a")):
        left_behind(root, steps(root), moved(path))
        (told,) = start(root)
        assert "left as found" in told
        assert (outside / "a").read_bytes() == b"new"
        # To be made again, or to be removed.
        removed = [FileStep(root / "gone", "gone", b"x", None), *steps(root)[:1]]
        left_behind(root, removed, moved(path.with_name("fresh")))
        start(root)
        assert [each.name for each in outside.iterdir()] == ["a"]
    folder = outside / "empty"
    folder.mkdir()
    left_behind(root, steps(root), lambda head: head["body"].update(folders=[str(folder), str(root / "way" / "empty")]))
    start(root)
    assert folder.is_dir()


def test_a_patch_that_reached_no_file_outside_the_workspace_is_undone(root: Path, outside: Path) -> None:
    left_behind(root, [*steps(root)[:1], FileStep(outside / "a", "a", b"new", b"newer")])
    (root / "a").write_bytes(b"new")
    (told,) = start(root)
    assert told.endswith("changed 2 files. ba put back the file that it had changed.")
    assert (root / "a").read_bytes() == b"old"


def test_a_file_outside_the_workspace_that_a_patch_had_changed_is_named_and_stays(root: Path, outside: Path) -> None:
    given = [FileStep(outside / "a", "a", b"old", b"new"), *steps(root)]
    left_behind(root, [*given, FileStep(outside / "b", "b", b"x", b"y")])
    (outside / "b").write_bytes(b"x")
    (root / "a").write_bytes(b"new")
    (told,) = start(root)
    assert told.endswith(f"the file that it had changed. Outside this workspace, so left as found: {outside / 'a'}.")
    assert held(root) == BEFORE
    assert (outside / "a").read_bytes() == b"new"


def wrong_content(head: dict[str, Any]) -> None:
    head["body"]["files"][0].update(at=1, size=2)


DAMAGED: dict[str, Edit] = {
    "another content": wrong_content,
    "content outside": lambda head: head["body"]["files"][0].update(at=10**9),
    "no files": lambda head: head["body"].pop("files"),
    "a text for a list": lambda head: head.update(body={"files": "a", "folders": []}),
    "a number for a path": lambda head: head["body"]["files"][0].update(path=7),
    "no rights": lambda head: head["body"]["files"][0].update(mode="x"),
}


@pytest.mark.parametrize("how", DAMAGED)
def test_a_damaged_list_changes_no_file_and_is_reported_once(root: Path, how: str) -> None:
    left_behind(root, steps(root), DAMAGED[how])
    (root / "a").write_bytes(b"new")
    (told,) = start(root)
    assert "damaged" in told or "left as found" in told
    assert (root / "a").read_bytes() == b"new"
    assert start(root) == []


def test_a_list_that_was_not_complete_is_dropped_and_that_of_a_newer_ba_kept(root: Path) -> None:
    path = left_behind(root, steps(root))
    path.write_bytes(path.read_bytes()[:-1])
    assert start(root) == []
    assert not path.exists()
    path = left_behind(root, steps(root), lambda head: head.update(version=2))
    assert "A newer ba" in start(root)[0]
    assert path.exists()


def test_the_session_is_told_until_it_has_heard(root: Path) -> None:
    left_behind(root, steps(root))
    told = start(root)
    assert write_ahead(root, "s2").outcomes() == []
    (outcome,) = write_ahead(root, "s1").outcomes()
    assert told == [outcome.text] == ["ba was stopped while apply_patch changed 5 files. No file is changed."]
    outcome.forget()
    assert write_ahead(root, "s1").outcomes() == []


def test_changes_that_cannot_be_undone_yet_are_undone_at_a_later_start(root: Path) -> None:
    path = left_behind(root, steps(root))

    def busy(left: object) -> str:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    (told,) = recover(path.parent, {KIND: busy})
    assert "The next start tries again" in told
    assert path.exists()
    (root / "a").write_bytes(b"new")
    assert "put back" in start(root)[0]
    assert held(root) == BEFORE


def faults() -> Iterator[tuple[list[str], pytest.MonkeyPatch]]:
    """Times when one operation fails until the patch is undone, the next one each time; the list says which did."""
    for number in count():
        failed: list[str] = []
        code = (errno.ENOSPC, errno.EACCES)[number % 2]

        def fail(name: str, failed: list[str] = failed, code: int = code) -> None:
            failed.append(name)
            raise OSError(code, os.strerror(code))

        with pytest.MonkeyPatch.context() as patch:
            for name, operation in counted(number, fail).items():
                patch.setattr(os, name, operation)
            yield failed, patch
        if not failed:
            return


def test_a_fault_at_any_operation_leaves_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    template, root = tmp_path / "template", tmp_path / "work"
    make(template, BEFORE)
    monkeypatch.setattr(os, "fsync", unsynced)
    refused = 0
    shutil.copytree(template, root)
    for failed, patch in faults():
        told = ""
        try:
            change(root)
        except ToolFailure as error:
            told = str(error)
        patch.undo()
        if failed in (["unlink"], ["open"]):
            # What can't be removed stays, under the name of a temporary file.
            for litter_left in root.rglob(".*.tmp"):
                litter_left.unlink()
        assert held(root) == (BEFORE if told else AFTER), (failed, told)
        assert start(root) == []
        assert litter() == [], failed
        if told:
            refused += 1
            assert "No file was changed" in told
        else:
            shutil.rmtree(root)
            shutil.copytree(template, root)
    assert refused > 15


def test_the_list_is_on_the_disk_before_the_first_file_changes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    lists = write_ahead(root).folder
    sync, rename = os.fsync, os.rename

    def synced(number: int) -> None:
        done.append(Path(f"/proc/self/fd/{number}").readlink().name)
        sync(number)

    def renamed(source: str, target: str, **more: Any) -> None:
        done.append(f"rename {target}")
        rename(source, target, **more)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    change(root)
    first = next(each for each in done if each.startswith("rename"))
    before = done[: done.index(first)]
    assert before[0].endswith(".list")
    assert before[1] == lists.name
    # Emptied for good before the call has its result.
    assert done[-1].endswith(".list")


def test_a_patch_of_one_file_needs_no_list(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    commit([FileStep(root / "a", "a", b"old", b"new")], write_ahead(root), "apply_patch")
    assert len(synced) == 2
    assert not (places().state / "changes").exists()


def test_a_list_that_is_a_link_empties_no_other_file(root: Path, tmp_path: Path) -> None:
    path = left_behind(root, steps(root))
    kept = path.read_bytes()
    for name, make_link in {"soft": os.symlink, "hard": os.link}.items():
        other = tmp_path / name
        other.write_bytes(kept)
        path.unlink(missing_ok=True)
        make_link(other, path)
        start(root)
        assert other.read_bytes() == kept


def test_names_of_files_control_no_terminal(root: Path) -> None:
    name = "\x1b[31m\nred\udcff"
    (root / name).write_bytes(b"theirs")
    left_behind(root, [FileStep(root / name, name, b"old", b"new"), *steps(root)])
    (told,) = start(root)
    assert "\x1b" not in told
    assert "\n" not in told
    assert told.isprintable()
    assert [outcome.text for outcome in write_ahead(root, "s1").outcomes()] == [told]
