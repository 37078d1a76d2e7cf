"""Who holds a session, as far as its lock file and the kernel tell."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ba_tui.core.errors import SessionLocked
from ba_tui.sessions import journal
from ba_tui.sessions.journal import LOCK_FILE, Lock
from tests.noticing.file_faults import Layer


@contextmanager
def held(folder: Path, text: str) -> Generator[None]:
    """The kernel's lock on a lock file with this ``text``."""
    with (folder / LOCK_FILE).open("w") as file:
        file.write(text)
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def record(pid: object = None, host: str = "") -> str:
    return json.dumps(
        {"pid": os.getpid() if pid is None else pid, "host": host or socket.gethostname(), "started": 1.0}
    )


def gone() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_the_file_of_a_lock_is_the_owners_alone_and_names_them(tmp_path: Path) -> None:
    taken = Lock.acquire(tmp_path)
    file = tmp_path / LOCK_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    told = json.loads(file.read_bytes())
    assert (told["pid"], told["host"]) == (os.getpid(), socket.gethostname())
    assert told["started"] <= time.time()
    with pytest.raises(SessionLocked, match="already open here"):
        Lock.acquire(tmp_path)
    taken.release()
    assert file.read_bytes() == b""


def test_a_shorter_owner_leaves_nothing_of_a_longer_one(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).write_text("x" * 10_000)
    taken = Lock.acquire(tmp_path)
    assert json.loads((tmp_path / LOCK_FILE).read_bytes())["pid"] == os.getpid()
    taken.release()


@pytest.mark.parametrize("pauses", [1, 4, 5])
def test_a_lock_that_another_holds_for_a_moment_is_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses: int
) -> None:
    """A list of sessions takes it while it looks; 50 ms are all that it is awaited."""
    done, clock = 0, 0.0
    with (tmp_path / LOCK_FILE).open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)

        def pause(seconds: float) -> None:
            nonlocal done, clock
            done += 1
            clock += 0.015
            if done == pauses:
                fcntl.flock(other, fcntl.LOCK_UN)

        monkeypatch.setattr(time, "monotonic", lambda: clock)
        monkeypatch.setattr(time, "sleep", pause)
        if pauses < 5:
            Lock.acquire(tmp_path).release()
        else:
            with pytest.raises(SessionLocked):
                Lock.acquire(tmp_path)
    assert done == min(pauses, 4)


@pytest.mark.parametrize("host", ["", "elsewhere"])
def test_an_owner_is_told_with_the_host_where_that_is_another(tmp_path: Path, host: str) -> None:
    with held(tmp_path, record(host=host)):
        assert journal.owner(tmp_path) == f"pid {os.getpid()}" + (f" on {host}" if host else "")
    assert journal.owner(tmp_path) == ""


@pytest.mark.parametrize("text", ["x", "{", "[1]", '{"pid": "12"}', '{"host": "elsewhere"}'])
def test_an_owner_that_says_nothing_of_use_is_another_process(tmp_path: Path, text: str) -> None:
    with held(tmp_path, text):
        assert journal.owner(tmp_path) == "another process"
        with pytest.raises(SessionLocked, match="another process"):
            Lock.acquire(tmp_path)
    assert journal.owner(tmp_path) == ""


def test_a_number_that_is_no_process_may_be_one_and_a_dead_one_is_none(tmp_path: Path) -> None:
    with held(tmp_path, record(2**80)):
        assert journal.owner(tmp_path) == f"pid {2**80}"
    with held(tmp_path, record(gone())):
        assert journal.owner(tmp_path) == ""
    with held(tmp_path, record()), pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "kill", _forbidden)
        assert journal.owner(tmp_path) == f"pid {os.getpid()}"


def _forbidden(pid: int, number: int) -> None:
    """A process of another user."""
    raise PermissionError(errno.EPERM, "Operation not permitted")


def test_whether_an_owner_let_go(tmp_path: Path) -> None:
    assert journal.left_open(tmp_path) is False
    (tmp_path / LOCK_FILE).touch()
    assert journal.left_open(tmp_path) is False
    assert journal.owner(tmp_path) == ""
    (tmp_path / LOCK_FILE).write_text("x")
    assert journal.left_open(tmp_path)


def test_where_nothing_can_be_asked_nobody_is_named(tmp_path: Path) -> None:
    assert journal.owner(tmp_path / "absent") == ""
    with held(tmp_path, record()):
        # The second file that is opened is the one whose lock is asked for.
        for at, fault in ((0, errno.EACCES), (1, errno.EACCES), (2, errno.ENOLCK)):
            with Layer(at, fault, reads=True).laid():
                assert journal.owner(tmp_path) == ""
        assert journal.owner(tmp_path) == f"pid {os.getpid()}"


def test_a_file_system_without_locks_lets_everybody_in(tmp_path: Path) -> None:
    for fault in (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP):
        with Layer(1, fault).laid() as layer:
            Lock.acquire(tmp_path).release()
        assert layer.done[1].name == "flock"
