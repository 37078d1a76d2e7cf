"""The tool ``python`` with a kernel that keeps variables, or the stateless tool where no kernel can run."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from ba_tui.core.effects import READING
from ba_tui.core.errors import UsageError, off_loop
from ba_tui.core.events import MAIN
from ba_tui.core.messages import Image
from ba_tui.core.ports.datasets import PythonFile, PythonState
from ba_tui.core.ports.tables import Column
from ba_tui.core.provider import Modalities
from ba_tui.core.results import CommandText, Display, Table, ToolResult, failure
from ba_tui.core.text.wording import byte_size, count, one_line
from ba_tui.core.tool import Call, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.kernel.client import KernelBounds, KernelPlace, PythonKernel
from ba_tui.features.data.analysis.kernel.values import CallResult, Shown, ShownPicture, ShownTable, files_in
from ba_tui.features.data.analysis.nearby import why_no_kernel
from ba_tui.features.data.tools.exports import ExportRules
from ba_tui.features.data.tools.query_data import rows_text
from ba_tui.permissions.sandbox.confinement import NotConfined, Sandbox, limits_for
from ba_tui.permissions.session import SessionPermissions
from ba_tui.processes.scratch import make_scratch, remove_scratch, scratch_path
from ba_tui.processes.terminal_text import plain
from ba_tui.processes.values import GIGABYTE, Confinement, WorkerSettings
from ba_tui.resources import open_unlinked
from ba_tui.settings import Settings
from ba_tui.tools.builtin.media import ATTACHED, LONGEST_SIDE, attached, measured
from ba_tui.tools.builtin.shell import MAX_SECONDS, VENVS, check, command_tool
from ba_tui.tools.definitions import Definition
from ba_tui.tools.editing.disk import place_file
from ba_tui.tools.failures import ToolFailure
from ba_tui.tools.toolbox import PYTHON_FILES

MOST_FILES = 20
MOST_PICTURES = 4
READ_ONLY = "Python can't write here: write files to ba.folder, or save text in the workspace with write_file"
NO_NETWORK = "Python has no network"
KEPT_VALUES = "variables that were set before this keep their values"


@frozen
class PythonCall:
    """A call: ``code`` that ran for at most ``seconds``, the folder ``files`` where it may write, its ``memory`` limit
    in bytes, and a note about ``lost`` variables."""

    code: str
    files: Path
    memory: int
    seconds: float
    lost: str = ""


def python_result(ran: CallResult, call: PythonCall, modalities: Modalities) -> ToolResult:
    """Return the result of a call. Blocks: it reads pictures for a model that accepts them."""
    pictures = [each for each in ran.shown if isinstance(each, ShownPicture)]
    read = [_picture(call.files, each) for each in pictures[:MOST_PICTURES]] if modalities.pictures() else []
    seen = tuple(each for each in read if each)
    body = "\n".join(filter(None, map(_said, ran.shown)))
    if ran.error and not ran.late:
        body = "\n".join(filter(None, (body, ran.error.short)))
    notes = [*_hints(ran, call), *_files(ran, pictures), *ran.notes, *([call.lost] if call.lost else [])]
    notes += [f"kept as {each.handle}, {count(each.rows, 'row')}: query_data and ba.table read it" for each in ran.kept]
    text = "\n".join([body or "(no output)", *(f"[{note}]" for note in notes)])
    display = _display(ran, call, notes)
    if ran.late:
        message = f"The code ran longer than {call.seconds:g} s and was interrupted; its variables are kept."
        failed = failure("timeout", message, display=display)
        said = f"{failed.text}\nOutput so far (partial):\n{text}"
        return replace(failed, text=said, meta={"partial": True})
    table = display if isinstance(display, Table) else None
    return ToolResult(
        text,
        display,
        summary=_summary(ran, table, pictures),
        attachments=seen,
        meta={"result": table.handle} if table and table.handle else {},
    )


def _said(shown: Shown) -> str:
    if isinstance(shown, ShownPicture):
        return f"[picture: {PYTHON_FILES}/{shown.file}]"
    if isinstance(shown, ShownTable):
        columns = [Column(name, kind) for name, kind in zip(shown.columns, shown.types, strict=False)]
        return "\n".join([_title(shown), *rows_text(columns, shown.rows)])
    return plain(shown.text).rstrip("\n")


def _title(table: ShownTable) -> str:
    first = "" if len(table.rows) == table.total else f"; the first {len(table.rows):,} follow"
    handle = f"{table.handle}: " if table.handle else ""
    return f"{handle}{one_line(table.kind, 40)}, {count(table.total, 'row')}, {count(table.width, 'column')}{first}."


def _hints(ran: CallResult, call: PythonCall) -> Iterator[str]:
    """Yield hints about an error."""
    if ran.error is None:
        return
    yield KEPT_VALUES
    line = ran.error.line
    if "Read-only file system" in line or ran.error.name == "PermissionError":
        yield READ_ONLY
    elif "Network is unreachable" in line or "name resolution" in line:
        yield NO_NETWORK
    elif ran.error.name in {"MemoryError", "_ArrayMemoryError", "ArrayMemoryError"}:
        yield f"Python may use {call.memory / GIGABYTE:.1f} GB of memory (analysis.python_memory_gb)"


def _files(ran: CallResult, pictures: Sequence[ShownPicture]) -> Iterator[str]:
    """Yield a note about the files that the call wrote, except pictures, which are shown in place."""
    shown = {each.file for each in pictures}
    files = [(name, size) for name, size in ran.files if name not in shown]
    if files:
        named = ", ".join(
            f"{PYTHON_FILES}/{one_line(name, 200)} ({byte_size(size)})" for name, size in files[:MOST_FILES]
        )
        more = f" and {len(files) - MOST_FILES:,} more" if len(files) > MOST_FILES else ""
        yield f"written: {named}{more}"


def _display(ran: CallResult, call: PythonCall, notes: Sequence[str]) -> Display:
    """Return a table display for a single table, else the output as a shell would show it."""
    if len(ran.shown) == 1 and isinstance(table := ran.shown[0], ShownTable) and not ran.error:
        return Table(table.columns, table.rows, handle=table.handle, total=table.total)
    parts = [_painted(each) for each in ran.shown]
    full = ran.error.full if ran.error else ""
    output = "\n".join([*filter(None, (*parts, full)), *(f"[{note}]" for note in notes)])
    return CommandText(call.code, "", output, 1 if ran.error else 0)


def _painted(shown: Shown) -> str:
    """Return a part of the output for the user, with the command that saves a picture."""
    if isinstance(shown, ShownPicture):
        return f"[picture: {PYTHON_FILES}/{shown.file} · /python save {shown.file}]"
    return shown.plain if isinstance(shown, ShownTable) else _said(shown)


def _summary(ran: CallResult, table: Table | None, pictures: Sequence[ShownPicture]) -> str:
    if ran.error:
        return one_line(ran.error.line, 100)
    if table:
        rows = count(table.total, "row")
        return f"{table.handle} · {rows}" if table.handle else rows
    if ran.kept:
        return f"{ran.kept[-1].handle} · {count(ran.kept[-1].rows, 'row')}"
    if pictures:
        return pictures[-1].file
    return f"{ran.seconds:.1f} s"


def _picture(folder: Path, shown: ShownPicture) -> Image | None:
    """Return the picture for the model; None when it is invalid or too large. The file is untrusted."""
    if Path(shown.file).name != shown.file:
        return None
    try:
        with open_unlinked(folder / shown.file) as file:
            data = file.read(ATTACHED + 1)
    except OSError:
        return None
    picture = measured(data)
    if picture is None or len(data) > ATTACHED or max(picture.width, picture.height) > LONGEST_SIDE:
        return None
    return attached(picture, data)


FOLDER = PYTHON_FILES
MOST_MEMORY = 4 * GIGABYTE
EXTRA = "pip install 'ba-tui[python]'"
CACHE = "PYTHONPYCACHEPREFIX"
SEARCH_SECONDS = 2.0
"""Seconds that a kernel's start waits for the search for secrets."""
CHANGED = "Files with secrets changed, so Python began anew to keep them hidden."


class PythonPlace:
    """Interpreter, sandbox and folder of the kernels of one session. ``folder`` is where Python code writes files
    (None: a temporary folder), ``environment`` the variables of commands. All members but ``files`` block."""

    def __init__(
        self,
        permissions: SessionPermissions,
        folder: Path | None,
        settings: Settings,
        environment: Mapping[str, str],
    ) -> None:
        self._root = permissions.workspace.root
        self._policy = permissions.policy
        self.settings = settings
        self._sandbox = permissions.sandbox
        self._environment = environment
        self._temporary = folder is None
        base = folder or scratch_path("python")
        self.files = base / FOLDER
        """The folder of files written by Python code."""

    def lacking(self) -> str:
        """Return why no kernel may run, as words after "because"; empty when one may."""
        return why_no_kernel(self._policy, self._sandbox)

    def made(self, engine: Analysis) -> KernelPlace:
        """Return the place of the next kernel, which reads tables that ``engine`` exports."""
        exports = engine.exports
        if self._temporary:
            make_scratch(self.files.parent)
        for folder in (self.files, exports):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        memory = python_memory(self.settings)
        held = _Held(self._sandbox, self.files, exports)
        limits = replace(limits_for(self.settings), memory=memory).for_seconds()
        worker = WorkerSettings(self._root, self._environment, limits, held.confine)
        return KernelPlace(KernelBounds(self.files, memory), worker, interpreter(self._root), held.outdated)

    def close(self) -> None:
        """Remove a temporary folder."""
        if self._temporary:
            remove_scratch(self.files.parent)


class _Held:
    """The sandbox of one kernel. It outlives single commands, so the set of hidden files may change meanwhile."""

    def __init__(self, sandbox: Sandbox, files: Path, exports: Path) -> None:
        self._sandbox = sandbox
        self._profile = replace(READING, readable=(exports,), writable=(files,))
        self._hidden: frozenset[tuple[Path, int]] = frozenset()

    def confine(self) -> Confinement:
        """Return the confinement. Raises NotConfined."""
        if why := self._sandbox.unheld():
            raise NotConfined(f"Python can't be kept from changing files here: {why}.", "Run it with the tool shell.")
        # Secrets found after a kernel's start are only masked in its results.
        self._sandbox.search(SEARCH_SECONDS)
        held = self._sandbox.confine(self._profile)
        if held is None or held.findings is None:
            raise NotConfined("Python can't be kept from changing files here: there is no sandbox.")
        self._hidden = held.findings.concealed()
        # With a separate cache, Python would compile every package again.
        return replace(held, environment={name: value for name, value in held.environment.items() if name != CACHE})

    def outdated(self) -> str:
        return "" if self._sandbox.scan.look().concealed() <= self._hidden else CHANGED


def interpreter(root: Path) -> Path:
    """Return the project's Python if it has ipykernel, else the one that runs ba."""
    for venv in VENVS:
        python = root / venv / "bin" / "python"
        if os.access(python, os.X_OK) and any((root / venv).glob("lib/python3*/site-packages/ipykernel")):
            return python
    return Path(sys.executable)


def python_memory(settings: Settings) -> int:
    """Return the memory limit of a kernel in bytes."""
    given = int(settings.analysis.python_memory_gb * GIGABYTE)
    return given or min(MOST_MEMORY, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4)


NAME, KERNEL = "python", "python_kernel"
INSTEAD = "Query tables with query_data; the tool shell can run Python, and asks where it must."
RESTARTED = "ba was started again: variables of earlier Python calls are gone; tables are still there"


class Kernels:
    """The kernels of one session: one for the conversation and one for each sub-agent, so that agents can't overwrite
    each other's variables. A sub-agent's kernel ends with the sub-agent."""

    def __init__(self, place: PythonPlace, engine: Analysis) -> None:
        self.place = place
        self._engine = engine
        self._main: PythonKernel | None = None
        self._others: WeakKeyDictionary[Branch, PythonKernel] = WeakKeyDictionary()
        self._begun = False

    @property
    def main(self) -> PythonKernel:
        """The kernel of the conversation."""
        self._main = self._main or self._new()
        return self._main

    def of(self, branch: Branch) -> PythonKernel:
        """Return the kernel of the agent of ``branch``."""
        if branch.name == MAIN:
            return self.main
        return self._others.setdefault(branch, self._new())

    def lost(self, transcript: Transcript, call_id: str) -> str:
        """Return, once, a note that variables of a previous run of ba are gone."""
        first, self._begun = not self._begun, True
        calls = (call for message in transcript.messages for call in message.calls)
        earlier = first and any(call.name == NAME and call.id != call_id for call in calls)
        return RESTARTED if earlier else ""

    async def close(self) -> None:
        for kernel in filter(None, (self._main, *self._others.values())):
            await kernel.close()
        await off_loop(self.place.close)

    def _new(self) -> PythonKernel:
        return PythonKernel(lambda: self.place.made(self._engine), self._engine)


def kernel_tool(definition: Definition, kernels: Kernels, modalities: Modalities) -> Tool:
    place = kernels.place

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        code: str = args["code"]
        check(code, "code")
        if why := await asyncio.to_thread(place.lacking):
            raise ToolFailure("permission_denied", f"Python was not run, because {why}.", INSTEAD)
        kernel = kernels.of(call.branch)
        if args.get("reset"):
            await kernel.reset()
        seconds = min(float(args.get("timeout", place.settings.analysis.python_seconds)), MAX_SECONDS)
        lost = kernels.lost(call.branch.transcript, call.id) if call.branch.name == MAIN else ""
        ran = await kernel.run(code, seconds, lambda text: call.report(plain(text)))
        shown = PythonCall(code, place.files, python_memory(place.settings), seconds, lost)
        return await asyncio.to_thread(python_result, ran, shown, modalities)

    return command_tool(definition, run)


KEEP_SECONDS = 60.0


@frozen
class SessionPython:
    """Implements core.ports.datasets.PythonSession for the kernel of the conversation, not those of sub-agents."""

    kernels: Kernels
    rules: ExportRules

    async def state(self) -> PythonState:
        kernel = self.kernels.main
        found = await asyncio.to_thread(files_in, self.kernels.place.files)
        files = tuple(PythonFile(name, size) for name, (size, _) in found.items())
        if not kernel.running:
            return PythonState(files=files)
        variables = await kernel.variables()
        return PythonState(True, variables is None, variables or (), files)

    async def keep(self, name: str) -> str:
        kernel = self.kernels.main
        if not name.isidentifier() or not kernel.running:
            raise UsageError(f"There is no variable {name!r}.")
        ran = await kernel.run(f"_ = ba.keep({name}, {json.dumps(name)})", KEEP_SECONDS)
        if not ran.kept:
            raise UsageError(ran.error.line.partition(": ")[2] if ran.error else f"{name} can't be kept.")
        return ran.kept[-1].handle

    async def reset(self) -> bool:
        return await self.kernels.main.reset()

    async def save(self, name: str, path: str = "") -> PythonFile:
        return await asyncio.to_thread(self._saved, name, path)

    def _saved(self, name: str, path: str) -> PythonFile:
        target = self.rules.target(path or Path(name).name)
        shown = self.rules.workspace.shown(target)
        if why := self.rules.concern(target):
            raise UsageError(f"{shown} {why}.", "Name a new file in this folder: /python save FILE PATH")
        if name not in files_in(self.kernels.place.files):
            raise UsageError(f"Python has written no file {name!r}.", "/python lists the files.")
        # Copied first: running code could replace the file by a link.
        source = Path(os.path.realpath(self.kernels.place.files)) / name
        with tempfile.NamedTemporaryFile() as copy:
            with open_unlinked(source) as file:
                shutil.copyfileobj(file, copy)
            copy.flush()
            return PythonFile(shown, place_file(Path(copy.name), target, overwrite=False, shown=shown))
