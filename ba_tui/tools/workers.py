"""Runs the user's tools in worker processes: one per file or module is kept between calls, each runs one call at a
time."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import re
import shutil
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ba_tui.core.effects import READING
from ba_tui.core.messages import clean_text
from ba_tui.core.results import Display, Table, ToolResult
from ba_tui.core.text.json_text import read_json
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.core.values import frozen
from ba_tui.permissions.sandbox.confinement import NotConfined, Sandbox
from ba_tui.processes.terminal_text import Capture, coloured, plain
from ba_tui.processes.values import Confinement, WorkerCrashed, WorkerEntry, WorkerFailed, WorkerSettings
from ba_tui.processes.worker import WorkerClient
from ba_tui.tools.failures import ToolFailure

ENTRY = "ba_tui.tools.worker_loop:main"
CACHE = "PYTHONPYCACHEPREFIX"
LIVE_CHARS = 8_000
"""Characters shown at a time; of more output only the newest."""
TICK_SECONDS = 0.05


@frozen
class Code:
    """The code that a worker loads: a ``file`` with the checked ``digest``, or a ``module``
    (``package.module:name``)."""

    file: str = ""
    module: str = ""
    digest: str = ""

    @property
    def shown(self) -> str:
        return self.file or self.module


class HeldReader:
    """The sandbox of a worker that may only read: it can write only to a private ``/tmp``, has no network, and sees
    secrets masked.

    ``code``: the loaded code, which it can read at any place.
    """

    def __init__(self, sandbox: Sandbox, code: Code) -> None:
        self._sandbox = sandbox
        self._code = code
        self._concealed = frozenset[tuple[Path, int]]()

    def confine(self) -> Confinement:
        """Return the confinement. Blocks. Raises NotConfined if nothing can keep the worker from writing."""
        held = None if (why := self._sandbox.unheld()) else self._sandbox.confine(READING, self._readable())
        if held is None or held.findings is None:
            text = f"A tool that declares effect: read can't be kept from writing here: {why or 'there is no sandbox'}."
            raise NotConfined(text)
        self._concealed = held.findings.concealed()
        # With a cache folder of its own, Python would compile every package again.
        return replace(held, environment={name: value for name, value in held.environment.items() if name != CACHE})

    def current(self) -> bool:
        """Return whether all present secrets are hidden from the worker. Blocks."""
        return self._sandbox.scan.look().concealed() <= self._concealed

    def _readable(self) -> list[Path]:
        """Return the folders for imports, except those that contain the home folder."""
        file = [Path(self._code.file).parent] if self._code.file else []
        home = self._sandbox.reach.home
        found = [Path(text) for text in sys.path if text.startswith("/")]
        return [*file, *(path for path in found if path.is_dir() and not (home and home.is_relative_to(path)))]


async def describe(
    code: Code, worker_settings: WorkerSettings, timeout: float, sandbox: Sandbox | None = None
) -> dict[str, Any]:
    """Return a description of the code. ``sandbox``: loading may only read. Raises as ``WorkerClient.request``."""
    tool_worker = _ToolWorker(code, worker_settings, HeldReader(sandbox, code) if sandbox else None)
    try:
        return cast("dict[str, Any]", await tool_worker.worker.request("describe", timeout=timeout))
    finally:
        tool_worker.worker.end()


class _ToolWorker:
    """A worker and the output of its call. ``reader``: its sandbox if it may only read."""

    def __init__(self, code: Code, worker_settings: WorkerSettings, reader: HeldReader | None = None) -> None:
        self.reader = reader
        if reader:
            worker_settings = replace(worker_settings, confine=reader.confine)
        # A cancelled call may have left any state, so its process ends.
        entry = WorkerEntry(ENTRY, (code.file, code.module, code.digest), grace=0, on_output=self._hear)
        self.worker = WorkerClient(entry, worker_settings)
        self._printed: _LiveOutput | None = None

    async def call(self, name: str, args: Mapping[str, Any], report: Callable[[str], None]) -> tuple[Any, str]:
        """Run a call; return the reply and the output. A cancel ends the process."""
        printed = self._printed = _LiveOutput(report)
        try:
            reply = await self.worker.request("call", {"object": name, "args": dict(args)})
        finally:
            self._printed = None
            printed.flush()
        return reply, printed.text()

    def _hear(self, data: bytes) -> None:
        if self._printed:
            self._printed.feed(data)


class _LiveOutput:
    """Passes a tool's output to the pane, a few times a second and within the pane's limits."""

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
    """The workers of one file or module: one is kept between calls; concurrent calls get one each. Reading calls
    have workers of their own, confined by ``sandbox``."""

    def __init__(self, code: Code, worker_settings: WorkerSettings, sandbox: Sandbox | None = None) -> None:
        self.code = code
        self._worker_settings = worker_settings
        self._sandbox = sandbox
        self._idle: list[_ToolWorker] = []
        self._lock = threading.Lock()
        self._in_turn = asyncio.Lock()
        self.closed = False
        """Whether the code was removed or changed, and is no longer run."""

    async def call(
        self, name: str, args: Mapping[str, Any], report: Callable[[str], None], *, keep: bool, reads: bool = False
    ) -> tuple[Any, str]:
        """Return the reply to a call and its output. Raises as ``WorkerClient.request``. ``keep``: the tool has state,
        so its calls run one after another in the same worker. ``reads``: the call may only read.

        A worker whose call left processes running is ended with them, unless ``keep``.
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
        """Return an idle or new worker. Raises NotConfined."""
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


log = logging.getLogger(__name__)
MAX_ROWS = 200
REFUSED = {
    "write": "it can write nothing but temporary files. To let it write, declare effect: write in its file; "
    "it then asks.",
    "network": "it has no network. To let it use the network, declare effect: network in its file; it then asks.",
    "hidden": "files with secrets and most of the home folder are hidden from it. "
    "To let it read them, declare effect: execute in its file; it then asks.",
}
"""Refusals to a reading tool, with the declaration that would allow them."""
READ_ONLY = regex(r"read-?only (?:file system|database)|unable to open database file", re.I)
KINDS = {"execution_error", "dependency_error", "invalid_parameters"}


def worker_tool(record: Mapping[str, Any], pool: WorkerPool) -> Tool:
    """Return the tool of ``record``, run by ``pool``."""
    name: str = record["name"]
    needs: Sequence[str] = record["needs"]

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        if needs and (lacking := await asyncio.to_thread(missing, needs)):
            raise ToolFailure("dependency_error", f"{name} needs {lacking}, which is not installed.")
        if pool.closed:
            message = f"The file of {name} is gone, was changed or is not trusted any more."
            raise ToolFailure(
                "not_found", message, "Use another tool; a changed one is available from the next prompt on."
            )
        # A call that was approved without a sandbox runs like other tools.
        reads = call.profile.name == "reading"
        try:
            reply, printed = await pool.call(record["object"], args, call.report, keep=record["stateful"], reads=reads)
        except (WorkerCrashed, WorkerFailed) as error:
            hint = "Do not repeat the call unchanged; the tool itself may need a correction."
            raise ToolFailure("execution_error", f"{name} gave no result: {error}.", hint) from error
        except OSError as error:
            raise ToolFailure("resource_error", f"{name} could not be started: {error.strerror or error}.") from error
        return _result(name, reply, printed, reads=reads)

    facts = ToolFacts(
        category=record["category"],
        target=record["target"],
        paths=tuple(record["paths"]),
        repeatable=record["repeatable"],
        cacheable=record["cacheable"],
        tags=tuple(record["tags"]),
        version=record["version"],
        level=record["level"],
        subagents=record["subagents"],
        needs=tuple(needs),
        examples=tuple(record["examples"]),
        reads=record["effect"] == Effect.READ,
    )
    return Tool(
        name,
        record["description"],
        record["schema"],
        run,
        Effect(record["effect"]),
        timeout=record["timeout"],
        facts=facts,
        idempotent=record["idempotent"],
    )


def missing(needs: Sequence[str]) -> str:
    """Return the first of ``needs`` that is neither an importable module nor a program; empty if all exist."""
    return next((need for need in needs if not shutil.which(need) and not _importable(need)), "")


def _importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name.partition(".")[0]) is not None
    except (ValueError, ImportError):
        return False


def _result(name: str, reply: Mapping[str, Any], printed: str, *, reads: bool) -> ToolResult:
    match reply:
        case {"failed": {"text": str(text), **more}}:
            log.warning("%s failed\n%s", name, clean_text(str(more.get("trace", ""))))
            kind, line = more.get("kind"), more.get("line")
            where = f" (line {line} of its file)" if line else ""
            refused = "write" if READ_ONLY.search(f"{text}\n{printed}") else str(more.get("refused"))
            hint = REFUSED.get(refused) if reads else None
            hint = f"{name} declares effect: read, so {hint}" if hint else ""
            raise ToolFailure(kind if kind in KINDS else "execution_error", f"{name} failed: {text}{where}", hint)
        case {"text": str(text)} if text:
            result = ToolResult(text)
        case {"text": _}:
            result = ToolResult(plain(printed).strip() or "(nothing was returned)")
        case {"json": str(text)}:
            result = ToolResult(text, _table(text), kind="json")
        case {"result": str(text)}:
            result = _own(name, text)
        case _:
            raise ToolFailure("internal_error", f"{name}: the worker's reply can't be understood.")
    left = reply.get("left") or 0
    if left:
        note = f"[{left} process{'' if left == 1 else 'es'} left in the background: ended]"
        result = replace(result, text=f"{result.text}\n{note}")
    return result


def _own(name: str, text: str) -> ToolResult:
    """Return a ToolResult that the tool made, without changes of the session's state and references to its files."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - heavy, and rarely used

    try:
        result = TypeAdapter(ToolResult).validate_json(text)
    except ValidationError as error:
        raise ToolFailure(
            "internal_error", f"{name} returned an invalid ToolResult: {error.errors()[0]['msg']}"
        ) from error
    return replace(result, changes=None, artifact=None)


def _table(text: str) -> Display | None:
    """Return a table for a list of flat records; None for other JSON."""
    if not text.startswith("[{"):
        return None
    rows = read_json(text)
    if rows is None:
        return None
    records = cast("list[Any]", rows)[:MAX_ROWS]
    if not all(isinstance(row, dict) for row in records):
        return None
    columns = list(dict.fromkeys(str(key) for row in records for key in row))
    values = [tuple(row.get(column) for column in columns) for row in records]
    flat = all(not isinstance(value, dict | list) for row in values for value in row)
    return Table(tuple(columns), tuple(values)) if flat else None
