"""The program of a worker process: loads one tool file, describes it, and runs its tools, one call at a time.

Every outcome of a tool becomes a reply, or ends the process, which the client notices.
"""

from __future__ import annotations

import errno
import hashlib
import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from importlib.machinery import FileFinder, ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from ba_tui.core.results import ToolResult
from ba_tui.processes.serving import WorkerChannel, WorkerRequest
from ba_tui.tools.declared_tools import DeclaredTool, ToolFault, declared_in

if TYPE_CHECKING:
    import asyncio

MAX_RESULT_BYTES = 20_000_000
TRACE_CHARS = 4_000
REFUSALS = {
    errno.EROFS: "write", errno.EPERM: "write", errno.ENETUNREACH: "network", errno.ECONNREFUSED: "network",
    errno.EHOSTUNREACH: "network", errno.ENETDOWN: "network",
}  # fmt: skip


def main(channel: WorkerChannel, file: str, module: str, digest: str) -> None:
    """Answer requests until the client disconnects. ``file`` or ``module`` is loaded by the first one."""
    loaded: dict[str, DeclaredTool] = {}
    instances: dict[str, Any] = {}
    own = os.getpid()

    def answer(request: WorkerRequest) -> dict[str, Any]:
        payload: Any = request.payload
        try:
            if not loaded:
                loaded.update((each.found.__name__, each) for each in _load(file, module, digest))
            if request.method == "describe":
                reply: dict[str, Any] = {"tools": [each.record for each in loaded.values()]}
            else:
                reply = _called(loaded[payload["object"]], instances, payload["args"], runner)
        except BaseException as error:  # noqa: BLE001 - any failure becomes a reply
            reply = {"failed": _failure(error, file)}
        if os.getpid() != own:
            # The tool forked and both processes returned; only the parent may answer.
            os._exit(0)
        _flush()
        return {**reply, "left": len(_left_running())}

    with ExitStack() as until_the_end:

        @cache
        def runner() -> asyncio.Runner:
            """Return one event loop for all calls, as a tool's state may belong to it."""
            import asyncio  # noqa: PLC0415 - a quarter of the start, and most tools are plain functions

            return until_the_end.enter_context(asyncio.Runner())

        channel.serve({"describe": answer, "call": answer})


def _load(file: str, module: str, digest: str) -> list[DeclaredTool]:
    package, _, name = module.partition(":")
    found = importlib.import_module(package) if module else _from_file(Path(file), digest)
    if name:
        return [DeclaredTool(getattr(found, name))]
    derived = [DeclaredTool(each) for each in declared_in(found)]
    names: dict[str, DeclaredTool] = {}
    for each in derived:
        if first := names.get(each.name):
            text = f"two tools are named {each.name!r}: the other one is in line {first.line}"
            raise ToolFault(text, each.line)
        names[each.name] = each
    return derived


class _Loader(SourceFileLoader):
    """Compiles the source itself: no ``__pycache__`` is read or written. ``data``: the checked bytes, which run even if
    the file has changed since; by default the file is read."""

    def __init__(self, fullname: str, path: str, data: bytes | None = None) -> None:
        super().__init__(fullname, path)
        self._data = data

    def get_code(self, fullname: str) -> CodeType:
        data = self.get_data(self.path) if self._data is None else self._data
        return compile(data, self.path, "exec", dont_inherit=True)


class _SiblingModules:
    """Finds modules in the folder of a tool file. Consulted last for top-level names, so that none hides a library."""

    def __init__(self, folder: str, *, top: bool) -> None:
        self._folder = folder
        self._top = top

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        del target
        if self._top:
            return self._found(name, self._folder) if path is None else None
        below = [entry for entry in path or () if Path(entry).is_relative_to(self._folder)]
        return next((spec for entry in below if (spec := self._found(name, entry))), None)

    def _found(self, name: str, folder: str) -> ModuleSpec | None:
        return FileFinder(folder, (_Loader, [".py"])).find_spec(name)


def _from_file(path: Path, digest: str) -> ModuleType:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ToolFault(f"the file can't be read: {error.strerror}") from error
    if digest and hashlib.sha256(data).hexdigest() != digest:
        raise ToolFault("the file changed meanwhile; the new version is available from the next prompt on")
    folder = str(path.parent)
    sys.meta_path.insert(0, _SiblingModules(folder, top=False))
    sys.meta_path.append(_SiblingModules(folder, top=True))
    name = f"ba_tool_{path.stem}"
    spec = spec_from_file_location(name, path, loader=_Loader(name, str(path), data))
    if spec is None or spec.loader is None:
        raise ToolFault("this is not a Python file")
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _called(
    tool: DeclaredTool, instances: dict[str, Any], args: Mapping[str, Any], runner: Callable[[], asyncio.Runner]
) -> dict[str, Any]:
    try:
        given = tool.bind(args)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:3]]
        return {"failed": {"kind": "invalid_parameters", "text": "; ".join(lines)}}
    function: Any = tool.found
    if tool.stateful:
        name = tool.found.__name__
        if name not in instances:
            instances[name] = tool.found()
        function = instances[name].run
    value = function(**given)
    if inspect.isawaitable(value):
        value = runner().run(_awaited(value))
    return _encoded(value)


async def _awaited(value: Any) -> Any:
    return await value


def _encoded(value: Any) -> dict[str, Any]:
    match value:
        case None:
            return {"text": None}
        case str():
            reply = {"text": str(value)}
        case ToolResult():
            reply = {"result": TypeAdapter(ToolResult).dump_json(value).decode()}
        case _:
            options: Any = {"inf_nan_mode": "strings", "bytes_mode": "base64", "fallback": _described}
            reply = {"json": to_json(value, **options).decode()}
    size = sum(map(len, reply.values()))
    if size > MAX_RESULT_BYTES:
        raise ToolFault(
            f"it returned {size / 1e6:.0f} MB; at most {MAX_RESULT_BYTES // 1_000_000} MB can be taken. Write a file."
        )
    return reply


def _described(value: Any) -> str:
    return repr(value)[:10_000]


def _failure(error: BaseException, file: str) -> dict[str, Any]:
    kind, text = "execution_error", _words(error)
    line = error.line if isinstance(error, ToolFault) else _line(error, file)
    if isinstance(error, ModuleNotFoundError) and error.name:
        kind = "dependency_error"
        text = f"the module {error.name!r} is not installed for {sys.executable}"
    trace = "" if isinstance(error, ToolFault) else _trace(error, file)
    return {"kind": kind, "text": text, "line": line, "trace": trace, "refused": _refused(error)}


def _refused(error: BaseException) -> str:
    """Return what the system may have refused to a reading tool: ``write``, ``network``, ``hidden``, or nothing."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        if type(cause).__name__ == "gaierror":
            return "network"
        if type(cause).__name__ == "CalledProcessError" and "read-only file system" in _printed(cause).lower():
            return "write"
        if isinstance(cause, OSError) and (found := REFUSALS.get(cause.errno or 0)):
            return found
        if isinstance(cause, FileNotFoundError) and _elsewhere_at_home(cause.filename):
            return "hidden"
        cause = cause.__cause__ or cause.__context__
    return ""


def _printed(error: BaseException) -> str:
    """Return the output of a failed command if the error has it."""
    parts = (getattr(error, "output", None), getattr(error, "stderr", None))
    return "".join(part if isinstance(part, str) else part.decode(errors="replace") for part in parts
                   if isinstance(part, str | bytes))  # fmt: skip


def _elsewhere_at_home(name: object) -> bool:
    """Return whether ``name`` is a path in the home folder outside the project."""
    if not isinstance(name, str):
        return False
    path, home = os.path.abspath(name), os.path.expanduser("~")  # noqa: PTH100, PTH111 - must not raise
    return path.startswith(home + os.sep) and not path.startswith(os.getcwd() + os.sep)  # noqa: PTH109 - see above


def _words(error: BaseException) -> str:
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - an error whose words raise is still an error
        said = "(its words can't be read)"
    name = type(error).__name__
    if isinstance(error, ToolFault):
        return said
    return f"{name}: {said}"[:2_000] if said else name


def _line(error: BaseException, file: str) -> int:
    if isinstance(error, SyntaxError):
        return error.lineno or 0
    frames = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return next((line for line in reversed(frames) if line), 0)


def _trace(error: BaseException, file: str) -> str:
    """Return the traceback of the tool's own code, without our callers; empty for a syntax error."""
    own = error.__traceback__
    while own is not None and own.tb_frame.f_code.co_filename != file:
        own = own.tb_next
    if own is None and not isinstance(error, SyntaxError):
        own = error.__traceback__
    try:
        return "".join(traceback.format_exception(error.with_traceback(own)))[-TRACE_CHARS:]
    except Exception:  # noqa: BLE001 - see _words
        return ""


def _left_running() -> list[int]:
    """Return the processes that the last call left running, by /proc."""
    before, now = None, _below()
    while before != now:
        # A process that ended between two looks may have left a child that was not visible before.
        before, now = now, _below()
    return [pid for pid in now if _runs(pid)]


def _below() -> set[int]:
    """Return our children and those of the supervisor, without ourselves."""
    found: set[int] = set()
    for parent in (os.getpid(), os.getppid()):
        try:
            lists = [task.read_text() for task in Path(f"/proc/{parent}/task").glob("*/children")]
        except OSError:
            continue
        found.update(int(word) for text in lists for word in text.split())
    return found - {os.getpid()}


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rsplit(b")", 1)[1].split()[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            # The tool may have replaced the stream.
            stream.flush()
