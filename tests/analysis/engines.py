"""Engines for tests: a real helper process, unconfined unless a test says so."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ba_tui.features.data.analysis.engine import Analysis, EngineLimits, EnginePlace
from ba_tui.features.data.analysis.files import DataFiles
from ba_tui.processes.values import WorkerSettings

MEGABYTE = 1_000_000


def limits(**changed: Any) -> EngineLimits:
    return replace(EngineLimits(500 * MEGABYTE, 2, 500 * MEGABYTE, 100_000, 20.0), **changed)


def place_in(
    folder: Path, refused: Callable[[Path], str] = lambda _: "", *, state: Path | None = None, **changed: Any
) -> EnginePlace:
    """An engine for the files of ``folder``, which keeps its own in ``state``."""
    files = DataFiles(lambda text: Path(os.path.realpath(folder / text)), refused)
    worker = WorkerSettings(folder, {"PATH": os.defpath})
    return EnginePlace(state or folder / "session" / "analysis", worker, files, limits(**changed))


def engine_in(folder: Path, **more: Any) -> Analysis:
    return Analysis(place_in(folder, **more))
