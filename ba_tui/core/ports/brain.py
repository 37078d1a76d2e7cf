"""What assembly gives a conversation: the agent for a model, and what faces may look into."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol, TypeVar, cast

from ba_tui.core.agent import Agent
from ba_tui.core.messages import Message
from ba_tui.core.ports.agents import Agents
from ba_tui.core.ports.commands import OwnCommands
from ba_tui.core.ports.context import Condenser, ContextPart
from ba_tui.core.ports.hooks import HookList
from ba_tui.core.ports.instructions import ContextFiles
from ba_tui.core.ports.jobs import Jobs
from ba_tui.core.ports.mentions import Mentions
from ba_tui.core.ports.permissions import Permissions
from ba_tui.core.ports.results import Reader
from ba_tui.core.ports.skills import Skills
from ba_tui.core.ports.tools import Tools
from ba_tui.core.provider import ModelInfo
from ba_tui.core.rewinding import Checkpoints
from ba_tui.core.tool import Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Listener
from ba_tui.core.values import frozen

T = TypeVar("T")


@frozen
class Inventory:
    """What a conversation has that faces may look into; None where there is none of it."""

    tools: Tools | None = None
    results: Reader | None = None
    jobs: Jobs | None = None
    confinement: Callable[[], str] = str
    """Whether commands run confined, in a word or two; empty while nobody has looked."""
    skills: Skills | None = None
    checkpoints: Checkpoints | None = None
    mentions: Mentions | None = None
    commands: OwnCommands | None = None
    own_shell: Tool | None = None
    """Runs commands of the person's own; within guards of its own."""
    own_query: Tool | None = None
    """Runs queries of the person's own, likewise."""
    agents: Agents | None = None
    hooks: HookList | None = None
    context_files: ContextFiles | None = None
    features: Mapping[type[Any], object] = field(default_factory=dict[type[Any], object])
    """What features offer, each under its type."""

    def feature(self, kind: type[T]) -> T | None:
        """Return what a feature offers under ``kind``, such as Memory; None when no feature does."""
        return cast("T | None", self.features.get(kind))


@frozen
class Admitted:
    """A prompt that may open a turn: ``notes`` go with it, ``model`` answers; empty for the one of the session."""

    notes: tuple[Message, ...] = ()
    model: str = ""


class Brain(Protocol):
    """What assembly gives a conversation: the agent for a model and what is said beside a prompt."""

    @property
    def permissions(self) -> Permissions: ...

    @property
    def inventory(self) -> Inventory: ...

    @property
    def condenser(self) -> Condenser | None:
        """Compresses the conversation when the person says so; None where nothing can."""
        ...

    @property
    def listeners(self) -> Sequence[Listener]:
        """Hear every event of the conversation, after the journal."""
        ...

    async def admit(self, prompt: Message, branch: Branch) -> Admitted:
        """Decide about a prompt before it opens a turn. Raises PromptRefused when it may not be sent."""
        ...

    def model(self, name: str) -> ModelInfo:
        """Raises UsageError, naming the nearest, when ``name`` can't be a model."""
        ...

    def agent(self, model: str) -> Agent:
        """May import an HTTP client or an SDK: call it off the loop. Raises AuthFailed when there is no key."""
        ...

    def reminders(self, transcript: Transcript) -> Sequence[Message]:
        """Hidden notes that go with a new prompt: the time, project instructions not yet said."""
        ...

    def context(self, transcript: Transcript, model: str) -> Sequence[ContextPart]: ...

    async def close(self) -> None:
        """End what still runs for the conversation: background shells, workers."""
        ...
