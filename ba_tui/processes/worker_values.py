"""What a worker process is started with, and how a request to it can fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TypeAlias

from ba_tui.core.errors import BaError
from ba_tui.core.values import frozen
from ba_tui.processes.confinement import Confinement

GRACE_SECONDS = 2.0
NO_KEYS: Mapping[str, str] = {}

ProgressListener: TypeAlias = Callable[[object], None]
OutputListener: TypeAlias = Callable[[bytes], None]
NoticeListener: TypeAlias = Callable[[str, object], None]


@frozen
class WorkerSettings:
    """Where workers run: the ``folder`` they start in and the ``environment`` they see, without keys of models.
    ``limits`` are rlimits by their names, ``data`` for memory in bytes. ``confine`` says how a worker is kept in the
    sandbox, and in which profile (blocks, may raise)."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=lambda: NO_KEYS)
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    confine: Callable[[], Confinement | None] = lambda: None


@frozen
class WorkerEntry:
    """What a worker runs: ``function`` is ``package.module:name``, called with a WorkerChannel and ``arguments``.

    ``grace``: seconds in which a cancelled request must stop; after them the process is ended. ``on_output`` hears what
    the process prints while requests are under way; ``on_notice`` what it says unasked, from the first request on."""

    function: str
    arguments: tuple[str, ...] = ()
    grace: float = GRACE_SECONDS
    on_output: OutputListener | None = None
    on_notice: NoticeListener | None = None


class WorkerCrashed(BaError):
    """The process ended without a reply, or sent what is none. ``code``: its exit code, minus the number of the signal
    that ended it, None when unknown. ``printed``: the end of what it printed."""

    kind = "execution_error"

    def __init__(self, message: str, code: int | None = None, printed: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.printed = printed


class WorkerTimeout(BaError):
    """A request took longer than it may. The worker was told to stop it."""

    kind = "timeout"


class WorkerFailed(BaError):
    """The worker could not do what it was asked; ``kind`` and words are its own."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
