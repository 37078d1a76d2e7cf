"""Checkpoints with a real git and real files: what is kept, what comes back, what is never touched."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from ba_tui.core.errors import StorageError
from ba_tui.core.ports.sessions import FileChange, RestoreResult
from ba_tui.processes.programs import PipedChild
from ba_tui.resources import places
from ba_tui.sessions.checkpoints.git import MANY, GitStopped, GitWatch
from ba_tui.sessions.checkpoints.keeper import SessionCheckpoints, checkpoints_for
from ba_tui.sessions.checkpoints.restore import restore
from ba_tui.sessions.checkpoints.shadow import ShadowLimits, Store
from ba_tui.settings.sections.agents import CheckpointSettings

GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_AUTHOR_NAME": "p", "GIT_AUTHOR_EMAIL": "p@x", "GIT_COMMITTER_NAME": "p"}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def store_of(work: Path, **limits: float) -> Store:
    return Store(work.parent / "store", work, limits=ShadowLimits(**limits) if limits else None)  # type: ignore[arg-type]


def session(work: Path, id: str = "one", **limits: float) -> SessionCheckpoints:
    return SessionCheckpoints(store_of(work, **limits), id)


def back(own: SessionCheckpoints, id: str) -> RestoreResult:
    return own.restore(id, own.begin(id))


def git(folder: Path, *args: str) -> None:
    env = {**os.environ, **GIT, "GIT_COMMITTER_EMAIL": "p@x"}
    subprocess.run(["git", *args], cwd=folder, check=True, capture_output=True, env=env)


def state(folder: Path) -> Mapping[str, object]:
    """Every file with its kind, mode, bytes and, for the user's own git, its time."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = os.fsencode(path.relative_to(folder)).decode("latin-1")
        if path.is_symlink():
            found[name] = ("link", str(path.readlink()))
        elif path.is_file():
            about = path.stat()
            found[name] = (about.st_mode & 0o111 != 0, path.read_bytes(), about.st_mtime_ns if ".git/" in name else 0)
    return found


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


def test_everything_comes_back_as_it_was_and_goes_again(work: Path):
    write(work, text="a\r\nb\n", empty="", deep__er__file="x", kept="same")
    write(
        work, _dot_gitattributes="* text=auto eol=crlf\nx filter=lfs\n*.u working-tree-encoding=UTF-16\n", x="l", u="u"
    )
    (work / "run.sh").write_text("#!/bin/sh\n")
    (work / "run.sh").chmod(0o755)
    (work / "link").symlink_to("text")
    (work / "nowhere").symlink_to("/does/not/exist")
    (work / "new\nline ü").write_text("odd")
    Path(os.fsdecode(os.fsencode(work) + b"/\xff\xfe")).write_bytes(b"\x00\xff")
    (work / "was").mkdir()
    (work / "was" / "folder").write_text("1")
    git(work, "init", "-q", "nested")
    write(work, nested__inner="2", nested__deep__f="3")
    before = state(work)
    own = session(work)
    id = own.take(1)
    for name in ("text", "link", "new\nline ü", "x"):
        (work / name).unlink()
    shutil.rmtree(work / "deep")
    shutil.rmtree(work / "was")
    (work / "was").write_text("a file now")
    (work / "run.sh").chmod(0o644)
    (work / "nowhere").unlink()
    write(work, nowhere__now="a folder", made__by__shell="new", nested__inner="changed", text__below="a folder too")
    middle = state(work)
    undo = own.begin(id)
    done = own.restore(id, undo)
    assert not done.left
    assert state(work) == before
    assert not (work / "made").exists()
    assert back(own, undo).left == ()
    assert state(work) == middle


def test_the_persons_own_repository_is_never_touched(work: Path, monkeypatch: pytest.MonkeyPatch):
    git(work, "init", "-q")
    write(work, a="1", b="1", c="1")
    git(work, "add", "a", "b")
    git(work, "commit", "-qm", "one")
    write(work, a="stashed")
    git(work, "stash")
    write(work, a="staged")
    git(work, "add", "a")
    write(work, a="in the folder", b="2")
    (work / ".git" / "hooks" / "pre-commit").write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("GIT_DIR", str(work / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(work / ".git" / "index"))
    before = {name: about for name, about in state(work).items() if name.startswith(".git/")}
    own = session(work)
    id = own.take(1)
    write(work, a="3", c="3", d="3")
    own.settle(1)
    own.undoing(id, [(1, id)])
    back(own, id)
    assert (work / "a").read_text() == "in the folder"
    assert not (work / "d").exists()
    assert {name: about for name, about in state(work).items() if name.startswith(".git/")} == before


def test_what_is_ignored_stays_even_when_the_rules_have_changed(work: Path):
    write(work, _dot_gitignore="secret\nbuild/\n", secret="keep me", build__out="o", node_modules__x="n", a="1")
    git(work, "init", "-q")
    write(work, _dot_git__info__exclude="mine\n", mine="m")
    own = session(work)
    id = own.take(1)
    write(work, _dot_gitignore="", secret="changed", build__out="o2", a="2", mine="m2")
    changed = {item.path for item in own.changes(id)}
    assert changed == {".gitignore", "secret", "build/out", "a"}
    done = back(own, id)
    assert dict(done.left).keys() == {"secret", "build/out"}
    assert (work / "secret").read_text() == "changed"
    assert (work / "a").read_text() == "1"
    assert (work / ".gitignore").read_text() == "secret\nbuild/\n"


def test_large_files_are_left_out_told_and_never_lost(work: Path):
    write(work, grew="small", shrank="x" * 2_000, a="1")
    own = session(work, largest=1_000)
    id = own.take(1)
    write(work, grew="y" * 2_000, shrank="small now", a="2")
    done = back(own, id)
    assert dict(done.left) == {
        "grew": "it is now too large to be saved first",
        "shrank": "it existed but was too large to be kept",
    }
    assert (work / "grew").read_text() == "y" * 2_000
    assert (work / "shrank").read_text() == "small now"
    assert (work / "a").read_text() == "1"


def test_a_folder_that_became_a_link_leads_nowhere_outside(work: Path):
    outside = work.parent / "outside"
    outside.mkdir()
    write(outside, f="theirs")
    write(work, d__f="ours")
    own = session(work)
    id = own.take(1)
    shutil.rmtree(work / "d")
    (work / "d").symlink_to(outside)
    done = back(own, id)
    assert not done.left
    assert (outside / "f").read_text() == "theirs"
    assert not (work / "d").is_symlink()
    assert (work / "d" / "f").read_text() == "ours"


def test_what_changed_since_it_was_kept_is_not_replaced(work: Path):
    write(work, a="1", b="1", gone="1")
    store = store_of(work)
    own = SessionCheckpoints(store, "one")
    target = store.read(own.take(1))
    write(work, a="2", b="2", new="2")
    (work / "gone").unlink()
    now = store.read(own.take(2))
    assert target
    assert now
    write(work, a="by hand", new="by hand", gone="by hand")
    with store.locked():
        done = restore(store, now, target)
    assert dict(done.left).keys() == {"a", "new", "gone"}
    assert {name: (work / name).read_text() for name in ("a", "b", "new", "gone")} == {
        "a": "by hand",
        "b": "1",
        "new": "by hand",
        "gone": "by hand",
    }


def test_changes_by_hand_are_told_from_those_of_the_turns(work: Path):
    write(work, agent="1\n", hand="1\n", later="1\n", both="1\n")
    own = session(work)
    one = own.take(1)
    write(work, agent="2\n3\n", both="2\n")
    own.settle(1)
    write(work, hand="by hand\n", both="by hand\n")
    two = own.take(2)
    write(work, more="new\n")
    own.settle(2)
    write(work, later="by hand\n")
    assert own.did(one) == [FileChange("agent", "changed", 2, 1), FileChange("both", "changed", 1, 1)]
    assert own.did(two) == [FileChange("more", "new", 1, 0)]
    assert {(item.path, item.kind, item.by_hand) for item in own.undoing(one, [(1, one), (2, two)])} == {
        ("agent", "changed", False),
        ("hand", "changed", True),
        ("later", "changed", True),
        ("both", "changed", True),
        ("more", "gone", False),
    }
    assert {item.path for item in own.undoing(two, [(2, two)]) if item.by_hand} == {"later"}
    undo = own.begin(one)
    own.restore(one, undo)
    write(work, hand="again by hand\n")
    assert {item.path for item in own.undoing(undo, []) if item.by_hand} == {"hand"}


def test_diffs_have_texts_and_a_patch_can_be_applied(work: Path):
    write(work, a="1\r\n2\r\n", b="\0bin", gone="g\n")
    own = session(work)
    id = own.take(1)
    write(work, a="1\r\n3\r\n", b="\0bin2", new="n")
    (work / "gone").unlink()
    shown = {item.path: (item.before, item.after) for item in own.diffs(id).items}
    assert shown["a"] == ("1\n2\n", "1\n3\n")
    assert shown["new"] == (None, "n")
    assert shown["gone"] == ("g\n", "")
    assert shown["b"][1].startswith("no text, 5 bytes")
    assert b"4 files changed" in own.patch(id, stat=True)
    patch = own.patch(id)
    back(own, id)
    subprocess.run(["git", "apply", "-"], cwd=work, input=patch, check=True, env={**os.environ, **GIT})
    assert (work / "a").read_bytes() == b"1\r\n3\r\n"
    assert (work / "b").read_bytes() == b"\0bin2"


def test_a_store_that_was_deleted_or_damaged_costs_no_file(work: Path):
    write(work, a="1", b="1")
    own = session(work)
    id = own.take(1)
    write(work, a="2")
    (work.parent / "store" / "index").write_bytes(b"rubbish")
    again = own.take(2)
    content = store_of(work).changed(id, again)[0].before
    assert content
    (work.parent / "store" / "objects" / content.id[:2] / content.id[2:]).unlink()
    with pytest.raises(StorageError, match="damaged"):
        back(own, id)
    assert (work / "a").read_text() == "2"
    shutil.rmtree(work.parent / "store")
    with pytest.raises(StorageError, match="deleted"):
        back(own, id)
    assert (work / "a").read_text() == "2"
    assert back(own, own.take(3)).left == ()


def test_without_git_room_or_rights_it_says_so(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write(work, a="1")
    with pytest.raises(StorageError, match="too many or too large"):
        session(work, new=0).take(1)
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="can't be used"):
        SessionCheckpoints(Store(tmp_path / "file" / "store", work), "one").take(1)
    os.mkfifo(work / ".gitignore")
    with pytest.raises(StorageError, match="gitignore is a pipe"):
        session(work).take(1)
    (work / ".gitignore").unlink()
    tools = tmp_path / "bin"
    tools.mkdir()
    monkeypatch.setenv("PATH", str(tools))
    with pytest.raises(StorageError, match="git is not installed"):
        session(work).take(1)
    (tools / "git").write_text("#!/bin/sh\necho 'fatal: write error: No space left on device' >&2\nexit 128\n")
    (tools / "git").chmod(0o755)
    with pytest.raises(StorageError, match="No space left on device"):
        session(work).take(1)
    assert (work / "a").read_text() == "1"


def test_many_files_go_into_one_pack_and_come_back(work: Path):
    names = [f"part{number % 7}/file {number}" for number in range(MANY + 20)]
    for name in names:
        write(work, **{name: f"text of {name}\n" * 3})
    write(work, empty="", twin=f"text of {names[0]}\n" * 3)
    before, own = state(work), session(work)
    watch = GitWatch()
    id = own.take(1, watch)
    assert (watch.done, watch.total) == (len(names) + 2, len(names) + 2)
    objects = work.parent / "store" / "objects"
    assert len(list((objects / "pack").glob("*.pack"))) == 1
    for name in names[::2]:
        (work / name).write_text("changed")
    shutil.rmtree(work / "part3")
    assert back(own, id).left == ()
    assert state(work) == before
    assert [item.path for item in own.changes(id)] == []


class Impatient(GitWatch):
    """Stops as soon as git runs."""

    def begin(self, process: PipedChild | None) -> None:
        if process:
            self.stop()
        super().begin(process)


@pytest.mark.parametrize("watch", [Impatient(), GitWatch()])
def test_who_does_not_want_to_wait_stops_it_and_the_next_one_is_whole(work: Path, watch: GitWatch):
    write(work, **{f"file{number}": "text" for number in range(60)})
    if not isinstance(watch, Impatient):
        watch.stop()
    own = session(work)
    with pytest.raises(GitStopped):
        own.take(1, watch)
    id = own.take(2)
    write(work, file7="changed")
    assert [item.path for item in own.changes(id)] == ["file7"]


def test_how_large_a_file_may_be_is_a_setting(work: Path, tmp_path: Path):
    write(work, small="1" * 900, large="1" * 1_100)
    where = places({"BA_HOME": str(tmp_path / "ba")})
    for megabytes, kept in ((0.001, ["small"]), (10, ["large", "small"])):
        own = checkpoints_for(where, work, f"of-{megabytes}", CheckpointSettings(max_file_mb=megabytes))
        id = own.take(1)
        write(work, small=f"now {megabytes}", large="2" * int(1_100 + megabytes))
        assert [item.path for item in own.changes(id)] == kept


def test_one_at_a_time(work: Path):
    write(work, a="1")
    id = session(work).take(1)
    with store_of(work).locked(), pytest.raises(StorageError, match="Another ba"):
        back(session(work, wait=0), id)
    assert back(session(work, wait=0), id).left == ()


def test_a_home_is_no_project(work: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(work))
    with pytest.raises(StorageError, match="much more than one project"):
        session(work).take(1)
    monkeypatch.setenv("HOME", str(work / "home"))
    with pytest.raises(StorageError, match="much more than one project"):
        session(work).take(1)


def test_our_own_folders_in_the_project_are_left_out(work: Path):
    write(work, a="1", **{"state__x [1]__sessions": "s"})
    store = Store(work / "state" / "x [1]" / "store", work, [work / "state" / "x [1]"])
    own = SessionCheckpoints(store, "one")
    id = own.take(1)
    write(work, a="2", **{"state__x [1]__sessions": "more"})
    assert [item.path for item in own.changes(id)] == ["a"]
