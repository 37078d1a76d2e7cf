"""Checkpoints go with their session, unless a copy of it still names them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ba_tui.core.events import Checkpointed, Rewound
from ba_tui.sessions.checkpoints.keeper import SessionCheckpoints
from ba_tui.sessions.checkpoints.prune import PACKED, prune
from ba_tui.sessions.checkpoints.restoring import digest
from ba_tui.sessions.checkpoints.shadow import Store
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
