"""The settings files of Claude Code: where they lie, and what stands in one, also in one that is broken.

What their settings mean is known to ``layer`` and to the hooks room.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, cast

from ba_tui.core.text.jsonc import key_lines, read_jsonc, strings_after
from ba_tui.core.values import frozen
from ba_tui.ingress import FileRefused, Read, within
from ba_tui.resources import read_regular, user_home
from ba_tui.settings.document import KeyPath

MAX_BYTES = 500_000
NAMES = (".claude/settings.json", ".claude/settings.local.json")
STRICT = ("deny", "ask")


@frozen
class ClaudeFile:
    """``data``: the settings, empty when ``problem`` says why the file can't be understood. ``strict``: rules that deny
    or ask, with their verdict and line, which stand where ``data`` does not have them."""

    path: Path
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    lines: Mapping[KeyPath, int] = field(default_factory=dict[KeyPath, int])
    problem: str = ""
    line: int = 0
    strict: tuple[tuple[str, str, int], ...] = ()

    def at(self, *path: str | int) -> int:
        """The line of ``path``, or of the nearest thing around it; 0 when unknown."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 0)


def claude_paths(root: Path) -> Iterator[tuple[Path, bool]]:
    """The settings files that exist, lowest rank first, and whether each came with the project ``root``."""
    home = user_home()
    if home and (own := home / NAMES[0]).is_file():
        yield own, False
    if root != home:
        yield from ((path, True) for name in NAMES if (path := root / name).is_file())


def read_claude_file(path: Path, root: Path | None = None) -> ClaudeFile | None:
    """The file at ``path``, of the project ``root`` or the person's own; None when there is none. Raises nothing."""
    read: Read = within(root) if root else read_regular
    try:
        raw = read(path, MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except FileRefused as error:
        return ClaudeFile(path, problem=f"was not read: {error.strerror}")
    except OSError as error:
        return ClaudeFile(path, problem=f"can't be read: {error.strerror or error}")
    if len(raw) > MAX_BYTES:
        return _broken(path, decoded(raw), f"is larger than {MAX_BYTES // 1_000} KB")
    return parse_claude(path, raw)


def parse_claude(path: Path, raw: bytes) -> ClaudeFile:
    """``raw`` as the content of ``path``."""
    text = decoded(raw)
    try:
        data: Any = read_jsonc(text)
    except json.JSONDecodeError as error:
        return _broken(path, text, f"can't be read as JSON ({error.msg})", error.lineno)
    except (ValueError, RecursionError) as error:
        return _broken(path, text, f"can't be read as JSON ({error or 'nested too deeply'})")
    if not isinstance(data, dict):
        return _broken(path, text, "expected a JSON object")
    found = cast("dict[str, Any]", data)
    # Of a key that is set twice the first value is lost, and it may be the one that denies.
    twice = any(text.count(f'"{verdict}"') > 1 for verdict in STRICT)
    return ClaudeFile(path, found, key_lines(text), strict=_strict(text) if twice else ())


def decoded(raw: bytes) -> str:
    """The text of a file in UTF-8, or in UTF-16 as Windows writes it."""
    wide = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return raw.decode("utf-16" if wide else "utf-8-sig", "replace")


def _broken(path: Path, text: str, problem: str, line: int = 0) -> ClaudeFile:
    return ClaudeFile(path, problem=problem, line=line, strict=_strict(text))


def _strict(text: str) -> tuple[tuple[str, str, int], ...]:
    return tuple(strings_after(text, STRICT))
