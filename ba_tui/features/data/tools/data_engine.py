"""The data engine of a session: its folder, its limits, and the files that the permission rules let it read."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ba_tui.core.effects import READING
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine import EngineLimits, EnginePlace
from ba_tui.features.data.analysis.files import DataFiles
from ba_tui.features.data.analysis.metrics import Metrics, metric_folders
from ba_tui.features.data.analysis.muted_traps import MUTED, MutedTraps
from ba_tui.features.data.tools.exports import ExportRules
from ba_tui.ingress import Ingress
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.sandbox.confinement import Sandbox, limits_for, sandbox_for
from ba_tui.permissions.secrets.hard_links import secret_file
from ba_tui.permissions.sql import classify
from ba_tui.permissions.trust.grants import Trust
from ba_tui.permissions.verdicts import Ask, Deny, JudgedCall, Judgement
from ba_tui.processes.scratch import scratch_path
from ba_tui.processes.values import GIGABYTE, Confinement, WorkerSettings
from ba_tui.resources import UserFolders
from ba_tui.settings import Settings

FOLDER = "analysis"
MOST_MEMORY = 4 * GIGABYTE
AROUND = 2 * GIGABYTE
"""Bytes of memory for the helper in addition to DuckDB's limit."""
AWAY = "it lies outside the folders of this session; add its folder with --add-dir"
KEPT = "it may contain secrets"
NO_METRICS = Metrics()


def muted_traps(state: Path, settings: Settings) -> MutedTraps:
    """Return the traps muted by the settings and by the user."""
    return MutedTraps(state / MUTED, settings.analysis.mute_traps)


def engine_place(folder: Path | None, settings: Settings, files: DataFiles, sandbox: Sandbox) -> EnginePlace:
    """Return the engine's place: below the session's ``folder``, or a temporary one when that is None. Creates and
    starts nothing."""
    own = folder / FOLDER if folder else scratch_path("data")
    limits = engine_limits(settings)
    rlimits = replace(limits_for(settings), memory=2 * limits.memory + AROUND, file_size=None).for_seconds()
    environment = {"PATH": os.defpath, "LANG": "C.UTF-8"}
    worker = WorkerSettings(own, environment, rlimits, partial(_confined, sandbox, own))
    return EnginePlace(own, worker, files, limits, temporary=folder is None)


def agreed_metrics(where: UserFolders, ingress: Ingress) -> Metrics:
    """Return the user's metric definitions and, when the project is trusted, the project's."""
    root = ingress.root
    folders = metric_folders(where.config, root, lambda: Trust(where).trusted(root))
    return Metrics(folders, lambda owner: lambda path, limit: ingress.raw(path, limit, owner))


def temporary_place(settings: Settings, where: UserFolders, folder: Path, beside: Iterable[Path] = ()) -> EnginePlace:
    """Return a place that is removed when its engine closes, for files of ``folder`` and the folders ``beside``."""
    workspace = Workspace(folder, tuple(beside))

    def refused(path: Path) -> str:
        if not workspace.contains(path):
            return "it lies outside this folder; name it behind the query"
        return _kept(path, workspace)

    return engine_place(None, settings, DataFiles(workspace.resolve, refused), sandbox_for(settings, where, workspace))


def engine_limits(settings: Settings) -> EngineLimits:
    """Return the engine's limits in bytes and seconds."""
    options = settings.analysis
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    memory = int(options.memory_gb * GIGABYTE) or min(MOST_MEMORY, machine // 4)
    threads = options.threads or _processors()
    return EngineLimits(memory, threads, int(options.disk_gb * GIGABYTE), options.max_rows, options.query_seconds)


@frozen
class DataAccess:
    """The files that the rules let ``reader`` read as data; files with secrets are refused. ``exports`` has the rules
    for writing results, ``metrics`` the agreed definitions."""

    workspace: Workspace
    reader: Tool
    judge: Callable[[JudgedCall], Judgement]
    exports: ExportRules
    metrics: Metrics = NO_METRICS

    def files(self) -> DataFiles:
        """Return the files that may be registered. A rule that asks does not refuse: the user has named the file, or
        approved the call."""
        return DataFiles(self.workspace.resolve, self._refused)

    def _refused(self, path: Path) -> str:
        workspace = self.workspace
        if not (workspace.contains(path) or workspace.lends(path)):
            return AWAY
        judged = self._judged(str(path))
        return judged.reason if isinstance(judged, Deny) else _kept(path, workspace)

    async def concern(self, args: Mapping[str, Any]) -> str:
        """Return why the user must approve a query that reads the files it names; empty when no approval is needed."""
        return await asyncio.to_thread(self._asks, str(args["sql"]))

    def _asks(self, sql: str) -> str:
        return next((why for file in classify(sql).files if (why := self.asks(file))), "")

    def asks(self, path: str) -> str:
        """Return why the user must approve reading ``path`` as data; empty when no approval is needed. Blocks."""
        judged = self._judged(path)
        return judged.reason if isinstance(judged, Ask) else ""

    def _judged(self, path: str) -> Judgement:
        return self.judge(JudgedCall(self.reader, {"path": path}, self.workspace.root))


def _kept(path: Path, workspace: Workspace) -> str:
    """Return why a file with secrets is refused as data; empty for other files and unreadable ones."""
    try:
        return KEPT if secret_file(path, path.stat(), workspace) else ""
    except OSError:
        return ""


def _confined(sandbox: Sandbox, own: Path) -> Confinement | None:
    # Plain: DuckDB opens only files that were checked, so it may run where the sandbox can't hide every secret.
    return sandbox.confine(replace(READING, writable=(own,), plain=True), originals=True)


def _processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
