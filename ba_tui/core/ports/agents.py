"""Ports of agents: the agents that files describe, delegation to sub-agents, and the project copies they work in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, Protocol, TypeAlias

from ba_tui.core.agent import ChildResult
from ba_tui.core.effects import Effect
from ba_tui.core.teamwork import AgentActivity, AgentSpec, Budget, ProjectCopy
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen

AgentState: TypeAlias = Literal["ready", "partly", "broken", "off", "shadowed"]
"""``partly``: some settings of its file are not supported; ``off``: its file disables it; ``shadowed``: another agent
of that name takes precedence."""


@frozen
class AgentLine:
    """An agent in a list. ``source`` is ``bundled``, ``user`` or ``project``, ``path`` its file.

    ``model`` is empty for the model of the session. ``tools`` None means all tools except ``without``; ``limit``
    describes further limits. ``unsupported`` lists settings of its file that ba ignores, ``ignored`` unknown fields.
    ``trouble`` says why it cannot be used.
    """

    name: str
    state: AgentState
    source: str
    path: str
    description: str = ""
    model: str = ""
    tools: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    limit: str = ""
    max_loops: int = 0
    color: str = ""
    unsupported: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    trouble: str = ""


class Agents(Protocol):
    """All agents that files describe."""

    def lines(self) -> Sequence[AgentLine]:
        """Return the agents by name, those that take precedence first. Reads files: call it off the event loop."""
        ...

    def search(self, words: str) -> Sequence[AgentLine]:
        """Return usable agents that share words with ``words``, best first. Reads files, as ``lines``."""
        ...

    def prompt(self, path: str) -> str:
        """Return the instructions in an agent file as Markdown. Reads a file. Raises UsageError."""
        ...


Work: TypeAlias = Callable[[Branch], Awaitable[None]]
"""Answers a prompt instead of the main agent, on its branch; the answer is the last MessageDone that it emits."""


@frozen
class Order:
    """A request to run a sub-agent.

    ``agent`` is the name of an agent type or a spec, ``prompt`` everything that it reads. ``resume``: the id of an
    ended agent that continues with ``prompt``. ``deadline`` in seconds. ``max_loops`` and ``budget`` None take those of
    its type. ``call_id``: the call that starts it. ``expected_output``: requirements that its answer is checked
    against; empty for those of its type. ``isolation``: "worktree" runs it in a copy of the project; empty for the
    setting of its type.
    """

    agent: str | AgentSpec
    prompt: str
    description: str = ""
    resume: str = ""
    deadline: float | None = None
    max_loops: int | None = None
    budget: Budget | None = None
    call_id: str = ""
    expected_output: str = ""
    isolation: str = ""


@frozen
class RunningAgent:
    """A sub-agent of the session in a list, running or ended. ``agent_id`` is its name in events."""

    agent_id: str
    kind: str
    description: str
    activity: AgentActivity
    began: float
    background: bool = False


class Delegation(Protocol):
    """Runs sub-agents. One for each session."""

    def effect(self, agent: str) -> Effect:
        """Return the worst effect of an agent type. Reads files. Raises UsageError with the nearest name."""
        ...

    async def run(self, order: Order, parent: Branch) -> ChildResult:
        """Run an agent to its end and return its result, whatever the outcome.

        Raises:
            UsageError: the agent is unknown, calls itself, or agents are nested too deeply.
            asyncio.CancelledError: the parent was cancelled.
        """
        ...

    async def start(self, order: Order, parent: Branch) -> str:
        """Start an agent in the background and return its id; its end is reported to the parent and shown. Raises as
        ``run``."""
        ...

    def running(self) -> Sequence[RunningAgent]: ...

    def tell(self, agent_id: str, text: str) -> bool:
        """Send a message to a running agent. Returns False if it has ended."""
        ...

    def pause(self, agent_id: str, *, on: bool) -> bool:
        """Pause an agent before its next request, or resume it. Returns False if it has ended."""
        ...

    def cancel(self, agent_id: str) -> bool: ...


SHOWN = 8
"""Maximum number of files that ``not_copied`` names."""


class AgentCopies(Protocol):
    """Project copies of one session (``isolation: worktree``), one for each isolated agent, by the agent's name in
    events."""

    async def make(self, agent_id: str) -> ProjectCopy:
        """Copy the project. Raises BaError with the reason if it cannot be copied."""
        ...

    async def find(self, agent_id: str) -> ProjectCopy:
        """Return the copy that the agent worked in. Raises UsageError if it is gone."""
        ...

    async def told(self, agent_id: str) -> str:
        """Return a line for the report of an ended agent: what it changed, and how to bring the changes into the
        project. Removes a copy without changes. Raises nothing but CancelledError."""
        ...


def not_copied(left: Sequence[str]) -> str:
    """Return a sentence that lists the files missing from a copy; empty if none is missing."""
    if not left:
        return ""
    more = f"; and {len(left) - SHOWN} more" if len(left) > SHOWN else ""
    return f"Not in its copy: {'; '.join(left[:SHOWN])}{more}."
