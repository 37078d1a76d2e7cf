"""Signals that end ba: each command shuts down as after Ctrl+C, and its exit code names the signal.

A signal that was ignored by the parent (``nohup``, a background job) stays ignored.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType

INTERRUPTED = 130
"""Exit code of an interrupted command; ``run_in_order`` replaces it by that of the signal."""
ENDING = (signal.SIGTERM, signal.SIGHUP)
"""Handled in addition to SIGINT, which Python turns into KeyboardInterrupt."""
NOT_BY_THE_USER = {signal.SIGTERM: "ba was stopped by SIGTERM.", signal.SIGHUP: "The terminal was closed."}
_came: list[int] = []


def run_in_order(work: Callable[[], int]) -> int:
    """Run ``work`` and return its exit code; ending signals act like Ctrl+C within it, and give 128 plus the signal
    number. For the entry point: afterwards a signal ends the process immediately and silently."""
    for number in ENDING:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)
    try:
        code = work()
    except BaseException as error:
        if not _asked(error):
            raise
        code = INTERRUPTED
    for number in (signal.SIGINT, *ENDING):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    return 128 + _came[0] if _came and code == INTERRUPTED else code


@contextmanager
def interrupts(stop: Callable[[], object], stop_because: Callable[[str], object] | None = None) -> Generator[None]:
    """Within the block, a signal calls ``stop``, which ends the turn in order: its output is saved and printed. With
    ``stop_because``, signals that do not come from the user call it with their message instead."""
    import asyncio  # noqa: PLC0415 - --version does not wait for it

    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *ENDING)}
    caught: list[int] = []
    for number, handler in before.items():
        with suppress(NotImplementedError, ValueError, RuntimeError):
            if handler != signal.SIG_IGN:
                why = NOT_BY_THE_USER.get(number)
                call = partial(stop_because, why) if stop_because and why else stop
                loop.add_signal_handler(number, _stop, number, call)
                caught.append(number)
    try:
        yield
    finally:
        for number in caught:
            loop.remove_signal_handler(number)
            signal.signal(number, before[signal.Signals(number)])


def _asked(error: BaseException) -> bool:
    """Return whether the error is how work ends after a signal."""
    # Compare names: a signal may have interrupted the import of asyncio, which cannot be repeated.
    cancelled = type(error).__name__ == "CancelledError"
    return isinstance(error, KeyboardInterrupt) or (bool(_came) and cancelled)


def _stop(number: int, stop: Callable[[], object]) -> None:
    _came.append(number)
    stop()


def _end(number: int, frame: FrameType | None) -> None:
    _came.append(number)
    as_ctrl_c = signal.getsignal(signal.SIGINT)
    if callable(as_ctrl_c):
        # Python's own, which raises KeyboardInterrupt, or that of a running loop, which cancels its task.
        as_ctrl_c(signal.SIGINT, frame)
    elif not _cancelled():
        raise KeyboardInterrupt


def _cancelled() -> bool:
    """Cancel the tasks of a running loop, for when Ctrl+C is ignored; returns False without a loop."""
    asyncio = sys.modules.get("asyncio")
    try:
        loop = asyncio.get_running_loop() if asyncio else None
    except (RuntimeError, AttributeError):
        # No loop runs, or asyncio is only half imported.
        loop = None
    if asyncio is None or loop is None:
        return False
    loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(loop)])
    return True
