"""A program in a terminal of 120 × 40: when something shows on it, how long a key takes, what the program costs.

What is read is kept as it came and parsed only when asked for, so that watching costs the watched program little.
"""

from __future__ import annotations

import fcntl
import os
import pty
import queue
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
import pyte

COLUMNS, ROWS = 120, 40


class Silent(Exception):
    """What was waited for did not show."""


class Terminal:
    """``started`` is the time just before the program was executed, ``at`` when the newest data came (monotonic)."""

    def __init__(self, command: Sequence[str | Path], cwd: Path, env: Mapping[str, str]) -> None:
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self._pending: list[bytes] = []
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        whole = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **env}
        for name in ("COLUMNS", "LINES", "NO_COLOR", "CI"):
            whole.pop(name, None)
        self.started = self.at = time.monotonic()
        self._process = subprocess.Popen(
            [str(word) for word in command],
            cwd=cwd,
            env=whole,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self._master = master
        self._arrived: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()
        self.process = psutil.Process(self._process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _listen(self) -> None:
        """Always read, else the program would wait for its terminal. No bytes means that it ended."""
        data = b"-"
        while data:
            try:
                data = os.read(self._master, 1 << 16)
            except OSError:
                data = b""
            self._arrived.put((time.monotonic(), data))

    def read(self, seconds: float) -> bytes:
        """What comes within ``seconds``, as soon as anything does."""
        try:
            self.at, data = self._arrived.get(timeout=max(0.0, seconds))
        except queue.Empty:
            return b""
        if not data:
            raise Silent(f"the program ended\n{self.text()}")
        self._pending.append(data)
        return data

    def drain(self, quiet: float = 0.2, longest: float = 5.0) -> None:
        """Read until nothing came for ``quiet`` seconds."""
        end = time.monotonic() + longest
        while self.read(quiet) and time.monotonic() < end:
            pass

    def watch(self, seconds: float) -> None:
        """Read whatever comes for ``seconds``."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.read(left)

    def text(self) -> str:
        """The screen as it stands."""
        for data in self._pending:
            self._stream.feed(data)
        self._pending.clear()
        return "\n".join(row.rstrip() for row in self._screen.display)

    def until(self, shows: Callable[[str], bool], longest: float = 20.0) -> float:
        """The time at which the data came that made the screen show it."""
        end = time.monotonic() + longest
        while time.monotonic() < end:
            if self.read(end - time.monotonic()) and shows(self.text()):
                return self.at
        raise Silent(f"did not show within {longest} s:\n{self.text()}")

    def painted(self, words: str, longest: float = 20.0) -> float:
        """The time at which ``words`` came in one piece. Cheaper than ``until``: nothing is parsed."""
        wanted, seen = words.encode(), b""
        end = time.monotonic() + longest
        while (left := end - time.monotonic()) > 0:
            seen = seen[-len(wanted) :] + self.read(left)
            if wanted in seen:
                return self.at
        raise Silent(f"{words} was not painted within {longest} s:\n{self.text()}")

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def echo(self, key: str, longest: float = 5.0) -> float:
        """Seconds from pressing ``key`` (a character that is nowhere else on the screen) until it is painted."""
        pressed = time.monotonic()
        self.type(key)
        return self.painted(key, longest) - pressed

    def cpu(self) -> float:
        """CPU seconds of the program and its children so far."""
        total = 0.0
        for process in [self.process, *self.process.children(recursive=True)]:
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += times.user + times.system
        return total

    def memory(self) -> float:
        """Resident megabytes of the program and its children."""
        processes = [self.process, *self.process.children(recursive=True)]
        return sum(process.memory_info().rss for process in processes) / 1e6

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)
