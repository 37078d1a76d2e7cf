"""Files of local models, the helper processes that run them, and the short prompt of models with a small window.

``local:PATH`` names a file, ``local:PACKAGE`` an installed Python package with one.
"""

from __future__ import annotations

import asyncio
import os
import signal
import struct
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from ba_tui.core.errors import BaError, ConnectionLost, ProviderError, UsageError
from ba_tui.core.provider import ModelInfo, Prices
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.processes.values import WorkerCrashed, WorkerEntry, WorkerFailed, WorkerSettings, WorkerTimeout
from ba_tui.resources import bundled, open_regular
from ba_tui.settings import LocalSettings

if TYPE_CHECKING:
    from ba_tui.processes.worker import WorkerClient


MAGIC = b"GGUF"
MOST_KEYS = 4_096
LONGEST_TEXT = 1_000_000
"""Bytes of one text; chat templates are the longest."""
_STRING, _ARRAY = 8, 9
_NUMBERS = dict(zip((*range(8), 10, 11, 12), "BbHhIif?Qqd", strict=True))
"""The format of a number for ``struct``, by its type."""
CURE = "Name a model file in the GGUF format: local:PATH."


def read_gguf(path: Path) -> int:
    """Return the window that the model file was trained on, 0 when not stated. Raises UsageError for no such file."""
    try:
        with open_regular(path) as file:
            if file.read(4) != MAGIC:
                raise UsageError(f"{path.name} is not a model in the GGUF format.", CURE)
            return _window(file)
    except FileNotFoundError:
        raise UsageError(f"There is no model file {path}.", CURE) from None
    except OSError as error:
        raise UsageError(f"The model file {path} can't be read: {error.strerror or error}.", CURE) from error
    except (struct.error, UnicodeDecodeError, ValueError) as error:
        raise UsageError(f"{path.name} is damaged: its header is incomplete or invalid.", "Get it again.") from error


def _window(file: BinaryIO) -> int:
    _, _, count = struct.unpack("<IQQ", file.read(20))
    pairs = ((_text(file), _value(file)) for _ in range(min(count, MOST_KEYS)))
    return next((value for key, value in pairs if key.endswith(".context_length") and isinstance(value, int)), 0)


def _number(file: BinaryIO, shape: str) -> int | float | bool:
    return struct.unpack(shape, file.read(struct.calcsize(shape)))[0]


def _text(file: BinaryIO) -> str:
    length = int(_number(file, "<Q"))
    if length > LONGEST_TEXT:
        raise ValueError("a text is too long")
    data = file.read(length)
    if len(data) < length:
        raise ValueError("the file breaks off")
    return data.decode("utf-8")


def _value(file: BinaryIO) -> object:
    kind = int(_number(file, "<I"))
    if kind == _STRING:
        return _text(file)
    if kind != _ARRAY:
        return _number(file, _shape(kind))
    inner, count = int(_number(file, "<I")), int(_number(file, "<Q"))
    skip: Callable[[], object] = (lambda: _text(file)) if inner == _STRING else (lambda: _number(file, _shape(inner)))
    for _ in range(count):
        skip()
    return None


def _shape(kind: int) -> str:
    if kind not in _NUMBERS:
        raise ValueError("a value of an unknown type")
    return f"<{_NUMBERS[kind]}"


LOCAL = "local"
PREFIX = "local:"
MODULE = "xllamacpp"
INSTALL = "pip install 'ba-tui[local]'"
SUFFIX = ".gguf"
FREE = Prices(0, 0, 0, 0)


def local_model(name: str, settings: LocalSettings) -> ModelInfo:
    """Return the model ``name``, with or without ``local:``. Raises UsageError: there is no such model file."""
    path = model_file(name.removeprefix(PREFIX))
    window = min(settings.window, read_gguf(path) or settings.window)
    return ModelInfo(
        f"{PREFIX}{path}", LOCAL, str(path),
        family=path.stem.lower(), window=window, max_output=max(256, window // 4), prices=FREE, tools="react",
        known=True,
    )  # fmt: skip


def model_file(name: str) -> Path:
    """Return the file of a model's name. Raises UsageError when there can't be one."""
    if not name.strip():
        raise UsageError("There is no model in “local:”.", CURE)
    path = Path(name).expanduser()
    if name.endswith(SUFFIX) or path.is_file():
        return path.absolute()
    if not name.replace("_", "a").replace("-", "a").replace(".", "a").isalnum():
        raise UsageError(f"There is no model file {path}.", CURE)
    return _in_package(name)


def _in_package(name: str) -> Path:
    """Return the only model file of an installed package, without importing it."""
    module = name.replace("-", "_").partition(".")[0]
    spec = find_spec(module)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    if not folders:
        raise UsageError(f"There is no model file and no installed package {name!r}.", CURE)
    found = sorted(path for folder in folders for path in Path(folder).rglob(f"*{SUFFIX}"))
    if len(found) != 1:
        what = f"{len(found)} model files" if found else "no model file"
        names = f" One of: {', '.join(map(str, found[:5]))}." if found else ""
        raise UsageError(f"The package {name} contains {what}.", f"{CURE}{names}")
    return found[0]


def lacking_library() -> str:
    """Return why local models can't be used, as one line; empty when they can."""
    if find_spec(MODULE) is None:
        return f"Local models need xllamacpp. Install it: {INSTALL}."
    return ""


ENTRY = "ba_tui.providers.local_program:main"
LOAD_SECONDS = 600.0
NOTICED = 2.0
"""Seconds after a broken connection in which the end of the process is reported."""
SMALLER = "Close other programs, choose a smaller model, or set local.window lower."
_MEMORY = Path("/proc/meminfo")
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")


@frozen
class LocalPlace:
    """How a model is loaded: file, window in tokens, and number of threads (0: llama.cpp decides)."""

    path: Path
    window: int
    threads: int = 0


@frozen
class LocalAddress:
    """The address of a loaded model on this machine, and the key that keeps other programs out."""

    url: str
    key: str


class LocalProcesses:
    """The helper processes running ``entry``, one a model file, shared by its users, from first use to the end."""

    def __init__(self, folder: Path, entry: str = ENTRY) -> None:
        kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        self._settings = WorkerSettings(folder, kept)
        self._entry = entry
        self._workers: dict[LocalPlace, WorkerClient] = {}
        self._users: dict[LocalPlace, int] = {}

    def enter(self, place: LocalPlace) -> None:
        """Register a user of ``place``, and end helpers without users to free their memory."""
        self._users[place] = self._users.get(place, 0) + 1
        for idle in [each for each in self._workers if each != place and not self._users.get(each)]:
            self._workers.pop(idle).end()

    def leave(self, place: LocalPlace) -> None:
        """Remove a user. The helper keeps running, since the next user probably needs the same model."""
        self._users[place] = max(0, self._users.get(place, 0) - 1)

    def end(self) -> None:
        """End all helpers."""
        for worker in self._workers.values():
            worker.end()
        self._workers.clear()

    async def load(self, place: LocalPlace) -> LocalAddress:
        """Start the helper and load the model, unless that is done.

        Raises:
            ProviderError: the model can't be loaded. ConnectionLost: the process ended meanwhile.
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
        """Raise ConnectionLost with the reason when the connection inside breaks because the process ended."""
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

    def _worker(self, place: LocalPlace) -> WorkerClient:
        from ba_tui.processes.worker import WorkerClient  # noqa: PLC0415 - not before a model is asked

        if place not in self._workers:
            self._workers[place] = WorkerClient(WorkerEntry(self._entry), self._settings)
        return self._workers[place]


def check_memory(place: LocalPlace) -> None:
    """Raise ProviderError when the file is larger than the free memory, where the system reports that."""
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
    """Return the error that reports the end of the process to the user."""
    name, code = place.path.name, crash.code
    if code == -signal.SIGKILL:
        return ConnectionLost(f"The process of {name} was killed, perhaps because memory ran out.", SMALLER)
    how = f"crashed with {_signal(-code)}" if code is not None and code < 0 else f"ended: {crash}"
    return ConnectionLost(f"The process of {name} {how}.", "Send the request again: its process starts again.")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


SMALL_WINDOW = 32_768
"""Models with at most so many tokens get the short prompt, and only the tools that the settings name."""
_FACTS = "# Here\n"
"""The part of ba's prompt that is kept: folder, platform, date."""


def few_tools(tools: Sequence[Tool], names: Sequence[str]) -> Sequence[Tool]:
    """Return those of ``tools`` that ``names`` lists, in its order; all when none of them exists."""
    by_name = {tool.name: tool for tool in tools}
    return [by_name[name] for name in names if name in by_name] or tools


@lru_cache(maxsize=8)
def short_prompt(system: str) -> str:
    """Return ``system`` with a short form of ba's prompt; a prompt of the user's is unchanged."""
    prompts = bundled("config") / "prompts"
    own, _, _ = (prompts / "system.md").read_text("utf-8").partition(_FACTS)
    if not system.startswith(own.strip()):
        return system
    short = (prompts / "system_short.md").read_text("utf-8").strip()
    return f"{short}\n\n{_FACTS}{system[len(own) :].removeprefix(_FACTS)}"
