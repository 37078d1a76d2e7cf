"""The client of the memory helper, a process with embedder, Chroma and vectors that is started on first use; and its
protocol.

Each failure is described in ``why`` in one line; memory is then searched by words. ``store_process`` is the server.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ba_tui.core.errors import BaError
from ba_tui.core.ports.memory import Entry
from ba_tui.core.values import frozen
from ba_tui.features.memory.engine.entries import as_record, entry_of
from ba_tui.features.memory.engine.recall import Hit, RecallResult, SearchRequest
from ba_tui.features.memory.engine.scoring import Signals
from ba_tui.features.memory.engine.setup import BY_WORDS, Endpoint, StoreSetup, TeamServer
from ba_tui.processes.values import WorkerCrashed, WorkerEntry, WorkerFailed, WorkerSettings, WorkerTimeout

if TYPE_CHECKING:
    from ba_tui.processes.worker import WorkerClient


SEARCH, FORGET, CATCH_UP, REBUILD, OPEN, LOOK = "search", "forget", "catch_up", "rebuild", "open", "look"
"""Methods of the helper."""


@frozen
class HelperState:
    """The state of the helper: entries with a vector in the index (``done``), and all (``total``); ``why``: a failure,
    for the user; ``memory``: peak memory of the process in bytes.
    """

    done: int = 0
    total: int = 0
    why: str = ""
    model: str = ""
    memory: int = 0


def asked(ask: SearchRequest) -> dict[str, Any]:
    """Return ``ask`` as JSON."""
    return {
        **asdict(ask),
        "today": ask.today.isoformat() if ask.today else None,
        "kinds": sorted(ask.kinds) if ask.kinds is not None else None,
        "leave_out": sorted(ask.leave_out),
    }


def ask_of(given: Mapping[str, Any]) -> SearchRequest:
    """Return the ask in the JSON of ``asked``."""
    made: dict[str, Any] = {
        "today": date.fromisoformat(given["today"]) if given["today"] else None,
        "kinds": None if given["kinds"] is None else frozenset(given["kinds"]),
        "leave_out": frozenset(given["leave_out"]),
    }
    return SearchRequest(**{**given, **made})


def told(found: RecallResult) -> dict[str, Any]:
    """Return ``found`` as JSON."""
    hits = [
        {field.name: getattr(hit, field.name) for field in fields(Hit)}
        | {"entry": as_record(hit.entry), "signals": asdict(hit.signals)}
        for hit in found.hits
    ]
    return {"hits": hits, "step": found.step, "why": found.why}


def found_of(reply: object) -> RecallResult:
    """Return the result in the JSON of ``told``."""
    given = cast("Mapping[str, Any]", reply)
    return RecallResult(tuple(_hit(each) for each in given["hits"]), given["step"], given["why"])


def _hit(given: Mapping[str, Any]) -> Hit:
    made: dict[str, Any] = {
        "entry": entry_of(given["entry"]) or Entry("", ""),
        "signals": Signals(**given["signals"]),
        "twins": tuple(given["twins"]),
    }
    return Hit(**{**given, **made})


def set_up(setup: StoreSetup) -> dict[str, Any]:
    """Return ``setup`` as JSON. It contains keys: send it over the helper's channel only, never to a log."""
    return {
        "embedder": setup.embedder,
        "endpoint": asdict(setup.endpoint) if setup.endpoint else None,
        "server": asdict(setup.server) if setup.server else None,
    }


def setup_from(given: Mapping[str, Any]) -> StoreSetup:
    """Return the setup in the JSON of ``set_up``."""
    endpoint, server = given["endpoint"], given["server"]
    return StoreSetup(
        given["embedder"], Endpoint(**endpoint) if endpoint else None, TeamServer(**server) if server else None
    )


log = logging.getLogger(__name__)

ENTRY = "ba_tui.features.memory.engine.store_process.main:main"
CALL_SECONDS = 10.0
"""Timeout of one call in seconds. A helper that takes longer is considered hung, and is ended."""
OPEN_SECONDS = 60.0
"""Seconds to load the model and open the index, on a busy machine."""
_AGAIN_SECONDS = 30.0
"""Seconds until a failed start is repeated."""
_MOST_CRASHES = 3
"""Crashes after which this process stops using the helper."""
_PASSED = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "TMPDIR")
_THREADS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Such small matrix products are slower on several threads, which busy-wait on the other cores."""
STARTING = "The search by meaning is still starting."

Progress = Callable[[int, int], None]


class NoHelper(BaError):
    """The helper cannot answer now."""

    kind = "no_helper"


class Helper:
    """The helper for the shelves at ``folders``. Constructing it starts nothing."""

    def __init__(self, root: Path, folders: Sequence[Path], setup: StoreSetup) -> None:
        self._root = root
        self._opening = {"folders": [str(folder) for folder in folders], **set_up(setup)}
        self._worker: WorkerClient | None = None
        self._task: asyncio.Task[None] | None = None
        self._open = False
        self._crashes = 0
        self._closed = False
        self._not_before = float("-inf")
        self.off = "Memory is searched by words: memory.embedder is off." if setup.embedder == BY_WORDS else ""
        """Why this process does without the helper for good; empty while it does not."""
        self.why = self.off
        """The failure of the helper, as shown to the user; empty without one."""

    @property
    def ready(self) -> bool:
        """Return whether a call would be answered without a start."""
        return self._open and self._worker is not None and self._worker.alive()

    def warm(self) -> None:
        """Start the helper in the background, unless it runs or this process has stopped using it."""
        starting = self._task is not None and not self._task.done()
        if self.off or self.ready or self._closed or starting or time.monotonic() < self._not_before:
            return
        self._open = False
        self._task = asyncio.get_running_loop().create_task(self._start(), name="memory helper")

    async def started(self) -> bool:
        """Start the helper if needed, wait for it, and return whether it is ready."""
        self.warm()
        if self._task:
            # A cancelled caller does not stop the start, and a start ended by ``close`` is not an error.
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
        """Return the reply to one call. Raises NoHelper; a hung helper is ended."""
        if not self.ready or self._worker is None:
            raise NoHelper(self.why or STARTING)
        return await self._asked(self._worker, method, payload, timeout, progress)

    async def look(self) -> HelperState | None:
        """Return the state of the helper; None if it does not run."""
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
            from ba_tui.processes.worker import WorkerClient  # noqa: PLC0415 - most starts of ba need none

            await asyncio.to_thread(self._root.mkdir, mode=0o700, parents=True, exist_ok=True)
            passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
            environment = {"PATH": os.defpath, "LANG": "C.UTF-8", "ANONYMIZED_TELEMETRY": "False", **_THREADS, **passed}
            self._worker = worker = WorkerClient(WorkerEntry(ENTRY), WorkerSettings(self._root, environment))
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
        self,
        worker: WorkerClient,
        method: str,
        payload: object,
        timeout: float | None,
        progress: Progress | None = None,
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

    def _fail(self, worker: WorkerClient, error: WorkerFailed) -> None:
        if error.kind == "no_embedder":
            self._give_up(str(error))
            return
        log.warning("memory: the helper failed: %s", error)
        self.why = f"The search by meaning failed: {error}"
        if not self._open and worker is self._worker:
            # An embeddings server may be back soon.
            self._not_before = time.monotonic() + _AGAIN_SECONDS
            self._drop()

    def _crashed(self, worker: WorkerClient, why: str) -> None:
        if self._closed or worker is not self._worker:
            # Another call has handled the failure.
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
