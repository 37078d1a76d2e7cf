"""A program: kills a rewind before each file that it replaces or removes, starts again, and says what it finds."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from itertools import count
from pathlib import Path

from ba_tui.core.ports.sessions import RestoreResult
from ba_tui.resources import clear_unfinished, places
from ba_tui.sessions.checkpoints.keeper import KIND, SessionCheckpoints, checkpoints_for
from ba_tui.settings.sections.agents import CheckpointSettings
from ba_tui.write_ahead import recover, write_ahead
from tests.killing.operations import killed_before, unsynced

STEPS = ("rename", "rmdir", "ftruncate")


def held(root: Path) -> dict[str, tuple[str, int]]:
    return {
        path.relative_to(root).as_posix(): (path.read_text() if path.is_file() else "", path.stat().st_mode & 0o777)
        for path in root.rglob("*")
    }


def start(root: Path, checkpoints: SessionCheckpoints) -> list[str]:
    clear_unfinished(places())
    return recover(write_ahead(root).folder, {KIND: checkpoints.take_back})


def every_file(root: Path) -> list[str]:
    root.mkdir()
    for name in ("a", "b"):
        (root / name).write_text("old")
    (root / "gone").mkdir()
    (root / "gone/d").write_text("d")
    (root / "b").chmod(0o755)
    checkpoints = checkpoints_for(places(), root, "s1", CheckpointSettings())
    to = checkpoints.take(1)
    for path in (root / "a", root / "b", root / "new/c"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("new")
    (root / "b").chmod(0o600)
    (root / "gone/d").unlink()
    (root / "gone").rmdir()
    undo, before, wrong = checkpoints.begin(to), held(root), list[str]()

    def rewind() -> RestoreResult:
        return checkpoints.restore(to, undo)

    for number in count():
        if not killed_before(number, partial(rewind), STEPS):
            return wrong if number > 4 and held(root)["a"] == ("old", 0o644) else [*wrong, f"end at {number}"]
        reached = held(root)
        if number == 2:
            (root / "b").write_text("theirs")
        told, now = start(root, checkpoints), held(root)
        if number == 2:
            if now.pop("b")[0] != "theirs" or "b (" not in told[0]:
                wrong.append(f"{number}: {told}")
            (root / "b").write_text("new")
            (root / "b").chmod(0o600)
            now = held(root)
        if now != before or [path for path in write_ahead(root).folder.iterdir() if path.suffix == ".list"]:
            wrong.append(f"{number}: {now} {told}")
        elif (reached != before) != ("ba put back" in told[0]):
            wrong.append(f"{number}: {told}")
        for outcome in write_ahead(root, "s1").outcomes():
            outcome.forget()
    return wrong


if __name__ == "__main__":
    os.fsync = unsynced
    print(json.dumps(every_file(Path(sys.argv[1]) / "work")))
