"""Values for the start of a program: its sandbox and its resource limits.

Others decide what confines a program and which settings the limits come from.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ba_tui.core.effects import WORKING, Profile
from ba_tui.core.values import frozen

CONFINED_VARIABLE = "BA_CONFINED"
INSIDE: Mapping[str, str] = MappingProxyType({CONFINED_VARIABLE: "1"})
"""Variables of each program in the sandbox, so that a ba inside can explain why it saves nothing."""


@frozen
class Confinement:
    """A sandbox. ``prefix`` precedes the program's arguments, ``environment`` overrides its variables. ``separate``: it
    has its own process namespace, whose ids mean nothing outside. ``profile``: how the program is confined."""

    prefix: tuple[str, ...]
    environment: Mapping[str, str]
    separate: bool
    profile: Profile = WORKING

    @property
    def limits(self) -> dict[str, int]:
        """Return the limits that the supervisor applies in addition to those of the program."""
        return {"setid": 0, **({"apart": 1} if self.separate else {})}

    def wrap(self, argv: Sequence[str]) -> tuple[str, ...]:
        """Return the ``argv`` that starts the program inside the sandbox."""
        return (*self.prefix, *argv)


GIGABYTE = 1_000_000_000


@frozen
class ProcessLimits:
    """Limits inside and outside the sandbox, None for no limit: bytes of memory, bytes of one file, processes and
    threads."""

    memory: int | None = 8 * GIGABYTE
    file_size: int | None = 10 * GIGABYTE
    processes: int | None = 1024

    def for_seconds(self, seconds: float | None = None) -> dict[str, int]:
        """Return rlimits. Processor time is the time limit times the number of cores, because all cores count."""
        given = {"data": self.memory, "fsize": self.file_size, "nproc": self.processes}
        cpu = {} if seconds is None else {"cpu": (int(seconds) + 1) * (os.cpu_count() or 1)}
        return {**cpu, **{name: value for name, value in given.items() if value is not None}}
