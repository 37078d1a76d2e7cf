"""A worker for tests: one handler for each thing that a worker can do, good and bad."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from ba_tui.processes.serving import HandlerFailed, WorkerChannel, WorkerRequest


def main(channel: WorkerChannel, threads: str = "1") -> None:
    """Answer until the client is gone."""
    gates: dict[str, threading.Event] = {}

    def wait(request: WorkerRequest) -> object:
        """Until another request opens the gate, or it is cancelled."""
        gate = gates.setdefault(str(request.payload), threading.Event())
        request.on_cancel(gate.set)
        request.progress("waiting")
        gate.wait()
        return "cancelled" if request.cancelled.is_set() else "open"

    def open_gate(request: WorkerRequest) -> object:
        gates.setdefault(str(request.payload), threading.Event()).set()
        return None

    def count(request: WorkerRequest) -> object:
        for number in range(int(str(request.payload))):
            request.progress(number)
        return "done"

    def fail(request: WorkerRequest) -> object:
        raise HandlerFailed("not_found", f"there is no {request.payload}")

    def deaf(request: WorkerRequest) -> object:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        child = subprocess.Popen(["sleep", "600"], start_new_session=True)
        request.progress([os.getpid(), child.pid])
        while True:
            time.sleep(1)

    def flood(request: WorkerRequest) -> object:
        for _ in range(200):
            os.write(1, b"x" * 65_536)
        print("the end", flush=True)
        return None

    def broken(request: WorkerRequest) -> object:
        for number in range(3, 20):
            try:
                os.write(number, b"no frame at all, and longer than a head")
            except OSError:
                continue
        return None

    def print_later(request: WorkerRequest) -> object:
        """Once something is written into the pipe of that name; the end of the pipe comes once it is printed."""
        path = Path(str(request.payload))

        def work() -> None:
            path.read_text()
            print("between", flush=True)
            path.write_text("printed")

        threading.Thread(target=work, daemon=True).start()
        return None

    handlers = {
        "echo": lambda request: request.payload,
        "add": lambda request: request.payload["a"] + request.payload["b"],
        "where": lambda request: [os.getpid(), str(Path.cwd()), os.environ.get("NAME")],
        "cpu": lambda request: time.process_time(),
        "raise": lambda request: 1 // 0,
        "unsayable": lambda request: object(),
        "exit": lambda request: os._exit(int(str(request.payload))),
        "quit": lambda request: sys.exit("bye"),
        "helper": lambda request: subprocess.Popen(["sleep", "600"]).pid,
        "kill": lambda request: os.kill(os.getpid(), signal.SIGKILL),
        "memory": lambda request: len(bytearray(int(str(request.payload)))),
        "fork": lambda request: os.fork() == 0,
        **{each.__name__: each for each in (wait, open_gate, count, fail, deaf, flood, broken, print_later)},
    }
    channel.serve(handlers, int(threads))


def broken_start(channel: WorkerChannel) -> None:
    """Fail while it is loaded."""
    raise ModuleNotFoundError("no module named engine")
