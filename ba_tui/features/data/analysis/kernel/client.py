"""The client of a Python kernel: starts it with the first call, runs code, lists variables, and begins anew.

The kernel and all of Jupyter run in processes of their own (``kernel_process``, ``program``), never here.
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ba_tui.core.errors import BaError
from ba_tui.core.ports.python import Variable
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.kernel.tables import KernelBounds, TableCalls
from ba_tui.features.data.analysis.kernel.values import KernelFailed, Ran, ran, variables
from ba_tui.processes.limits import GIGABYTE
from ba_tui.processes.worker_values import WorkerCrashed, WorkerEntry, WorkerFailed, WorkerSettings

if TYPE_CHECKING:
    from ba_tui.processes.worker import Worker

ENTRY = "ba_tui.features.data.analysis.kernel.kernel_process:main"
DIED, ENDED = "kernel_died", "kernel_ended"
GRACE = 6.0
"""Seconds for an interrupted call: longer than its process gives it before that kills the kernel."""
PRINTED = 2_000
GONE = "Its variables are gone; tables are still there."


@frozen
class KernelPlace:
    """``bounds``: its folder and memory. ``worker`` starts it, confined; ``interpreter`` has ipykernel. ``outdated``
    says why a running one must begin anew, empty when it need not; blocks."""

    bounds: KernelBounds
    worker: WorkerSettings
    interpreter: Path
    outdated: Callable[[], str] = str


class PythonKernel:
    """One kernel. It starts with the first call, and again with the one after its end. Calls take turns; cancelling one
    interrupts it and keeps the variables. ``place`` blocks."""

    def __init__(self, place: Callable[[], KernelPlace], analysis: Analysis) -> None:
        self._make = place
        self._analysis = analysis
        self._place: KernelPlace | None = None
        self._worker: Worker | None = None
        self._gone = ""
        self._read: dict[str, None] = {}
        self._printed = b""
        self._turn = asyncio.Lock()

    @property
    def running(self) -> bool:
        """Whether a process holds variables."""
        return self._worker is not None and self._worker.alive()

    async def run(self, code: str, seconds: float, listener: Callable[[str], None] | None = None) -> Ran:
        """Run ``code`` for at most ``seconds`` and return what it showed. ``listener`` hears what it prints.

        Raises:
            KernelFailed: the kernel could not start, or ended in the middle of the code.
        """
        async with self._turn:
            try:
                return await self._ran(code, seconds, listener)
            except WorkerFailed as error:
                if error.kind != ENDED:
                    await self._fail(error)
            # Nothing of the code has run: once more, with a new kernel.
            await self._drop("Python ended since the last call.")
            try:
                return await self._ran(code, seconds, listener)
            except WorkerFailed as error:
                await self._fail(error)

    async def _ran(self, code: str, seconds: float, listener: Callable[[str], None] | None) -> Ran:
        """Raises WorkerFailed for what the process of the kernel says itself."""
        try:
            worker, bounds = await self._running()
            calls = TableCalls(self._analysis, bounds, self._read, code)
            reply = await calls.made(worker, seconds, listener)
        except WorkerFailed:
            raise
        except (OSError, BaError) as error:
            await self._fail(error)
        notes, self._gone = (self._gone,) if self._gone else (), ""
        return ran(reply, tuple(calls.kept), notes)

    async def variables(self) -> tuple[Variable, ...] | None:
        """Return the variables; None while code runs. Starts nothing."""
        if self._worker is None or not self._worker.alive():
            return ()
        if self._turn.locked():
            return None
        async with self._turn:
            with suppress(OSError, BaError):
                reply = await self._worker.request("variables")
                return None if reply is None else variables(reply)
        return ()

    async def reset(self) -> bool:
        """End the kernel; the next call begins anew. False when none ran."""
        running = self.running
        await self._drop("Python was reset." if running else "")
        return running

    async def close(self) -> None:
        """End the kernel, without waiting for it."""
        await self._drop()

    async def _running(self) -> tuple[Worker, KernelBounds]:
        if self._worker and not self._worker.alive():
            await self._drop("Python ended since the last call.")
        if self._place and self._worker and (why := await asyncio.to_thread(self._place.outdated)):
            await self._drop(why)
        if self._place is None or self._worker is None:
            from ba_tui.processes.worker import Worker  # noqa: PLC0415 - most sessions never run Python

            place = self._place = await asyncio.to_thread(self._make)
            arguments = (str(place.interpreter), str(place.bounds.folder))
            self._printed = b""
            self._worker = Worker(WorkerEntry(ENTRY, arguments, GRACE, self._hear), place.worker)
        return self._worker, self._place.bounds

    def _hear(self, printed: bytes) -> None:
        """What the processes print themselves says why they could not start."""
        self._printed = (self._printed + printed)[-PRINTED:]

    async def _drop(self, why: str = "") -> None:
        worker, self._worker = self._worker, None
        self._read.clear()
        if why:
            self._gone = f"{why} {GONE}"
        if worker:
            await worker.close()

    async def _fail(self, error: Exception) -> NoReturn:
        """Raise for a kernel that is gone or never came."""
        await self._drop()
        if isinstance(error, WorkerFailed) and error.kind == DIED:
            given: Any = json.loads(str(error))
            if not given.get("starting"):
                raise self._died(given) from error
        elif isinstance(error, WorkerCrashed) and (error.code is None or error.code < 0):
            raise KernelFailed(f"Python ended in the middle of this call: {error}. {GONE}") from error
        elif isinstance(error, KernelFailed):
            raise error
        printed = self._printed.decode("utf-8", "replace").strip() or getattr(error, "printed", "").strip()
        why = one_line(printed.rpartition("\n")[2] or str(error), 300)
        raise KernelFailed(f"Python could not start: {why}", getattr(error, "hint", "")) from error

    def _died(self, given: Any) -> KernelFailed:
        """The error for a kernel that ended in the middle of a call: ``code`` is how, None when it had to be ended."""
        code = given.get("code")
        if code is None:
            return KernelFailed(f"The code did not stop when it was interrupted, so Python was ended. {GONE}")
        how = f"exit code {code}"
        if code < 0:
            how = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        memory = self._place.bounds.memory if self._place else 0
        grave = -code in {signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT}
        hint = f"If it needed too much memory: it may use {memory / GIGABYTE:.1f} GB." if grave else ""
        return KernelFailed(f"Python ended in the middle of this call ({how}). {GONE}", hint)
