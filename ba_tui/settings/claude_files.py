"""Find and parse the settings files of Claude Code, even broken ones, and report which of their settings ba uses.

``claude_layer`` and ``hooks`` interpret them.
"""

from __future__ import annotations

import codecs
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import StorageError
from ba_tui.core.events import Notice
from ba_tui.core.text.json_text import key_lines, read_jsonc, read_object, strings_after
from ba_tui.core.text.wording import sentence
from ba_tui.core.values import frozen
from ba_tui.ingress import FileRefused, Read, shown, within
from ba_tui.resources import UserFolders, read_regular, save_whole, user_home
from ba_tui.settings.document import KeyPath, printable

MAX_BYTES = 500_000
NAMES = (".claude/settings.json", ".claude/settings.local.json")
STRICT = ("deny", "ask")


@frozen
class ClaudeFile:
    """A settings file. ``data`` is empty when the file can't be parsed; ``problem``: why. ``strict``: deny and ask
    rules that ``data`` does not contain, with verdict and line."""

    path: Path
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    lines: Mapping[KeyPath, int] = field(default_factory=dict[KeyPath, int])
    problem: str = ""
    line: int = 0
    strict: tuple[tuple[str, str, int], ...] = ()

    def at(self, *path: str | int) -> int:
        """Return the line of ``path``, or of its nearest known parent; 0 when unknown."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 0)


def claude_paths(root: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the existing settings files, lowest rank first, and whether each belongs to the project ``root``."""
    home = user_home()
    if home and (own := home / NAMES[0]).is_file():
        yield own, False
    if root != home:
        yield from ((path, True) for name in NAMES if (path := root / name).is_file())


def read_claude_file(path: Path, root: Path | None = None) -> ClaudeFile | None:
    """Read the file at ``path``, of the project ``root`` or of the user; None without a file. Raises nothing."""
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
    """Parse ``raw``, the content of ``path``."""
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
    # JSON keeps the last value of a repeated key; the first may be the one that denies.
    twice = any(text.count(f'"{verdict}"') > 1 for verdict in STRICT)
    return ClaudeFile(path, found, key_lines(text), strict=_strict(text) if twice else ())


def decoded(raw: bytes) -> str:
    """Decode the content of a file, in UTF-8 or in Windows' UTF-16."""
    wide = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return raw.decode("utf-16" if wide else "utf-8-sig", "replace")


def _broken(path: Path, text: str, problem: str, line: int = 0) -> ClaudeFile:
    return ClaudeFile(path, problem=problem, line=line, strict=_strict(text))


def _strict(text: str) -> tuple[tuple[str, str, int], ...]:
    return tuple(strings_after(text, STRICT))


SHOWN = 6
TOLD = "told_settings.json"
"""The file in the state folder with the summaries that the user has seen."""


@frozen
class UnsupportedSetting:
    """One setting that ba does not use; ``key`` is dotted, followed by the text for a rule."""

    key: str
    why: str
    line: int = 0


@frozen
class ForeignFile:
    """A settings file. ``honoured``: the number of entries of each setting that ba uses. ``project``: the file belongs
    to the project, which may be ``trusted``."""

    path: Path
    honoured: Mapping[str, int] = field(default_factory=dict[str, int])
    unsupported: tuple[UnsupportedSetting, ...] = ()
    project: bool = False
    trusted: bool = True

    @property
    def lines(self) -> list[str]:
        """Return a line for each setting without effect, with file and line."""
        return [
            printable(f"{self.path}{f':{each.line}' if each.line else ''}: {each.key}: not supported: {each.why}")
            for each in self.unsupported
        ]

    @property
    def counted(self) -> str:
        """Return the settings that ba uses, in one line."""
        said = (f"{key} ({number})" if number > 1 else key for key, number in self.honoured.items())
        return printable(", ".join(said)) or "nothing"

    @property
    def summary(self) -> str:
        """Return the settings without effect in one line; empty when there are none."""
        if not self.unsupported:
            return ""
        names = list(dict.fromkeys(each.key for each in self.unsupported))
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        return f"{shown(self.path)}: not supported: {printable(', '.join(names[:SHOWN]))}{more}"


def foreign_notices(files: Sequence[ForeignFile], where: UserFolders) -> list[Notice]:
    """Return a notice for each file with ineffective settings, once until they change. Writes a file; never raises."""
    said = {str(each.path): each for each in files if each.summary}
    if not said:
        return []
    store, told = where.state / TOLD, dict[str, Any]()
    with suppress(OSError):
        told = read_object(read_regular(store, 1_000_000)) or {}
    digests = {name: hashlib.sha256("\n".join(each.lines).encode()).hexdigest()[:16] for name, each in said.items()}
    new = [name for name, digest in digests.items() if told.get(name) != digest]
    if new:
        with suppress(StorageError, OSError):
            save_whole(store, json.dumps({**told, **digests}), mode=0o600)
    return [Notice(sentence(said[name].summary), "info", "ba doctor says why.") for name in new]
