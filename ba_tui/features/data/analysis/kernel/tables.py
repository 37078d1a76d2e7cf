"""Tables between the session and Python code: those that a call reads, and those that it keeps as results."""

from __future__ import annotations

import asyncio
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ba_tui.core.errors import BaError
from ba_tui.core.ports.tables import PYTHON, Column, Provenance, QueryResult, UsedData
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.errors import UnknownTable
from ba_tui.features.data.analysis.kernel.values import KernelFailed
from ba_tui.processes.limits import GIGABYTE
from ba_tui.processes.worker_values import WorkerCrashed, WorkerFailed

if TYPE_CHECKING:
    from ba_tui.processes.worker import Worker

KEPT = ".kept"
SHARE = 3
"""A table may take one part in so many of the memory."""
BYTES = {"text": 64, "other": 128}
"""About what a value takes in a DataFrame; others take 8."""
TABLE_BYTES = 8


@frozen
class KernelBounds:
    """``folder`` is the one that the kernel may write, ``memory`` what it may use, in bytes."""

    folder: Path
    memory: int


class TableCalls:
    """One call of the kernel with its questions. ``read`` are the tables that the kernel's variables may come from."""

    def __init__(self, analysis: Analysis, bounds: KernelBounds, read: dict[str, None], code: str) -> None:
        self._analysis = analysis
        self._bounds = bounds
        self._read = read
        self._code = code
        self._started, self._clock = time.time(), time.monotonic()
        self._files = AsyncExitStack()
        self.kept: list[QueryResult] = []

    async def made(self, worker: Worker, seconds: float, listener: Callable[[str], None] | None) -> object:
        """Run the code and return the reply; raises as ``Worker.request``."""
        tasks: set[asyncio.Task[None]] = set()

        def heard(said: object) -> None:
            given = cast("dict[str, Any]", said)
            if "question" in given:
                task = asyncio.ensure_future(self._answer(worker, given["question"]))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            elif listener:
                listener(str(given.get("text", "")))

        try:
            async with self._files:
                return await worker.request("run", {"code": self._code, "seconds": seconds}, on_progress=heard)
        finally:
            for task in tuple(tasks):
                task.cancel()

    async def _answer(self, worker: Worker, question: dict[str, Any]) -> None:
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
        """A file with the table, for as long as the call lasts."""
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
        """Take over a Parquet file that the kernel wrote."""
        file = await asyncio.to_thread(taken, self._bounds.folder / KEPT, str(question["file"]), self._analysis.inbox)
        try:
            result = await self._analysis.adopt(file, await self._provenance(question))
        finally:
            await asyncio.to_thread(file.unlink, missing_ok=True)
        self.kept.append(result)
        self._read[result.handle.lower()] = None
        return result.handle

    async def _provenance(self, question: dict[str, Any]) -> Provenance:
        """The code, named as the person's code says, and every table that it or an earlier call has read."""
        found = await self._analysis.catalogue()
        datasets = [each for each in found.datasets if each.name.lower() in self._read]
        used = tuple(UsedData(each.name, each.source, each.files) for each in datasets)
        results = tuple(each.handle for each in found.results if each.handle.lower() in self._read)
        label = one_line(str(question["name"]), 100)
        code = f"# {label}\n{self._code}" if label else self._code
        seconds = round(time.monotonic() - self._clock, 6)
        engine = one_line(str(question["engine"]), 100)
        return Provenance(code, used, results, self._started, seconds, int(question["rows"]), engine, PYTHON)


def exports_of(analysis: Analysis) -> Path:
    """Return the folder of the files that ``analysis`` writes for others to read."""
    return analysis.inbox.with_name("exports")


def taken(folder: Path, name: str, inbox: Path) -> Path:
    """Move a file that a kernel wrote to where it can't reach, and return its new path. Blocks.

    Raises:
        KernelFailed: it is not a regular file. OSError: it can't be moved.
    """
    if Path(name).name != name:
        raise KernelFailed("A table is kept in a file of the session's folder.")
    inbox.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = inbox / f"python-{name}"
    (folder / name).rename(target)
    # Looked at only here: where it lay, the kernel could have put a link in its place afterwards.
    if not stat.S_ISREG(target.lstat().st_mode):
        target.unlink()
        raise KernelFailed("A table can be kept in a regular file only.")
    return target
