"""Ends a process before any one of its operations on files, or lets any one of them fail."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Collection, Mapping
from itertools import count
from typing import Any

OPERATIONS = ("open", "write", "fsync", "ftruncate", "rename", "replace", "link", "symlink", "unlink", "mkdir", "rmdir")


def killed_before(number: int, work: Callable[[], object], names: Collection[str] = OPERATIONS) -> bool:
    """Run ``work`` in a process that is killed before its operation ``number``, counted among those of ``names``; False
    when it came to its end.

    For programs with a single thread. Nothing waits for the disk: what a killed process has written, the system has.
    """
    child = os.fork()
    if not child:
        os.fsync = unsynced
        for name, operation in counted(number, lambda name: os.kill(os.getpid(), signal.SIGKILL), names).items():
            setattr(os, name, operation)
        work()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    if status:
        raise RuntimeError(f"the process failed at operation {number}: {status}")
    return False


def unsynced(fd: int) -> None:
    """Stands for os.fsync."""


def counted(
    last: int, reached: Callable[[str], object], names: Collection[str] = OPERATIONS
) -> Mapping[str, Callable[..., Any]]:
    """The operations by name, counted together: ``reached`` is called before the one of number ``last``."""
    numbers = count()

    def wrapped(name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **more: Any) -> Any:
            if next(numbers) == last:
                reached(name)
            return operation(*args, **more)

        return run

    return {name: wrapped(name, getattr(os, name)) for name in names}
