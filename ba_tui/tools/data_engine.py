"""The data engine of a session: where it works, what it may use, and which files the rules let it read."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from ba_tui.analysis.engine import Analysis, EngineLimits, EnginePlace
from ba_tui.analysis.files import DataFiles
from ba_tui.core.profiles import READING
from ba_tui.core.tool import Tool
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.permissions.sandbox.from_settings import limits_for, sandbox_for
from ba_tui.permissions.secrets.hard_links import secret_file
from ba_tui.permissions.verdicts import Deny, JudgedCall, Judgement
from ba_tui.processes.confinement import Confinement
from ba_tui.processes.limits import GIGABYTE
from ba_tui.processes.worker_values import WorkerSettings
from ba_tui.resources import Places
from ba_tui.settings import Settings

FOLDER = "analysis"
MOST_MEMORY = 4 * GIGABYTE
AROUND = 2 * GIGABYTE
"""Bytes that the helper may take beside what DuckDB counts."""
AWAY = "it lies outside the folders of this session; add its folder with --add-dir"
KEPT = "it may contain secrets"


def session_engine(folder: Path | None, settings: Settings, files: DataFiles, sandbox: Sandbox) -> Analysis:
    """The engine that keeps its data below ``folder`` of a session; None: in a temporary one."""
    return Analysis(engine_place(folder, settings, files, sandbox))


def engine_place(folder: Path | None, settings: Settings, files: DataFiles, sandbox: Sandbox) -> EnginePlace:
    """Where the engine works. Nothing is made or started yet."""
    own = folder / FOLDER if folder else Path(tempfile.gettempdir()).resolve() / f"ba-data-{secrets.token_hex(8)}"
    limits = engine_limits(settings)
    rlimits = replace(limits_for(settings), memory=2 * limits.memory + AROUND, file_size=None).for_seconds()
    environment = {"PATH": os.defpath, "LANG": "C.UTF-8"}
    worker = WorkerSettings(own, environment, rlimits, partial(_confined, sandbox, own))
    return EnginePlace(own, worker, files, limits, temporary=folder is None)


def tried_place(settings: Settings, where: Places, folder: Path) -> EnginePlace:
    """A temporary place for a trial in ``folder``, where no file can be read."""
    workspace = Workspace(folder)
    files = DataFiles(workspace.resolve, lambda _: AWAY)
    return engine_place(None, settings, files, sandbox_for(settings, where, workspace))


def engine_limits(settings: Settings) -> EngineLimits:
    """What the engine may use, in bytes and seconds."""
    given = settings.analysis
    memory = int(given.memory_gb * GIGABYTE) or min(MOST_MEMORY, _memory() // 4)
    threads = given.threads or _processors()
    return EngineLimits(memory, threads, int(given.disk_gb * GIGABYTE), given.max_rows, given.query_seconds)


def workspace_files(workspace: Workspace, reader: Tool, judge: Callable[[JudgedCall], Judgement]) -> DataFiles:
    """The files of a session that its rules let ``reader`` read, and that hold no secrets."""

    def refused(path: Path) -> str:
        if not (workspace.contains(path) or workspace.lends(path)):
            return AWAY
        try:
            if secret_file(path, path.stat(), workspace):
                return KEPT
        except OSError as error:
            return error.strerror or str(error)
        judged = judge(JudgedCall(reader, {"path": str(path)}, workspace.root))
        return judged.reason if isinstance(judged, Deny) else ""

    return DataFiles(workspace.resolve, refused)


def _confined(sandbox: Sandbox, own: Path) -> Confinement | None:
    # Plain: DuckDB opens no file but those that were checked, so it may run where not all secrets can be hidden.
    return sandbox.confine(replace(READING, writable=(own,), plain=True))


def _memory() -> int:
    """Bytes of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
