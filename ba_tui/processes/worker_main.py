"""The program of a worker process: loads the entry that a room names and hands it the channel to the client.

A script; nothing imports it. Arguments: the number of the channel, ``package.module:function``, then what the function
is given after the channel. Standard output and standard error go to the client as text.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))
sys.dont_write_bytecode = True


def main() -> None:
    from ba_tui.processes.serving import WorkerChannel  # noqa: PLC0415 - the path comes first

    number, entry, *arguments = sys.argv[1:]
    # A program that the worker starts must not hold the channel.
    os.set_inheritable(int(number), False)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv[1:] = []
    module, _, function = entry.partition(":")
    getattr(import_module(module), function)(WorkerChannel(int(number)), *arguments)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
    except BaseException:  # noqa: BLE001 - said on standard error; exit without waiting for threads
        import traceback

        traceback.print_exc()
        os._exit(70)
    os._exit(0)
