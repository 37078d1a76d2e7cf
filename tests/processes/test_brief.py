"""Short programs: their end, their time limit, their output and what they leave behind."""

from __future__ import annotations

import asyncio
import os
import select
import sys
import threading
from pathlib import Path

import psutil
import pytest

from ba_tui.processes import programs
from ba_tui.processes.programs import BriefRun, PipedChild, ProgramResult, run_briefly, run_in_thread, stream
from tests.processes.test_duplex import held

LEAVES = 'sleep 600 & echo "$!"'
"""Prints the number of a process that stays, and holds the pipes."""


def gone(pid: int) -> bool:
    """Wait for the end of a process that is no child of ours; False when it still runs after some seconds."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    ready, _, _ = select.select([watched], [], [], 5)
    os.close(watched)
    return bool(ready)


def shell(command: str, timeout: float = 20.0, **more: object) -> ProgramResult:
    return run_briefly(BriefRun(("/bin/sh", "-c", command), timeout, **more))  # pyright: ignore[reportArgumentType]


def test_what_it_prints_and_how_it_ends(tmp_path: Path) -> None:
    done = shell(
        'cat; echo "$NAME" >&2; pwd; exit 3', folder=tmp_path, environment={"NAME": "ba"}, input=b"x" * 200_000
    )
    assert done == ProgramResult(3, b"x" * 200_000 + f"{tmp_path}\n".encode(), b"ba\n")


def test_a_program_that_does_not_read_its_input() -> None:
    assert shell("exec true", input=b"x" * 10_000_000) == ProgramResult(0)


def test_what_it_leaves_in_its_group_is_killed() -> None:
    assert gone(int(shell(LEAVES).output))


def test_what_may_last_lasts() -> None:
    pid = int(shell(LEAVES, lasting=True).output)
    os.kill(pid, 9)
    assert gone(pid)


def test_a_time_limit_ends_the_whole_group() -> None:
    done = shell(f"{LEAVES}; sleep 600", 0.3)
    assert (done.code, done.trouble) == (None, "timeout")
    assert gone(int(done.output))


def test_a_flood_is_bounded() -> None:
    done = shell("cat /dev/zero", most=1_000_000)
    assert (done.code, done.trouble) == (None, "flood")
    assert 1_000_000 < len(done.output) <= 1_000_000 + 65_536
    assert shell("cat /dev/zero >&2", most=1_000_000).trouble == "flood"
    assert shell("head -c 1000 /dev/zero", most=1_000) == ProgramResult(0, bytes(1_000))
    assert shell("head -c 1001 /dev/zero", most=1_000).trouble == "flood"


@pytest.mark.parametrize("command", ["cat", LEAVES, "sleep 600", "exec 1>&- 2>&-; read x", "/no/such/program"])
def test_nothing_is_held_after_its_end(command: str) -> None:
    before, children = held(), psutil.Process().children()
    done = shell(command, 0.3 if "sleep 600" in command else 20.0, input=b"x\n" * 100_000)
    assert done.trouble in {"", "timeout"}
    with pytest.raises(FileNotFoundError):
        run_briefly(BriefRun(("/no/such/program",), 1))
    assert (held(), psutil.Process().children()) == (before, children)


def test_a_stop_from_another_thread() -> None:
    stop = threading.Event()
    stop.set()
    assert run_briefly(BriefRun(("/bin/sleep", "600"), 60), stop).trouble == "stopped"


def test_what_is_not_there() -> None:
    with pytest.raises(FileNotFoundError):
        run_briefly(BriefRun(("/no/such/program",), 1))


async def test_a_cancelled_one_is_killed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alive")
    task = asyncio.create_task(
        run_in_thread(BriefRun(("/bin/sh", "-c", "exec >alive; echo up; sleep 600"), 60, tmp_path))
    )
    with await asyncio.to_thread((tmp_path / "alive").open) as alive:
        assert await asyncio.to_thread(alive.readline) == "up\n"
        task.cancel()
        assert await asyncio.to_thread(alive.read) == ""
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_in_a_thread_what_is_not_there_raises_too() -> None:
    with pytest.raises(FileNotFoundError):
        await run_in_thread(BriefRun(("/no/such/program",), 1))


def test_a_piped_child_answers_while_it_runs(tmp_path: Path) -> None:
    with PipedChild(("/bin/sh", "-c", "read line; echo got $line; echo bad >&2; exit 4"), tmp_path) as child:
        child.input.write(b"this\n")
        child.input.flush()
        assert child.output.readline() == b"got this\n"
        assert (child.wait(), child.errors()) == (4, b"bad\n")
    assert not child.running


def test_a_killed_piped_child_takes_its_group_along(tmp_path: Path) -> None:
    with PipedChild(("/bin/sh", "-c", f"{LEAVES}; sleep 600"), tmp_path) as child:
        pid = int(child.output.readline())
        child.kill()
        assert gone(pid)


def test_a_piped_child_that_does_not_end_is_killed_with_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "CLOSE_SECONDS", 0.05)
    before = held()
    with PipedChild(("/bin/sh", "-c", f"{LEAVES}; sleep 600"), tmp_path, {"PATH": os.defpath}) as child:
        pid = int(child.output.readline())
        assert child.running
    assert gone(pid)
    child.close()
    with pytest.raises(FileNotFoundError):
        PipedChild(("/no/such/program",), tmp_path)
    assert held() == before


def test_a_piped_child_may_clean_up_and_its_last_words_are_kept(tmp_path: Path) -> None:
    code = "trap 'echo bye; exit 3' TERM; head -c 70000 /dev/zero | tr '\\0' x >&2; echo end >&2; echo up; read line"
    with PipedChild(("/bin/sh", "-c", code), tmp_path) as child:
        assert child.output.readline() == b"up\n"
        child.terminate()
        child.input.close()
        assert child.output.readline() == b"bye\n"
        assert child.wait() == 3
        said = child.errors()
        assert (len(said), said[-5:]) == (64_000, b"xend\n")


async def test_a_streamed_child_that_ends_by_itself() -> None:
    before = held()
    child = await stream(("/bin/sh", "-c", "head -c 9000 /dev/zero >&2; echo out; exit 4"), {"PATH": os.defpath})
    assert await child.output.read() == b"out\n"
    assert await child.wait() == 4
    assert 4_000 <= len(await child.errors()) < 9_000
    child.kill()
    await child.close()
    assert held() == before


async def test_a_streamed_child_is_read_while_it_runs_and_killed_with_its_group() -> None:
    child = await stream(("/bin/sh", "-c", f"echo bad >&2; {LEAVES}; sleep 600"), {})
    pid = int(await child.output.readline())
    await child.close()
    assert gone(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="macOS does not limit a running process")
async def test_a_streamed_child_has_a_memory_limit() -> None:
    code = "x = bytearray(500_000_000); print(len(x))"
    child = await stream((sys.executable, "-c", code), {}, 100_000_000)
    assert await child.output.read() == b""
    assert b"MemoryError" in await child.errors()
    await child.close()
