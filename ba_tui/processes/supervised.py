"""Start a program below the supervisor and follow it: its status lines, its end, and the loss of its supervisor.

Callers read the program's output: children.py, duplex.py and worker.py.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.processes.values import Program

SUPERVISOR = Path(__file__).with_name("supervisor.py")
CHUNK_BYTES = 65_536
MOST_CODES = 100
_CODE = regex(r"\d{1,3}", re.ASCII)


@frozen
class Descriptors:
    """File descriptors of a program: ``output`` for standard output, ``errors`` for standard error (None: the same),
    ``input`` for standard input, empty if None; ``channel`` keeps its number. The caller closes them."""

    output: int
    errors: int | None = None
    input: int | None = None
    channel: int | None = None

    @property
    def limits(self) -> dict[str, int]:
        """Return the descriptors in the form that the supervisor reads."""
        given = {"stdin": self.input, "channel": self.channel}
        return {name: number for name, number in given.items() if number is not None}


class SupervisedProgram:
    """A program and its supervisor, which ends all processes of the program: on request, when ba is gone (even by kill
    -9), and when the program has ended.

    ``states`` becomes readable when the supervisor reports; ``read_states`` reads the report. ``exit_code`` None: not
    ended yet, or its supervisor was killed. ``left``: number of processes it left running; ``over``: it was ended
    because more than so many ran; ``folder``: its last reported folder, ``pipe_codes`` the numbers before that.
    Confined, it ends with the thread that starts it.

    Raises:
        OSError: the supervisor could not be started.
    """

    def __init__(self, program: Program, descriptors: Descriptors) -> None:
        self.exit_code: int | None = None
        self.folder = ""
        self.pipe_codes: tuple[int, ...] = ()
        self.notes = ""
        self.left = self.over = 0
        self._separate = bool(program.confinement and program.confinement.separate)
        self._lock = threading.Lock()
        self._closed = False
        self._partial = b""
        self._pid = 0
        inner_control, self._control = os.pipe()
        self.states, inner_states = os.pipe()
        handed, named = program.egress.offer() if program.egress else ((), "")
        words, environment = _command(program, descriptors, f"{inner_states}{named}")
        try:
            self._process = subprocess.Popen(
                words,
                stdin=inner_control,
                stdout=descriptors.output,
                stderr=descriptors.output if descriptors.errors is None else descriptors.errors,
                pass_fds=(inner_states, *handed, *descriptors.limits.values()),
                env=environment,
                start_new_session=True,
            )
        except BaseException:
            os.close(self._control)
            os.close(self.states)
            raise
        finally:
            os.close(inner_control)
            os.close(inner_states)
            if program.egress:
                program.egress.begin()
        os.set_blocking(self.states, False)

    @property
    def started(self) -> bool:
        """Return whether the supervisor has reported the start of the program."""
        return self._pid > 0

    @property
    def supervisor(self) -> int:
        """Return the process id of the supervisor, or of the sandbox around it."""
        return self._process.pid

    def end(self) -> None:
        """Ask the supervisor to end all processes, within seconds. Thread-safe, may be called repeatedly."""
        with self._lock, suppress(OSError):
            if not self._closed:
                os.write(self._control, b".")

    def read_states(self) -> bool:
        """Read reports of the supervisor; returns False after the last one. Never waits. ``exit_code`` is still None
        then if the supervisor was killed."""
        try:
            data = os.read(self.states, CHUNK_BYTES)
        except BlockingIOError:
            return True
        if not data:
            return False
        *lines, self._partial = (self._partial + data).split(b"\n")
        return all(self._note(line.decode("utf-8", "surrogateescape")) for line in lines)

    def kill_group(self) -> None:
        """Kill the sandbox, or the program's process group, after the supervisor was lost."""
        if self._separate:
            # Its process ids mean other processes outside; its whole namespace ends with this process.
            self._process.kill()
        elif self._pid:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)

    def close(self) -> None:
        """Close the pipes, so that the supervisor ends remaining processes. Thread-safe, may be called repeatedly."""
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self._control)
                os.close(self.states)

    def wait(self) -> None:
        """Wait for the end of the supervisor. Blocks, for seconds at most after ``end`` or ``close``."""
        self._process.wait()

    def _note(self, line: str) -> bool:
        kind, _, value = line.partition(" ")
        match kind:
            case "pid":
                self._pid = int(value)
            case "cwd":
                if not value.startswith("/") and "!" in value:
                    self.notes, _, value = value.partition("!")
                codes, slash, rest = value.partition("/")
                self.folder = slash + rest
                self.pipe_codes = tuple([int(code) for code in codes.split()[:MOST_CODES] if _CODE.fullmatch(code)])
            case "left" | "over":
                setattr(self, kind, int(value))
            case "exit":
                self.exit_code = int(value)
            case _:
                pass
        return kind != "exit"


def _command(program: Program, descriptors: Descriptors, status: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the arguments of the supervisor, which reports to ``status``, and its environment."""
    held = program.confinement
    limits = {**program.limits, **descriptors.limits, **(held.limits if held else {})}
    text = ",".join(f"{name}={value}" for name, value in limits.items())
    words = (sys.executable, "-I", "-S", str(SUPERVISOR), status, str(program.folder), text, *program.argv)
    if held is None:
        return words, dict(program.environment)
    return held.wrap(words), {**program.environment, **held.environment}
