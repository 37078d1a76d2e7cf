"""Runs people's tools in worker processes: one a piece of code is kept between calls; each runs one call at a time.

Processes and their connection are the room processes'; the other side is ``worker_loop``.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ba_tui.core.messages import clean_text
from ba_tui.core.profiles import READING
from ba_tui.core.values import frozen
from ba_tui.permissions.sandbox.confinement import NotConfined, Sandbox
from ba_tui.processes.confinement import Confinement
from ba_tui.processes.terminal_text import Capture, coloured
from ba_tui.processes.worker import Worker
from ba_tui.processes.worker_values import WorkerEntry, WorkerSettings

ENTRY = "ba_tui.tools.own.worker_loop:main"
CACHE = "PYTHONPYCACHEPREFIX"
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


class HeldReader:
    """The sandbox of one worker that may only read: no write but to a private ``/tmp``, no network, secrets masked.

    ``code``: what it loads, which it can read wherever it lies.
    """

    def __init__(self, sandbox: Sandbox, code: Code) -> None:
        self._sandbox = sandbox
        self._code = code
        self._concealed = frozenset[tuple[Path, int]]()

    def confine(self) -> Confinement:
        """Blocks. Raises NotConfined where nothing keeps the worker from writing."""
        held = None if (why := self._sandbox.unheld()) else self._sandbox.confine(READING, self._readable())
        if held is None or held.findings is None:
            text = f"A tool that declares effect: read can't be kept from writing here: {why or 'there is no sandbox'}."
            raise NotConfined(text)
        self._concealed = held.findings.concealed()
        # With a cache of its own, Python would compile every package again.
        return replace(held, environment={name: value for name, value in held.environment.items() if name != CACHE})

    def current(self) -> bool:
        """Return whether the worker sees no secret that came later. Blocks."""
        return self._sandbox.scan.look().concealed() <= self._concealed

    def _readable(self) -> list[Path]:
        """The folders that the code is imported from, but for those that hold the home folder."""
        file = [Path(self._code.file).parent] if self._code.file else []
        home = self._sandbox.reach.home
        found = [Path(text) for text in sys.path if text.startswith("/")]
        return [*file, *(path for path in found if path.is_dir() and not (home and home.is_relative_to(path)))]


async def describe(
    code: Code, worker_settings: WorkerSettings, timeout: float, sandbox: Sandbox | None = None
) -> dict[str, Any]:
    """What is in the code. ``sandbox``: it may do nothing but read while it loads. Raises as ``Worker.request``."""
    tool_worker = _ToolWorker(code, worker_settings, HeldReader(sandbox, code) if sandbox else None)
    try:
        return cast("dict[str, Any]", await tool_worker.worker.request("describe", timeout=timeout))
    finally:
        tool_worker.worker.end()


class _ToolWorker:
    """A worker of one piece of code, and what it prints during a call. ``reader``: what holds it to reading."""

    def __init__(self, code: Code, worker_settings: WorkerSettings, reader: HeldReader | None = None) -> None:
        self.reader = reader
        if reader:
            worker_settings = replace(worker_settings, confine=reader.confine)
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
    """The workers of one piece of code: one is kept between calls; calls at the same time get one each. Calls that may
    only read have workers of their own, which ``sandbox`` holds to that."""

    def __init__(self, code: Code, worker_settings: WorkerSettings, sandbox: Sandbox | None = None) -> None:
        self.code = code
        self._worker_settings = worker_settings
        self._sandbox = sandbox
        self._idle: list[_ToolWorker] = []
        self._lock = threading.Lock()
        self._in_turn = asyncio.Lock()
        self.closed = False
        """Its code is gone or another by now, and is not run any more."""

    async def call(
        self, name: str, args: Mapping[str, Any], report: Callable[[str], None], *, keep: bool, reads: bool = False
    ) -> tuple[Any, str]:
        """The reply to a call, and what was printed meanwhile. Raises as ``Worker.request``. ``keep``: the tool has a
        state, so its calls take turns and the worker stays. ``reads``: the call may do nothing but read.

        Otherwise a worker whose call left processes behind is ended with them.
        """
        if keep:
            async with self._in_turn:
                return await self._call(name, args, report, keep=True, reads=reads)
        return await self._call(name, args, report, keep=False, reads=reads)

    async def _call(
        self, name: str, args: Mapping[str, Any], report: Callable[[str], None], *, keep: bool, reads: bool
    ) -> tuple[Any, str]:
        tool_worker = await asyncio.to_thread(self._tool_worker, reads=reads) if reads else self._tool_worker()
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

    def _tool_worker(self, *, reads: bool = False) -> _ToolWorker:
        """Raises NotConfined."""
        if reads and self._sandbox is None:
            raise NotConfined("A tool that declares effect: read can't be kept from writing here: there is no sandbox.")
        with self._lock:
            for tool_worker in [each for each in self._idle if bool(each.reader) == reads]:
                self._idle.remove(tool_worker)
                if tool_worker.worker.alive() and (tool_worker.reader is None or tool_worker.reader.current()):
                    return tool_worker
                tool_worker.worker.end()
        reader = HeldReader(self._sandbox, self.code) if reads and self._sandbox else None
        return _ToolWorker(self.code, self._worker_settings, reader)

    def _put_back(self, tool_worker: _ToolWorker) -> None:
        with self._lock:
            if self.closed or any(bool(each.reader) == bool(tool_worker.reader) for each in self._idle):
                tool_worker.worker.end()
            else:
                self._idle.append(tool_worker)
