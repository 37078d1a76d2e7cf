"""The tools alone of one folder, for commands that need no model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ba_tui.assembly.session import conversation
from ba_tui.assembly.start import StartOptions, Startup
from ba_tui.assembly.tools import SessionTools
from ba_tui.core.errors import ProviderError
from ba_tui.core.events import SideRequest
from ba_tui.sessions.results.artifacts import FOLDER, Artifacts
from ba_tui.tools.session_scope import SessionScope


def tools_alone(cwd: Path, flags: Mapping[str, object], results: Path | None = None) -> SessionTools:
    """The tools of ``cwd`` for work that needs no model; long results go to ``results``.
    Raises UsageError when a flag or a settings file is wrong."""
    start = Startup(cwd, StartOptions(flags), conversation)
    stored = Artifacts(results or start.where.cache / FOLDER, int(start.settings.commands.output_mb * 1e6))

    async def ask(system: str, text: str, purpose: str) -> tuple[str, SideRequest]:
        raise ProviderError("no model is there: only the tool runs")

    return SessionTools(start, SessionScope(cwd, stored), ask)
