"""Values of worker processes: start settings and errors. Apart from the client, which loads late."""

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
    """Where workers run: the start ``folder`` and the ``environment``, without model keys. ``limits`` are rlimits by
    name, ``data`` for memory in bytes. ``confine`` returns the sandbox of a worker (blocks, may raise)."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=lambda: NO_KEYS)
    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    confine: Callable[[], Confinement | None] = lambda: None


@frozen
class WorkerEntry:
    """What a worker runs: ``function`` is ``package.module:name``, called with a WorkerChannel and ``arguments``.
    ``grace``: seconds for a cancelled request to stop, before the process is ended. ``on_output`` receives what the
    process prints during requests; ``on_notice`` its notices, from the first request on."""

    function: str
    arguments: tuple[str, ...] = ()
    grace: float = GRACE_SECONDS
    on_output: OutputListener | None = None
    on_notice: NoticeListener | None = None


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
