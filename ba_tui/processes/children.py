"""Run a command to its end: a thread reads its output, bounded, shows it live, and stores large output in a file.

Callers decide what the command is and what the model reads; ``supervised.py`` ends its processes, and
``sessions/artifacts.py`` implements the file.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from ba_tui.core.errors import StorageError
from ba_tui.core.messages import clean_text
from ba_tui.core.ports.tools import OutputSpill
from ba_tui.core.text.wording import byte_size
from ba_tui.processes.supervised import CHUNK_BYTES, Descriptors, SupervisedProgram
from ba_tui.processes.terminal_text import Capture, coloured, open_sequence
from ba_tui.processes.values import Program

NewSpill = Callable[[], OutputSpill]


class Output:
    """Output of a program: head and tail in memory, and all of it in a file once it is large. Thread-safe."""

    def __init__(self, new_spill: NewSpill | None = None) -> None:
        self.ref: str | None = None
        self.trouble = ""
        """Why large output is not stored."""
        self._new_spill = new_spill
        self._spill: OutputSpill | None = None
        self._capture = Capture()
        self._lock = threading.Lock()

    @property
    def total(self) -> int:
        return self._capture.total

    @property
    def lines(self) -> int:
        return self._capture.lines

    def feed(self, data: bytes) -> None:
        with self._lock:
            self._capture.feed(data)
        if self._new_spill is None or self._capture.total <= Capture.HEAD:
            return
        try:
            if self._spill is None:
                self._spill = self._new_spill()
                data = self._capture.after(0)[1]
            self._spill.write(data)
            if self._spill.left_out and not self.trouble:
                self.trouble = f"more than {byte_size(self._spill.largest)}: only head and tail are stored"
        except (OSError, StorageError) as error:
            self._forget(error)

    def close(self, *, keep: bool) -> None:
        """Finish the output. ``keep``: whether to keep the stored file."""
        if self._spill is None:
            return
        try:
            if keep:
                self.ref = self._spill.finish("text").ref
            else:
                self._spill.drop()
        except (OSError, StorageError) as error:
            self._forget(error)

    def _forget(self, error: Exception) -> None:
        self.trouble = f"the whole could not be stored: {error}"
        self._new_spill = None
        if self._spill:
            with suppress(OSError, StorageError):
                self._spill.drop()

    def text(self) -> str:
        """Return the output with colours, without its middle if it is large."""
        with self._lock:
            return self._capture.text()

    def after(self, offset: int) -> tuple[int, bytes]:
        """Return how many bytes from ``offset`` on are no longer in memory, and the rest."""
        with self._lock:
            return self._capture.after(offset)


SOONEST, LATEST = 0.1, 1.0
"""Seconds between two checks: the more memory is free, the longer."""
# No rlimit counts shared memory, so a thread watches it while a program runs. Files in ``/dev/shm`` that no process
# maps are not counted here; the file size limit applies to them.

GROWTH = 4_000_000_000
"""Maximum growth of a process in bytes per second."""


class MemoryWatch:
    """Kill each process below another one that uses more than ``most`` bytes, own and shared. None: no limit."""

    def __init__(self, most: int | None) -> None:
        self.ended = 0
        """Number of killed processes."""
        self._most = most if sys.platform == "linux" else None
        self._next = time.monotonic() + LATEST / 4

    @property
    def note(self) -> str:
        """Return what was killed, for the reader of the result; empty for nothing."""
        if not self.ended or self._most is None:
            return ""
        who = "a process was" if self.ended == 1 else f"{self.ended} processes were"
        return f"{who} ended: more than {byte_size(self._most)} of memory (commands: memory_gb)"

    @property
    def pause(self) -> int | None:
        """Return the milliseconds until the next check; None without a limit."""
        return None if self._most is None else max(0, round((self._next - time.monotonic()) * 1_000))

    def look(self, root: int) -> None:
        """Check the processes below ``root`` if it is time."""
        now = time.monotonic()
        if self._most is None or now < self._next:
            return
        largest = 0
        for pid in _below(root):
            size = _size(pid)
            largest = max(largest, size)
            if size > self._most:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                    self.ended += 1
        self._next = now + min(LATEST, max(SOONEST, (self._most - largest) / GROWTH))


def _below(root: int) -> Iterator[int]:
    left = [root]
    while left:
        pid = left.pop()
        with suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                children = list(map(int, (task / "children").read_bytes().split()))
                left += children
                yield from children


def _size(pid: int) -> int:
    """Return the bytes in memory that belong to no file; 0 if unreadable."""
    with suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_bytes()
        lines = (line.split() for line in status.split(b"\n") if line.startswith((b"RssAnon:", b"RssShmem:")))
        return sum(int(line[1]) for line in lines) * 1_024
    return 0


LIVE_BYTES = 8_000
"""Maximum bytes shown live at a time; the rest of a flood is skipped, and the final output has its head and tail."""
TICK_SECONDS = 0.05
ATTEMPTS, ATTEMPT = 20, 20
"""How often, and for how many milliseconds, to try to end processes that lost their supervisor."""

Listener = Callable[[str], None]


class _Live:
    """Output on its way to listeners, a few times a second and bounded to what a pane can show."""

    def __init__(self, loop: asyncio.AbstractEventLoop, listener: Listener | None) -> None:
        self.listeners: set[Listener] = {listener} if listener else set()
        self._loop = loop
        self._lock = threading.Lock()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._waiting = bytearray()
        self._open = ""
        self._skipped = 0
        self._due = False
        self.note = ""
        """A problem with storing the output, shown with the skipped bytes."""

    def feed(self, data: bytes) -> None:
        """Add output. Called by the reading thread."""
        if not self.listeners:
            return
        with self._lock:
            self._waiting += data
            if (over := len(self._waiting) - 2 * LIVE_BYTES) > 0:
                over += LIVE_BYTES
                del self._waiting[:over]
                self._skipped += over
            if self._due:
                return
            self._due = True
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.call_later, TICK_SECONDS, self.flush)

    def flush(self) -> None:
        with self._lock:
            data, skipped = bytes(self._waiting), self._skipped
            self._waiting.clear()
            self._skipped, self._due = 0, False
        if skipped:
            self._decoder.reset()
            data = data.lstrip(bytes(range(0x80, 0xC0)))
            self._open = f"\n[… {skipped} bytes not shown live{f'; {self.note}' if self.note else ''} …]\n"
        text = self._open + self._decoder.decode(data)
        cut = open_sequence(text)
        text, self._open = text[:cut], text[cut:]
        if text:
            text = clean_text(coloured(text))
            for listener in tuple(self.listeners):
                listener(text)


def holders(pipe: int) -> set[int]:
    """Return the other processes with an end of ``pipe`` open; empty if the system cannot tell."""
    name = f"pipe:[{os.fstat(pipe).st_ino}]"
    found: set[int] = set()
    with suppress(OSError):
        for process in Path("/proc").iterdir():
            if process.name.isdigit() and name in _opened(process / "fd"):
                found.add(int(process.name))
    return found - {os.getpid()}


def _opened(folder: Path) -> set[str]:
    """Return the targets of the file descriptors listed in ``folder``."""
    targets: set[str] = set()
    try:
        links = list(folder.iterdir())
    except OSError:
        return targets
    for link in links:
        with suppress(OSError):
            targets.add(str(link.readlink()))
    return targets


class Process:
    """A supervised program with bounded output, shown live. ``program`` says how it ended; its exit code is None if it
    was released before its end. ``freed``: waiting is no longer necessary. ``listener`` receives all output; a later
    one (``listen``) may miss output printed at that moment.


    Raises:
        OSError: the supervisor could not be started.
    """

    def __init__(self, program: Program, spill: NewSpill | None = None, listener: Listener | None = None) -> None:
        self.output = Output(spill)
        self.ended = asyncio.Event()
        self.freed = asyncio.Event()
        self.on_end: Callable[[], None] | None = None
        self.confined = program.confinement is not None
        self._loop = asyncio.get_running_loop()
        self._live = _Live(self._loop, listener)
        self._lock = threading.Lock()
        self._closed = False
        self._keep = True
        self._egress = program.egress
        self.memory = MemoryWatch(program.limits.get("data"))
        self._printed, inner_output = os.pipe()
        self._woken, self._wake = os.pipe()
        try:
            self.program = SupervisedProgram(program, Descriptors(inner_output))
        except BaseException:
            for end in (self._printed, self._woken, self._wake):
                os.close(end)
            raise
        finally:
            os.close(inner_output)
        os.set_blocking(self._printed, False)
        threading.Thread(target=self._watch, daemon=True, name="program output").start()

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Receive output on the event loop; an empty text marks its end. Returns a function that stops it."""
        self._live.listeners.add(listener)
        return lambda: self._live.listeners.discard(listener)

    def end(self) -> None:
        """Ask the supervisor to end all processes; ``ended`` is set when the program is gone, within seconds."""
        self.program.end()

    def let_go(self, *, keep: bool) -> None:
        """End all processes and stop reading: ``ended`` is set immediately. ``keep``: whether to keep the output."""
        with self._lock, suppress(OSError):
            if not self._closed:
                self._keep = keep
                os.write(self._wake, b".")

    def _watch(self) -> None:
        """Run in the reading thread, from the first byte until the supervisor is gone."""
        try:
            self._read_all()
            # End it only now: messages about being ended are not part of its output.
            self.end()
            self.output.close(keep=self._keep)
        finally:
            self.program.close()
            with self._lock:
                self._closed = True
                for end in (self._printed, self._woken, self._wake):
                    os.close(end)
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._end)
            self.program.wait()

    def _read_all(self) -> None:
        """Read until the program has ended or is released."""
        states = self.program.states
        poll = select.poll()
        for end in (self._printed, states, self._woken):
            poll.register(end, select.POLLIN)
        reading = True
        while reading:
            for end, _ in poll.poll(self.memory.pause):
                if end == self._printed:
                    if self._take() == b"":
                        poll.unregister(end)
                elif end == states:
                    reading = reading and self._read_states()
                else:
                    reading = False
            self.memory.look(self.program.supervisor)
        # Read the rest of its output, but bounded: processes that it left behind may keep filling the pipe.
        for _ in range(64):
            if not self._take():
                break

    def _take(self) -> bytes | None:
        """Read a piece of output; empty at the end, None if there is none now."""
        try:
            data = os.read(self._printed, CHUNK_BYTES)
        except BlockingIOError:
            return None
        if data:
            self.output.feed(data)
            self._live.note = self.output.trouble
            self._live.feed(data)
        return data

    def _read_states(self) -> bool:
        """Read status lines; returns False at the last one."""
        more = self.program.read_states()
        if not more and self.program.exit_code is None:
            self._end_orphans()
        return more

    def _end_orphans(self) -> None:
        """Kill the processes of a program whose supervisor was killed, as far as they can be found."""
        self.program.kill_group()
        poll = select.poll()
        poll.register(self._printed, 0)
        for _ in range(ATTEMPTS):
            for pid in holders(self._printed):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            # A scan may miss new forks; the pipe itself signals when no process has it open.
            if poll.poll(ATTEMPT):
                return

    def _end(self) -> None:
        self._live.flush()
        if self._egress:
            self._egress.close()
        self.ended.set()
        self.freed.set()
        for listener in tuple(self._live.listeners):
            listener("")
        if self.on_end:
            self.on_end()
