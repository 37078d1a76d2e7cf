"""The client of a Python kernel: starts it with the first call, runs code, lists variables, resets it.

The kernel and Jupyter's client run in other processes (``kernel_process``, ``program``).
"""

from __future__ import annotations

import asyncio
import json
import signal
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from ba_tui.core.errors import BaError
from ba_tui.core.ports.datasets import Variable
from ba_tui.core.ports.tables import PYTHON, Column, Provenance, QueryResult, UsedData
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.errors import UnknownTable
from ba_tui.features.data.analysis.kernel.values import CallResult, KernelFailed, call_result, variables
from ba_tui.processes.values import GIGABYTE, WorkerCrashed, WorkerEntry, WorkerFailed, WorkerSettings

if TYPE_CHECKING:
    from ba_tui.processes.worker import WorkerClient


# Tables that Python code reads from the session, and those that it stores as results.

KEPT = ".kept"
SHARE = 3
"""A table may use this fraction of the memory."""
BYTES = {"text": 64, "other": 128}
"""Approximate bytes of a value in a DataFrame; other types take 8."""
TABLE_BYTES = 8


@frozen
class KernelBounds:
    """The ``folder`` that the kernel may write, and its ``memory`` limit in bytes."""

    folder: Path
    memory: int


class TableCalls:
    """One call of the kernel, and answers to its questions. ``read`` has the tables that the kernel's variables may
    come from."""

    def __init__(self, analysis: Analysis, bounds: KernelBounds, read: dict[str, None], code: str) -> None:
        self._analysis = analysis
        self._bounds = bounds
        self._read = read
        self._code = code
        self._started, self._clock = time.time(), time.monotonic()
        self._files = AsyncExitStack()
        self.kept: list[QueryResult] = []

    async def made(self, worker: WorkerClient, seconds: float, listener: Callable[[str], None] | None) -> object:
        """Run the code and return the reply. Raises as ``Worker.request``."""
        tasks: set[asyncio.Task[None]] = set()

        def received(said: object) -> None:
            message = cast("dict[str, Any]", said)
            if "question" in message:
                task = asyncio.ensure_future(self._answer(worker, message["question"]))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            elif listener:
                listener(str(message.get("text", "")))

        try:
            async with self._files:
                return await worker.request("run", {"code": self._code, "seconds": seconds}, on_progress=received)
        finally:
            for task in tuple(tasks):
                task.cancel()

    async def _answer(self, worker: WorkerClient, question: dict[str, Any]) -> None:
        try:
            reply = await self._answered(question)
        except BaError as error:
            reply = {"error": f"{error} {error.hint}".strip()}
        except (OSError, KeyError, TypeError, ValueError) as error:
            reply = {"error": one_line(f"{type(error).__name__}: {error}", 300)}
        with suppress(WorkerCrashed, WorkerFailed, OSError):
            await worker.request("answer", reply)

    async def _answered(self, question: dict[str, Any]) -> dict[str, Any]:
        match question["need"]:
            case "tables":
                found = await self._analysis.catalogue()
                return {"names": [*(each.name for each in found.datasets), *(each.handle for each in found.results)]}
            case "table":
                return {"file": str(await self._table(str(question["name"]), question["columns"]))}
            case "keep":
                return {"handle": await self._keep(question)}
            case _:
                return {"error": "This is no question that ba answers."}

    async def _table(self, name: str, columns: Sequence[str] | None) -> Path:
        """Return a file with the table; it is removed after the call."""
        if not self._analysis.begun:
            raise UnknownTable("This session has no tables yet.", "Query a file with query_data first.")
        page = await self._analysis.page(name, limit=0)
        known = [each.name for each in page.columns]
        if lacking := [each for each in columns or () if each not in known]:
            raise UnknownTable(f"{name} has no column {lacking[0]!r}. It has: {one_line(', '.join(known), 500)}.")
        self._check_size(name, page.total, [each for each in page.columns if columns is None or each.name in columns])
        file = await self._files.enter_async_context(self._analysis.exported(name, "parquet"))
        self._read[name.lower()] = None
        return file

    def _check_size(self, name: str, rows: int, columns: Sequence[Column]) -> None:
        size, memory = rows * sum(BYTES.get(each.kind, TABLE_BYTES) for each in columns), self._bounds.memory
        if size > memory // SHARE:
            raise UnknownTable(
                f"{name} has {rows:,} rows, about {size / GIGABYTE:.1f} GB as a DataFrame; Python may use "
                f"{memory / GIGABYTE:.1f} GB in all.",
                "Aggregate or filter it with query_data and read that result, or name the columns that you need: "
                f"ba.table({name!r}, columns=[...]).",
            )

    async def _keep(self, question: dict[str, Any]) -> str:
        """Store a Parquet file that the kernel wrote as a result."""
        inbox = await asyncio.to_thread(self._analysis.make_inbox)
        file = await asyncio.to_thread(take_over, self._bounds.folder / KEPT, str(question["file"]), inbox)
        try:
            result = await self._analysis.adopt(file, await self._provenance(question))
        finally:
            await asyncio.to_thread(file.unlink, missing_ok=True)
        self.kept.append(result)
        self._read[result.handle.lower()] = None
        return result.handle

    async def _provenance(self, question: dict[str, Any]) -> Provenance:
        """Return the provenance: the code, labelled with the name of the table, and all tables read by this or an
        earlier call."""
        found = await self._analysis.catalogue()
        datasets = [each for each in found.datasets if each.name.lower() in self._read]
        used = tuple(UsedData(each.name, each.source, each.files) for each in datasets)
        results = tuple(each.handle for each in found.results if each.handle.lower() in self._read)
        label = one_line(str(question["name"]), 100)
        code = f"# {label}\n{self._code}" if label else self._code
        seconds = round(time.monotonic() - self._clock, 6)
        engine = one_line(str(question["engine"]), 100)
        return Provenance(code, used, results, self._started, seconds, int(question["rows"]), engine, PYTHON)


def take_over(folder: Path, name: str, inbox: Path) -> Path:
    """Move a file that a kernel wrote out of its reach, and return the new path. Blocks. Raises KernelFailed: it is not
    a regular file. OSError: it can't be moved."""
    if Path(name).name != name:
        raise KernelFailed("A table is kept in a file of the session's folder.")
    target = inbox / f"python-{name}"
    (folder / name).rename(target)
    # Checked only after the move: before it, the kernel could still replace the file by a link.
    if not stat.S_ISREG(target.lstat().st_mode):
        target.unlink()
        raise KernelFailed("A table can be kept in a regular file only.")
    return target


ENTRY = "ba_tui.features.data.analysis.kernel.kernel_process:main"
DIED, ENDED = "kernel_died", "kernel_ended"
GRACE = 6.0
"""Seconds for an interrupted call to end; longer than the time after which its process kills the kernel."""
PRINTED = 2_000
GONE = "Its variables are gone; tables are still there."


@frozen
class KernelPlace:
    """How a kernel starts: its ``bounds``, the confined ``worker``, and an ``interpreter`` with ipykernel. ``outdated``
    returns why a running kernel must be restarted, empty when it need not be; blocks."""

    bounds: KernelBounds
    worker: WorkerSettings
    interpreter: Path
    outdated: Callable[[], str] = str


class PythonKernel:
    """One kernel. It starts with the first call, and again after it ended. Calls run one at a time; cancelling one
    interrupts it and keeps the variables. ``place`` blocks."""

    def __init__(self, place: Callable[[], KernelPlace], analysis: Analysis) -> None:
        self._make = place
        self._analysis = analysis
        self._place: KernelPlace | None = None
        self._worker: WorkerClient | None = None
        self._gone = ""
        self._read: dict[str, None] = {}
        self._printed = b""
        self._turn = asyncio.Lock()

    @property
    def running(self) -> bool:
        """Whether a kernel process is running."""
        return self._worker is not None and self._worker.alive()

    async def run(self, code: str, seconds: float, listener: Callable[[str], None] | None = None) -> CallResult:
        """Run ``code`` for at most ``seconds`` and return its output. ``listener`` receives printed text. Raises
        KernelFailed: the kernel could not start, or ended during the code."""
        async with self._turn:
            try:
                return await self._ran(code, seconds, listener)
            except WorkerFailed as error:
                if error.kind != ENDED:
                    await self._fail(error)
            # The code has not started: retry with a new kernel.
            await self._drop("Python ended since the last call.")
            try:
                return await self._ran(code, seconds, listener)
            except WorkerFailed as error:
                await self._fail(error)

    async def _ran(self, code: str, seconds: float, listener: Callable[[str], None] | None) -> CallResult:
        """Run the code. Raises WorkerFailed for errors reported by the kernel's process."""
        try:
            worker, bounds = await self._running()
            calls = TableCalls(self._analysis, bounds, self._read, code)
            reply = await calls.made(worker, seconds, listener)
        except WorkerFailed:
            raise
        except (OSError, BaError) as error:
            await self._fail(error)
        notes, self._gone = (self._gone,) if self._gone else (), ""
        return call_result(reply, tuple(calls.kept), notes)

    async def variables(self) -> tuple[Variable, ...] | None:
        """Return the variables; None while code runs. Starts no kernel."""
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
        """End the kernel; the next call starts a new one. Return False when none was running."""
        running = self.running
        await self._drop("Python was reset." if running else "")
        return running

    async def close(self) -> None:
        """End the kernel without waiting for it."""
        await self._drop()

    async def _running(self) -> tuple[WorkerClient, KernelBounds]:
        if self._worker and not self._worker.alive():
            await self._drop("Python ended since the last call.")
        if self._place and self._worker and (why := await asyncio.to_thread(self._place.outdated)):
            await self._drop(why)
        if self._place is None or self._worker is None:
            from ba_tui.processes.worker import WorkerClient  # noqa: PLC0415 - most sessions never run Python

            place = self._place = await asyncio.to_thread(self._make)
            arguments = (str(place.interpreter), str(place.bounds.folder))
            self._printed = b""
            self._worker = WorkerClient(WorkerEntry(ENTRY, arguments, GRACE, self._hear), place.worker)
        return self._worker, self._place.bounds

    def _hear(self, printed: bytes) -> None:
        """Keep what the processes print: it tells why they could not start."""
        self._printed = (self._printed + printed)[-PRINTED:]

    async def _drop(self, why: str = "") -> None:
        worker, self._worker = self._worker, None
        self._read.clear()
        if why:
            self._gone = f"{why} {GONE}"
        if worker:
            await worker.close()

    async def _fail(self, error: Exception) -> NoReturn:
        """Raise the error for a kernel that ended or did not start."""
        await self._drop()
        if isinstance(error, WorkerFailed) and error.kind == DIED:
            message: Any = json.loads(str(error))
            if not message.get("starting"):
                raise self._died(message) from error
        elif isinstance(error, WorkerCrashed) and (error.code is None or error.code < 0):
            raise KernelFailed(f"Python ended in the middle of this call: {error}. {GONE}") from error
        elif isinstance(error, KernelFailed):
            raise error
        printed = self._printed.decode("utf-8", "replace").strip() or getattr(error, "printed", "").strip()
        why = one_line(printed.rpartition("\n")[2] or str(error), 300)
        raise KernelFailed(f"Python could not start: {why}", getattr(error, "hint", "")) from error

    def _died(self, message: Any) -> KernelFailed:
        """Return the error for a kernel that ended during a call. ``code`` is its exit code, None when ba killed it."""
        code = message.get("code")
        if code is None:
            return KernelFailed(f"The code did not stop when it was interrupted, so Python was ended. {GONE}")
        how = f"exit code {code}"
        if code < 0:
            how = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        memory = self._place.bounds.memory if self._place else 0
        grave = -code in {signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT}
        hint = f"If it needed too much memory: it may use {memory / GIGABYTE:.1f} GB." if grave else ""
        return KernelFailed(f"Python ended in the middle of this call ({how}). {GONE}", hint)
