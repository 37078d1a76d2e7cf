"""Report on a settings file of another assistant: the settings that ba uses, and those without a counterpart.

The package ``claude`` reads such files.
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
from ba_tui.core.text.json_text import read_object
from ba_tui.core.text.wording import sentence
from ba_tui.core.values import frozen
from ba_tui.ingress import shown
from ba_tui.resources import UserFolders, read_regular, save_whole
from ba_tui.settings.document import printable

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
