"""The git store beside a project: what one snapshot holds, leaves out and may be stopped at."""

from __future__ import annotations

import errno
import os
import stat
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from ba_tui.core.errors import StorageError
from ba_tui.sessions.checkpoints import shadow
from ba_tui.sessions.checkpoints.git import GitStopped, GitWatch
from ba_tui.sessions.checkpoints.shadow import ShadowLimits, Snapshot, Store, TreeEntry
from tests.noticing.file_faults import Layer, operations


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("one")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("a.txt")
    return folder


def store_of(work: Path, **limits: int) -> Store:
    return Store(work.parent / "store", work, limits=ShadowLimits(**limits) if limits else None)


def taken(store: Store, watch: GitWatch | None = None) -> Snapshot:
    with store.locked():
        return store.snapshot(watch)


class Counting(GitWatch):
    """Stops at the look with this number."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.looks = 0
        self._at = at

    def check(self) -> None:
        self.looks += 1
        self.stopped = self.looks > self._at
        super().check()


def test_the_store_is_the_users_alone_and_its_lock_ends_with_each_use(work: Path) -> None:
    store = store_of(work)
    taken(store)
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((store.folder / "ba.lock").stat().st_mode) == 0o600
    with pytest.raises(KeyError), store.locked():
        raise KeyError
    with (
        store_of(work, wait=0).locked(),
        pytest.raises(StorageError, match="Another ba"),
        store_of(work, wait=0).locked(),
    ):
        pass


def test_a_tree_has_modes_and_paths_and_a_change_its_kinds(work: Path) -> None:
    store = store_of(work)
    first = taken(store).tree
    assert store.files(first) == [(b"100644", b"a.txt"), (b"120000", b"link"), (b"100755", b"run.sh")]
    (work / "a.txt").unlink()
    (work / "b.txt").write_text("one")
    (work / "run.sh").chmod(0o644)
    second = taken(store).tree
    gone, come, other = store.changed(first, second)
    assert (gone.name, gone.after, come.name, come.before) == ("a.txt", None, "b.txt", None)
    assert gone.before == come.after
    assert isinstance(other.before, TreeEntry)
    assert isinstance(other.after, TreeEntry)
    assert (other.before.mode, other.after.mode) == ("100755", "100644")
    assert store.changed(first, first) == []


def test_a_snapshot_can_be_stopped_at_every_look_and_the_next_one_is_whole(work: Path) -> None:
    store = store_of(work)
    counting = Counting(10_000)
    whole = taken(store, counting).tree
    # Before and after the list of files is sorted; before, within and after git takes them in; with the tree.
    assert counting.looks == 6
    for at in range(counting.looks):
        (work / "new.txt").write_text(str(at))
        with pytest.raises(GitStopped):
            taken(store_of(work), Counting(at))
    (work / "new.txt").unlink()
    assert taken(store_of(work)).tree == whole


def test_what_cannot_be_read_or_is_too_large_is_left_out_and_named(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "secret.txt").write_text("two")
    (work / "fits.bin").write_bytes(b"1" * 100)
    (work / "large.bin").write_bytes(b"1" * 101)
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "secret.txt" and real(path, mode))
    store = store_of(work, largest=100)
    snapshot = taken(store)
    assert sorted(snapshot.skipped) == ["large.bin", "secret.txt"]
    assert [path for _, path in store.files(snapshot.tree)] == [b"a.txt", b"fits.bin", b"link", b"run.sh"]


@pytest.mark.parametrize("limits", [{"files": 3}, {"new": 13}])
def test_a_snapshot_of_just_the_limit_is_taken_and_more_is_refused(work: Path, limits: dict[str, int]) -> None:
    assert taken(store_of(work, **limits)).skipped == ()
    (work / "more.txt").write_text("x")
    (work / "a.txt").write_text("other")
    (work / "run.sh").write_text("#!/bin/bash\n")
    (work / "link").unlink()
    (work / "link").symlink_to("more.txt")
    with pytest.raises(StorageError, match="too many or too large files") as told:
        taken(store_of(work, **limits))
    assert ".gitignore" in told.value.hint


@pytest.mark.parametrize("locked", [False, True])
def test_a_damaged_index_is_made_anew(work: Path, locked: bool) -> None:
    store = store_of(work)
    tree = taken(store).tree
    (store.folder / "index").write_bytes(b"damaged")
    if locked:
        (store.folder / "index.lock").touch()
    assert taken(store).tree == tree
    assert taken(store_of(work)).tree == tree
    assert not (store.folder / "index.lock").exists()


def test_a_damaged_index_that_stays_is_told(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_of(work)
    taken(store)
    (store.folder / "index").write_bytes(b"damaged")

    def stays(path: str, **options: int) -> None:
        raise OSError(errno.EACCES, "Permission denied")

    with store.locked():
        monkeypatch.setattr(os, "unlink", stays)
        with pytest.raises(StorageError):
            store.snapshot()
        monkeypatch.undo()


def test_a_checkpoint_is_read_as_it_was_kept_and_what_is_none_is_none(work: Path) -> None:
    store = store_of(work)
    snapshot = taken(store)
    id = store.keep(snapshot, "one/1", "one", 1)
    saved = store.read("refs/ba/one/1")
    assert saved is not None
    assert (saved.id, saved.tree, saved.session, saved.turn, saved.skipped) == (
        id,
        snapshot.tree,
        "one",
        1,
        frozenset(),
    )
    assert store.refs() == {"one/1": id}
    other = store.git("commit-tree", snapshot.tree, "-F", "-", given=b'{"session": "one"}').decode().strip()
    for name in ("refs/ba/none", snapshot.tree, other):
        assert store.read(name) is None


def test_a_store_without_locks_or_rights(work: Path) -> None:
    store = store_of(work)
    with store.locked():
        store.ready()
    with Layer(1, errno.ENOLCK).laid() as layer, store.locked():
        assert [each.name for each in layer.done] == ["open", "flock"]
    with Layer(0, errno.EACCES).laid(), pytest.raises(StorageError), store.locked():
        pass


def test_who_uses_the_store_now_is_awaited(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_of(work, wait=1)
    pauses: list[float] = []
    with ExitStack() as other:
        other.enter_context(store_of(work).locked())

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            other.close()

        monkeypatch.setattr(time, "sleep", pause)
        with store.locked():
            assert len(pauses) == 1
            assert 0 < pauses[0] < 1


def test_what_is_missing_or_other_in_a_store_is_made_again_by_the_next_process(work: Path) -> None:
    tree = taken(store_of(work)).tree
    store = store_of(work)
    before = {
        name: (store.folder / name).read_bytes() for name in ("config", "info/attributes", "info/exclude", "HEAD")
    }
    (store.folder / "config").write_text("[core]\n\tautocrlf = true\n")
    (store.folder / "info" / "attributes").unlink()
    (store.folder / "index.lock").touch()
    with store.locked():
        store.ready()
        assert {name: (store.folder / name).read_bytes() for name in before} == before
        assert not (store.folder / "index.lock").exists()
        assert operations(store.ready) == [], "once is enough"
        (store.folder / "HEAD").unlink()
        store.ready()
        assert (store.folder / "HEAD").read_bytes() == before["HEAD"]
    assert taken(store).tree == tree


def test_traits_are_kept_up_to_so_many_files(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadow, "MOST", 3)
    store = store_of(work)
    assert taken(store).traits is not None
    (work / "more.txt").write_text("x")
    snapshot = taken(store)
    assert snapshot.traits is None
    store.keep(snapshot, "one/1", "one", 1)
    saved = store.read("refs/ba/one/1")
    assert saved
    assert saved.traits is None


def test_only_our_own_folders_below_the_project_are_left_out(work: Path) -> None:
    (work / "state").mkdir()
    (work / "state" / "x").write_text("ours")
    avoid = [work, work.parent, work.parent / "elsewhere", work / "state"]
    store = Store(work.parent / "store", work, avoid)
    assert [path for _, path in store.files(taken(store).tree)] == [b"a.txt", b"link", b"run.sh"]


def test_a_checkpoint_without_its_files_is_none(work: Path) -> None:
    store = store_of(work)
    snapshot = taken(store)
    store.keep(snapshot, "one/1", "one", 1)
    (store.folder / "objects" / snapshot.tree[:2] / snapshot.tree[2:]).unlink()
    assert store.read("refs/ba/one/1") is None


def test_a_pipe_in_place_of_the_rules_is_told_and_never_read(work: Path) -> None:
    os.mkfifo(work / ".gitignore")
    with pytest.raises(StorageError, match="gitignore is a pipe"):
        taken(store_of(work))


def test_a_folder_that_became_a_link_is_a_link_and_nothing_behind_it_is_kept(work: Path) -> None:
    for name in ("a", "deep/er", "other"):
        (work / name).mkdir(parents=True)
        (work / name / "x").write_text(name)
    store = store_of(work)
    taken(store)
    for name in ("a", "deep"):
        (work / name).rename(work.parent / f"old-{name}")
        (work / name).symlink_to(work / "other")
    # git lists what is behind a link when the index still has it.
    (work / "other" / "x").write_text("changed")
    (work / "other" / "er").mkdir()
    (work / "other" / "er" / "x").write_text("behind")
    watch = GitWatch()
    kept = store.files(taken(store, watch).tree)
    assert watch.total == 4, "both links and both files, at the first try"
    assert (b"120000", b"a") in kept
    assert (b"120000", b"deep") in kept
    assert [path for _, path in kept if path.startswith((b"a/", b"deep/"))] == []
