"""A program that talks by lines: what waits beside others, what is let go of, and what its end leaves alone."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from ba_tui.processes import duplex
from ba_tui.processes.duplex import DuplexChild, LineTooLong, LineUnfinished
from ba_tui.processes.values import Program
from tests.processes.test_duplex import DEAF, LONG, UPPER, child, held
from tests.processes.test_worker import gone


def program(code: str, folder: Path, egress: Egress | None = None) -> Program:
    return Program((sys.executable, "-c", code), folder, {"PATH": os.defpath}, egress=egress)


class Egress:
    """A way out that only notes whether it is closed."""

    waited = 0.0

    def __init__(self) -> None:
        self.closed = False

    def offer(self) -> tuple[tuple[int, ...], str]:
        return (), ""

    def begin(self) -> None:
        """There is no listener to let go of."""

    def close(self) -> None:
        self.closed = True


async def turns(count: int = 5) -> None:
    """Let all that can go on do so."""
    for _ in range(count):
        await asyncio.sleep(0)


def reused(number: int) -> tuple[list[int], int]:
    """Open pipes until the file descriptor ``number`` is taken again: all that were opened, and its other end."""
    opened: list[int] = []
    while number not in opened:
        opened += os.pipe()
    return opened, opened[opened.index(number) ^ 1]


async def test_with_nothing_received_a_reader_waits_as_long_as_it_takes(tmp_path: Path) -> None:
    async with child(UPPER, tmp_path) as made:
        reading = asyncio.create_task(made.read_line(0))
        await turns()
        assert not reading.done()
        await made.write(b"late\n")
        assert await reading == b"LATE"


async def test_a_line_that_is_passed_over_may_take_its_time(tmp_path: Path) -> None:
    code = "print('x' * 5_000, end='', flush=True)\ninput()\nprint('\\nend', flush=True)\ninput()"
    async with child(code, tmp_path, longest=1_000) as made:
        reading = asyncio.create_task(made.read_line(0))
        await made.wait(0.3)
        assert not reading.done()
        await made.write(b"\n")
        with pytest.raises(LineTooLong) as raised:
            await reading
        assert raised.value.size == 5_000
        assert raised.value.ends == (b"x" * 2_000, b"x" * 2_000)
        assert await made.read_line() == b"end"


@pytest.mark.parametrize(("size", "fits"), [(1_000, True), (1_001, False)])
async def test_the_limit_is_of_one_line(tmp_path: Path, size: int, fits: bool) -> None:
    code = f"print('x' * {size} + '\\n' + 'y' * {size} + '\\nend')"
    async with child(code, tmp_path, longest=1_000) as made:
        for letter in (b"x", b"y"):
            if fits:
                assert await made.read_line() == letter * size
            else:
                with pytest.raises(LineTooLong) as raised:
                    await made.read_line()
                assert (raised.value.size, raised.value.ends[0]) == (size, letter * size)
        assert not made.over
        assert [await made.read_line(), await made.read_line()] == [b"end", b""]
        assert made.over


async def test_a_reader_that_was_cancelled_leaves_the_line_to_the_next(tmp_path: Path) -> None:
    async with child("print('one', end='', flush=True)\ninput()\nprint(' two')\ninput()", tmp_path) as made:
        with pytest.raises(LineUnfinished):
            await made.read_line(0.05)
        reading = asyncio.create_task(made.read_line())
        await turns()
        reading.cancel()
        await asyncio.wait([reading])
        assert not asyncio.get_running_loop().remove_reader(made._output), "nobody waits to read"
        await made.write(b"\n")
        assert await made.read_line() == b"one two"
        assert not asyncio.get_running_loop().remove_reader(made._output)


async def test_two_writers_do_not_mix_their_lines(tmp_path: Path) -> None:
    code = "import sys\nfor line in sys.stdin:\n    print(len(line), len(set(line.strip())), flush=True)"
    async with child(code, tmp_path) as made:
        writing = asyncio.gather(*[made.write(letter * LONG + b"\n") for letter in (b"a", b"b")])
        assert [await made.read_line() for _ in range(2)] == [b"%d 1" % (LONG + 1)] * 2
        await writing


async def test_to_a_program_that_reads_no_more_nothing_is_written(tmp_path: Path) -> None:
    async with child("import os, time\nos.close(0)\nprint('shut', flush=True)\ntime.sleep(600)", tmp_path) as made:
        assert await made.read_line() == b"shut"
        with pytest.raises(BrokenPipeError):
            await made.write(b"x" * LONG)
        assert made.exit_code is None


async def test_after_its_end_nothing_can_be_written_and_waiting_is_over(tmp_path: Path) -> None:
    async with child("print('bye')", tmp_path) as made:
        await made.wait(20.0)
        assert made.exit_code == 0
        with pytest.raises(BrokenPipeError, match="the program has ended"):
            await made.write(b"x")
        assert not made.over, "what it printed was not read"
        assert [await made.read_line(), await made.read_line()] == [b"bye", b""]
        assert made.over


async def test_a_blank_line_is_not_the_end_while_more_can_be_read(tmp_path: Path) -> None:
    async with child("print(flush=True)\ninput()\nprint('reply')", tmp_path) as made:
        await made.write(b"\n")
        assert await made.read_line() == b""
        await made.wait(20.0)
        assert not made.over, "the program has ended, and its reply was not read"
        assert await made.read_line() == b"reply"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the pipes of a process can't be opened")
async def test_it_ends_although_another_process_keeps_its_pipes_open(tmp_path: Path) -> None:
    async with child("import os\nprint(os.getpid(), flush=True)\ninput()\nprint('bye')", tmp_path) as made:
        pid = int(await made.read_line())
        kept = [os.open(f"/proc/{pid}/fd/{number}", os.O_WRONLY) for number in (1, 2)]
        try:
            await made.write(b"\n")
            assert [await made.read_line(), await made.read_line()] == [b"bye", b""]
            assert (made.exit_code, made.over) == (0, True)
        finally:
            for number in kept:
                os.close(number)


async def test_closed_with_output_unread_it_is_over(tmp_path: Path) -> None:
    made = await DuplexChild.start(program("print('bye')", tmp_path))
    await made.close()
    assert made.over
    assert await made.read_line() == b""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a pipe holds less")
async def test_others_have_their_turn_while_a_flood_is_read(tmp_path: Path) -> None:
    size = 1 << 20
    others = 0

    async def other() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    async with child(f"input()\nprint('x' * {size - 1})", tmp_path) as made:
        fcntl.fcntl(made._output, fcntl.F_SETPIPE_SZ, size)
        await made.write(b"\n")
        await made.wait(20.0)
        task = asyncio.create_task(other())
        assert len(await made.read_line()) == size - 1
        task.cancel()
    assert others == 1, "1 MB is 16 pieces"


async def test_waiting_for_one_that_runs_ends_in_time(tmp_path: Path) -> None:
    async with child(DEAF, tmp_path) as made:
        await made.wait(0)
        assert made.exit_code is None
        assert not made.over
        assert await made.read_line() == b"up"
        assert not made.over


async def test_its_end_closes_its_way_out_and_watches_nothing_more(tmp_path: Path) -> None:
    way_out = Egress()
    loop = asyncio.get_running_loop()
    made = await DuplexChild.start(program("import os\nos.close(2)\ninput()", tmp_path, way_out))
    try:
        async with asyncio.timeout(20):
            while made._errors in watched(loop):
                await made.wait(0.01)
        assert made._supervised.states in watched(loop)
        assert not way_out.closed
        await made.write(b"\n")
        await made.wait(20.0)
        assert way_out.closed
        assert made._supervised.states not in watched(loop)
    finally:
        await made.close()


def watched(loop: asyncio.AbstractEventLoop) -> set[int]:
    """The file descriptors that ``loop`` listens to."""
    return set(loop._selector.get_map())  # type: ignore[attr-defined]


@pytest.mark.parametrize("code", [DEAF, "input()"])
async def test_closed_twice_at_once_both_wait_for_its_end(tmp_path: Path, code: str) -> None:
    before, listening = held(), watched(asyncio.get_running_loop())
    made = await DuplexChild.start(program(code, tmp_path))
    await asyncio.gather(made.close(), made.close())
    assert made.exit_code is not None
    assert (held(), watched(asyncio.get_running_loop())) == (before, listening)
    await made.close()


async def test_a_close_that_was_cancelled_can_be_done_again(tmp_path: Path) -> None:
    before = held()
    made = await DuplexChild.start(program(DEAF, tmp_path))
    assert await made.read_line() == b"up"
    closing = asyncio.create_task(made.close())
    await turns()
    closing.cancel()
    await asyncio.wait([closing])
    assert made.exit_code is None
    await made.close()
    assert (made.exit_code is not None, held()) == (True, before)


async def test_a_supervisor_that_hangs_holds_up_no_close(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplex, "LEAVE_SECONDS", 0.01)
    monkeypatch.setattr(duplex, "CLOSE_SECONDS", 0.01)
    before, listening = held(), watched(asyncio.get_running_loop())
    way_out = Egress()
    made = await DuplexChild.start(program(DEAF, tmp_path, way_out))
    assert await made.read_line() == b"up"
    reading, supervisor = asyncio.create_task(made.read_line()), made._supervised.supervisor
    os.kill(supervisor, signal.SIGSTOP)
    try:
        await made.close()
        assert await reading == b""
        assert (held(), watched(asyncio.get_running_loop())) == (before, listening)
        assert (made.exit_code, made.over, way_out.closed) == (None, True, True)
    finally:
        os.kill(supervisor, signal.SIGCONT)
    assert await gone(supervisor)


async def test_its_end_leaves_alone_who_got_its_numbers(tmp_path: Path) -> None:
    """A reader and a writer that it freed go on only after others may have opened files."""
    loop = asyncio.get_running_loop()
    made = await DuplexChild.start(program(DEAF, tmp_path))
    assert await made.read_line() == b"up"
    reading = asyncio.create_task(made.read_line())
    writing = asyncio.create_task(made.write(b"x" * LONG))
    await turns()
    output, to = made._output, made._input
    await made.close()
    opened, other = reused(output)
    try:
        loop.add_reader(output, reading.cancel)
        loop.add_writer(other, opened.clear)
        loop.remove_writer(other)
        assert await reading == b""
        with suppress(BrokenPipeError):
            await writing
        assert loop.remove_reader(output), "another's reader stays"
        assert to not in watched(loop)
    finally:
        for number in opened:
            os.close(number)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the open files of a process are not listed")
async def test_the_input_that_was_closed_reaches_no_other_program(tmp_path: Path) -> None:
    async with child(DEAF, tmp_path) as made:
        assert await made.read_line() == b"up"
        writing = asyncio.create_task(made.write(b"x" * LONG))
        await turns()
        assert made._input in watched(asyncio.get_running_loop())
        closing = asyncio.create_task(made.close())
        await turns()
        assert made._input not in watched(asyncio.get_running_loop())
        assert not os.get_inheritable(made._input)
        assert Path(f"/proc/self/fd/{made._input}").readlink() == Path(os.devnull)
        await closing
        with pytest.raises(BrokenPipeError):
            await writing


def test_one_that_is_forgotten_ends(tmp_path: Path) -> None:
    code = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)"

    async def pid() -> int:
        return int(await (await DuplexChild.start(program(code, tmp_path))).read_line())

    forgotten = asyncio.run(pid())
    gc.collect()
    assert asyncio.run(gone(forgotten))


async def test_one_that_runs_holds_up_no_exit(tmp_path: Path) -> None:
    async with child(DEAF, tmp_path):
        reapers = [thread for thread in threading.enumerate() if thread.name == "reap"]
        assert reapers
        assert all(thread.daemon for thread in reapers)
