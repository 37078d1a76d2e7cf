"""The signals that ask ba to end: each command ends in order, as after Ctrl+C, and its exit code names the signal.

A signal that was switched off by what started ba (``nohup``, a job in the background) stays so.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType

INTERRUPTED = 130
"""The exit code of a command that was asked to end; ``run_in_order`` makes it that of the signal."""
ENDING = (signal.SIGTERM, signal.SIGHUP)
"""Beside SIGINT, which Python turns into KeyboardInterrupt."""
NOT_BY_THE_USER = {signal.SIGTERM: "ba was stopped by SIGTERM.", signal.SIGHUP: "The terminal was closed."}
_came: list[int] = []


def run_in_order(work: Callable[[], int]) -> int:
    """The exit code of ``work``, within which what asks ba to end does what Ctrl+C does: 128 and the number of the
    signal, as shells count. For the entry point: afterwards a signal ends the process at once, without a word."""
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
    """Within it, a signal calls ``stop``, which ends the turn in order: what came is saved and printed. With
    ``stop_because``, those that do not come from the user call that, with what they say."""
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
    """Whether this is how the work ends that a signal asked to end."""
    # By its name: a signal may have stopped the import of asyncio half-way, which can't be repeated.
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
    """Cancel what a running loop does, where Ctrl+C is switched off; False without a loop."""
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
