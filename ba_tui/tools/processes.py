"""Runs a shell command under the supervisor: output as it comes, the whole tree ended on timeout and on cancel.

What the command is and what the model reads of it is shell.py.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ba_tui.core.messages import clean_text
from ba_tui.tools.terminal_text import Capture, coloured, open_sequence

SUPERVISOR = Path(__file__).with_name("supervisor.py")
PIECE = 65_536
LIVE = 8_000
"""Characters shown live at a time; of a flood the rest is skipped, the end shows head and tail."""
TICK = 0.05


@dataclass(frozen=True, slots=True)
class ShellCommand:
    shell: str
    script: str
    folder: Path
    environment: Mapping[str, str]


@dataclass(slots=True)
class Outcome:
    """``exit_code`` None: it was ended before it finished. ``left``: processes it left running, which were ended."""

    capture: Capture = field(default_factory=Capture)
    exit_code: int | None = None
    folder: str = ""
    left: int = 0
    timed_out: bool = False


class _Live:
    """The output on its way to the pane, a few times a second and never more than a pane can take."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._waiting = ""
        self._skipped = 0
        self._timer: asyncio.TimerHandle | None = None

    def feed(self, data: bytes) -> None:
        self._waiting += self._decoder.decode(data)
        if len(self._waiting) > 2 * LIVE:
            self._skipped += len(self._waiting) - LIVE
            self._waiting = self._waiting[-LIVE:]
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK, self.flush)

    def flush(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._skipped:
            self._report(f"\n[… {self._skipped} characters not shown live …]\n")
            self._skipped = 0
        cut = open_sequence(self._waiting)
        text, self._waiting = self._waiting[:cut], self._waiting[cut:]
        if text:
            self._report(clean_text(coloured(text)))


class _Run:
    """One supervised command; the event loop calls it when a pipe has something."""

    def __init__(self, command: ShellCommand, report: Callable[[str], None]) -> None:
        self.outcome = Outcome()
        self.ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._live = _Live(report)
        self._status = b""
        self._shell = 0
        inner_control, self._control = os.pipe()
        self._output, inner_output = os.pipe()
        self._states, inner_states = os.pipe()
        arguments = [command.shell, str(command.folder), command.script, str(inner_states)]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(SUPERVISOR), *arguments],
                stdin=inner_control,
                stdout=inner_output,
                stderr=inner_output,
                pass_fds=(inner_states,),
                env=dict(command.environment),
                start_new_session=True,
            )
        except BaseException:
            for end in (self._control, self._output, self._states):
                os.close(end)
            raise
        finally:
            for end in (inner_control, inner_output, inner_states):
                os.close(end)
        os.set_blocking(self._output, False)
        os.set_blocking(self._states, False)
        self._loop.add_reader(self._output, self._read_output)
        self._loop.add_reader(self._states, self._read_states)

    def _read_output(self) -> bool:
        """Take one piece; False when there is none now."""
        try:
            data = os.read(self._output, PIECE)
        except BlockingIOError:
            return False
        if not data:
            self._loop.remove_reader(self._output)
            return False
        self.outcome.capture.feed(data)
        self._live.feed(data)
        return True

    def _read_states(self) -> None:
        with suppress(BlockingIOError):
            data = os.read(self._states, PIECE)
            if not data:
                self._loop.remove_reader(self._states)
                self._lost()
            self._status += data
        *lines, self._status = self._status.split(b"\n")
        for line in lines:
            self._note(line.decode("utf-8", "surrogateescape"))

    def _note(self, line: str) -> None:
        kind, _, value = line.partition(" ")
        match kind:
            case "pid":
                self._shell = int(value)
            case "cwd":
                self.outcome.folder = value
            case "left":
                self.outcome.left = int(value)
            case "exit":
                self.outcome.exit_code = int(value)
                self.ended.set()
            case _:
                pass

    def _lost(self) -> None:
        """The supervisor went away without a word (something killed it): end the shell's group ourselves."""
        if not self.ended.is_set():
            if self._shell:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._shell, signal.SIGKILL)
            self.ended.set()

    def finish(self) -> None:
        """Take what is already in the pipe and let go. The supervisor ends what still runs, behind us."""
        for _ in range(64):
            if not self._read_output():
                break
        self._live.flush()
        self._loop.remove_reader(self._output)
        self._loop.remove_reader(self._states)
        for end in (self._control, self._output, self._states):
            os.close(end)
        threading.Thread(target=self._process.wait, daemon=True, name="reap").start()


async def run_supervised(command: ShellCommand, timeout: float, report: Callable[[str], None]) -> Outcome:
    """Run ``command`` for at most ``timeout`` seconds. Cancelling returns at once; the tree is ended behind.

    Raises:
        OSError: the supervisor could not be started.
    """
    run = _Run(command, report)
    try:
        async with asyncio.timeout(timeout):
            await run.ended.wait()
    except TimeoutError:
        run.outcome.timed_out = True
    finally:
        run.finish()
    return run.outcome
