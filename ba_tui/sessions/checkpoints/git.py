"""Runs git for a checkpoint store, and records file attributes that git does not keep.

Git runs without the user's settings, with a time limit, and can be stopped. ``shadow`` decides what the store contains.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import stat
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import StorageError
from ba_tui.core.values import frozen
from ba_tui.processes.programs import BriefRun, PipedChild, run_briefly

HINT = "The work continues, but files can't be rewound to this point."
MANY = 500
"""Number of files from which they are written into one pack: ten thousand loose files cost more time and space."""
PACKING = (2, 38)
"""The first git version that packs all input of one update-index call."""
VERSION_SECONDS = 5.0
_PIPE = 4_096
_TOLD = 32
"""Paths that are passed to git between two checks for a stop."""


class GitStopped(StorageError):
    """The user stopped the snapshot."""


class GitWatch:
    """The progress of a snapshot. Another thread may read it and stop the snapshot."""

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
                # Terminate rather than kill, so that git removes its lock.
                self._running.terminate()

    def begin(self, process: PipedChild | None) -> None:
        """Register the running ``process``; None when it has ended. Raises GitStopped if the snapshot was stopped."""
        with self._lock:
            self._running = process
            if self.stopped and process:
                process.terminate()
        self.check()

    def check(self) -> None:
        if self.stopped:
            raise GitStopped("The checkpoint was stopped.", HINT)


class Git:
    """``folder``: the git directory; ``root``: the project; ``seconds``: time limit of one run."""

    def __init__(self, folder: Path, root: Path, seconds: float) -> None:
        self._folder = folder
        self._root = root
        self._seconds = seconds

    def command(self, *args: str) -> list[str]:
        return [_git(), *args]

    def environment(self, env: dict[str, str] | None = None) -> dict[str, str]:
        """Return variables that exclude the user's git settings and repository."""
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
        """Return the output of one run. Raises StorageError if it fails or takes too long."""
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
        """Add the files at ``paths`` to the index and their contents to the store.

        Raises:
            GitStopped: the snapshot was stopped.
            StorageError: it failed or took too long.
        """
        # Git writes only large files directly into a pack, so declare all files large.
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
                with contextlib.suppress(GitStopped):
                    watch.begin(None)
            watch.check()
            if status:
                raise _refused(process.errors(), "update-index") if in_time else self._late()

    def _late(self) -> StorageError:
        return StorageError(f"The checkpoint took more than {self._seconds:g} s.", HINT)


def _hand_over(process: PipedChild, paths: Sequence[bytes], watch: GitWatch) -> None:
    """Pass the paths as fast as git reads them, so that the progress is known."""
    pipe = process.input
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE)
    # If git ends early, its exit status tells why.
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


MOST = 20_000
"""Number of files beyond which no attributes are recorded: reading each file would delay every turn."""
EXECUTABLE = b"100755"
FILES = (b"100644", EXECUTABLE)
PASSED = frozenset({".git", "node_modules", "bower_components", ".venv", "venv", "__pycache__"})


@frozen
class FileTraits:
    """File attributes that git does not keep.

    ``usual``: the most common rights of plain and of executable files; ``rights``: those of other files. ``empty``:
    empty folders. ``unkept``: size and modification time of files that are not kept.
    """

    usual: tuple[int, int]
    rights: Mapping[str, int]
    empty: tuple[str, ...]
    unkept: Mapping[str, tuple[int, int]]

    def of(self, path: bytes, mode: bytes) -> int:
        """Return the rights of a file with ``mode`` in a tree."""
        return self.rights.get(os.fsdecode(path), self.usual[mode == EXECUTABLE])

    def note(self) -> dict[str, Any]:
        return {"usual": self.usual, "rights": self.rights, "empty": self.empty, "unkept": self.unkept}


def read_traits(note: object) -> FileTraits | None:
    """Parse the attributes in a checkpoint's note; None if it has none. Raises ValueError, TypeError or KeyError if
    invalid."""
    if not isinstance(note, dict):
        return None
    given = cast("dict[str, Any]", note)
    plain, runs = map(int, given["usual"])
    rights = {str(path): int(mode) for path, mode in given["rights"].items()}
    unkept = {str(path): (int(size), int(at)) for path, (size, at) in given["unkept"].items()}
    return FileTraits((plain, runs), rights, tuple(map(str, given["empty"])), unkept)


def look(
    root: Path, files: Iterable[tuple[bytes, bytes]], folders: Iterable[bytes], unkept: Iterable[str]
) -> FileTraits:
    """Return the attributes of ``files`` (mode and path in the tree), of the empty ones among ``folders``, and of
    ``unkept``."""
    found: dict[bytes, dict[str, int]] = {mode: {} for mode in FILES}
    for mode, path in files:
        if mode in found and (state := _state(root, name := os.fsdecode(path))) and stat.S_ISREG(state.st_mode):
            found[mode][name] = state.st_mode & 0o777
    usual = [_usual(found[mode].values(), otherwise) for mode, otherwise in zip(FILES, (0o644, 0o755), strict=True)]
    rights = {
        path: mode
        for group, most in zip(found.values(), usual, strict=True)
        for path, mode in group.items()
        if mode != most
    }
    states = {path: state for path in unkept if (state := _state(root, path))}
    return FileTraits(
        (usual[0], usual[1]),
        rights,
        tuple(sorted(_empty(root, folders))),
        {path: (state.st_size, state.st_mtime_ns) for path, state in states.items()},
    )


def holds(files: Iterable[tuple[bytes, bytes]], folder: str) -> bool:
    """Return whether one of ``files`` (mode and path in a tree) is in ``folder``."""
    return any(path.startswith(os.fsencode(folder) + b"/") for _, path in files)


def changed(root: Path, unkept: Mapping[str, tuple[int, int]]) -> Iterator[str]:
    """Yield those of ``unkept`` that have changed."""
    for path, was in unkept.items():
        state = _state(root, path)
        if state is None or (state.st_size, state.st_mtime_ns) != was:
            yield path


def _state(root: Path, path: str) -> os.stat_result | None:
    try:
        return os.lstat(root / path)
    except OSError:
        return None


def _usual(rights: Iterable[int], otherwise: int) -> int:
    return next((mode for mode, _ in Counter(rights).most_common(1)), otherwise)


def _empty(root: Path, folders: Iterable[bytes]) -> Iterator[str]:
    left = MOST
    for folder in folders:
        for place, inner, files in os.walk(root / os.fsdecode(folder)):
            left -= 1
            if left < 0:
                return
            if not inner and not files:
                yield os.path.relpath(place, root)
            inner[:] = [name for name in inner if name not in PASSED]
