"""Where a local model is: ``local:PATH`` names a file, ``local:PACKAGE`` an installed Python package with one."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO, cast

from ba_tui.core.errors import UsageError
from ba_tui.core.provider import ModelInfo, Prices
from ba_tui.core.values import frozen
from ba_tui.resources import open_regular
from ba_tui.settings import LocalSettings

MAGIC = b"GGUF"
MOST_KEYS = 4_096
LONGEST_TEXT = 1_000_000
"""Bytes of one text: chat templates are the longest that are read."""
_STRING, _ARRAY = 8, 9
_NUMBERS: Mapping[int, str] = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
CURE = "Name a model file in the GGUF format: local:PATH."


@frozen
class GgufFacts:
    """``window``: tokens that the model was trained on, 0 when the file does not say; ``size`` in bytes."""

    architecture: str
    window: int
    size: int


def read_gguf(path: Path) -> GgufFacts:
    """The facts of the model in the file ``path``.

    Raises:
        UsageError: there is no such file, or it is none in this format.
    """
    try:
        with open_regular(path) as file:
            size = path.stat().st_size
            if file.read(4) != MAGIC:
                raise UsageError(f"{path.name} is not a model in the GGUF format.", CURE)
            found = _found(file)
    except FileNotFoundError:
        raise UsageError(f"There is no model file {path}.", CURE) from None
    except OSError as error:
        raise UsageError(f"The model file {path} can't be read: {error.strerror or error}.", CURE) from error
    except (struct.error, UnicodeDecodeError, ValueError) as error:
        raise UsageError(f"{path.name} is damaged: its head breaks off or makes no sense.", "Get it again.") from error
    return GgufFacts(str(found.get("architecture", "")), int(cast("int", found.get("window", 0))), size)


def _found(file: BinaryIO) -> dict[str, object]:
    _, _, count = struct.unpack("<IQQ", file.read(20))
    found: dict[str, object] = {}
    for _ in range(min(count, MOST_KEYS)):
        key, value = _text(file), _value(file)
        if key == "general.architecture":
            found["architecture"] = value
        elif key.endswith(".context_length") and isinstance(value, int):
            found["window"] = value
        if len(found) == 2:
            break
    return found


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
    return _NUMBERS[kind]


LOCAL = "local"
PREFIX = "local:"
MODULE = "xllamacpp"
INSTALL = "pip install 'ba-tui[local]'"
SUFFIX = ".gguf"
FREE = Prices(0, 0, 0, 0)


def local_model(name: str, settings: LocalSettings) -> ModelInfo:
    """The model that ``name`` stands for, with or without ``local:`` before it.

    Raises:
        UsageError: there is no such file, or it is no model.
    """
    path = model_file(name.removeprefix(PREFIX))
    facts = read_gguf(path)
    window = min(settings.window, facts.window or settings.window)
    return ModelInfo(
        f"{PREFIX}{path}", LOCAL, str(path),
        family=path.stem.lower(), window=window, max_output=max(256, window // 4), prices=FREE, tools="react",
        known=True,
    )  # fmt: skip


def model_file(name: str) -> Path:
    """The file that ``name`` means. Raises UsageError when it can't be one."""
    if not name.strip():
        raise UsageError("There is no model in “local:”.", CURE)
    path = Path(name).expanduser()
    if name.endswith(SUFFIX) or path.is_file():
        return path.absolute()
    if not name.replace("_", "a").replace("-", "a").replace(".", "a").isalnum():
        raise UsageError(f"There is no model file {path}.", CURE)
    return _in_package(name)


def _in_package(name: str) -> Path:
    """The one model file of an installed package, which is not imported."""
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
    """Why no local model can be asked, as one line; empty when one can."""
    if find_spec(MODULE) is None:
        return f"Local models need xllamacpp. Install it: {INSTALL}."
    return ""
