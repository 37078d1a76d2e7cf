"""What a killed process left beside the files that it wrote: removed at the next start, or given its name back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ba_tui.resources import clear_unfinished, places, temporary_name
from ba_tui.tools.editing.disk import set_aside
from tests.tools.conftest import CHECKOUT

KILLED = {
    "a change": "write_bytes(path, b'new', before=b'old', shown='a')",
    "a new file": "path.unlink(); write_bytes(path, b'new', before=None, shown='a')",
    "settings": "save_whole(path, 'new')",
}
SCRIPT = """
import os, signal, sys
from pathlib import Path
from ba_tui.resources import save_whole
from ba_tui.tools.editing.disk import set_aside, write_bytes
path = Path(sys.argv[1])
os.fsync = lambda number: os.kill(os.getpid(), signal.SIGKILL)
"""
ASIDE = """
with set_aside(path, before=b'old', shown='a'):
    os.fsync(0)
"""


def killed(path: Path, code: str) -> None:
    command = [sys.executable, "-c", SCRIPT + code, str(path)]
    done = subprocess.run(command, cwd=CHECKOUT, check=False, timeout=60, env={**os.environ})
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("what", KILLED)
def test_what_a_killed_write_left_is_removed(tmp_path: Path, what: str) -> None:
    path = tmp_path / "a\udcff b.txt"
    path.write_bytes(b"old")
    killed(path, KILLED[what])
    assert len(list(tmp_path.iterdir())) == (1 if what == "a new file" else 2)
    (litter,) = clear_unfinished(places())
    assert ".ba-" in litter.name
    assert [each.name for each in tmp_path.iterdir()] == ([] if what == "a new file" else [path.name])
    assert clear_unfinished(places()) == []


def test_a_file_that_was_set_aside_comes_back(tmp_path: Path) -> None:
    path = tmp_path / ("long " * 40)
    path.write_bytes(b"old")
    killed(path, ASIDE)
    assert not path.exists()
    clear_unfinished(places())
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [(path.name, b"old")]


def test_what_took_the_place_of_a_file_that_was_set_aside_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    killed(path, ASIDE)
    path.write_bytes(b"new")
    clear_unfinished(places())
    assert path.read_bytes() == b"new"
    assert sorted(each.read_bytes() for each in tmp_path.iterdir()) == [b"new", b"old"]


def test_files_of_others_stay(tmp_path: Path) -> None:
    named = tmp_path / temporary_name("a.txt")
    named.write_bytes(b"theirs")
    notes = places().state / "unfinished"
    notes.mkdir(parents=True)
    other = tmp_path / "notes.txt"
    other.write_bytes(b"mine")
    gone = subprocess.run(["true"], check=True)
    assert gone.returncode == 0
    token = named.name[-12:-4]
    # Not by the name that the note has, not by one of ours, behind a link, and by a way that is none.
    (tmp_path / "link").symlink_to(tmp_path)
    for name, path in {
        "999999999-00000000": named,
        f"999999998-{token}": other,
        f"999999997-{token}": tmp_path / "link" / named.name,
        f"999999996-{token}": tmp_path / "x" / ".." / named.name,
        "nonsense": named,
    }.items():
        (notes / name).write_bytes(os.fsencode(path) + b"\0")
    assert clear_unfinished(places()) == []
    assert (named.read_bytes(), other.read_bytes()) == (b"theirs", b"mine")


def test_a_note_that_its_process_still_holds_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    with set_aside(path, before=b"old", shown="a") as aside:
        # The same process number or another one: the lock of the note decides.
        (note,) = (places().state / "unfinished").iterdir()
        note.rename(note.with_name(f"999999999-{aside.name[-12:-4]}"))
        assert clear_unfinished(places()) == []
        assert not path.exists()
        assert aside.read_bytes() == b"old"


def test_a_number_that_another_process_has_by_now_keeps_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    killed(path, KILLED["a change"])
    (note,) = (places().state / "unfinished").iterdir()
    note.rename(note.with_name(f"{os.getpid()}-{note.name.partition('-')[2]}"))
    assert len(clear_unfinished(places())) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]
