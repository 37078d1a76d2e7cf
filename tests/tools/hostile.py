"""A tool file that behaves as badly as a program can, one way a name."""

from __future__ import annotations

import re

HOSTILE = '''
import asyncio, os, signal, subprocess, sys, threading, time
from ba_tui import tool

class Odd(Exception):
    def __str__(self):
        raise ValueError("no words")

class Unseen:
    def __repr__(self):
        raise RuntimeError("no look")

def deep():
    value = []
    for _ in range(100_000):
        value = [value]
    return value

def loop():
    value = []
    value.append(value)
    return value

def recurse():
    return recurse()

def flood():
    for _ in range(200):
        os.write(1, b"x" * 65_536)
    return "flooded"

def leave_child():
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    return "left"

def forget_thread():
    threading.Thread(target=time.sleep, args=(600,)).start()
    return "threaded"

def talk_over_the_channel():
    for number in range(3, 20):
        try:
            os.write(number, b'{"id": 1, "text": 7}\\n[]\\n{"id": []}\\nnonsense\\n\\xff\\n')
        except OSError:
            pass
    return "talked"

def fork_and_return():
    return f"child {os.fork() == 0}"

def fork_and_stay():
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    return "parent"

def deaf():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)

def throw(error):
    raise error

def lying():
    from ba_tui.core.results import ToolResult
    return ToolResult(12, display="no display", attachments=("x",), meta={"a": object()})

DOES = {
    "raise": lambda: throw(ValueError("plain")),
    "odd": lambda: throw(Odd()),
    "exit": lambda: sys.exit("bye"),
    "interrupt": lambda: throw(KeyboardInterrupt()),
    "cancelled": lambda: throw(asyncio.CancelledError()),
    "group": lambda: throw(BaseExceptionGroup("many", [ValueError("a"), SystemExit(1)])),
    "memory": lambda: throw(MemoryError()),
    "recursion": recurse,
    "_exit": lambda: os._exit(3),
    "segfault": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "kill_parent": lambda: os.kill(os.getppid(), signal.SIGKILL) or time.sleep(600),
    "object": lambda: object(),
    "unseen": lambda: Unseen(),
    "deep": deep,
    "loop": loop,
    "nan": lambda: {"x": float("nan"), "y": float("inf")},
    "bytes": lambda: b"\\xff\\x00",
    "surrogate": lambda: "\\ud800 and \\x00",
    "escapes": lambda: "\\x1b]0;title\\x07\\x1b[2J\\x9b31mred",
    "lying": lying,
    "large": lambda: "x" * 25_000_000,
    "generator": lambda: (n for n in range(3)),
    "coroutine": lambda: asyncio.sleep(0, "awaited"),
    "print": lambda: print("\\x1b[31mred\\x1b]0;title\\x07", flush=True),
    "flood": flood,
    "close": lambda: [os.close(1), os.close(2)] and "closed",
    "close_all": lambda: os.closerange(3, 200),
    "stdin": lambda: sys.stdin.read(),
    "child": leave_child,
    "thread": forget_thread,
    "channel": talk_over_the_channel,
    "fork": fork_and_return,
    "fork_and_stay": fork_and_stay,
    "signals": lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN) and "deaf",
}

@tool(timeout=20, repeatable=True)
def behave(how: str, again: int = 0) -> object:
    """Behave badly."""
    return DOES[how]()

@tool(timeout=20, repeatable=True)
async def behave_async(how: str, again: int = 0) -> object:
    """Behave badly, in a coroutine."""
    await asyncio.sleep(0)
    return DOES[how]()

@tool(timeout=1.2, repeatable=True)
def hang(deaf_too: bool = False) -> str:
    """Hang."""
    print("so far", flush=True)
    if deaf_too:
        deaf()
    while True:
        time.sleep(1)

@tool(repeatable=True)
class State:
    """Count calls."""
    def __init__(self):
        self.calls = 0
    def run(self) -> dict:
        self.calls += 1
        return {"calls": self.calls}
'''
WAYS = re.findall(r'^    "(\w+)":', HOSTILE, re.MULTILINE)
