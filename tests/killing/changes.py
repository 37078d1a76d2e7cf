"""A program: kills a change of several files before each of its operations, starts again, and says what it finds."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from functools import partial
from itertools import count
from pathlib import Path

from ba_tui.resources import clear_unfinished, places
from ba_tui.tools.editing.transaction import KIND, FileStep, UndoneFiles, commit
from ba_tui.write_ahead import recover, write_ahead
from tests.killing.operations import killed_before, unsynced

Files = Mapping[str, bytes | None]
"""Contents by path; None for a folder."""
BEFORE: Files = {"a": b"old", "sub": None, "sub/b": b"\xff\x00", "gone": b"x", "last": b"y", "other": b"theirs"}
AFTER: Files = {"a": b"new", "sub": None, "sub/b": b"", "new": None, "new/deep": None, "new/deep/c": b"c"} | {
    "other": b"theirs"
}


def make(root: Path, files: Files) -> None:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    for name, data in files.items():
        if data is None:
            (root / name).mkdir()
        else:
            (root / name).write_bytes(data)
            (root / name).chmod(0o640)


def held(root: Path) -> Files:
    return {
        path.relative_to(root).as_posix(): path.read_bytes() if path.is_file() else None for path in root.rglob("*")
    }


def steps(root: Path) -> list[FileStep]:
    names = ("a", "new/deep/c", "sub/b", "gone", "last")
    return [FileStep(root / name, name, BEFORE.get(name), AFTER.get(name)) for name in names]


def change(root: Path) -> None:
    commit(steps(root), write_ahead(root, "s1"), "apply_patch")


def start(root: Path) -> list[str]:
    clear_unfinished(places())
    return recover(write_ahead(root).folder, {KIND: UndoneFiles((root,))})


def litter() -> list[str]:
    state = places().state
    return [path.name for name in ("changes", "unfinished") for path in (state / name).rglob("*") if path.is_file()]


def every_operation(root: Path) -> list[str]:
    """What was wrong after a kill and a start, by the operation before which the kill came."""
    wrong: list[str] = []
    for number in count():
        make(root, BEFORE)
        if not killed_before(number, partial(change, root)):
            return wrong if held(root) == AFTER and number > 30 else [*wrong, f"end at {number}"]
        told = start(root)
        for outcome in write_ahead(root, "s1").outcomes():
            wrong += [] if [outcome.text] == told else [f"{number}: the session is told {outcome.text}"]
            outcome.forget()
        now = held(root)
        if now not in (BEFORE, AFTER) or litter() or start(root):
            wrong.append(f"{number}: {now} {litter()} {told}")
        if now == BEFORE and any((root / name).stat().st_mode & 0o777 != 0o640 for name, data in now.items() if data):
            wrong.append(f"{number}: rights")
        words = "which stay" if now == AFTER else "put back"
        if told and words not in told[0] and "No file is changed" not in told[0]:
            wrong.append(f"{number}: {told}")
    return wrong


def every_second_kill(root: Path) -> list[str]:
    """The same after a kill of the start that undoes a change."""
    wrong: list[str] = []
    middle = 46
    for number in count(0, 3):
        make(root, BEFORE)
        killed_before(middle, partial(change, root))
        ended = not killed_before(number, partial(start, root))
        start(root)
        if held(root) != BEFORE or [name for name in litter() if not name.endswith(".outcome")]:
            wrong.append(f"{number}: {held(root)} {litter()}")
        for outcome in write_ahead(root, "s1").outcomes():
            outcome.forget()
        if ended:
            return wrong if number > 10 else [*wrong, f"end at {number}"]
    return wrong


if __name__ == "__main__":
    os.fsync = unsynced
    print(json.dumps({"first": every_operation, "second": every_second_kill}[sys.argv[1]](Path(sys.argv[2]) / "work")))
