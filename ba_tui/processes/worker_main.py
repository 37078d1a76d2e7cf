"""The program of a worker process: load the entry and give it the channel to the client.

A script; no module imports it. Arguments: the number of the channel, ``package.module:function``, then the function's
arguments after the channel. The client receives standard output and standard error as text.
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
    # Programs that the worker starts must not inherit the channel.
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
