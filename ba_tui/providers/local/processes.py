"""The helper processes of local models: one for each model file, shared by all who ask it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ba_tui.core.errors import BaError, ConnectionLost, ProviderError
from ba_tui.core.values import frozen
from ba_tui.processes.worker_values import WorkerCrashed, WorkerEntry, WorkerFailed, WorkerSettings, WorkerTimeout
from ba_tui.providers.local.model_files import INSTALL

if TYPE_CHECKING:
    from ba_tui.processes.worker import Worker

ENTRY = "ba_tui.providers.local.program:main"
LOAD_SECONDS = 600.0
NOTICED = 2.0
"""Seconds in which the end of the process is heard of after its connection broke."""
SMALLER = "Close other programs, choose a smaller model, or set local.window lower."
_MEMORY = Path("/proc/meminfo")
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")


@frozen
class LocalPlace:
    """How a model is loaded: its file, its window in tokens, and how many threads compute (0: llama.cpp decides)."""

    path: Path
    window: int
    threads: int = 0


@frozen
class LocalAddress:
    """Where a loaded model answers on this machine, and the key that keeps other programs out."""

    url: str
    key: str


class LocalProcesses:
    """Helpers start when they are needed and end with ba. ``entry`` is what they run."""

    def __init__(self, folder: Path, entry: str = ENTRY) -> None:
        kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        self._settings = WorkerSettings(folder, kept)
        self._entry = entry
        self._workers: dict[LocalPlace, Worker] = {}
        self._users: dict[LocalPlace, int] = {}

    def enter(self, place: LocalPlace) -> None:
        """Somebody begins to use ``place``. Helpers that nobody uses any more end: their memory is needed."""
        self._users[place] = self._users.get(place, 0) + 1
        for idle in [each for each in self._workers if each != place and not self._users.get(each)]:
            self._workers.pop(idle).end()

    def leave(self, place: LocalPlace) -> None:
        """They are done. The helper stays, as the next one is likely to want the same model."""
        self._users[place] = max(0, self._users.get(place, 0) - 1)

    def end(self) -> None:
        """End all helpers."""
        for worker in self._workers.values():
            worker.end()
        self._workers.clear()

    async def load(self, place: LocalPlace) -> LocalAddress:
        """Start the helper and load the model, unless that is done.

        Raises:
            ProviderError: the model can't be loaded. ConnectionLost: its process ended meanwhile.
        """
        worker = self._worker(place)
        payload = {"path": str(place.path), "window": place.window, "threads": place.threads}
        if not worker.alive():
            check_memory(place)
        try:
            found = cast("Mapping[str, Any]", await worker.request("load", payload, timeout=LOAD_SECONDS))
        except WorkerFailed as error:
            raise _unloadable(place, error) from error
        except WorkerTimeout as error:
            raise ProviderError(f"{place.path.name} was not loaded within {LOAD_SECONDS:.0f} s.", SMALLER) from error
        except WorkerCrashed as error:
            raise ended(place, error) from error
        except OSError as error:
            raise ProviderError(f"The process for {place.path.name} can't start: {error.strerror or error}.") from error
        return LocalAddress(found["url"], found["key"])

    @asynccontextmanager
    async def watched(self, place: LocalPlace) -> AsyncGenerator[None]:
        """Says why, where the connection breaks inside because the process ended. Raises ConnectionLost then."""
        watch = asyncio.create_task(self._worker(place).request("watch"))
        try:
            yield
        except ConnectionLost as error:
            await asyncio.wait([watch], timeout=NOTICED)
            if watch.done() and isinstance(crash := watch.exception(), WorkerCrashed):
                raise ended(place, crash) from error
            raise
        finally:
            watch.cancel()
            with suppress(asyncio.CancelledError, BaError, OSError):
                await watch

    def _worker(self, place: LocalPlace) -> Worker:
        from ba_tui.processes.worker import Worker  # noqa: PLC0415 - not before a model is asked

        if place not in self._workers:
            self._workers[place] = Worker(WorkerEntry(self._entry), self._settings)
        return self._workers[place]


def check_memory(place: LocalPlace) -> None:
    """Raises ProviderError when the file is larger than the memory that is free, where the system tells that."""
    try:
        lines = dict(line.split(":", 1) for line in _MEMORY.read_text("ascii").splitlines() if ":" in line)
        free = int(lines["MemAvailable"].split()[0]) * 1024
        size = place.path.stat().st_size
    except (OSError, KeyError, ValueError):
        return
    if size > free:
        what = f"{place.path.name} needs more than {size / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB is free."
        raise ProviderError(what, SMALLER)


def _unloadable(place: LocalPlace, error: WorkerFailed) -> ProviderError:
    if error.kind == "missing":
        return ProviderError(f"Local models need xllamacpp, which can't be loaded: {error}.", f"Try: {INSTALL}.")
    cure = f"Is it a model for text that llama.cpp knows, and complete? {SMALLER}"
    return ProviderError(f"llama.cpp can't load {place.path.name}: {error}", cure)


def ended(place: LocalPlace, crash: WorkerCrashed) -> ConnectionLost:
    """What a person is told of the end of the process."""
    name, code = place.path.name, crash.code
    if code == -signal.SIGKILL:
        return ConnectionLost(f"The process of {name} was killed, perhaps because memory ran out.", SMALLER)
    how = f"crashed with {_signal(-code)}" if code is not None and code < 0 else f"ended: {crash}"
    return ConnectionLost(f"The process of {name} {how}.", "Send the request again: it starts anew.")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
