"""Runs people's tools in worker processes: one a piece of code is kept between calls; each runs one call at a time.

Processes and their connection are the room processes'; the other side is ``worker_loop``.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any, cast

from ba_tui.core.messages import clean_text
from ba_tui.core.values import frozen
from ba_tui.processes.terminal_text import Capture, coloured
from ba_tui.processes.worker import Worker
from ba_tui.processes.worker_values import WorkerEntry, WorkerSettings

ENTRY = "ba_tui.tools.own.worker_loop:main"
LIVE_CHARS = 8_000
"""Characters shown live at a time; of a flood only the newest are."""
TICK_SECONDS = 0.05


@frozen
class Code:
    """What a worker loads: a ``file`` of which ``digest`` was looked at, or a ``module`` (``package.module:name``)."""

    file: str = ""
    module: str = ""
    digest: str = ""

    @property
    def shown(self) -> str:
        return self.file or self.module


async def describe(code: Code, worker_settings: WorkerSettings, timeout: float) -> dict[str, Any]:
    """What is in the code. Raises as ``Worker.request``."""
    tool_worker = _ToolWorker(code, worker_settings)
    try:
        return cast("dict[str, Any]", await tool_worker.worker.request("describe", timeout=timeout))
    finally:
        tool_worker.worker.end()


class _ToolWorker:
    """A worker of one piece of code, and what it prints during a call."""

    def __init__(self, code: Code, worker_settings: WorkerSettings) -> None:
        # What a cancelled call has changed by then is unknown, so its process does not stay.
        entry = WorkerEntry(ENTRY, (code.file, code.module, code.digest), grace=0, on_output=self._hear)
        self.worker = Worker(entry, worker_settings)
        self._printed: _Printed | None = None

    async def call(self, name: str, args: Mapping[str, Any], report: Callable[[str], None]) -> tuple[Any, str]:
        """The reply to a call, and what was printed meanwhile. Cancelling ends the process."""
        printed = self._printed = _Printed(report)
        try:
            reply = await self.worker.request("call", {"object": name, "args": dict(args)})
        finally:
            self._printed = None
            printed.flush()
        return reply, printed.text()

    def _hear(self, data: bytes) -> None:
        if self._printed:
            self._printed.feed(data)


class _Printed:
    """What a tool prints on its way to the pane, a few times a second and never more than a pane can take."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._capture = Capture()
        self._waiting = b""
        self._timer: asyncio.TimerHandle | None = None

    def feed(self, data: bytes) -> None:
        if not data:
            return
        self._capture.feed(data)
        self._waiting = (self._waiting + data)[-LIVE_CHARS:]
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self.flush)

    def flush(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        text = clean_text(coloured(self._waiting.decode("utf-8", "replace")))
        self._waiting = b""
        if text:
            self._report(text)

    def text(self) -> str:
        return self._capture.text()


class WorkerPool:
    """The workers of one piece of code: one is kept between calls; calls at the same time get one each."""

    def __init__(self, code: Code, worker_settings: WorkerSettings) -> None:
        self.code = code
        self._worker_settings = worker_settings
        self._idle: list[_ToolWorker] = []
        self._lock = threading.Lock()
        self._in_turn = asyncio.Lock()
        self.closed = False
        """Its code is gone or another by now, and is not run any more."""

    async def call(
        self, name: str, args: Mapping[str, Any], report: Callable[[str], None], *, keep: bool
    ) -> tuple[Any, str]:
        """The reply to a call, and what was printed meanwhile. Raises as ``Worker.request``. ``keep``: the tool has a
        state, so its calls take turns and the worker stays.

        Otherwise a worker whose call left processes behind is ended with them.
        """
        if keep:
            async with self._in_turn:
                return await self._call(name, args, report, keep=True)
        return await self._call(name, args, report, keep=False)

    async def _call(
        self, name: str, args: Mapping[str, Any], report: Callable[[str], None], *, keep: bool
    ) -> tuple[Any, str]:
        tool_worker = self._tool_worker()
        try:
            reply, printed = await tool_worker.call(name, args, report)
        except BaseException:
            tool_worker.worker.end()
            raise
        if reply.get("left") and not keep:
            tool_worker.worker.end()
        else:
            self._put_back(tool_worker)
        return reply, printed

    def close(self) -> None:
        self.closed = True
        with self._lock:
            while self._idle:
                self._idle.pop().worker.end()

    def _tool_worker(self) -> _ToolWorker:
        with self._lock:
            while self._idle:
                tool_worker = self._idle.pop()
                if tool_worker.worker.alive():
                    return tool_worker
                tool_worker.worker.end()
        return _ToolWorker(self.code, self._worker_settings)

    def _put_back(self, tool_worker: _ToolWorker) -> None:
        with self._lock:
            if self._idle or self.closed:
                tool_worker.worker.end()
            else:
                self._idle.append(tool_worker)
