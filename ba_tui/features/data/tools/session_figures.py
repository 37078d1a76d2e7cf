"""The figure checks of a session: what they read of its history, stored results and data."""

from __future__ import annotations

from functools import partial

from ba_tui.core.errors import StorageError
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.grounding.checking import FigureChecks, FigureSources
from ba_tui.sessions.results.artifacts import Artifacts
from ba_tui.settings import Settings
from ba_tui.tools.builtin.recall import ReadHistory

WHOLE = 4_000_000
"""Bytes up to which a stored result is read whole."""
HEAD, TAIL = 120_000, 40_000
"""Bytes that are read from the beginning and the end of a longer one."""


def figure_checks(settings: Settings, history: ReadHistory, results: Artifacts, engine: Analysis) -> FigureChecks:
    return FigureChecks(settings.analysis.verify, FigureSources(history, partial(_stored, results), engine))


def _stored(results: Artifacts, ref: str) -> str:
    """A stored result, of a very long one its beginning and its end; empty when it is gone. Blocks."""
    try:
        if results.about(ref).size <= WHOLE:
            return results.read(ref, 0, WHOLE).text
        first = results.read(ref, 0, HEAD)
        return f"{first.text}\n{results.read(ref, first.size - TAIL, TAIL).text}"
    except StorageError:
        return ""
