"""Locks and appends of files that several processes share; see also the faults of each file that uses them."""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress
from pathlib import Path

import pytest

from ba_tui.shared_files import append_whole, is_locked, open_lock_file, take_lock, take_lock_if_supported
from tests.noticing.file_faults import Layer


def asked(path: Path) -> bool:
    with path.open("rb") as file:
        return is_locked(file.fileno())


def test_a_lock_lasts_until_its_descriptor_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    one, other = open_lock_file(path), open_lock_file(path)
    assert not asked(path)
    assert take_lock(other)
    assert asked(path)
    assert not take_lock(one)
    os.close(other)
    assert not asked(path)
    assert take_lock(one)
    os.close(one)


def test_a_lock_is_awaited_no_longer_than_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = open_lock_file(tmp_path / "lock"), open_lock_file(tmp_path / "lock")
    assert take_lock(other)
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: clock.append(clock.pop() + 1))
    assert not take_lock(one, wait=3)
    assert clock == [4.0]
    monkeypatch.setattr(time, "sleep", lambda seconds: os.close(other))
    assert take_lock(one, wait=3)
    os.close(one)


@pytest.mark.parametrize("fault", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EIO])
def test_only_a_missing_support_for_locks_may_be_ignored(tmp_path: Path, fault: int) -> None:
    fd = open_lock_file(tmp_path / "lock")
    with Layer(0, fault).laid(), pytest.raises(OSError, match=os.strerror(fault)):
        take_lock(fd)
    with Layer(0, fault).laid():
        if fault == errno.EIO:
            with pytest.raises(OSError, match=os.strerror(fault)):
                take_lock_if_supported(fd)
        else:
            assert take_lock_if_supported(fd)
    os.close(fd)


def test_an_append_is_whole_or_undone(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\n")
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    with Layer(0, "short").laid() as layer:
        append_whole(fd, b"two\n")
    assert [each.name for each in layer.done] == ["write", "write"]
    assert path.read_bytes() == b"one\ntwo\n"
    with Layer(0, "short").laid(), Layer(1, errno.ENOSPC).laid(), suppress(OSError):
        append_whole(fd, b"three\n")
    assert path.read_bytes() == b"one\ntwo\n"
    os.close(fd)
