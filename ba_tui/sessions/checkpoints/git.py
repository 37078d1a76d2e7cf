"""Running git for a store of our own: without the person's settings, in time, watched and stopped where it takes long.

What is kept in the store is shadow's business.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ba_tui.core.errors import StorageError
from ba_tui.processes.brief import BriefRun, run_briefly
from ba_tui.processes.streams import PipedChild

HINT = "Work goes on; files can't be rewound to here."
MANY = 500
"""Files from which they go into one pack: ten thousand files of their own cost more time and room."""
PACKING = (2, 38)
"""The first git that packs whatever one call of update-index is given."""
VERSION_SECONDS = 5.0
_PIPE = 4_096
_TOLD = 32
"""Paths that are handed over between two looks at who watches."""


class Stopped(StorageError):
    """The person did not want to wait."""


class GitWatch:
    """How far a snapshot is, for another thread, which may also stop it."""

    def __init__(self) -> None:
        self.done = 0
        self.total = 0
        self.stopped = False
        self._running: PipedChild | None = None
        self._lock = threading.Lock()

    def stop(self) -> None:
        with self._lock:
            self.stopped = True
            if self._running:
                # Not killed: git takes its lock away first.
                self._running.terminate()

    def begin(self, process: PipedChild | None) -> None:
        """``process`` is what runs now. Raises Stopped when nothing more shall."""
        with self._lock:
            self._running = process
            if self.stopped and process:
                process.terminate()
        self.check()

    def check(self) -> None:
        if self.stopped:
            raise Stopped("Keeping the files was stopped.", HINT)


class Git:
    """``folder`` is the git directory, ``root`` the project, ``seconds`` what one run may take."""

    def __init__(self, folder: Path, root: Path, seconds: float) -> None:
        self._folder = folder
        self._root = root
        self._seconds = seconds

    def command(self, *args: str) -> list[str]:
        return [_git(), *args]

    def environment(self, env: dict[str, str] | None = None) -> dict[str, str]:
        """Nothing of the person's git settings, and none of the variables that could lead to their repository."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self._folder),
            "LC_ALL": "C",
            "GIT_DIR": str(self._folder),
            "GIT_WORK_TREE": str(self._root),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_AUTHOR_NAME": "ba",
            "GIT_AUTHOR_EMAIL": "ba@localhost",
            "GIT_COMMITTER_NAME": "ba",
            "GIT_COMMITTER_EMAIL": "ba@localhost",
            **(env or {}),
        }

    def run(self, *args: str, given: bytes = b"", env: dict[str, str] | None = None, seconds: float = 0.0) -> bytes:
        """What one run prints. Raises StorageError when it fails or takes too long."""
        try:
            done = run_briefly(
                BriefRun(self.command(*args), seconds or self._seconds, self._root, self.environment(env), given)
            )
        except OSError as error:
            raise unusable(error) from error
        if done.trouble == "timeout":
            raise self._late()
        if done.code != 0:
            raise _refused(done.errors, args[0])
        return done.output

    def take_in(self, paths: Sequence[bytes], watch: GitWatch) -> None:
        """Put the files at ``paths`` into the index and their contents into the store.

        Raises:
            Stopped: whoever watches did not want to wait.
            StorageError: it failed or took too long.
        """
        # A large file is the only one that git writes into a pack at once; so all of them are called large here.
        packed = (
            ["-c", "core.bigFileThreshold=1", "-c", "core.compression=1"] if len(paths) >= MANY and _packs() else []
        )
        args = (*packed, "update-index", "--add", "--remove", "--replace", "-z", "--stdin")
        watch.total += len(paths)
        try:
            started = PipedChild(self.command(*args), self._root, self.environment())
        except OSError as error:
            raise unusable(error) from error
        with started as process:
            late = threading.Timer(self._seconds, process.kill)
            late.daemon = True
            late.start()
            try:
                watch.begin(process)
                _hand_over(process, paths, watch)
                status = process.wait()
            finally:
                in_time = late.is_alive()
                late.cancel()
                with contextlib.suppress(Stopped):
                    watch.begin(None)
            watch.check()
            if status:
                raise _refused(process.errors(), "update-index") if in_time else self._late()

    def _late(self) -> StorageError:
        return StorageError(f"The checkpoint took more than {self._seconds:g} s.", HINT)


def _hand_over(process: PipedChild, paths: Sequence[bytes], watch: GitWatch) -> None:
    """Path by path, as fast as git takes them: so it is known how far it is."""
    pipe = process.input
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE)
    # When git ends early, its status tells why.
    with contextlib.suppress(BrokenPipeError), pipe:
        for start in range(0, len(paths), _TOLD):
            if watch.stopped:
                break
            part = paths[start : start + _TOLD]
            pipe.write(b"".join(path + b"\0" for path in part))
            pipe.flush()
            watch.done += len(part)


@cache
def _packs() -> bool:
    said = run_briefly(BriefRun([_git(), "version"], VERSION_SECONDS)).output.decode("ascii", "replace")
    found = re.search(r"(\d+)\.(\d+)", said)
    return found is not None and (int(found[1]), int(found[2])) >= PACKING


def _git() -> str:
    found = shutil.which("git")
    if found is None:
        raise StorageError("There are no checkpoints: git is not installed.", "Install git to be able to rewind files.")
    return found


def _refused(said: bytes, what: str) -> StorageError:
    lines = said.decode("utf-8", "replace").strip().splitlines() or [f"git {what} failed"]
    return StorageError(f"The checkpoint store can't be used: {lines[-1].removeprefix('fatal: ')}.", HINT)


def unusable(error: OSError) -> StorageError:
    return StorageError(f"The checkpoint store can't be used: {error.strerror or error}.", HINT)
