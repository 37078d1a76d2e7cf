"""Signals that ask ba to end, in real processes: in order, quietly, and with the exit code of the signal."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
PROGRAM = """
import asyncio, signal, sys, time
from ba_tui.processes.signals import interrupts, run_in_order

def ready(): print("ready", flush=True)

async def told():
    stopped = asyncio.Event()
    with interrupts(stopped.set):
        ready()
        await stopped.wait()
    await asyncio.to_thread(print, "in order")
    return 130

async def held():
    beside = asyncio.create_task(asyncio.sleep(60))
    try:
        ready()
        await beside
    finally:
        print("in order")

def plain():
    try:
        ready()
        time.sleep(60)
    finally:
        print("in order")

def done():
    # What comes after the work ends the process at once.
    return 0

if "deaf" in sys.argv:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
work = {"told": lambda: asyncio.run(told()), "held": lambda: asyncio.run(held()), "plain": plain, "done": done}
code = run_in_order(work[sys.argv[1]])
if sys.argv[1] == "done":
    ready()
    time.sleep(60)
sys.exit(code)
"""


def start(*args: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, *args]
    process = subprocess.Popen(command, cwd=CHECKOUT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("way", ["told", "held", "plain"])
def test_each_signal_ends_in_order_with_its_exit_code(way: str) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    running = {number: start(way) for number in numbers}
    for number, process in running.items():
        process.send_signal(number)
        assert process.communicate(timeout=20) == ("in order\n", "")
        assert process.returncode == 128 + number


@pytest.mark.parametrize("way", ["told", "held", "plain"])
def test_what_the_starter_switched_off_stays_off(way: str) -> None:
    process = start(way, "deaf")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=20) == ("in order\n", "")
    assert process.returncode == 128 + signal.SIGTERM


def test_when_the_work_is_done_a_signal_ends_at_once_without_a_word() -> None:
    process = start("done")
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=20) == ("", "")
    assert process.returncode == -signal.SIGINT
