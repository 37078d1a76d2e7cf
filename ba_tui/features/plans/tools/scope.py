"""What a session gives to its plans."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ba_tui.agent_files.catalog import AgentFiles
from ba_tui.core.messages import Message
from ba_tui.core.ports.delegation import Delegation
from ba_tui.core.ports.working import TaskMemory
from ba_tui.core.tool import Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.values import frozen
from ba_tui.features.plans.engine.plan_mode import PlanMode
from ba_tui.sessions.results.artifacts import Artifacts
from ba_tui.tools.builtin.recall import ReadHistory, nothing_said
from ba_tui.tools.model_requests import ModelRequests

if TYPE_CHECKING:
    from ba_tui.features.plans.tools.agreement import PlanMaker

Planning: TypeAlias = "Callable[[Callable[[str, Sequence[Message], Sequence[Tool]], Awaitable[Message]]], PlanMaker]"
"""Makes a planner that asks the model by what it is given."""


@frozen
class PlanScope:
    """The session: what was said, its ``tools`` within their guards by name, who starts agents, what is remembered,
    long results, and plan mode. ``requests`` ask the session's model; None where no conversation is. ``planning``:
    None for ba's own planner. ``attended``: somebody can be asked."""

    transcript: Transcript
    tools: Callable[[], Mapping[str, Tool]]
    delegation: Delegation
    memory: TaskMemory
    results: Artifacts
    mode: PlanMode
    requests: ModelRequests | None = None
    attended: bool = False
    planning: Planning | None = None
    agents: Callable[[], AgentFiles] | None = None
    """Where the agents are described that steps may have."""
    history: ReadHistory = nothing_said
    """The events of the session so far."""

    def roles(self) -> Mapping[str, str]:
        """What each agent is for, by its name. Reads files."""
        files = self.agents().look() if self.agents else ()
        return {file.spec.name: file.spec.description for file in files if file.usable}
