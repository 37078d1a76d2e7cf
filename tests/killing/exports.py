"""A program: kills exports of several files before each of their operations, starts again, and says what it finds."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from itertools import count
from pathlib import Path

from ba_tui.tools.editing.disk import place_file
from ba_tui.tools.editing.transaction import place_together
from ba_tui.write_ahead import write_ahead
from tests.killing.changes import Files, held, litter, make, start
from tests.killing.operations import killed_before, unsynced

NAMES = ("r-data/R1", "r-data/rerun", "r.py")
NONE: Files = {"mine": b"mine"}
OLD: Files = {**NONE, "r-data": None, "r-data/R1": b"old", "r-data/rerun": b"same", "r.py": b"old", "r-data/own": b"x"}
NEW: Files = {"r-data/R1": b"new", "r-data/rerun": b"same", "r.py": b"new"}


def export(root: Path, names: tuple[str, ...] = NAMES) -> None:
    made = root.with_name("made")
    files = [(made / name.replace("/", "-"), root / name) for name in names]
    place_together(files, write_ahead(root, "s1"), "the export of a report", str)


def place(root: Path) -> None:
    place_file(root.with_name("made") / "r.py", root / "deep" / "r.py", overwrite=True, shown="r.py")


def every_operation(root: Path) -> list[str]:
    """What was wrong after a kill and a start, by the operation before which the kill came."""
    make(root.with_name("made"), {name.replace("/", "-"): NEW[name] for name in NAMES})
    one: Files = {"deep": None, "deep/r.py": b"old"}
    wrong: list[str] = []
    for work, before, after in (
        (export, NONE, {**NONE, "r-data": None, **NEW}),
        (export, OLD, {**OLD, **NEW}),
        (place, one, {**one, "deep/r.py": b"new"}),
    ):
        seen, now, number = set[bool](), before, 0
        for number in count():
            make(root, before)
            killed = killed_before(number, partial(work, root))
            told, now = start(root), held(root)
            for outcome in write_ahead(root, "s1").outcomes():
                outcome.forget()
            if now not in (before, after) or litter() or start(root):
                wrong.append(f"{number}: {now} {litter()} {told}")
            seen.add(now == before)
            if not killed:
                break
        if len(seen) < 2 or now != after or number < 8:
            wrong.append(f"end at {number}: {now}")
    return wrong


if __name__ == "__main__":
    os.fsync = unsynced
    print(json.dumps(every_operation(Path(sys.argv[1]) / "work")))
