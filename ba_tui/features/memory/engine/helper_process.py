"""The client of the memory helper: a process with embedder, Chroma and vectors, started when it is first needed.

Whatever goes wrong with it is one line in ``why``; memory is searched by words then. Its side is ``store_process``.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ba_tui.core.errors import BaError
from ba_tui.features.memory.engine.setup import BY_WORDS, StoreSetup
from ba_tui.features.memory.engine.wire import LOOK, OPEN, HelperState, set_up
from ba_tui.processes.worker_values import WorkerCrashed, WorkerEntry, WorkerFailed, WorkerSettings, WorkerTimeout

if TYPE_CHECKING:
    from ba_tui.processes.worker import Worker

log = logging.getLogger(__name__)

ENTRY = "ba_tui.features.memory.engine.store_process.main:main"
CALL_SECONDS = 10.0
"""Time for one call. A helper that takes longer hangs, and is ended."""
OPEN_SECONDS = 60.0
"""Time to load the model and open the index, on a busy machine."""
_AGAIN_SECONDS = 30.0
"""Seconds until a start is tried again that failed."""
_MOST_CRASHES = 3
"""Crashes after which this process does without the helper."""
_PASSED = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "TMPDIR")
_THREADS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Products as small as ours take longer on several threads, which keep the other cores busy while they wait."""
STARTING = "The search by meaning is still starting."

Progress = Callable[[int, int], None]


class NoHelper(BaError):
    """The helper cannot answer now."""

    kind = "no_helper"


class Helper:
    """The helper of the shelves at ``folders``, which are told apart by their place. Starts nothing when it is made."""

    def __init__(self, root: Path, folders: Sequence[Path], setup: StoreSetup) -> None:
        self._root = root
        self._opening = {"folders": [str(folder) for folder in folders], **set_up(setup)}
        self._worker: Worker | None = None
        self._task: asyncio.Task[None] | None = None
        self._open = False
        self._crashes = 0
        self._closed = False
        self._not_before = float("-inf")
        self.off = "Memory is searched by words: memory.embedder is off." if setup.embedder == BY_WORDS else ""
        """Why this process does without the helper for good; empty while it does not."""
        self.why = self.off
        """What is wrong with the helper, for people; empty when nothing is."""

    @property
    def ready(self) -> bool:
        """Whether a call would be answered without a start."""
        return self._open and self._worker is not None and self._worker.alive()

    def warm(self) -> None:
        """Start the helper in the background, unless it runs or this process does without it."""
        starting = self._task is not None and not self._task.done()
        if self.off or self.ready or self._closed or starting or time.monotonic() < self._not_before:
            return
        self._open = False
        self._task = asyncio.get_running_loop().create_task(self._start(), name="memory helper")

    async def started(self) -> bool:
        """Start the helper if need be, and wait for it; whether it is ready."""
        self.warm()
        if self._task:
            # Whoever gives up waiting does not stop the start, and its end by ``close`` is no error here.
            await asyncio.wait((self._task,))
        return self.ready

    async def ask(
        self,
        method: str,
        payload: object = None,
        *,
        timeout: float | None = CALL_SECONDS,
        progress: Progress | None = None,
    ) -> Any:
        """The reply to one call. Raises NoHelper; a helper that hangs is ended."""
        if not self.ready or self._worker is None:
            raise NoHelper(self.why or STARTING)
        return await self._asked(self._worker, method, payload, timeout, progress)

    async def look(self) -> HelperState | None:
        """How the helper stands; None when it does not run."""
        if not self.ready:
            return None
        try:
            return HelperState(**cast("Mapping[str, Any]", await self.ask(LOOK)))
        except NoHelper:
            return None

    async def close(self) -> None:
        """End the helper."""
        self._closed = True
        self._drop()
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _start(self) -> None:
        try:
            from ba_tui.processes.worker import Worker  # noqa: PLC0415 - most starts of ba need none

            await asyncio.to_thread(self._root.mkdir, mode=0o700, parents=True, exist_ok=True)
            passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
            environment = {"PATH": os.defpath, "LANG": "C.UTF-8", "ANONYMIZED_TELEMETRY": "False", **_THREADS, **passed}
            self._worker = worker = Worker(WorkerEntry(ENTRY), WorkerSettings(self._root, environment))
            reply = await self._asked(worker, OPEN, self._opening, OPEN_SECONDS)
        except NoHelper:
            return
        except OSError as error:
            self._give_up(f"The memory helper could not start: {error}.")
            return
        self._open = True
        self.why = str(reply["why"])
        if self.why:
            log.warning("memory: %s", self.why)

    async def _asked(
        self, worker: Worker, method: str, payload: object, timeout: float | None, progress: Progress | None = None
    ) -> Any:
        def heard(value: object) -> None:
            if progress:
                done, total = cast("Sequence[int]", value)
                progress(done, total)

        try:
            return await worker.request(method, payload, timeout=timeout, on_progress=heard)
        except WorkerFailed as error:
            self._fail(worker, error)
            raise NoHelper(self.why) from None
        except WorkerTimeout:
            self._crashed(worker, f"The memory helper did not answer within {timeout:g} s.")
            raise NoHelper(self.why) from None
        except WorkerCrashed as error:
            if error.code == -signal.SIGILL:
                self._give_up("The search by meaning does not run on this processor.")
            else:
                self._crashed(worker, f"The memory helper stopped: {error}.")
            raise NoHelper(self.why) from None
        except (OSError, BaError) as error:
            self._give_up(f"The memory helper could not start: {error}.")
            raise NoHelper(self.why) from error

    def _fail(self, worker: Worker, error: WorkerFailed) -> None:
        if error.kind == "no_embedder":
            self._give_up(str(error))
            return
        log.warning("memory: the helper failed: %s", error)
        self.why = f"The search by meaning failed: {error}"
        if not self._open and worker is self._worker:
            # A server that makes the embeddings may be back soon.
            self._not_before = time.monotonic() + _AGAIN_SECONDS
            self._drop()

    def _crashed(self, worker: Worker, why: str) -> None:
        if self._closed or worker is not self._worker:
            # Another call has seen it before.
            return
        log.warning("memory: %s", why)
        self._crashes += 1
        self.why = why
        self._drop()
        if self._crashes >= _MOST_CRASHES:
            self._give_up(f"{why} It is not started again until ba starts anew.")

    def _give_up(self, why: str) -> None:
        if self._closed:
            return
        log.warning("memory is searched by words: %s", why)
        self.off = self.why = why
        self._drop()

    def _drop(self) -> None:
        self._open = False
        if self._worker:
            self._worker.end()
            self._worker = None
