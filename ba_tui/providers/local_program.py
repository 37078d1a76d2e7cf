"""The program of the helper process: loads a model file into llama.cpp, which serves it on the loopback interface.

A crash of native code, or a lack of memory, ends this process and not ba.
"""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Any, cast

from ba_tui.processes.serving import HandlerFailed, RequestCancelled, WorkerChannel, WorkerRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

THREADS = 16
"""Threads for requests that wait for the end of the process, in addition to those that load."""
CACHE_MIB = 512
"""Memory for prompts that were read before, so that a side request does not remove the conversation's prefix."""


class LlamaServer:
    """One model, loaded at its first request."""

    def __init__(self) -> None:
        self._server: Any = None
        self._key = secrets.token_urlsafe(24)

    def load(self, request: WorkerRequest) -> object:
        """Load the model unless it is loaded; return its address."""
        given = cast("Mapping[str, Any]", request.payload)
        if self._server is None:
            self._server = _started(given, self._key)
        return {"url": f"{self._server.listening_address}/v1", "key": self._key}

    def watch(self, request: WorkerRequest) -> object:
        """Wait until the client ends the request: a crash ends it too."""
        request.cancelled.wait()
        raise RequestCancelled


def _started(given: Mapping[str, Any], key: str) -> Any:
    try:
        import xllamacpp  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise HandlerFailed("missing", str(error)) from error
    library = cast("Any", xllamacpp)
    params = library.CommonParams()
    params.model.path = given["path"]
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [key]
    params.n_ctx, params.n_parallel, params.use_jinja = given["window"], 1, True
    params.cache_ram_mib, params.ui, params.endpoint_slots = CACHE_MIB, False, False
    params.verbosity = 1
    if threads := given["threads"]:
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    try:
        return library.Server(params)
    except (RuntimeError, MemoryError, ValueError) as error:
        raise HandlerFailed("unloadable", str(error) or type(error).__name__) from error


def main(channel: WorkerChannel) -> None:
    """Answer requests until ba ends."""
    # The machine stays responsive while the model computes.
    os.nice(5)
    server = LlamaServer()
    channel.serve({"load": server.load, "watch": server.watch}, THREADS)
