"""The worker process of one tool file, as a program: a supervisor that ends all it started, and below it the work.

Started by ``workers``; nothing imports it. The work is ``worker_loop``, ending a tree of processes ``supervisor``.

Arguments: the number of the channel, the folder to work in, limits (as for ``supervisor``), then what to load. Standard
input is the pipe that ba holds: any byte, or its end, means stop. Besides replies as JSON lines, ``pid N`` and
``exit N`` go back.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
from pathlib import Path
from typing import NoReturn

sys.path.append(str(Path(__file__).resolve().parents[3]))
sys.dont_write_bytecode = True

from ba_tui.processes.process_tree import drain, end_all, reap, say  # noqa: E402 - the path comes first
from ba_tui.processes.supervisor import detach, limit, mute, prepare, process_watch  # noqa: E402


def work(channel: int, place: tuple[str, str], source: list[str], libc: ctypes.CDLL | None) -> NoReturn:
    """In the child: a session of its own, its signals as Python has them, no input, and never a way back."""
    try:
        signal.set_wakeup_fd(-1)
        detach(libc)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        # Said here and not above, where it could come in the middle of a long reply.
        say(channel, f"pid {os.getpid()}")
        folder, limits = place
        os.chdir(folder)
        if limits:
            limit(limits, libc)
        from ba_tui.tools.own.worker_loop import serve  # noqa: PLC0415 - the supervisor above stays small

        serve(channel, *source)
        os._exit(0)
    except KeyboardInterrupt:
        os._exit(0)
    finally:
        os._exit(70)


def main() -> None:
    channel, place, source = int(sys.argv[1]), (sys.argv[2], sys.argv[3]), sys.argv[4:]
    os.set_inheritable(channel, False)
    wake, libc = prepare()
    pid = os.fork()
    if not pid:
        work(channel, place, source, libc)
    mute()
    watch = process_watch(place[1])
    while True:
        ready, _, _ = select.select([0, wake], [], [], watch.WAIT if watch else None)
        drain(wake)
        if watch and watch.over():
            watch.end(channel)
        code, _ = reap(pid)
        if code is not None:
            # A line of its own, also when the work ended in the middle of one.
            say(channel, "")
            say(channel, f"exit {code}")
            break
        if 0 in ready:
            break
    end_all(pid, channel, wake)


if __name__ == "__main__":
    main()
