"""Which schema versions of a session can be read, and the chain of steps that brings an older record up to date.

Files are never rewritten: a step works on one record as it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from ba_tui.core.errors import NewerSchema, written_by_newer
from ba_tui.core.values import frozen

Record = dict[str, Any]
Step = Callable[[Record], Record]


@frozen
class Schema:
    """The version that is written, and how older records become one of it: ``steps[n]`` turns a record of version n
    into one of version n + 1."""

    version: int
    steps: Mapping[int, Step] = field(default_factory=dict[int, Step])

    def migrate(self, record: Record, version: int) -> Record:
        """``record``, written under ``version``, in today's shape."""
        for step in range(version, self.version):
            record = self.steps[step](record)
        return record

    def check(self, version: int, name: str) -> None:
        """Raises NewerSchema when the session ``name`` was written by a later version of ba."""
        if version > self.version:
            words = written_by_newer(f"Session {name}", version, self.version)
            raise NewerSchema(words, "Update ba to open it; the file was left as it is.")


OURS = Schema(1)
SCHEMA_VERSION = OURS.version
