"""Checkpoints go with their session, unless a copy of it still names them."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from ba_tui.core.errors import StorageError
from ba_tui.core.events import Checkpointed, Rewound
from ba_tui.sessions.checkpoints.keeper import SessionCheckpoints
from ba_tui.sessions.checkpoints.prune import PACKED, prune
from ba_tui.sessions.checkpoints.restore import digest
from ba_tui.sessions.checkpoints.shadow import ShadowLimits, Store
from tests.sessions.shelf import folder_of, library, stored, turn

A, B, C = "20261121-120000-ab12", "20261121-130000-cd34", "20261121-140000-ef56"


def brought_back(own: SessionCheckpoints, id: str) -> bool:
    """All of it."""
    return own.restore(id, own.begin(id)).left == ()


def test_a_deleted_session_takes_its_checkpoints_along_but_not_those_of_its_copies(tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    store = Store(tmp_path / "checkpoints" / "work-1", work)
    kept: dict[str, list[str]] = {}
    for id in (A, B, C):
        (work / "file").write_text(id)
        own = SessionCheckpoints(store, id)
        kept[id] = [own.take(1), own.take(2)]
        own.settle(1)
        undo = own.begin(kept[id][0])
        own.restore(kept[id][0], undo)
        stored(tmp_path, id, [*turn("one"), Checkpointed(kept[id][0], 1), Rewound(files=kept[id][0], undo=undo)])
        kept[id].append(undo)
    shelf = library(tmp_path)
    copy = shelf.fork(B)
    shelf.delete(A)
    shelf.delete(B)
    assert prune(tmp_path / "checkpoints", tmp_path / "sessions") == 6
    left = store.refs()
    assert [id in left.values() for id in kept[A]] == [False, False, False]
    assert [id in left.values() for id in kept[B]] == [True, False, True]
    assert [id in left.values() for id in kept[C]] == [True, True, True]
    assert f"{B}/end-1" in left
    assert brought_back(SessionCheckpoints(store, copy.id), kept[B][0])
    assert (work / "file").read_text() == B
    shutil.rmtree(folder_of(tmp_path, copy.id))
    assert prune(tmp_path / "checkpoints", tmp_path / "sessions") > 0
    assert {name.partition("/")[0] for name in store.refs()} <= {C, copy.id}


def test_what_cannot_be_seen_is_not_taken_for_gone(tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "file").write_text("1")
    store = Store(tmp_path / "checkpoints" / "work-1", work)
    id = SessionCheckpoints(store, A).take(1)
    assert prune(tmp_path / "checkpoints", tmp_path / "sessions") == 0
    assert id in store.refs().values()
    assert prune(tmp_path / "nothing", tmp_path / "sessions") == 0


def test_many_contents_are_packed_and_stay_readable(tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    stored(tmp_path, A, turn("one"))
    store = Store(tmp_path / "checkpoints" / "work-1", work)
    own = SessionCheckpoints(store, A)
    # Contents of one of the folders that loose ones are in: enough of them for packing.
    texts = [text for text in map(str, range(8_000)) if digest(text.encode()).startswith("17")]
    for text in texts:
        (work / text).write_text(text)
    id = own.take(1)
    prune(tmp_path / "checkpoints", tmp_path / "sessions")
    assert not (store.folder / "objects" / "17").exists()
    assert (store.folder / PACKED).exists()
    (work / texts[0]).write_text("changed")
    assert brought_back(own, id)
    assert (work / texts[0]).read_text() == texts[0]


def test_what_a_stopped_checkpoint_left_is_taken_away(tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "file").write_text("1")
    stored(tmp_path, A, turn("one"))
    store = Store(tmp_path / "checkpoints" / "work-1", work)
    own = SessionCheckpoints(store, A)
    id = own.take(1)
    half = store.folder / "objects" / "pack" / "tmp_pack_half"
    half.parent.mkdir(exist_ok=True)
    half.write_bytes(b"PACK")
    os.utime(half, (0, 0))
    prune(tmp_path / "checkpoints", tmp_path / "sessions")
    assert not half.exists()
    (work / "file").write_text("2")
    assert brought_back(own, id)


def changing(work: Path, own: SessionCheckpoints, turns: int) -> list[str]:
    """Turns that each write a file of 100 kB anew, with bytes that no compression makes smaller."""
    ids: list[str] = []
    for turn_number in range(1, turns + 1):
        ids.append(own.take(turn_number))
        (work / "data.bin").write_bytes(os.urandom(100_000))
        own.settle(turn_number)
    return ids


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_earlier_versions_of_a_session_stay_within_their_limit_and_the_oldest_go_first(tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "kept.txt").write_text("kept")
    store = Store(tmp_path / "checkpoints" / "work-1", work, limits=ShadowLimits(session=350_000))
    own = SessionCheckpoints(store, A)
    ids = changing(work, own, 8)
    assert size_of(store.folder) < 700_000
    with pytest.raises(StorageError, match="max_session_mb") as error:
        own.undoing(ids[0], [(1, ids[0])])
    assert "later prompt" in error.value.hint
    newest = (work / "data.bin").read_bytes()
    assert brought_back(own, ids[-1])
    assert (work / "data.bin").read_bytes() != newest
    assert (work / "kept.txt").read_text() == "kept"


def test_checkpoints_of_all_sessions_stay_within_their_limit(tmp_path: Path):
    stores: list[Store] = []
    for at, id in enumerate((A, B, C)):
        work = tmp_path / id
        work.mkdir()
        stored(tmp_path, id, turn("one"))
        store = Store(tmp_path / "checkpoints" / f"work-{at}", work)
        stores.append(store)
        changing(work, SessionCheckpoints(store, id), 2)
    # Only the seconds count: the first one is made older than the others.
    for name, id in stores[1].refs().items():
        commit = stores[1].git("cat-file", "commit", id).decode()
        old = re.sub(r"(?m)^committer (.*) \d+ ", r"committer \1 1000000000 ", commit)
        made = stores[1].git("hash-object", "-t", "commit", "-w", "--stdin", given=old.encode()).decode().strip()
        stores[1].git("update-ref", f"refs/ba/{name}", made)
    whole = size_of(tmp_path / "checkpoints")
    folders = (tmp_path / "checkpoints", tmp_path / "sessions")
    assert prune(*folders, most=whole + 1) == 0
    assert prune(*folders, most=whole - 100_000) == 4
    assert [bool(store.refs()) for store in stores] == [True, False, True]
    assert size_of(tmp_path / "checkpoints") <= whole - 100_000
    assert prune(*folders, most=1) == 4
    assert sum(bool(store.refs()) for store in stores) == 1
