"""A program that talks by lines: both directions, its errors, its end, and that nothing of it stays."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from ba_tui.processes.duplex import MAX_LINE_BYTES, DuplexChild, LineEndless, LineTooLong, LineUnfinished
from ba_tui.processes.values import Confinement, Program
from tests.processes.test_worker import gone

UPPER = (
    "import sys\nfor line in sys.stdin:\n    print(line.strip().upper(), flush=True)\nprint('end', file=sys.stderr)\n"
)
LONG = 3_000_000
NOWHERE = Confinement(("/no/such/sandbox",), {}, separate=False)


@asynccontextmanager
async def child(
    code: str, folder: Path, heard: Callable[[bytes], None] | None = None, longest: int = MAX_LINE_BYTES
) -> AsyncGenerator[DuplexChild]:
    program = Program((sys.executable, "-c", code), folder, {"PATH": os.defpath})
    made = await DuplexChild.start(program, heard, longest)
    try:
        yield made
    finally:
        await made.close()


async def test_lines_go_there_and_back(tmp_path: Path) -> None:
    async with child(UPPER, tmp_path) as made:
        await made.write(b"one\ntwo\n")
        assert [await made.read_line(), await made.read_line()] == [b"ONE", b"TWO"]
        long = b"x" * LONG
        _, line = await asyncio.gather(made.write(long + b"\n"), made.read_line())
        assert line == long.upper()


async def test_its_end_and_what_it_said_on_standard_error(tmp_path: Path) -> None:
    code = "import sys; print('a\\n\\nb', end=''); print('bad', file=sys.stderr); sys.exit(3)"
    heard: list[bytes] = []
    async with child(code, tmp_path, heard.append) as made:
        assert [await made.read_line() for _ in range(4)] == [b"a", b"", b"b", b""]
        await made.close()
        assert (made.exit_code, made.errors, heard) == (3, "bad\n", [b"bad\n"])
        with pytest.raises(BrokenPipeError):
            await made.write(b"more\n")
        assert await made.read_line() == b""


async def test_a_flood_of_errors_does_not_hold_it_up(tmp_path: Path) -> None:
    code = "import sys\nsys.stderr.write('x' * 5_000_000)\nprint('done', flush=True)\nsys.stdin.read()"
    async with child(code, tmp_path) as made:
        assert await made.read_line() == b"done"
        assert len(made.errors) < 300_000


async def test_closed_it_ends_with_what_it_started(tmp_path: Path) -> None:
    code = (
        "import os, subprocess as s\np = s.Popen(['sleep', '600'], start_new_session=True)\nprint(p.pid, flush=True)\n"
    )
    async with child(f"import os; print(os.getpid(), flush=True)\n{code}p.wait()", tmp_path) as made:
        own, pid = int(await made.read_line()), int(await made.read_line())
        await made.close()
        assert not psutil.pid_exists(own), "close returns once it has ended"
    assert await gone(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the program itself goes on")
async def test_what_it_started_ends_when_its_supervisor_is_killed(tmp_path: Path) -> None:
    code = "import os, subprocess as s\nprint(s.Popen(['sleep', '600']).pid, flush=True)\nos.kill(os.getppid(), 9)"
    async with child(f"{code}\ninput()", tmp_path) as made:
        pid = int(await made.read_line())
        assert await made.read_line() == b""
        assert made.exit_code is None
        assert await gone(pid)


def held() -> int:
    """How many file descriptors this process has."""
    return len(os.listdir("/dev/fd"))  # noqa: PTH208 - the shortest way to count


async def test_closed_it_holds_no_file_of_ours(tmp_path: Path) -> None:
    before = held()
    async with child("input()", tmp_path) as made:
        assert held() > before
        await made.close()
        assert held() == before
    program = Program((sys.executable,), tmp_path, {}, confinement=NOWHERE)
    with pytest.raises(FileNotFoundError):
        await DuplexChild.start(program)
    assert held() == before


async def test_a_program_that_is_slow_to_read_holds_up_nobody_else(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    code = "import sys; open('gate').read(); print(len(sys.stdin.readline()), flush=True); sys.stdin.read()"
    async with child(code, tmp_path) as made:
        writing = asyncio.create_task(made.write(b"x" * LONG + b"\n"))
        await asyncio.sleep(0)
        await asyncio.to_thread((tmp_path / "gate").write_text, "go\n")
        assert int(await made.read_line()) == LONG + 1
        await writing
        assert not asyncio.get_running_loop().remove_writer(made._input), "nobody waits to write"


DEAF = "import time\nprint('up', flush=True)\ntime.sleep(600)"


async def test_while_it_is_closed_nothing_can_be_written(tmp_path: Path) -> None:
    async with child(DEAF, tmp_path) as made:
        assert await made.read_line() == b"up"
        closing = asyncio.create_task(made.close())
        await asyncio.sleep(0)
        with pytest.raises(BrokenPipeError):
            await made.write(b"more\n")
        assert not closing.done()
        await closing


async def test_a_writer_that_waits_is_freed_by_close(tmp_path: Path) -> None:
    async with child(DEAF, tmp_path) as made:
        assert await made.read_line() == b"up"
        waiting = asyncio.create_task(made.write(b"x" * LONG))
        await asyncio.sleep(0)
        await made.close()
        with pytest.raises(BrokenPipeError):
            await waiting


async def test_a_line_beyond_the_limit_is_passed_over(tmp_path: Path) -> None:
    long = "'ab' + 'y' * 200_000 + 'yz'"
    code = f"print('x' * 50_000, end='', flush=True)\ninput()\nprint('\\n' + {long} + '\\nend')\ninput()"
    async with child(code, tmp_path, longest=50_000) as made:
        with pytest.raises(LineUnfinished):
            await made.read_line(0.05)
        await made.write(b"\n")
        assert await made.read_line() == b"x" * 50_000
        with pytest.raises(LineTooLong, match=r"A line of 0\.2 MB came") as raised:
            await made.read_line()
        head, tail = raised.value.ends
        assert (raised.value.size, head[:3], tail[-3:], len(head), len(tail)) == (200_004, b"aby", b"yyz", 2_000, 2_000)
        assert await made.read_line() == b"end"
        await made.write(b"\n")
        assert (await made.read_line(), made.over) == (b"", True)


async def test_closed_it_may_leave_by_itself_first(tmp_path: Path) -> None:
    code = "import sys; print('up', flush=True); sys.stdin.read(); print('left', file=sys.stderr); sys.exit(7)"
    async with child(code, tmp_path) as made:
        assert await made.read_line() == b"up"
        await made.close()
        assert (made.exit_code, made.errors) == (7, "left\n")
        with pytest.raises(BrokenPipeError):
            await made.write(b"more\n")


async def test_a_reader_that_waits_is_freed_by_close(tmp_path: Path) -> None:
    async with child("import sys; sys.stdin.read()", tmp_path) as made:
        reading = asyncio.create_task(made.read_line())
        await asyncio.sleep(0)
        await made.close()
        assert await reading == b""


async def test_its_output_may_end_before_it(tmp_path: Path) -> None:
    async with child("import os; print('a', flush=True); os.close(1); input()", tmp_path) as made:
        assert [await made.read_line(), await made.read_line()] == [b"a", b""]
        assert (made.over, made.exit_code) == (True, None)


async def test_a_part_of_a_line_is_told_after_a_while_and_can_be_taken(tmp_path: Path) -> None:
    parts = "for part in ('one', ' two\\n', 'three'):\n    print(part, end='', flush=True)\n    sys.stdin.readline()"
    code = f"import sys\n{parts}"
    async with child(code, tmp_path) as made:
        with pytest.raises(LineUnfinished, match="without its end") as raised:
            await made.read_line(0.05)
        assert raised.value.line == b"one"
        await made.write(b"\n")
        assert await made.read_line(5.0) == b"one two"
        await made.write(b"\n")
        with pytest.raises(LineUnfinished):
            await made.read_line(0.05)
        assert (made.take_line(), made.over) == (b"three", False)


async def test_a_line_without_an_end_is_given_up(tmp_path: Path) -> None:
    code = "import sys\nprint('short')\nwhile True:\n    sys.stdout.write('x' * 100_000)"
    made = await DuplexChild.start(Program((sys.executable, "-c", code), tmp_path, {"PATH": os.defpath}), None, 50_000)
    try:
        assert await made.read_line() == b"short"
        with pytest.raises(LineEndless) as raised:
            await made.read_line()
        assert raised.value.size > 20 * 50_000
    finally:
        await made.close()
