"""A rewind when a file operation fails: each file is the old or the new one, and what is not brought back is named."""

from __future__ import annotations

import errno
import shutil
import stat
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TypeAlias

import pytest

from ba_tui.sessions.checkpoints.keeper import SessionCheckpoints
from ba_tui.sessions.checkpoints.shadow import Store
from ba_tui.write_ahead import WriteAhead
from tests.noticing.file_faults import Layer, operations, unsynced

Files: TypeAlias = dict[str, tuple[bytes | str, int]]


def state(folder: Path) -> Files:
    """Content and rights of each file, and where each link leads."""
    return {
        path.relative_to(folder / "work").as_posix(): (str(path.readlink()), 0)
        if path.is_symlink()
        else (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in (folder / "work").rglob("*")
        if path.is_symlink() or path.is_file()
    }


def checkpoints(folder: Path) -> SessionCheckpoints:
    return SessionCheckpoints(Store(folder / "store", folder / "work"), "one", WriteAhead(folder / "changes", "one"))


@pytest.fixture
def world(tmp_path: Path) -> tuple[Callable[[], Path], str, str, Files]:
    """Makes copies of a project after a turn; the checkpoints before and after it; and the files before it."""
    template, numbers = tmp_path / "template", count()
    work = template / "work"
    (work / "deep").mkdir(parents=True)
    for name, mode in (("a", 0o644), ("deep/gone", 0o640), ("run", 0o755)):
        (work / name).write_text(f"old {name}")
        (work / name).chmod(mode)
    (work / "link").symlink_to("a")
    own = checkpoints(template)
    to, old = own.take(1), state(template)
    shutil.rmtree(work / "deep")
    for name in ("a", "run", "made/new"):
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text(f"new {name}")
    (work / "run").chmod(0o600)
    (work / "link").unlink()
    (work / "link").symlink_to("run")
    undo = own.begin(to)

    def made() -> Path:
        return shutil.copytree(template, tmp_path / f"world{next(numbers)}", symlinks=True)

    return made, to, undo, old


def test_each_file_is_the_old_or_the_new_one_and_the_rest_is_named(
    world: tuple[Callable[[], Path], str, str, Files],
) -> None:
    made, to, undo, old = world
    folder = made()
    new = state(folder)
    done = operations(lambda: checkpoints(folder).restore(to, undo))
    ours = [at for at, each in enumerate(done) if each.target.startswith(("b'", str(folder / "work")))]
    assert len(ours) > 15
    named = 0
    for at in ours:
        folder, layer = made(), Layer(at, errno.ENOSPC)
        with layer.laid():
            result = checkpoints(folder).restore(to, undo)
        failed, now = layer.done[at], state(folder)
        kept = {name for name in old.keys() | new.keys() if now.get(name) != old.get(name)}
        assert all(now.get(name) == new.get(name) for name in kept), failed
        assert kept <= dict(result.left).keys(), failed
        assert [*(folder / "changes").glob("*.list")] == []
        named += len(kept)
        shutil.rmtree(folder)
    assert named > 8
    # The files of the last run are brought back by another one.
    folder, layer = made(), Layer(ours[len(ours) // 2], errno.ENOSPC)
    own = checkpoints(folder)
    with layer.laid():
        assert own.restore(to, undo).left
    assert own.restore(to, own.begin(to)).left == ()
    assert state(folder) == old


def test_a_file_that_is_brought_back_is_on_the_disk(world: tuple[Callable[[], Path], str, str, Files]) -> None:
    made, to, undo, old = world
    folder = made()
    done = operations(lambda: checkpoints(folder).restore(to, undo))
    work = str(folder / "work")
    assert unsynced([each for each in done if each.target.startswith(work)]) == set()
    assert [each.name for each in done if each.target.startswith(work)].count("fsync") == 3
    assert state(folder) == old
