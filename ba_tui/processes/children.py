"""Runs a command to its end: a thread reads what it prints, bounded, and shows it live.

What the command is and what the model reads of it is up to the caller; ending its processes is supervised.py's.
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

from ba_tui.core.messages import clean_text
from ba_tui.core.text.wording import byte_size
from ba_tui.processes.output import NewSpill, Output
from ba_tui.processes.supervised import CHUNK_BYTES, Descriptors, Program, Supervised
from ba_tui.processes.terminal_text import coloured, open_sequence

SOONEST, LATEST = 0.1, 1.0
"""Seconds between two looks: the more room there is, the longer."""
# Shared memory counts in no rlimit, so a thread watches it while a program runs. A file in ``/dev/shm`` that no
# process maps is not counted here; the limit for files applies to it.

GROWTH = 4_000_000_000
"""Bytes a second that no process outgrows."""


class MemoryWatch:
    """Ends each process below another that has more than ``most`` bytes, its own and shared ones. None: no limit."""

    def __init__(self, most: int | None) -> None:
        self.ended = 0
        """Processes that were ended."""
        self._most = most if sys.platform == "linux" else None
        self._next = time.monotonic() + LATEST / 4

    @property
    def note(self) -> str:
        """What was done, for who reads the result; empty when it was nothing."""
        if not self.ended or self._most is None:
            return ""
        who = "a process was" if self.ended == 1 else f"{self.ended} processes were"
        return f"{who} ended: more than {byte_size(self._most)} of memory (commands: memory_gb)"

    @property
    def pause(self) -> int | None:
        """Milliseconds until the next look; None when there is nothing to look for."""
        return None if self._most is None else max(0, round((self._next - time.monotonic()) * 1_000))

    def look(self, root: int) -> None:
        """Look at what runs below the process ``root``, when it is time again."""
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
    """Bytes in memory that belong to no file; 0 where that can't be read."""
    with suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_bytes()
        lines = (line.split() for line in status.split(b"\n") if line.startswith((b"RssAnon:", b"RssShmem:")))
        return sum(int(line[1]) for line in lines) * 1_024
    return 0


LIVE_BYTES = 8_000
"""Bytes shown live at a time; of a flood the rest is skipped, the end shows head and tail."""
TICK_SECONDS = 0.05
ATTEMPTS, ATTEMPT = 20, 20
"""How often, and for how many milliseconds, to try to end what lost its supervisor."""

Listener = Callable[[str], None]


class _Live:
    """The output on its way to who watches, a few times a second and never more than a pane can take."""

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
        """What is wrong with storing it; shown with what is skipped, which it would else go by with."""

    def feed(self, data: bytes) -> None:
        """Called by the reading thread."""
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
    """Other processes that hold an end of ``pipe``; none where the system does not tell."""
    name = f"pipe:[{os.fstat(pipe).st_ino}]"
    found: set[int] = set()
    with suppress(OSError):
        for process in Path("/proc").iterdir():
            if process.name.isdigit() and name in _opened(process / "fd"):
                found.add(int(process.name))
    return found - {os.getpid()}


def _opened(folder: Path) -> set[str]:
    """What the file descriptors listed in ``folder`` lead to."""
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
    """One supervised program, whose output is kept bounded and shown live. ``exit_code`` None: it was let go before it
    ended, or its supervisor was killed.

    ``left``: processes it left running, which were ended; ``over``: it was ended as more than so many ran. ``freed``:
    who waits need not any longer. ``listener`` hears all; a later one (``listen``) may miss what is printed at once.

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
            self._supervised = Supervised(program, Descriptors(inner_output))
        except BaseException:
            for end in (self._printed, self._woken, self._wake):
                os.close(end)
            raise
        finally:
            os.close(inner_output)
        os.set_blocking(self._printed, False)
        threading.Thread(target=self._watch, daemon=True, name="program output").start()

    @property
    def exit_code(self) -> int | None:
        return self._supervised.exit_code

    @property
    def folder(self) -> str:
        """The folder that the program named last; empty when it named none."""
        return self._supervised.folder

    @property
    def pipe_codes(self) -> tuple[int, ...]:
        """The exit codes that the program named with its folder; none when it named none."""
        return self._supervised.pipe_codes

    @property
    def notes(self) -> str:
        """What the program said before those codes, up to a ``!``."""
        return self._supervised.notes

    @property
    def left(self) -> int:
        return self._supervised.left

    @property
    def over(self) -> int:
        return self._supervised.over

    @property
    def started(self) -> bool:
        """Whether the supervisor has said that the program runs."""
        return self._supervised.started

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Hear on the event loop what is printed; an empty text is its end. Call what comes back to stop."""
        self._live.listeners.add(listener)
        return lambda: self._live.listeners.discard(listener)

    def end(self) -> None:
        """Ask the supervisor to end everything; ``ended`` is set when the program is gone, within some seconds."""
        self._supervised.end()

    def let_go(self, *, keep: bool) -> None:
        """The same, and read no further: ``ended`` is set at once. ``keep``: what was printed is wanted."""
        with self._lock, suppress(OSError):
            if not self._closed:
                self._keep = keep
                os.write(self._wake, b".")

    def _watch(self) -> None:
        """The reading thread, from the first byte until the supervisor is gone."""
        try:
            self._read_all()
            # Only now: what a program says of being ended is no part of what it printed until it was let go.
            self.end()
            self.output.close(keep=self._keep)
        finally:
            self._supervised.close()
            with self._lock:
                self._closed = True
                for end in (self._printed, self._woken, self._wake):
                    os.close(end)
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._end)
            self._supervised.wait()

    def _read_all(self) -> None:
        """Until the program has ended or is let go."""
        states = self._supervised.states
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
            self.memory.look(self._supervised.supervisor)
        # What is in the pipe by now belongs to it; something it left behind may go on to fill it.
        for _ in range(64):
            if not self._take():
                break

    def _take(self) -> bytes | None:
        """One piece of output; empty at its end, None when there is none now."""
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
        """False once nothing more is to be expected."""
        more = self._supervised.read_states()
        if not more and self._supervised.exit_code is None:
            self._end_orphans()
        return more

    def _end_orphans(self) -> None:
        """The supervisor went away without a word (something killed it): end the rest, as far as it can be found."""
        self._supervised.kill_group()
        poll = select.poll()
        poll.register(self._printed, 0)
        for _ in range(ATTEMPTS):
            for pid in holders(self._printed):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            # A look may miss what has just been forked; the pipe itself knows when nobody holds it any more.
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
