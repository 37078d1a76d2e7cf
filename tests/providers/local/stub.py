"""Stands in for the helper of a local model: the model file holds the address of a server that plays a script."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ba_tui.processes.serving import HandlerFailed, RequestCancelled, WorkerChannel, WorkerRequest


def load(request: WorkerRequest) -> object:
    text = Path(cast("Mapping[str, Any]", request.payload)["path"]).read_text("utf-8")
    if text.startswith("GGUFunloadable"):
        raise HandlerFailed("unloadable", "Failed to init server")
    if text.startswith("GGUFkilled"):
        os.kill(os.getpid(), signal.SIGKILL)
    return {"url": text.removeprefix("GGUF"), "key": str(os.getpid())}


def watch(request: WorkerRequest) -> object:
    request.cancelled.wait()
    raise RequestCancelled


def main(channel: WorkerChannel) -> None:
    channel.serve({"load": load, "watch": watch}, 4)
