"""A program of our own choosing whose pipes are used while it runs, as ``git cat-file --batch`` or a search.

No supervisor stands in between (see brief.py). ``PipedChild`` blocks and is for a thread; ``StreamedChild`` is for the
event loop.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from ba_tui.processes.brief import kill_group

CLOSE_SECONDS = 5.0
MAX_LINE_BYTES = 1_000_000
LAST_BYTES = 64_000


class PipedChild:
    """A program with blocking pipes. Use it in a ``with``: at the end its input is closed, and what still runs of its
    process group some seconds later is killed.

    Raises:
        OSError: it could not be started.
    """

    def __init__(self, argv: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> None:
        import tempfile  # noqa: PLC0415 - few sessions start such a program before somebody waits for it

        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the program
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                cwd=folder,
                env=None if environment is None else dict(environment),
                start_new_session=True,
            )
        except BaseException:
            self._said.close()
            raise
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.input: IO[bytes] = self._process.stdin
        self.output: IO[bytes] = self._process.stdout

    def __enter__(self) -> PipedChild:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its input, and kill it when it goes on for some seconds. Any number of times."""
        with suppress(OSError):
            self.input.close()
        self.output.close()
        try:
            self._process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()
        finally:
            self._said.close()

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> int:
        """Wait for its end; its exit code."""
        return self._process.wait()

    def errors(self) -> bytes:
        """The end of what it printed on its standard error."""
        self._said.seek(max(0, self._said.seek(0, 2) - LAST_BYTES))
        return self._said.read()

    def terminate(self) -> None:
        """Ask it to end, which lets it clean up."""
        self._process.terminate()

    def kill(self) -> None:
        """Kill it and its process group at once. Safe from any thread."""
        if self.running:
            kill_group(self._process)


class StreamedChild:
    """A program whose output is read line by line on the event loop; it has no input. Made by ``stream``."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.output = process.stdout
        self._process = process
        self._errors = asyncio.create_task(_first(process.stderr))

    async def errors(self) -> bytes:
        """The beginning of what it printed on its standard error, once that has ended."""
        return await self._errors

    async def wait(self) -> int:
        """Wait for its end; its exit code."""
        return await self._process.wait()

    def kill(self) -> None:
        """Kill it and its process group at once."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def close(self) -> None:
        """Kill it and let go of its pipes."""
        self._errors.cancel()
        self.kill()
        # Read what is left, so that the transport closes.
        await asyncio.wait([self._errors])
        await self._process.communicate()


async def stream(argv: Sequence[str], environment: Mapping[str, str], memory: int | None = None) -> StreamedChild:
    """Start a program whose output is read while it runs. ``memory``: bytes that it may use, on Linux.

    Raises:
        OSError: it could not be started.
    """
    if memory is not None and sys.platform == "linux":
        # Before its first step: a limit that is set from outside comes too late for a quick one.
        argv = ("/bin/sh", "-c", 'ulimit -d "$0" 2>/dev/null; exec "$@"', str(memory // 1024), *argv)
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=MAX_LINE_BYTES,
        env=dict(environment),
        start_new_session=True,
    )
    return StreamedChild(process)


async def _first(stream: asyncio.StreamReader) -> bytes:
    """What a program complains about, to its end, the first part kept."""
    said = b""
    while piece := await stream.read(4_000):
        said += piece if len(said) < 4_000 else b""
    return said
