"""The git store beside a project when files come, go, grow and become links, and when its files can't be used."""

from __future__ import annotations

import errno
import os
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from ba_tui.core.errors import StorageError
from ba_tui.sessions.checkpoints import shadow
from ba_tui.sessions.checkpoints.shadow import Snapshot, Store
from tests.noticing.file_faults import Layer, operations
from tests.sessions.storage.test_shadow import store_of, taken


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("one")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("a.txt")
    return folder


def names(store: Store, tree: str) -> list[str]:
    return [os.fsdecode(path) for _, path in store.files(tree)]


def test_a_kept_file_that_grows_too_large_or_is_locked_leaves_the_next_tree(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(work, largest=100)
    assert names(store, taken(store).tree) == ["a.txt", "link", "run.sh"]
    (work / "a.txt").write_text("1" * 101)
    second = taken(store)
    assert (names(store, second.tree), second.skipped) == (["link", "run.sh"], ("a.txt",))
    (work / "a.txt").write_text("1" * 100)
    assert names(store, taken(store).tree) == ["a.txt", "link", "run.sh"]
    (work / "run.sh").write_text("other")
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "run.sh" and real(path, mode))
    third = taken(store)
    assert third.skipped == ("run.sh",)
    assert b"#!/bin/sh" in store.git("cat-file", "-p", f"{third.tree}:run.sh"), "as it was when it could be read"


def test_a_file_that_is_gone_is_no_file_that_was_left_out(work: Path) -> None:
    store = store_of(work, new=10)
    (work / "run.sh").unlink()
    (work / "z.txt").write_text("gone soon")
    taken(store_of(work))
    (work / "a.txt").write_text("12345678")
    (work / "z.txt").unlink()
    snapshot = taken(store)
    assert (names(store, snapshot.tree), snapshot.skipped) == (["a.txt", "link"], ())
    assert taken(store).tree == snapshot.tree, "nothing to take in"


def test_repositories_within_the_project_are_kept_with_their_files_alone(work: Path) -> None:
    store = store_of(work)
    for folder in (work / "in", work / "in" / "deeper" / "still"):
        (folder / "sub").mkdir(parents=True)
        (folder / "sub" / "x").write_text("x")
        store.git("init", "-q", str(folder), env={"GIT_DIR": str(folder / ".git")})
    kept = names(store, taken(store).tree)
    assert kept == ["a.txt", "in/deeper/still/sub/x", "in/sub/x", "link", "run.sh"]
    (work / "in" / "sub" / "x").unlink()
    (work / "in" / "sub" / "y").write_text("y")
    assert "in/sub/y" in names(store, taken(store).tree)


def test_rules_of_the_project_and_its_own_repository_count(work: Path) -> None:
    store = store_of(work)
    (work / ".git" / "info").mkdir(parents=True)
    (work / ".git" / "info" / "exclude").write_text("private\n")
    (work / ".gitignore").write_text("*.log\n")
    for name in ("private", "x.log", "x.txt", "y.pyc"):
        (work / name).write_text(name)
    assert names(store, taken(store).tree) == [".gitignore", "a.txt", "link", "run.sh", "x.txt"]


def test_a_list_of_just_the_limit_is_read(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = len(b"a.txt\0link\0run.sh\0")
    monkeypatch.setattr(shadow, "_LISTING", listed - 1)
    with pytest.raises(StorageError, match="too many"):
        taken(store_of(work))
    monkeypatch.setattr(shadow, "_LISTING", listed)
    assert taken(store_of(work)).skipped == ()


def test_whatever_fails_while_the_store_is_made_is_told_and_the_next_try_makes_it(work: Path) -> None:
    done = operations(lambda: make(Store(work.parent / "whole", work)))
    assert len(done) > 8
    for at in range(len(done)):
        store = Store(work.parent / f"store{at}", work)
        with Layer(at, errno.EIO).laid() as layer:
            if done[at].name == "flock":
                # Without locks git's own must do.
                make(store)
            else:
                with pytest.raises(StorageError, match="can't be used: Input/output error"):
                    make(store)
        assert layer.done[at].name == done[at].name
        assert taken(store).tree == taken(store_of(work)).tree


def make(store: Store) -> None:
    with store.locked():
        store.ready()


def test_the_moment_in_which_the_wait_ends_is_part_of_it(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as other:
        other.enter_context(store_of(work).locked())
        monkeypatch.setattr(time, "monotonic", lambda: 5.0)
        monkeypatch.setattr(time, "sleep", lambda seconds: other.close())
        with store_of(work, wait=0).locked():
            monkeypatch.undo()


def test_a_second_failure_of_a_snapshot_is_told(work: Path) -> None:
    store = store_of(work)
    taken(store)
    (store.folder / "index").write_bytes(b"damaged")
    (work / "large").write_text("x" * 100)
    store = store_of(work, largest=1, new=0)
    (work / "a.txt").write_text("more")
    (work / "b.txt").write_text("b")
    with pytest.raises(StorageError, match="too many or too large"):
        taken(store)
    with store.locked():
        (store.folder / "index").unlink(missing_ok=True)
        with pytest.raises(StorageError, match="too many or too large"):
            store.snapshot()
    assert names(store_of(work), taken(store_of(work)).tree) == ["a.txt", "b.txt", "large", "link", "run.sh"]


def test_links_at_any_depth_replace_folders_and_others_are_kept(work: Path) -> None:
    for name in ("a/x", "b/c/x", "b/d/x"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(name)
    store = store_of(work)
    first = taken(store).tree
    (work / "b" / "c" / "x").unlink()
    (work / "b" / "c").rmdir()
    (work / "b" / "c").symlink_to("d")
    (work / "b" / "d" / "x").write_text("changed")
    (work / "a" / "x").write_text("changed")
    second = taken(store).tree
    assert names(store, second) == ["a.txt", "a/x", "b/c", "b/d/x", "link", "run.sh"]
    changed = [(change.name, bool(change.before), bool(change.after)) for change in store.changed(first, second)]
    assert changed == [("a/x", True, True), ("b/c", False, True), ("b/c/x", True, False), ("b/d/x", True, True)]


def test_others_and_traits_are_read_as_they_were_kept(work: Path) -> None:
    store = store_of(work)
    (work / "empty").mkdir()
    snapshot = taken(store)
    assert snapshot.traits is not None
    assert snapshot.traits.empty == ("empty",)
    store.keep(Snapshot(snapshot.tree, ("big",), snapshot.traits, ("other.txt",)), "two/2", "two", 2)
    saved = store.read("refs/ba/two/2")
    assert saved is not None
    assert (saved.skipped, saved.traits, saved.others) == (
        frozenset({"big"}),
        snapshot.traits,
        frozenset({"other.txt"}),
    )
    for note in (b"[]", b"{", b'{"session": "s", "turn": 1}', b'{"session": "s", "turn": 1, "skipped": 3}'):
        id = store.git("commit-tree", snapshot.tree, "-F", "-", given=note).decode().strip()
        assert store.read(id) is None
