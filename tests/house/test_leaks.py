"""The check for leaks finds each kind of leak, and nothing in a test that closes what it opened."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.conftest import CHECKOUT
from tests.noticing import leaks

CONFTEST = """
from tests.noticing import leaks

leaks.GRACE = leaks.TURNS = 0.05

def pytest_configure(config):
    config.pluginmanager.register(leaks, "leaks")
"""
TESTS = """
import asyncio, fcntl, os, subprocess, sys, tempfile, threading
import pytest

KEPT = []
HELD = [tempfile.TemporaryFile() for _ in range(3)]
for file in HELD:
    fcntl.flock(file, fcntl.LOCK_EX)

@pytest.mark.parametrize("place", [0, -1])
def test_one_of_several_locks_given_back(place):
    HELD.pop(place).close()

def test_descriptor():
    os.open("/dev/null", os.O_RDONLY)

def test_lock(tmp_path):
    KEPT.append(open(tmp_path / "lock", "w"))
    fcntl.flock(KEPT[-1], fcntl.LOCK_EX)

def test_lock_on_a_known_descriptor():
    fcntl.flock(KEPT[-1], fcntl.LOCK_UN)
    fcntl.flock(0, fcntl.LOCK_SH)

def test_thread():
    threading.Thread(target=threading.Event().wait, daemon=True).start()

def test_process():
    KEPT.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))

def test_dead_process():
    KEPT.append(subprocess.Popen(["true"]))

async def test_task():
    KEPT.append(asyncio.ensure_future(asyncio.Event().wait()))

async def test_timer():
    asyncio.get_running_loop().call_later(3600, print)

@pytest.fixture(scope="module")
def shared():
    os.open("/dev/null", os.O_RDONLY)

def test_shared(shared):
    pass

async def test_clean(tmp_path):
    with open(tmp_path / "file", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
    thread = threading.Thread(target=print)
    thread.start()
    thread.join()
    subprocess.run(["true"], check=True)
    task = asyncio.ensure_future(asyncio.sleep(0))
    asyncio.get_running_loop().call_later(3600, print).cancel()
    await task
"""


def test_what_only_changes_is_no_leak() -> None:
    """A server that tests share is asleep at one look and works at the next; -x ends the capture before the module."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as shared:
        before = leaks.everything()
        output = os.dup(1)
        with open(os.devnull, "w") as null:
            os.dup2(null.fileno(), 1)
        os.kill(shared.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, shared.pid, os.WSTOPPED)
        found = leaks.new(before)
        os.dup2(output, 1)
        os.close(output)
        shared.kill()
    assert list(found) == [f"descriptor {output}"]


def test_each_kind_of_leak_fails_the_test_that_leaks(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "input").touch()
    with (tmp_path / "input").open() as given:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", "test_it.py"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            stdin=given,
            capture_output=True,
            text=True,
        )
    failed = re.findall(r"^ERROR test_it.py::(\w+)", done.stdout, re.MULTILINE)
    kinds = ["descriptor", "lock", "lock_on_a_known_descriptor", "thread", "process", "dead_process", "task", "timer"]
    # The descriptor of the shared fixture is reported with the last test of its module.
    assert failed == [*(f"test_{kind}" for kind in kinds), "test_clean"], done.stdout
    assert "12 passed" in done.stdout
    for said in ("/dev/null", "FLOCK lock", "thread", "input()", "ended", "Event.wait", "TimerHandle"):
        assert said in done.stdout, said
