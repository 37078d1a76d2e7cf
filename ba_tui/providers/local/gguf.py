"""What a model file in the GGUF format says of itself. Only the beginning of the file is read."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO, cast

from ba_tui.core.errors import UsageError
from ba_tui.core.values import frozen
from ba_tui.resources import open_regular

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
