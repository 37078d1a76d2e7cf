"""How the scripts of a skill talk: one JSON object in, one out, and files of the workspace only.

Each skill that has scripts carries this same file, so that its folder works wherever it is copied. It is no script.
"""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Args = dict[str, Any]
T = TypeVar("T")
KINDS: dict[type, str] = {str: "text", int: "a whole number", bool: "true or false", list: "a list", dict: "an object"}
ROOT = Path(os.environ.get("AGENT_WORKSPACE_PATH") or ".").resolve()


class Refused(Exception):
    """What the caller can put right, in one sentence."""


def option(args: Args, key: str, kind: type[T], default: T) -> T:
    """What was given under that key, if it is of that kind."""
    value = args.get(key)
    if value is None:
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise Refused(f'"{key}" must be {KINDS[kind]}')
    return value


def inside(name: str) -> Path:
    """The place of that name; links followed, it must lie in the workspace."""
    try:
        path = (ROOT / name).resolve() if name.strip() else ROOT
    except (ValueError, RuntimeError):
        path = ROOT
    if path == ROOT or not path.is_relative_to(ROOT):
        raise Refused(f"{name!r} is not a path inside the workspace")
    return path


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def encoding_of(start: bytes) -> str:
    """Of a text that begins so."""
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8-sig")().decode(start)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8-sig"


def source(args: Args, key: str = "path") -> Path:
    """The file to read."""
    if not (name := option(args, key, str, "")):
        raise Refused(f'"{key}" is missing: name a file, relative to the workspace')
    if not (path := inside(name)).is_file():
        raise Refused(f"{name}: there is no such file")
    return path


def target(args: Args, key: str = "output") -> Path:
    """The file to write; one that exists is replaced only when that was said."""
    if not (name := option(args, key, str, "")):
        raise Refused(f'"{key}" is missing: name the file to write, relative to the workspace')
    path = inside(name)
    if path.is_dir() or (path.exists() and not option(args, "overwrite", bool, False)):
        raise Refused(f'{name} exists: take another name, or set "overwrite" to true')
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def laid_out(answer: Args) -> str:
    """JSON with one line a key, and one a row where a key holds rows."""
    parts: list[str] = []
    for key, value in answer.items():
        rows = [json.dumps(row, ensure_ascii=False, default=str) for row in value] if isinstance(value, list) else []
        plain = not any(isinstance(row, dict | list) for row in value) if rows else True
        text = json.dumps(value, ensure_ascii=False, default=str) if plain else "[\n  " + ",\n  ".join(rows) + "\n]"
        parts.append(f"{json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def run(work: Callable[[Args], Args], known: str) -> int:
    """A JSON object in, a JSON object out; what went wrong as one line on stderr, with exit code 1."""
    try:
        args: object = json.loads(sys.stdin.buffer.read() or b"{}")
    except (ValueError, RecursionError) as error:
        sys.stderr.write(f"error: standard input is not JSON: {error}\n")
        return 1
    try:
        if not isinstance(args, dict):
            raise Refused("standard input must hold one JSON object")
        if strange := sorted(set(args) - set(known.split())):
            raise Refused(f"unknown: {', '.join(strange)}; known: {', '.join(known.split())}")
        text = laid_out(work(args))
    except (Refused, OSError) as error:
        about = f"{Path(error.filename or '').name}: {error.strerror}" if isinstance(error, OSError) else str(error)
        sys.stderr.buffer.write(f"error: {about}\n".encode("utf-8", "backslashreplace"))
        return 1
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    return 0
