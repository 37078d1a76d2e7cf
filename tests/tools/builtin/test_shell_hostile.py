"""Commands that misbehave: every call ends with one result, and no process of theirs is left."""

from __future__ import annotations

import asyncio
import os
import select
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ba_tui.core.results import ToolResult
from tests.tools.running.processes import Floor, all_gone, floor

__all__ = ["floor"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends what detached itself")

DAEMON = (
    "import os, sys; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); import time; time.sleep(60)"
)

# Never the same process for long, so that no single look at all processes finds it for certain.
HOPPING = """
import os, signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
until = time.monotonic() + 0.4
while time.monotonic() < until:
    os.fork() and os._exit(0)
time.sleep(60)
"""

# Its first thread ends, another goes on: to the system this looks like a process that has ended.
HEADLESS = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""
OPEN = 'import os; print([number for number in range(100) if os.path.exists(f"/proc/self/fd/{number}")])'
UNTIL_HEADLESS = "until grep -q '^State:.Z' /proc/$!/status; do :; done"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("exit 255", "[exit code 255]"),
        ("exit 256", "(no output)"),
        ("kill -TERM $$", "[exit code 143]"),
        ("kill -9 $$", "[exit code 137]"),
        ("kill -SEGV $$", "[exit code 139]"),
        ("exec /nowhere/at/all", "No such file"),
        ("exec >&- 2>&-; echo lost", "[exit code 1]"),
        ("exec >&- 2>&-; sleep 0.05; exit 4", "[exit code 4]"),
        ("exec 98>&-; cd /; echo fine", "fine"),
        ("trap 'exit 9' EXIT; echo own trap", "own trap\n[exit code 9]"),
        ("(sleep 60 >&- 2>&- &) ; echo done", "left in the background: ended"),
        (f"{sys.executable} -c '{DAEMON}'; echo done", "left in the background: ended"),
        (f"{sys.executable} -c '{HEADLESS}' & {UNTIL_HEADLESS}; echo done", "1 process left in the background: ended"),
        ("head -c 3000 /dev/urandom", ""),
        ("printf '\\0\\0\\1\\2\\33[2J\\33]0;x\\7'", ""),
        ('cat; read -r x; echo "[$x]"; wc -c < /dev/stdin', "[]\n0"),
        ("mkdir gone && cd gone && rmdir ../gone && pwd; ls", ""),
        ("mkdir locked && cd locked && chmod 0 . && ls; true", ""),
        ("ulimit -n 3; cat x; echo on", "on"),
        (f"{sys.executable} -c '{OPEN}'", "[0, 1, 2, 98]"),
        ("grep SigIgn /proc/self/status", "SigIgn:\t0000000000000000"),
        ("set -u; echo $nothing", "unbound"),
        ("(sleep 0.1; kill -CONT $$) & kill -STOP $$; echo woken", "woken"),
    ],
)
async def test_every_command_ends_with_a_result(floor: Floor, command: str, expected: str) -> None:
    result = await floor.harness.run("shell", command=command)
    assert not result.is_error, result.text
    assert expected in result.text
    assert "\x1b" not in result.text
    await all_gone(floor.tag)
    # What was locked is opened, so that the next run of the tests can remove it.
    again = f"cd; chmod -f 700 {floor.harness.root}/locked; echo fine"
    assert (await floor.harness.run("shell", command=again)).text.startswith("fine")


async def test_what_no_single_look_finds_is_ended_too(floor: Floor) -> None:
    os.mkfifo(floor.harness.root / "held")
    held = os.open(floor.harness.root / "held", os.O_RDONLY | os.O_NONBLOCK)
    try:
        result = await floor.harness.run("shell", command=f"exec 9> held; {sys.executable} -ISc '{HOPPING}'; echo done")
        assert "left in the background: ended" in result.text
        poll = select.poll()
        poll.register(held, 0)
        assert await asyncio.to_thread(poll.poll, 20_000), "a process still holds the pipe"
    finally:
        os.close(held)


async def test_the_root_itself_is_gone(floor: Floor) -> None:
    floor.harness.root.rmdir()
    result = await floor.harness.run("shell", command="echo fine")
    assert "could not be started" in result.text
    assert result.text.endswith("[exit code 126]")


async def test_a_folder_without_rights(floor: Floor) -> None:
    await floor.harness.run("shell", command="mkdir sub && cd sub && chmod 500 .")
    result = await floor.harness.run("shell", command="touch x; pwd")
    assert str(floor.harness.root / "sub") in result.text
    if os.getuid():
        assert "ermission denied" in result.text


async def test_a_million_lines(floor: Floor) -> None:
    result = await floor.harness.run("shell", command="seq 1000000")
    assert floor.stored(result.artifact).count(b"\n") == 1_000_000
    assert result.text.startswith("1\n2\n")
    assert "\n1000000\n[" in result.text


@pytest.mark.parametrize(
    "command",
    [
        "for i in $(seq 60); do setsid sleep 60 & done; wait",
        "f() { [ $1 -gt 5 ] && exec sleep 60; (f $(($1+1))) & setsid bash -c 'sleep 60' & wait; }; f 0",
    ],
)
async def test_many_forks_are_ended_with_the_time(floor: Floor, command: str) -> None:
    result = await floor.harness.run("shell", command=command, timeout=0.5)
    assert result.error is not None
    assert result.error.kind == "timeout"
    await all_gone(floor.tag)


@given(
    st.lists(
        st.sampled_from(
            [
                "echo out", "echo err >&2", "sleep 60 &", "setsid sleep 60 &", "exec 2>&1", "exec >&-", "false", "cd /",
                "trap '' INT TERM HUP", "kill -INT $$", "kill -HUP $$", "printf '\\xff\\x1b['", "(exit 3)", "set -e",
                "seq 3000", "disown -a", "exec 98>&-", "cd nowhere", "unset PATH", "{ sleep 60; } | cat &",
            ]
        ),
        max_size=6,
    )
)  # fmt: skip
@settings(max_examples=8, deadline=None)
async def test_any_mix_of_misbehaviour(floor: Floor, lines: list[str]) -> None:
    result = await floor.harness.run("shell", command="\n".join([*lines, "true"]), timeout=20)
    assert isinstance(result, ToolResult)
    assert result.text
    assert result.error is None or result.error.kind == "execution_error"
    await all_gone(floor.tag)
