"""Temporary folders: whatever kills their process, a later start removes them, and nothing else."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ba_tui.processes.scratch import clear_scratch, make_scratch, remove_scratch, scratch, scratch_path
from ba_tui.resources import UserFolders, places
from ba_tui.sessions.upkeep import tidy, upkeep
from ba_tui.settings.sections.agents import CheckpointSettings

CHECKOUT = Path(__file__).resolve().parents[2]
OWNER = """
import sys, time
from ba_tui.processes.scratch import make_scratch, scratch_path
print(make_scratch(scratch_path("tmp")), flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def owner() -> tuple[subprocess.Popen[str], Path]:
    command = [sys.executable, "-c", OWNER]
    process = subprocess.Popen(command, cwd=CHECKOUT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout
    return process, Path(process.stdout.readline().strip())


def killed() -> Path:
    process, folder = owner()
    process.kill()
    process.communicate()
    return folder


def test_what_a_killed_process_left_goes_and_what_is_in_use_stays() -> None:
    living, used = owner()
    left = killed()
    (left / "closed" / "deep").mkdir(parents=True)
    (left / "closed" / "deep" / "file").write_text("x")
    (left / "closed" / "deep").chmod(0)
    (left / "closed").chmod(0o500)
    mine = make_scratch(scratch_path("data"))
    assert clear_scratch() == [left]
    assert (left.exists(), used.is_dir(), mine.is_dir()) == (False, True, True)
    living.communicate()
    assert clear_scratch() == [used]
    remove_scratch(mine)
    assert not mine.exists()


def test_no_link_is_followed_and_no_other_name_is_touched(temporary: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("x")
    (temporary / f"ba-tmp-{'0' * 16}").symlink_to(outside)
    (temporary / f"ba-run-{'0' * 16}").write_text("a file")
    for name in ("ba-tmp-mine", f"ba-other-{'0' * 16}", f"xba-tmp-{'0' * 16}", f"ba-tmp-{'0' * 16}.new"):
        (temporary / name).mkdir()
    left = killed()
    (left / "link").symlink_to(outside)
    before = set(temporary.iterdir()) - {left}
    assert clear_scratch() == [left]
    assert set(temporary.iterdir()) == before
    assert (outside / "file").read_text() == "x"


def test_a_folder_is_for_the_user_alone_and_goes_with_its_block() -> None:
    with suppress(RuntimeError), scratch("report") as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert make_scratch(folder) == folder
        raise RuntimeError
    assert not folder.exists()


def _until_empty(folder: Path) -> None:
    while any(folder.iterdir()):
        os.sched_yield()


async def _cleaned(where: UserFolders) -> None:
    work = asyncio.create_task(upkeep(where, CheckpointSettings()))
    await asyncio.to_thread(_until_empty, Path(tempfile.gettempdir()))
    work.cancel()
    with suppress(asyncio.CancelledError):
        await work


@pytest.mark.parametrize(
    "clean",
    [lambda where: tidy(where, CheckpointSettings()), lambda where: asyncio.run(_cleaned(where))],
    ids=["print", "app"],
)
def test_each_start_removes_what_was_left(clean: Callable[[UserFolders], object], temporary: Path) -> None:
    # Also when the last start was a moment ago.
    for _ in range(2):
        assert killed().is_dir()
        clean(places())
        assert list(temporary.iterdir()) == []
