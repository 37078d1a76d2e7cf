"""The checkpoints of one session: what is shown of a change, and what is said of a rewind that a kill cut off."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from ba_tui.core.errors import StorageError
from ba_tui.core.ports.sessions import FileChange
from ba_tui.sessions.checkpoints import shadow
from ba_tui.sessions.checkpoints.keeper import KIND, LONGEST, NAMED, SessionCheckpoints
from ba_tui.sessions.checkpoints.shadow import ShadowLimits, Store
from ba_tui.write_ahead import WriteAhead, recover
from tests.noticing.file_faults import readable_by_others


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def own(work: Path) -> SessionCheckpoints:
    return SessionCheckpoints(Store(work.parent / "store", work), "one", ahead(work))


def ahead(work: Path) -> WriteAhead:
    return WriteAhead(work.parent / "changes", "one")


def start_after_kill(work: Path, own: SessionCheckpoints, to: str, undo: str) -> str:
    """What the next start says after a rewind that was killed."""
    folder = work.parent / "changes"
    with ahead(work).listed(KIND, "a rewind", {"to": to, "undo": undo}):
        (used,) = folder.glob("*.list")
        (folder / "9-killed.list").write_bytes(used.read_bytes())
    (said,) = recover(folder, {KIND: own.take_back})
    for outcome in ahead(work).outcomes():
        outcome.forget()
    return said


def test_a_text_is_shown_up_to_its_limits_and_else_named(work: Path, own: SessionCheckpoints) -> None:
    (work / "link").symlink_to("old")
    begun = own.take(1)
    contents = {
        "a\ttab": b"1\n2\n",
        "nul late": b"x" * 8_000 + b"\0",
        "nul": b"x" * 7_999 + b"\0",
        "fits": b"x" * LONGEST,
        "long": b"x" * (LONGEST + 1),
        "mac": b"1\r2\r\n3\xff",
    }
    for name, data in contents.items():
        (work / name).write_bytes(data)
    (work / "link").unlink()
    (work / "link").symlink_to("new")
    shown = {diff.path: (diff.before, diff.after) for diff in own.diffs(begun).items}
    assert shown["link"] == ("link to old\n", "link to new\n")
    assert shown["a\ttab"] == (None, "1\n2\n")
    assert shown["nul late"] == (None, "x" * 8_000 + "\0")
    assert shown["nul"][1].startswith("no text, 8,000 bytes, ")
    assert shown["fits"] == (None, "x" * LONGEST)
    assert shown["long"][1].startswith(f"too long to show, {LONGEST + 1:,} bytes, ")
    assert shown["mac"] == (None, "1\n2\n3\N{REPLACEMENT CHARACTER}")
    changes = {change.path: change for change in own.changes(begun)}
    assert changes["a\ttab"] == FileChange("a\ttab", "new", 2, 0)
    assert changes["nul"] == FileChange("nul", "new", None, None)
    assert changes["link"] == FileChange("link", "changed", 1, 1)
    assert own.changes(begun, begun) == []
    assert readable_by_others(work.parent / "store" / "ba.lock") == []


def test_a_turn_that_has_not_ended_did_nothing_yet(work: Path, own: SessionCheckpoints) -> None:
    begun = own.take(1)
    (work / "a").write_text("1")
    assert own.did(begun) == ()
    own.settle(1)
    assert [change.path for change in own.did(begun)] == ["a"]


@pytest.mark.parametrize("others", [0, 1, NAMED, NAMED + 1])
def test_a_rewind_that_was_killed_is_taken_back_and_names_what_it_leaves(
    work: Path, own: SessionCheckpoints, others: int
) -> None:
    names = [f"theirs {number:02}" for number in range(others)]
    for name in ("mine", *names):
        (work / name).write_text("old")
    to = own.take(1)
    for name in ("mine", *names):
        (work / name).write_text("new")
    undo = own.begin(to)
    for name in ("mine", *names):
        (work / name).write_text("old" if name == "mine" else "someone else's")
    said = start_after_kill(work, own, to, undo)
    assert (work / "mine").read_text() == "new"
    assert {(work / name).read_text() for name in names} == ({"someone else's"} if names else set())
    assert "ba put back 1 file." in said
    left = ", ".join(f"{name} (it was changed meanwhile, or was not saved)" for name in names[:NAMED])
    more = " and 1 more" if others > NAMED else ""
    assert said.endswith(f" Left as found: {left}{more}." if others else "put back 1 file.")
    assert start_after_kill(work, own, to, undo).startswith("ba was stopped while a rewind changed files. No file is")


def test_a_killed_rewind_without_its_checkpoints_is_said(work: Path, own: SessionCheckpoints) -> None:
    (work / "a").write_text("1")
    kept = own.take(1)
    for to, undo in ((kept, "0" * 40), ("0" * 40, kept)):
        assert "Its checkpoint was deleted, so check your files." in start_after_kill(work, own, to, undo)
    for to, undo in ((kept, "HEAD"), ("../x", kept)):
        assert "its list of them is damaged" in start_after_kill(work, own, to, undo)


def test_a_session_whose_room_cannot_be_measured_goes_on(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Git before 2.31 doesn't know an option."""
    store = Store(tmp_path / "store", work, limits=ShadowLimits(session=1))
    own = SessionCheckpoints(store, "one", ahead(work))
    real = store.git

    def old(*args: str, **options: bytes) -> bytes:
        if "--disk-usage" in args:
            raise StorageError("unknown option")
        return real(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "git", old)
    with caplog.at_level(logging.INFO):
        for turn in (1, 2):
            (work / "a").write_text(str(turn))
            own.take(turn)
            own.settle(turn)
    assert len(store.refs()) == 4
    assert any("were not measured" in record.getMessage() for record in caplog.records)
    monkeypatch.undo()
    own.settle(2)
    assert len(store.refs()) < 4


def test_a_whole_disk_is_no_project(tmp_path: Path) -> None:
    own = SessionCheckpoints(Store(tmp_path / "store", Path(os.sep)), "one", WriteAhead(tmp_path / "changes"))
    for call in (lambda: own.take(1), lambda: own.settle(1), lambda: own.begin("0" * 40)):
        with pytest.raises(StorageError, match="more than one project"):
            call()
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("before", [True, False])
def test_rights_are_compared_only_where_both_checkpoints_have_them(
    work: Path, own: SessionCheckpoints, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    (work / "a").write_text("1")
    monkeypatch.setattr(shadow, "MOST", 9 if before else 0)
    begun = own.take(1)
    (work / "a").chmod(0o600)
    monkeypatch.setattr(shadow, "MOST", 0 if before else 9)
    assert own.undoing(begun, []) == []
