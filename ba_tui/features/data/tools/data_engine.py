"""The data engine of a session: where it works, what it may use, and which files the rules let it read."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from ba_tui.context.session_data import JSON, dataset_kind
from ba_tui.core.profiles import READING
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine import Analysis, EngineLimits, EnginePlace
from ba_tui.features.data.analysis.files import DataFiles
from ba_tui.features.data.analysis.metrics.definitions import Metrics, metric_folders
from ba_tui.features.data.analysis.muting import MUTED, MutedTraps
from ba_tui.features.data.tools.exports import ExportRules
from ba_tui.ingress import Ingress
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.permissions.sandbox.from_settings import limits_for, sandbox_for
from ba_tui.permissions.secrets.hard_links import secret_file
from ba_tui.permissions.trust.grants import Trust
from ba_tui.permissions.verdicts import Ask, Deny, JudgedCall, Judgement
from ba_tui.processes.confinement import Confinement
from ba_tui.processes.limits import GIGABYTE
from ba_tui.processes.scratch import scratch_path
from ba_tui.processes.worker_values import WorkerSettings
from ba_tui.resources import Places
from ba_tui.settings import Settings

FOLDER = "analysis"
MOST_MEMORY = 4 * GIGABYTE
AROUND = 2 * GIGABYTE
"""Bytes that the helper may take beside what DuckDB counts."""
AWAY = "it lies outside the folders of this session; add its folder with --add-dir"
KEPT = "it may contain secrets"
NO_METRICS = Metrics()
MOST_ENTRIES = 2_000
"""Names that are read to find a data file."""
SETTLED_NS = 2 * 10**9
"""Nanoseconds without a change after which a folder need not be read again."""


def muted_traps(state: Path, settings: Settings) -> MutedTraps:
    """What is muted by the settings and by the person."""
    return MutedTraps(state / MUTED, settings.analysis.mute_traps)


def engine_place(folder: Path | None, settings: Settings, files: DataFiles, sandbox: Sandbox) -> EnginePlace:
    """Where the engine keeps its data: below ``folder`` of a session; None: in a temporary one. Nothing is made or
    started yet."""
    own = folder / FOLDER if folder else scratch_path("data")
    limits = engine_limits(settings)
    rlimits = replace(limits_for(settings), memory=2 * limits.memory + AROUND, file_size=None).for_seconds()
    environment = {"PATH": os.defpath, "LANG": "C.UTF-8"}
    worker = WorkerSettings(own, environment, rlimits, partial(_confined, sandbox, own))
    return EnginePlace(own, worker, files, limits, temporary=folder is None)


def agreed_metrics(where: Places, ingress: Ingress) -> Metrics:
    """The definitions of the person and, once it is trusted, of the project."""
    root = ingress.root
    folders = metric_folders(where.config, root, lambda: Trust(where).trusted(root))
    return Metrics(folders, lambda owner: lambda path, limit: ingress.raw(path, limit, owner))


def temporary_place(settings: Settings, where: Places, folder: Path, beside: Iterable[Path] = ()) -> EnginePlace:
    """A place that is gone when its engine is closed, for files of ``folder`` and of folders ``beside`` it."""
    workspace = Workspace(folder, tuple(beside))

    def refused(path: Path) -> str:
        if not workspace.contains(path):
            return "it lies outside this folder; name it behind the query"
        return _kept(path, workspace)

    return engine_place(None, settings, DataFiles(workspace.resolve, refused), sandbox_for(settings, where, workspace))


def engine_limits(settings: Settings) -> EngineLimits:
    """What the engine may use, in bytes and seconds."""
    given = settings.analysis
    memory = int(given.memory_gb * GIGABYTE) or min(MOST_MEMORY, _memory() // 4)
    threads = given.threads or _processors()
    return EngineLimits(memory, threads, int(given.disk_gb * GIGABYTE), given.max_rows, given.query_seconds)


@frozen
class DataAccess:
    """Which files of a session its rules let ``reader`` read as data; they must hold no secrets. ``exports``: where
    results may be written. ``metrics``: what its figures are agreed to be."""

    workspace: Workspace
    reader: Tool
    judge: Callable[[JudgedCall], Judgement]
    exports: ExportRules
    metrics: Metrics = NO_METRICS

    def files(self) -> DataFiles:
        """The files that may be registered. Where a rule asks, whoever names the file has asked."""
        return DataFiles(self.workspace.resolve, self._refused)

    def _refused(self, path: Path) -> str:
        workspace = self.workspace
        if not (workspace.contains(path) or workspace.lends(path)):
            return AWAY
        judged = self._judged(str(path))
        return judged.reason if isinstance(judged, Deny) else _kept(path, workspace)

    async def concern(self, args: Mapping[str, Any]) -> str:
        """Why to ask before a query of a model reads the files that it names; empty when nothing asks."""
        return await asyncio.to_thread(self._asks, str(args["sql"]))

    def _asks(self, sql: str) -> str:
        from ba_tui.permissions.sql import classify  # noqa: PLC0415 - its parser is large

        return next((why for file in classify(sql).files if (why := self.asks(file))), "")

    def asks(self, path: str) -> str:
        """Why to ask before a model reads a file as data; empty when nothing asks. Blocks."""
        judged = self._judged(path)
        return judged.reason if isinstance(judged, Ask) else ""

    def _judged(self, path: str) -> Judgement:
        return self.judge(JudgedCall(self.reader, {"path": path}, self.workspace.root))


class DataNearby:
    """Whether a session has data: some was registered, or a data file lies in its ``root`` or one folder below. JSON
    does not count: most of it is settings."""

    def __init__(self, root: Path, engine: Analysis) -> None:
        self._root = str(root)
        self._engine = engine
        self._found = False
        self._without: dict[str, _Folder] = {}
        """Folders without data, as they were read."""

    def found(self) -> bool:
        """Return whether there is data. Reads a limited number of names, again only of folders that changed. Blocks."""
        self._found = self._found or self._engine.begun or self._look()
        return self._found

    def _look(self) -> bool:
        left, below = self._read(self._root, MOST_ENTRIES)
        for folder in below:
            if left >= 0:
                left, _ = self._read(folder, left)
        return left < 0

    def _read(self, folder: str, most: int) -> tuple[int, Sequence[str]]:
        """Return how many more names may be read, -1 where there is data, and the folders in ``folder``."""
        try:
            changed = os.stat(folder).st_mtime_ns  # noqa: PTH116 - called for each folder at each step
            known = self._without.get(folder)
            if known and known.changed == changed:
                return most, known.below
            read, below = 0, list[str]()
            with os.scandir(folder) as found:
                for entry in islice(found, most):
                    read += 1
                    if dataset_kind(entry.name) not in {"", JSON} and entry.is_file():
                        return -1, ()
                    if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                        below.append(entry.path)
        except OSError:
            return most, ()
        whole = read < most or most == MOST_ENTRIES
        if whole and changed < time.time_ns() - SETTLED_NS:
            # A later change within the clock's tick would leave the time as it is.
            self._without[folder] = _Folder(changed, tuple(below))
        return most - read, below


@frozen
class _Folder:
    """A folder without data: when it ``changed`` last, in nanoseconds, and the folders in it."""

    changed: int
    below: tuple[str, ...]


def _kept(path: Path, workspace: Workspace) -> str:
    """Why a file with secrets is not read as data; empty for others, and for one that can't be read at all."""
    try:
        return KEPT if secret_file(path, path.stat(), workspace) else ""
    except OSError:
        return ""


def _confined(sandbox: Sandbox, own: Path) -> Confinement | None:
    # Plain: DuckDB opens no file but those that were checked, so it may run where not all secrets can be hidden.
    return sandbox.confine(replace(READING, writable=(own,), plain=True), originals=True)


def _memory() -> int:
    """Bytes of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
