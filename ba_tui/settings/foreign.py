"""What ba makes of a settings file of another assistant: what it goes by, and what it has no counterpart for.

How such a file is read stands in ``claude``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any

from ba_tui.core.errors import StorageError
from ba_tui.core.events import Notice
from ba_tui.core.text.wording import sentence
from ba_tui.core.values import frozen
from ba_tui.ingress import shown
from ba_tui.resources import Places, read_regular, save_whole
from ba_tui.settings.document import printable

SHOWN = 6
TOLD = "told_settings.json"
"""The file in the state folder that tells which summaries a person has read already."""


@frozen
class Unsupported:
    """One setting that ba does not go by; ``key`` is dotted, for a rule with its text behind it."""

    key: str
    why: str
    line: int = 0


@frozen
class ForeignFile:
    """``honoured``: the settings that count, and how many entries of each. ``project``: it came with the folder;
    ``trusted`` tells whether that is trusted."""

    path: Path
    honoured: Mapping[str, int] = field(default_factory=dict[str, int])
    unsupported: tuple[Unsupported, ...] = ()
    project: bool = False
    trusted: bool = True

    @property
    def lines(self) -> list[str]:
        """One line for each setting that has no effect, with file and line."""
        return [
            printable(f"{self.path}{f':{each.line}' if each.line else ''}: {each.key}: not supported: {each.why}")
            for each in self.unsupported
        ]

    @property
    def counted(self) -> str:
        """The settings that count, in one line."""
        said = (f"{key} ({number})" if number > 1 else key for key, number in self.honoured.items())
        return printable(", ".join(said)) or "nothing"

    @property
    def summary(self) -> str:
        """The same in one line; empty when there is nothing to say."""
        if not self.unsupported:
            return ""
        names = list(dict.fromkeys(each.key for each in self.unsupported))
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        return f"{shown(self.path)}: not supported: {printable(', '.join(names[:SHOWN]))}{more}"


def foreign_notices(files: Sequence[ForeignFile], where: Places) -> list[Notice]:
    """What has no effect, a notice a file; each once until it changes. Writes a file, and raises nothing."""
    said = {str(each.path): each for each in files if each.summary}
    if not said:
        return []
    store, told = where.state / TOLD, dict[str, Any]()
    with suppress(OSError, ValueError, RecursionError):
        read: Any = json.loads(read_regular(store, 1_000_000))
        told = dict(read)
    digests = {name: hashlib.sha256("\n".join(each.lines).encode()).hexdigest()[:16] for name, each in said.items()}
    new = [name for name, digest in digests.items() if told.get(name) != digest]
    if new:
        with suppress(StorageError, OSError):
            save_whole(store, json.dumps({**told, **digests}), mode=0o600)
    return [Notice(sentence(said[name].summary), "info", "ba doctor says why.") for name in new]
