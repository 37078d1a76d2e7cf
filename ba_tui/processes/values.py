"""Values for starting programs and workers: sandboxes, limits, settings; and the errors of workers.

Apart from the code that starts processes, which loads late. Others decide what confines a program.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from ba_tui.core.effects import WORKING, Profile
from ba_tui.core.errors import BaError
from ba_tui.core.values import frozen

if TYPE_CHECKING:
    from ba_tui.core.ports.permissions import EgressListener

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


@frozen
class Program:
    """A program to start. ``argv`` begins with a path. ``limits``: rlimits by name (``cpu``, ``data``, ``fsize``,
    ``nproc``). ``confinement``: its sandbox, which includes the supervisor; None for none. ``readable``: paths it needs
    to read there. ``egress``: its way out of a private network."""

    argv: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    confinement: Confinement | None = None
    readable: tuple[Path, ...] = ()
    egress: EgressListener | None = None


GRACE_SECONDS = 2.0

ProgressListener: TypeAlias = Callable[[object], None]
OutputListener: TypeAlias = Callable[[bytes], None]


@frozen
class WorkerSettings:
    """Where workers run: the start ``folder`` and the ``environment``, without model keys. ``limits`` are rlimits by
    name, ``data`` for memory in bytes. ``confine`` returns the sandbox of a worker (blocks, may raise)."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    confine: Callable[[], Confinement | None] = lambda: None


@frozen
class WorkerEntry:
    """What a worker runs: ``function`` is ``package.module:name``, called with a WorkerChannel and ``arguments``.
    ``grace``: seconds for a cancelled request to stop, before the process is ended. ``on_output`` receives what the
    process prints during requests."""

    function: str
    arguments: tuple[str, ...] = ()
    grace: float = GRACE_SECONDS
    on_output: OutputListener | None = None


class WorkerCrashed(BaError):
    """The process ended without a reply, or sent invalid data. ``code``: its exit code, or the negative signal number;
    None if unknown. ``printed``: the end of its output."""

    kind = "execution_error"

    def __init__(self, message: str, code: int | None = None, printed: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.printed = printed


class WorkerTimeout(BaError):
    """A request took too long. The worker got an order to stop it."""

    kind = "timeout"


class WorkerFailed(BaError):
    """The worker could not fulfil the request; ``kind`` and message come from the worker."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
