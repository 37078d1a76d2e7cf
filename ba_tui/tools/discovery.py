"""Finds the user's own tools in files and installed packages, and notices changes.

A worker process describes the content of a file; the description is cached, so a start runs no such code.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from ba_tui import __version__
from ba_tui.core.errors import BaError, StorageError
from ba_tui.core.values import frozen, late
from ba_tui.processes.values import WorkerCrashed, WorkerFailed, WorkerSettings, WorkerTimeout
from ba_tui.resources import open_regular, save_whole

if TYPE_CHECKING:
    from ba_tui.permissions.sandbox.confinement import Sandbox
    from ba_tui.tools.workers import Code, WorkerPool

# Most users have no own tools.
make_code, make_pool, describe = (late(f"ba_tui.tools.workers:{name}") for name in ("Code", "WorkerPool", "describe"))
ToolOrigin: TypeAlias = Literal["built-in", "user", "project", "extra", "package", "workflow", "mcp", "feature"]
GROUP = "ba.tools"
LOAD_SECONDS = 10.0
MAX_FILES = 500
MAX_PARALLEL = 4
NOT_TOOLS = ("test_", "_", ".")


@frozen
class ToolProblem:
    """An error that makes a tool unusable: file, line and reason; ``trace``: the traceback."""

    file: str
    text: str
    line: int = 0
    trace: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}" if self.line else f"{self.file}: {self.text}"


@frozen
class ToolFolder:
    """A folder of tool files. ``trusted`` is checked each time: code of an untrusted folder is not even loaded."""

    path: Path
    origin: ToolOrigin
    trusted: Callable[[], bool] = lambda: True


@frozen
class Module:
    """A file or package module: its tools and the pool that runs them, or why it can't be used."""

    origin: ToolOrigin
    pool: WorkerPool
    signature: str
    records: Sequence[Mapping[str, Any]] = ()
    problem: ToolProblem | None = None

    @property
    def shown(self) -> str:
        return self.pool.code.shown


@frozen
class DiscoveryOptions:
    """``folders`` first to last; ``cache`` is a file; ``packages``: whether installed packages may offer tools.
    ``project``: settings for workers of the project's code; None: those of all workers. ``sandbox`` confines tools
    that only read. ``refusal`` returns why a file may not be used; empty if it may."""

    folders: Sequence[ToolFolder]
    worker_settings: WorkerSettings
    cache: Path | None = None
    packages: bool = True
    patience: float = LOAD_SECONDS
    project: WorkerSettings | None = None
    sandbox: Sandbox | None = None
    refusal: Callable[[Path], str] = lambda path: ""

    def settings_for(self, origin: ToolOrigin) -> WorkerSettings:
        return self.project if self.project and origin == "project" else self.worker_settings


class Discovery:
    """Finds tools; blocks, so call it in a thread. An unchanged file costs one stat."""

    def __init__(self, options: DiscoveryOptions) -> None:
        self._options = options
        self._modules: dict[str, Module] = {}
        self._lock = threading.Lock()
        self._kept = _Cache(options.cache)
        self._offered: list[_FoundCode] | None = None

    def look(self) -> Sequence[Module]:
        """Return all modules in stable order. Changed ones have a new pool; their old pools run nothing any more."""
        with self._lock:
            seen = list(self._seen())
            fresh = [each for each in seen if not self._known(each)]
            if fresh:
                with ThreadPoolExecutor(min(MAX_PARALLEL, len(fresh))) as pool:
                    for module in pool.map(self._loaded, fresh):
                        if old := self._modules.get(module.shown):
                            old.pool.close()
                        self._modules[module.shown] = module
                self._kept.save()
            names = [each.key for each in seen]
            for gone in self._modules.keys() - names:
                self._modules.pop(gone).pool.close()
            return [self._modules[name] for name in dict.fromkeys(names)]

    def close(self) -> None:
        """End all workers."""
        with self._lock:
            for module in self._modules.values():
                module.pool.close()

    def _known(self, seen: _FoundCode) -> bool:
        module = self._modules.get(seen.key)
        return module is not None and module.signature == seen.signature

    def _seen(self) -> Iterator[_FoundCode]:
        for folder in self._options.folders:
            if folder.path.is_dir() and folder.trusted():
                yield from _files(folder)
        if self._options.packages:
            if self._offered is None:
                self._offered = self._kept.offered()
            yield from self._offered

    def _loaded(self, seen: _FoundCode) -> Module:
        worker_settings = self._options.settings_for(seen.origin)

        def unusable(why: str) -> Module:
            pool = make_pool(make_code(seen.file, seen.module, ""), worker_settings)
            return _module(seen, pool, {"failed": {"text": why}})

        if seen.file and (why := self._options.refusal(Path(seen.file))):
            return unusable(f"ba did not read it: {why}")
        if (kept := self._kept.get(seen)) is not None:
            code = make_code(seen.file, seen.module, kept["digest"])
            return _module(seen, make_pool(code, worker_settings, self._options.sandbox), kept["reply"])
        try:
            code = make_code(seen.file, seen.module, _digest(seen.file))
        except OSError as error:
            return unusable(f"it can't be read: {error.strerror or error}")
        reply, lasting = self._describe(code, worker_settings, self._loading(seen.origin))
        if lasting:
            self._kept.put(seen, {"digest": code.digest, "reply": reply})
        return _module(seen, make_pool(code, worker_settings, self._options.sandbox), reply)

    def _loading(self, origin: ToolOrigin) -> Sandbox | None:
        """Return the sandbox for describing a project's code; None if there is none."""
        sandbox = self._options.sandbox
        return sandbox if origin == "project" and sandbox and not sandbox.unheld() else None

    def _describe(
        self, code: Code, worker_settings: WorkerSettings, sandbox: Sandbox | None
    ) -> tuple[dict[str, Any], bool]:
        """Return a worker's description of the code, and whether it may be cached."""
        try:
            reply = asyncio.run(describe(code, worker_settings, self._options.patience, sandbox))
        except WorkerTimeout:
            text = f"it did not load within {self._options.patience:g} s; a tool file may only define things"
            return {"failed": {"text": text}}, False
        except (WorkerCrashed, WorkerFailed) as error:
            return {"failed": {"text": f"it could not be loaded: {error}"}}, False
        except BaError as error:
            return {"failed": {"text": error.with_hint}}, False
        except OSError as error:
            return {"failed": {"text": f"no worker can be started: {error.strerror or error}"}}, False
        return reply, "tools" in reply


@frozen
class _FoundCode:
    """A found file or module. ``signature`` changes with its code."""

    origin: ToolOrigin
    signature: str
    file: str = ""
    module: str = ""

    @property
    def key(self) -> str:
        return self.file or self.module


def _files(folder: ToolFolder) -> Iterator[_FoundCode]:
    """Yield the tool files of a folder. Their signatures include the modules ``_*.py`` in the folder."""
    found: list[tuple[str, str]] = []
    beside: list[str] = []
    try:
        paths = sorted(folder.path.glob("*.py"))[:MAX_FILES]
    except OSError:
        return
    for path in paths:
        try:
            status = path.stat()
            signature = f"{status.st_mtime_ns} {status.st_size} {status.st_ino} {status.st_nlink}"
        except FileNotFoundError:
            # The file is gone, or a lock of an editor.
            continue
        except OSError as error:
            signature = str(error.strerror)
        if path.name.startswith("_"):
            beside.append(f"{path.name} {signature}")
        elif is_tool_file(path):
            found.append((str(path), signature))
    for name, signature in found:
        yield _FoundCode(folder.origin, "\n".join((signature, *beside)), file=name)


def is_tool_file(path: Path) -> bool:
    """Return whether ``path`` is a tool file, and not a test or a private module: ``test_x.py``, ``conftest.py``,
    ``_x.py``."""
    return not path.name.startswith(NOT_TOOLS) and path.name != "conftest.py"


@lru_cache(maxsize=1)
def _offered(installed: tuple[str, ...]) -> tuple[_FoundCode, ...]:
    """Return the modules that packages offer; ``installed`` is the cache key."""
    from importlib import metadata  # noqa: PLC0415 - the result is cached until a package changes

    del installed
    return tuple(
        _FoundCode("package", f"{entry.name} {entry.dist.version if entry.dist else ''}", module=entry.value)
        for entry in metadata.entry_points(group=GROUP)
    )


def _installed() -> list[str]:
    """Return the folders of packages with their modification times."""
    found: list[str] = []
    for place in sys.path:
        with suppress(OSError):
            folder = Path(place).absolute()
            found.append(f"{folder} {folder.stat().st_mtime_ns}")
    return found


def _digest(file: str) -> str:
    """Return the digest of a file; empty if it is no file. Raises OSError."""
    if not file:
        return ""
    with open_regular(Path(file)) as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _module(seen: _FoundCode, pool: WorkerPool, reply: Mapping[str, Any]) -> Module:
    records: Any = reply.get("tools")
    if isinstance(records, list):
        return Module(seen.origin, pool, seen.signature, cast("list[dict[str, Any]]", records))
    match reply:
        case {"failed": {"text": str(text), **more}}:
            problem = ToolProblem(seen.key, text, int(more.get("line") or 0), str(more.get("trace") or ""))
        case _:
            problem = ToolProblem(seen.key, "the worker's reply can't be understood")
    return Module(seen.origin, pool, seen.signature, problem=problem)


@dataclass(slots=True)
class _Cache:
    """The cached descriptions of files, by path. Errors of the cache are ignored."""

    path: Path | None
    _entries: dict[str, Any] = field(default_factory=dict[str, Any])
    _packages: dict[str, Any] = field(default_factory=dict[str, Any])
    _changed: bool = False

    def __post_init__(self) -> None:
        if self.path is None:
            return
        try:
            with open_regular(self.path) as file:
                read: Any = json.load(file)
        except (OSError, ValueError, RecursionError):
            return
        whole = cast("dict[str, Any]", read) if isinstance(read, dict) else {}
        files: Any = whole.get("files")
        if whole.get("of") == _maker() and isinstance(files, dict):
            self._entries = cast("dict[str, Any]", files)
            packages: Any = whole.get("packages")
            self._packages = cast("dict[str, Any]", packages) if isinstance(packages, dict) else {}

    def offered(self) -> list[_FoundCode]:
        """Return the modules that packages offer. Reading them takes about 20 ms, so it is repeated only after a
        change."""
        installed = _installed()
        match self._packages:
            case {"installed": found, "none": True} if found == installed:
                return []
            case _:
                offered = list(_offered(tuple(installed)))
        self._packages = {"installed": installed, "none": not offered}
        self._changed = True
        self.save()
        return offered

    def get(self, seen: _FoundCode) -> dict[str, Any] | None:
        found: Any = self._entries.get(seen.key)
        entry = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        fits = entry.get("signature") == seen.signature and isinstance(entry.get("reply"), dict)
        return entry if fits and isinstance(entry.get("digest"), str) else None

    def put(self, seen: _FoundCode, entry: Mapping[str, Any]) -> None:
        self._entries[seen.key] = {"signature": seen.signature, **entry}
        self._changed = True

    def save(self) -> None:
        if self.path is None or not self._changed:
            return
        self._changed = False
        try:
            kept = {"of": _maker(), "files": self._entries, "packages": self._packages}
            save_whole(self.path, json.dumps(kept), mode=0o600)
        except StorageError:
            return


def _maker() -> str:
    """Return the version of Python and ba, on which descriptions depend."""
    return f"ba {__version__}, python {sys.version.partition(' ')[0]} at {sys.executable}"
