"""The values that a session passes to its plans."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ba_tui.agent_files.catalog import AgentFiles
from ba_tui.core.messages import Message
from ba_tui.core.ports.agents import Delegation
from ba_tui.core.ports.memory import TaskMemory
from ba_tui.core.ports.sessions import ReadHistory, nothing_said
from ba_tui.core.tool import Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.values import frozen
from ba_tui.features.plans.engine.plan_mode import PlanMode
from ba_tui.sessions.artifacts import Artifacts
from ba_tui.tools.toolbox import ModelRequests

if TYPE_CHECKING:
    from ba_tui.features.plans.tools.agreement import PlanMaker

Planning: TypeAlias = "Callable[[Callable[[str, Sequence[Message], Sequence[Tool]], Awaitable[Message]]], PlanMaker]"
"""Makes a planner that asks the model through the given callable."""


@frozen
class PlanScope:
    """A session as plans see it: the conversation, guarded ``tools`` by name, delegation, memory, long results, plan
    mode. ``requests`` go to the session's model; None without a conversation. ``planning``: None for ba's own planner.
    ``attended``: a user can answer.
    """

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
    """Returns the agent files that steps may use."""
    history: ReadHistory = nothing_said
    """Returns the events of the session so far."""

    def roles(self) -> Mapping[str, str]:
        """Return the purpose of each agent by name. Reads files."""
        files = self.agents().look() if self.agents else ()
        return {file.spec.name: file.spec.description for file in files if file.usable}
