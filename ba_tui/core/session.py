"""What a conversation is made of and knows of itself: its file, its brain, its rules. Protocols and values only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from ba_tui.core.agent import Agent
from ba_tui.core.commands import Commands
from ba_tui.core.events import Event, Mode
from ba_tui.core.mentions import Mentions
from ba_tui.core.messages import Message, Usage
from ba_tui.core.provider import ModelInfo
from ba_tui.core.results import Artifact, Diff, Hit, Page
from ba_tui.core.rewinding import Checkpoints
from ba_tui.core.skills import Skills
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen

TITLE_LENGTH = 60


@frozen
class SessionInfo:
    """What lists show of a session. Times are seconds since the epoch; ``cost`` None when any part is unknown."""

    id: str
    title: str
    cwd: Path
    created: float
    updated: float
    turns: int = 0
    cost: float | None = None
    model: str = ""
    preview: str = ""
    locked_by: str = ""
    """Who writes it now (``pid 123``); empty when nobody does."""
    found: str = ""
    """What stands around the words that were searched for."""


@frozen
class TurnLine:
    """A turn as lists show it; ``ended`` is empty while it goes on."""

    number: int
    at: float
    prompt: str
    calls: int = 0
    ended: str = ""


@frozen
class Outline:
    """A session's turns, oldest first, and what all its answers used."""

    usage: Usage
    turns: tuple[TurnLine, ...] = ()


@frozen
class Imported:
    """A session that was made from a file of another program. ``source`` names the original; ``remarks`` say what
    of it was left out."""

    info: SessionInfo
    source: str
    remarks: tuple[str, ...] = ()


class Journal(Protocol):
    """The session's file. ``append`` raises StorageError; what it could not write goes out with the next append."""

    def append(self, event: Event) -> None: ...

    def read(self) -> list[Event]:
        """All of it, healed, oldest first."""
        ...

    def tail(self, limit: int) -> list[Event]:
        """The newest events, at most about ``limit``, starting with a TurnStarted; cheap for any length."""
        ...

    def sync(self) -> None:
        """fsync; slow, call it off the loop."""
        ...

    def close(self) -> None: ...


class Reader(Protocol):
    """Stored results, a part at a time. All of it may take as long as a disk does: call it off the loop.

    Raises:
        StorageError: the reference is none of this session, or its file has expired; the message says which.
    """

    def about(self, ref: str) -> Artifact:
        """What is known of it; does not raise for one that has expired."""
        ...

    def read(self, ref: str, offset: int = 0, limit: int = 65_536) -> Page:
        """From byte ``offset`` on, at most ``limit`` bytes, never half a character."""
        ...

    def lines(self, ref: str, start: int = 1, count: int = 200, limit: int = 65_536) -> Page:
        """From line ``start`` on, at most ``count`` lines and ``limit`` bytes; a longer line is cut there."""
        ...

    def search(self, ref: str, words: str, limit: int = 100, start: int = 1) -> Sequence[Hit]:
        """The first lines, from ``start`` on, that hold every one of the words in whatever case."""
        ...


ToolState: TypeAlias = Literal["core", "on", "off", "deferred", "broken", "lacking"]
"""``off``: found but not shown to the model; ``deferred``: shown once it is searched for; ``lacking``: what it needs is
not there."""


@frozen
class ToolFigures:
    """How a tool did in this conversation; ``average`` and ``p95`` in seconds."""

    calls: int = 0
    failures: int = 0
    retries: int = 0
    cached: int = 0
    average: float = 0.0
    p95: float = 0.0


@frozen
class ToolLine:
    """A tool as lists show it. ``source`` says where it comes from (``built in``, a path, an entry point);
    ``trouble`` why it is broken, with file and line, or what it lacks.

    ``breaker``: ``opened`` while it is left alone after failures, for ``rest`` seconds. ``slow``: it timed out often.
    """

    name: str
    state: ToolState
    source: str = "built in"
    description: str = ""
    category: str = "other"
    tags: tuple[str, ...] = ()
    effect: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    trouble: str = ""
    figures: ToolFigures = field(default_factory=ToolFigures)
    breaker: Literal["closed", "opened", "half-opened"] = "closed"
    rest: float = 0.0
    slow: bool = False


class Tools(Protocol):
    """Every tool that was found, and which of them this conversation uses."""

    def lines(self) -> Sequence[ToolLine]:
        """In stable order. May read files: call it off the loop."""
        ...

    def switch(self, name: str, *, on: bool) -> None:
        """From the next turn on. Raises UsageError for what can't be: a core tool is off, a broken one on."""
        ...


@frozen
class Job:
    """A background shell as lists show it. Times are seconds since the epoch, ``size`` counts bytes printed;
    ``ref``: the stored whole of a large output."""

    id: str
    command: str
    since: float
    until: float | None
    state: Literal["running", "ended", "killed"]
    exit_code: int | None
    size: int
    ref: str | None


class Jobs(Protocol):
    """The background shells of a conversation. On the event loop, and cheap."""

    def list(self) -> Sequence[Job]:
        """Oldest first."""
        ...

    def output(self, id: str) -> str:
        """What is kept of the output, colours included. Raises UsageError when there is no such shell."""
        ...

    async def end(self, id: str) -> None:
        """End it and all it started; takes seconds at most. Raises UsageError when there is no such shell."""
        ...

    def detach(self, call_id: str) -> bool:
        """Move the command that a call waits for to the background. False when it waits for none."""
        ...

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Hear that one began or ended. Call what comes back to stop."""
        ...


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
    commands: Commands | None = None


RuleVerdict: TypeAlias = Literal["allow", "ask", "deny"]
RuleScope: TypeAlias = Literal["session", "project", "user"]
"""How long a rule that a person gives holds: until the session ends, in this project, or everywhere."""
RuleLayer: TypeAlias = Literal["", "bundled", "user", "project", "flag", "session"]


@frozen
class RuleLine:
    """One permission rule as shown: ``shell(git status)``, its verdict, where it stands and how often it hit.

    ``terms`` is what else it says (``when``, ``timeout``, ``on_timeout``) as JSON, empty for none. ``waiting``: an
    allow rule that came with the project and counts only once the person has confirmed it.
    """

    rule: str
    verdict: str
    source: str
    hits: int = 0
    layer: RuleLayer = ""
    terms: str = ""
    waiting: bool = False

    @property
    def leaves(self) -> bool:
        """Whether it lets commands run outside the sandbox."""
        return self.verdict == "allow" and self.rule.startswith("outside(")


class Permissions(Protocol):
    """The mode and the rules of a conversation. What reads or writes files may take as long as a disk does."""

    @property
    def mode(self) -> Mode: ...

    def set_mode(self, mode: Mode) -> None:
        """Raises UsageError for a mode that is not among ``modes``."""
        ...

    def modes(self) -> Sequence[Mode]:
        """Those that can be chosen here and now, in the order that a key goes through them."""
        ...

    def rules(self) -> Sequence[RuleLine]:
        """All of them, the strongest first. May read files: call it off the loop."""
        ...

    def add(self, rule: str, verdict: RuleVerdict, scope: RuleScope) -> RuleLine:
        """Give a rule; a waiting one of the same text is confirmed by it. Writes a file: call it off the loop.

        Raises:
            UsageError: it is no rule, or one that can't be kept. StorageError: it can't be written.
        """
        ...

    def remove(self, rule: RuleLine) -> None:
        """Take a rule back. Writes a file: call it off the loop.

        Raises:
            UsageError: it is not the person's own (bundled, a flag, the project's). StorageError: as ``add``.
        """
        ...


@frozen
class Held:
    """What of one ``kind`` (tools, hooks, MCP servers …) a folder would bring with it."""

    kind: str
    names: tuple[str, ...]


@frozen
class Standing:
    """How a folder stands with the person, as it was when looked at. ``unknown``: nobody was asked yet; ``changed``:
    it was trusted, and what it runs is not what it was.

    ``links`` with their targets. ``files``: what trusting vouches for, whole, or since then. ``trouble``: why it can't.
    """

    root: Path
    state: Literal["trusted", "unknown", "changed"]
    fingerprint: str = ""
    holds: tuple[Held, ...] = ()
    files: tuple[Diff, ...] = ()
    gone: tuple[str, ...] = ()
    warning: str = ""
    trouble: str = ""
    links: tuple[str, ...] = ()


class Trusting(Protocol):
    """Which folders a person trusts. All of it reads or writes files: call it off the loop."""

    def look(self, root: Path) -> Standing:
        """Never raises: what is wrong is in ``trouble``."""
        ...

    def grant(self, seen: Standing) -> None:
        """Trust the folder as it was seen. Raises UsageError when it can't be trusted, StorageError."""
        ...

    def revoke(self, root: Path) -> bool:
        """False when it was not trusted. Raises StorageError."""
        ...


@frozen
class ContextItem:
    """One thing in a share of the window, with the ``text`` that the model reads of it. ``said``: a message or a
    result, which a compression could shorten."""

    label: str
    tokens: int
    detail: str = ""
    text: str = ""
    said: bool = False


@frozen
class ContextPart:
    """A share of the window: ``tokens`` are an estimate unless ``exact``; ``detail`` says what is in it and why.

    ``kept_free``: nothing stands there yet.
    """

    label: str
    tokens: int
    detail: str = ""
    exact: bool = False
    items: tuple[ContextItem, ...] = ()
    kept_free: bool = False


class Condenser(Protocol):
    """Compresses a conversation when the person says so; emits Compressed."""

    async def now(self, branch: Branch, focus: str = "") -> None:
        """``focus``: what to pay attention to. Raises UsageError when it can't be, or nothing gets smaller."""
        ...

    async def undo(self, branch: Branch) -> None:
        """Back to what was before the last one, with what came since. Raises UsageError when there is none."""
        ...


class Brain(Protocol):
    """What assembly gives a conversation: the agent for a model and what is said beside a prompt."""

    @property
    def permissions(self) -> Permissions: ...

    def model(self, name: str) -> ModelInfo:
        """Raises UsageError, naming the nearest, when ``name`` can't be a model."""
        ...

    def agent(self, model: str) -> Agent:
        """May import an SDK: call it off the loop. Raises AuthFailed when there is no key."""
        ...

    def reminders(self, transcript: Transcript) -> Sequence[Message]:
        """Hidden notes that go with a new prompt: the time, project instructions not yet said."""
        ...

    def context(self, transcript: Transcript, model: str) -> Sequence[ContextPart]: ...

    async def close(self) -> None:
        """End what still runs for the conversation: background shells, workers."""
        ...


def title_of(prompt: str) -> str:
    """A session's title from its first prompt: the first line with words, at most 60 characters."""
    line = next((line.strip() for line in prompt.splitlines() if line.strip()), "Untitled")
    line = " ".join(line.lstrip("#>-* ").split()) or "Untitled"
    if len(line) <= TITLE_LENGTH:
        return line
    return line[:TITLE_LENGTH].rsplit(" ", 1)[0] + "…"
