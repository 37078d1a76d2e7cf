"""Memory that processes share counts into the limit; that of files does not."""

from __future__ import annotations

import select
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ba_tui.processes.children import MemoryWatch
from ba_tui.processes.values import ProcessLimits
from ba_tui.tools.builtin.shell import Python, shell_tool
from ba_tui.tools.shells import Shell
from tests.tools.running.processes import Floor, floor, within_guards

__all__ = ["floor"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
SMALL = ProcessLimits(memory=100_000_000)
SIZE = 200_000_000
GREEDY = f"""
import mmap
shared = mmap.mmap(-1, {SIZE})
print("begun", flush=True)
for at in range(0, {SIZE}, 4096):
    shared[at] = 1
print("filled", flush=True)
import signal
signal.pause()
"""
MODEST = """
import mmap
with open("large", "wb") as file:
    file.truncate(200_000_000)
with open("large", "rb") as file:
    mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
seen = sum(mapped[at] for at in range(0, len(mapped), 4096))
print("seen", seen, flush=True)
input()
"""


@pytest.fixture
def small(floor: Floor) -> Floor:
    harness = floor.harness
    shell = Shell(harness.bash, {**harness.environment, "BA_TAG": floor.tag}, limits=SMALL)
    tool = shell_tool(harness.definitions["shell"], harness.workspace, shell, floor.shells)
    floor.python = Python(limits=SMALL)
    floor.equip()
    harness.tools = {**harness.tools, "shell": within_guards(tool)}
    return floor


async def test_a_process_that_shares_more_than_it_may_is_ended_and_the_command_goes_on(small: Floor) -> None:
    python = shlex.join([sys.executable, "-c", GREEDY])
    result = await small.harness.run("shell", command=f"{python} & wait $!; echo code $?")
    assert "begun" in result.text
    assert "code 137" in result.text
    assert "a process was ended: more than 100.0 MB of memory (commands: memory_gb)" in result.text


async def test_code_in_python_that_shares_too_much_is_ended(small: Floor) -> None:
    result = await small.harness.run("python", code=GREEDY)
    assert "more than 100.0 MB of memory" in result.text


def test_files_that_are_mapped_do_not_count(tmp_path: Path) -> None:
    words = ("sh", "-c", f"{shlex.join([sys.executable, '-c', MODEST])}; true")
    with subprocess.Popen(words, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdin
        assert shell.stdout
        assert shell.stdout.readline() == "seen 0\n"
        watch = MemoryWatch(SMALL.memory)
        while watch.pause:
            select.select([], [], [], watch.pause / 1_000)
        watch.look(shell.pid)
        shell.stdin.write("\n")
    assert watch.ended == 0
