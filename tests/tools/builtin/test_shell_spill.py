"""Large output: the whole in a file, head and tail in memory, and an event loop that goes on turning."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import textwrap
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.core.errors import StorageError
from ba_tui.core.ports.tools import OutputSpill
from ba_tui.core.results import Artifact, CommandText, Kind
from ba_tui.core.tool import Call, Tool
from ba_tui.processes.children import Output
from ba_tui.processes.terminal_text import Capture
from ba_tui.tools.builtin.shell import shell_tool
from ba_tui.tools.shells import Shell, Shells
from tests.tools.conftest import CHECKOUT
from tests.tools.running.processes import Floor, floor, printed, until_printed, within_guards

__all__ = ["floor"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs bash")


async def test_large_output_is_stored_whole(floor: Floor) -> None:
    result = await floor.harness.run("shell", command=r"printf '\033[31m'; seq 100000; printf '\xff\x00end'; exit 2")
    whole = b"\x1b[31m" + b"".join(b"%d\n" % number for number in range(1, 100_001)) + b"\xff\x00end"
    assert floor.stored(result.artifact) == whole
    assert result.text.startswith("1\n2\n3\n")
    assert result.text.endswith(f"end\n[exit code 2; all {len(whole):,} bytes: read_artifact {result.artifact}]")
    assert len(result.text) < 30_000
    assert isinstance(result.display, CommandText)
    assert result.display.output.startswith("\x1b[31m1\n")


@pytest.mark.parametrize(("size", "stored"), [(Capture.HEAD, False), (Capture.HEAD + 1, True)])
async def test_only_large_output_is_stored(floor: Floor, size: int, stored: bool) -> None:
    result = await floor.harness.run("shell", command=f"head -c {size} /dev/zero | tr '\\0' y")
    assert (result.artifact is not None) is stored
    if stored:
        assert floor.stored(result.artifact) == b"y" * size
    else:
        assert floor.files == []


async def test_what_a_timeout_ended_is_kept(floor: Floor) -> None:
    result = await floor.harness.run("shell", command="seq 30000; exec sleep 60", timeout=2)
    assert result.error is not None
    assert result.error.kind == "timeout"
    assert floor.stored(result.artifact).endswith(b"29999\n30000\n")
    assert str(result.artifact) in result.text


def shell_with(floor: Floor, spill: OutputSpill) -> Tool:
    """The shell, its large output going to ``spill``."""
    harness = floor.harness
    shell = Shell(harness.bash, {**harness.environment, "BA_TAG": floor.tag})
    return within_guards(
        shell_tool(harness.definitions["shell"], harness.workspace, shell, Shells(lambda call_id: spill))
    )


class Given:
    largest, left_out = 64_000_000, 0

    """Says when it is given up."""

    def __init__(self) -> None:
        self.dropped = threading.Event()

    def write(self, data: bytes) -> None:
        assert not self.dropped.is_set()

    def finish(self, kind: Kind) -> Artifact:
        pytest.fail("kept although nobody will read it")

    def drop(self) -> None:
        self.dropped.set()


async def test_what_was_cancelled_is_not_kept(floor: Floor) -> None:
    given = Given()
    call = Call("call", floor.harness.branch)
    running = asyncio.ensure_future(
        shell_with(floor, given).run({"command": "seq 40000; echo ready; exec sleep 60"}, call)
    )
    await until_printed(floor.harness, "ready")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await asyncio.to_thread(given.dropped.wait, 10)


class FullDisk:
    largest, left_out = 64_000_000, 0

    """A file that takes ``room`` bytes, then refuses; or refuses to be finished."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.dropped = False

    def write(self, data: bytes) -> None:
        self.room -= len(data)
        if self.room < 0:
            raise StorageError("No space left on device.")

    def finish(self, kind: Kind) -> Artifact:
        raise OSError(28, "No space left on device")

    def drop(self) -> None:
        self.dropped = True


@pytest.mark.parametrize("room", [0, 300_000, 10_000_000])
async def test_a_full_disk_costs_the_file_only(floor: Floor, room: int) -> None:
    disk = FullDisk(room)
    result = await shell_with(floor, disk).run({"command": "seq 100000"}, Call("call", floor.harness.branch))
    assert result.artifact is None
    assert "could not be stored" in result.text
    assert "No space left" in result.text
    assert result.text.startswith("1\n2\n")
    assert "\n100000\n" in result.text
    assert disk.dropped


class Kept:
    largest, left_out = 64_000_000, 0

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data

    def finish(self, kind: Kind) -> Artifact:
        return Artifact("data/x", 1, 1)

    def drop(self) -> None:
        pytest.fail("given up without a reason")


@given(st.lists(st.integers(1, 70_000), max_size=25), st.data())
def test_nothing_of_an_output_is_lost_or_doubled(sizes: list[int], data: st.DataObject) -> None:
    kept = Kept()
    output, whole, seen = Output(lambda: kept), b"", 0
    for number, size in enumerate(sizes):
        piece = bytes([number]) * size
        whole += piece
        output.feed(piece)
        if data.draw(st.booleans()):
            gone, new = output.after(seen)
            assert new == whole[seen + gone :]
            assert gone == 0 or len(new) >= Capture.TAIL
            seen += gone + len(new)
            assert seen == output.total == len(whole)
    output.close(keep=True)
    if len(whole) > Capture.HEAD:
        assert kept.data == whole
        assert output.ref == "data/x"
    else:
        assert kept.data == b""
        assert output.ref is None
    start = data.draw(st.integers(0, len(whole)))
    gone, rest = output.after(start)
    assert rest == whole[start + gone :]


FLOOD = """
import asyncio, json, os, shutil, sys, threading
from pathlib import Path

import psutil

from ba_tui.core.tool import Call
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.permissions.paths import Workspace
from ba_tui.sessions.artifacts import Artifacts
from ba_tui.tools.shells import Shells
from ba_tui.tools.definitions import load_definitions
from ba_tui.tools.builtin.shell import Shell, shell_tool

async def main():
    root, definitions = Path.cwd(), load_definitions(Path(sys.argv[1]))
    results = Artifacts(root / "data", 1_000_000_000)
    shells = Shells(results.open)
    tool = shell_tool(definitions["shell"], Workspace(root), Shell(shutil.which("bash"), os.environ), shells)
    call = Call("call", Branch(Turn(), Transcript()))
    await tool.run({"command": "seq 20000"}, call)
    me, peak, turns, over = psutil.Process(), 0, 0, threading.Event()
    base = me.memory_info().rss

    def watch():
        nonlocal peak
        while not over.wait(0.005):
            peak = max(peak, me.memory_info().rss)

    async def beat():
        nonlocal turns
        while True:
            await asyncio.sleep(0.002)
            turns += 1

    watcher = threading.Thread(target=watch)
    watcher.start()
    beating = asyncio.create_task(beat())
    result = await tool.run({"command": f"yes 0123456789abcdef | head -c {sys.argv[2]}"}, call)
    beating.cancel()
    over.set()
    watcher.join()
    print(json.dumps({"extra": peak - base, "turns": turns, "ref": result.artifact, "text": len(result.text)}))

asyncio.run(main())
"""


@pytest.mark.timeout(120)
async def test_two_hundred_megabytes_need_no_memory_and_the_loop_goes_on(floor: Floor) -> None:
    size = 200_000_000
    script = floor.harness.write("flood.py", textwrap.dedent(FLOOD))
    command = [sys.executable, str(script), str(CHECKOUT / "config" / "prompts" / "tools"), str(size)]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    done = await asyncio.to_thread(
        subprocess.run, command, cwd=floor.harness.root, env=environment, capture_output=True, check=True, timeout=100
    )
    found = json.loads(done.stdout)
    assert found["extra"] < 50_000_000
    assert found["turns"] >= 20
    assert found["text"] < 30_000
    stored = floor.harness.root / str(found["ref"])
    assert stored.stat().st_size == size
    stored.unlink()


async def test_an_output_without_end_is_stored_by_head_and_tail_and_told_while_it_runs(floor: Floor) -> None:
    floor.artifacts.largest = 2_000_000
    result = await floor.harness.run("shell", command="yes | head -c 20000000; echo done")
    assert 2_000_000 <= len(floor.stored(result.artifact)) < 2_000_100
    said = "more than 2.0 MB: only head and tail are stored"
    assert f"{said} of 20,000,005 bytes: read_artifact" in result.text
    assert said in result.summary
    assert said in printed(floor.harness)
