"""What a session gives its teams, as values. Loads nothing of teams: few sessions have one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ba_tui.agent_files.catalog import AgentFiles
from ba_tui.core.agent import AskModel
from ba_tui.core.ports.delegation import Delegation
from ba_tui.core.ports.memory import Draft
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.sessions.results.artifacts import Artifacts
from ba_tui.tools.builtin.recall import ReadHistory
from ba_tui.tools.model_requests import ModelRequests

if TYPE_CHECKING:
    from ba_tui.features.teams.engine.orchestrator import Planning


@frozen
class Escalation:
    """``command`` of the settings, empty for none; it runs in ``folder`` ``after`` so many seconds. ``redact`` takes
    secrets out of what it is told."""

    command: str
    after: float
    folder: Path
    environment: Mapping[str, str]
    session: str = ""
    redact: Callable[[str], str] = str


@frozen
class TeamScope:
    """The session: ``agents`` runs its agents, ``files`` describe them, ``results`` keep archives. ``ask`` asks the
    small model; None asks none. ``remember`` keeps an outcome; it raises BaError where memory is off. ``redact`` takes
    secrets out of what goes to another process. ``requests`` ask the session's model for
    plans; ``plan`` makes them in another way. ``tool`` finds one of the session within its guards."""

    agents: Delegation
    files: Callable[[], AgentFiles] | None
    results: Artifacts
    history: ReadHistory
    escalation: Escalation
    redact: Callable[[str], str] = str
    ask: AskModel | None = None
    remember: Callable[[Draft], Awaitable[object]] | None = None
    requests: ModelRequests | None = None
    plan: Planning | None = None
    tool: Callable[[str], Tool | None] = lambda name: None
