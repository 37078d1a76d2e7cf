"""The ``Brain`` port: what assembly gives a conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol, TypeVar, cast

from ba_tui.core.agent import Agent
from ba_tui.core.messages import Message
from ba_tui.core.ports.agents import Agents
from ba_tui.core.ports.context import Condenser, ContextFiles, ContextPart, Mentions, OwnCommands, Skills
from ba_tui.core.ports.permissions import Permissions
from ba_tui.core.ports.sessions import Checkpoints
from ba_tui.core.ports.tools import Jobs, Reader, Tools
from ba_tui.core.provider import ModelInfo
from ba_tui.core.tool import Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Listener
from ba_tui.core.values import frozen

T = TypeVar("T")


@frozen
class Inventory:
    """Ports of a conversation that faces may use; None if the conversation lacks one."""

    tools: Tools | None = None
    results: Reader | None = None
    jobs: Jobs | None = None
    confinement: Callable[[], str] = str
    """Returns in a word or two whether commands run confined; empty until that is known."""
    skills: Skills | None = None
    checkpoints: Callable[[], Checkpoints] | None = None
    mentions: Mentions | None = None
    commands: OwnCommands | None = None
    own_shell: Tool | None = None
    """Runs shell commands of the user, within guards of its own."""
    own_query: Tool | None = None
    """Runs queries of the user, within guards of its own."""
    agents: Agents | None = None
    context_files: ContextFiles | None = None
    features: Mapping[type[Any], object] = field(default_factory=dict[type[Any], object])
    """Ports that features offer, by type."""

    def feature(self, kind: type[T]) -> T | None:
        """Return the port ``kind`` of a feature, such as Memory; None if no feature offers it."""
        return cast("T | None", self.features.get(kind))


@frozen
class AdmittedPrompt:
    """A prompt that may open a turn: ``notes`` go with it, ``model`` answers; empty for the one of the session."""

    notes: tuple[Message, ...] = ()
    model: str = ""


class Brain(Protocol):
    """Makes agents for models, and decides about prompts and the notes sent with them."""

    @property
    def permissions(self) -> Permissions: ...

    @property
    def inventory(self) -> Inventory: ...

    @property
    def condenser(self) -> Condenser | None:
        """Compresses the conversation on request of the user; None if that is not available."""
        ...

    @property
    def listeners(self) -> Sequence[Listener]:
        """Listeners that receive every event of the conversation, after the journal."""
        ...

    async def admit(self, prompt: Message, branch: Branch) -> AdmittedPrompt:
        """Decide about a prompt before it opens a turn. Raises PromptRefused if it may not be sent."""
        ...

    def model(self, name: str) -> ModelInfo:
        """Return the model ``name``. Raises UsageError with the nearest name if it cannot be a model."""
        ...

    def agent(self, model: str) -> Agent:
        """Return the agent for a model. May import an HTTP client or SDK: call it off the event loop. Raises AuthFailed
        without a key."""
        ...

    def reminders(self, transcript: Transcript) -> Sequence[Message]:
        """Return hidden notes for a new prompt: the time, and project instructions not sent yet."""
        ...

    def context(self, transcript: Transcript, model: str) -> Sequence[ContextPart]: ...

    async def close(self) -> None:
        """Stop everything that still runs for the conversation: background shells, workers."""
        ...
