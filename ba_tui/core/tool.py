"""Tools: values with a name, a schema and a function. Guards wrap a tool into a tool."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol, TypeAlias, cast

from ba_tui.core.effects import WORKING, Effect, Profile, ProfileStep
from ba_tui.core.events import ToolProgress
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import Display, OutputLevel, ToolResult
from ba_tui.core.turn import Branch, Meanwhile
from ba_tui.core.values import frozen

Consult: TypeAlias = Callable[[Question], Awaitable[Reply | None]]
"""Receives a question of a call before the user; a reply settles it."""


class CallProgress:
    """Progress of a call; shared by all copies of the call that guards make."""

    TAIL = 8_000

    def __init__(self) -> None:
        self.tail = ""
        """The last reported characters, in case the call is interrupted."""
        self.waited = 0.0
        """Seconds of waiting for people; not part of the duration or the timeout."""
        self.given: Mapping[str, Any] | None = None
        """The arguments after hooks changed them; None until hooks allowed the call."""
        self.committing = False
        """Whether a cancelled call is finishing a change that must not be interrupted; a guard waits for its end."""
        self.outlasted = False
        """Whether the call was cancelled during a change and finished it."""
        self.changed = ""
        """The result text of a completed change: a later cancel cannot undo it."""


@frozen
class Call:
    """What a running tool may use besides returning: progress reports and questions. Contains no services.

    A guard that changes something for the next inner guard passes on a changed copy.

    ``patience``: factor for the tool's timeout; grows when a timed-out call is retried. ``concerns``: reasons to ask
    the user although no rule does. ``again``: the user did not answer the first time, so they are asked whatever the
    mode is. ``rewritten``: who changed the model's arguments; empty if unchanged. ``profile``: the sandbox profile that
    was allowed. ``steps``: commands to run in sequence; empty to run the call as it is. ``consults``: receive a
    question, in this order, before the user. ``private``: a call of the user that no model may learn of. ``approved``:
    the change that was shown to the user and allowed; None if none was shown.
    """

    id: str
    branch: Branch
    patience: float = 1.0
    concerns: tuple[str, ...] = ()
    rewritten: str = ""
    profile: Profile = WORKING
    steps: tuple[ProfileStep, ...] = ()
    consults: tuple[Consult, ...] = ()
    again: bool = False
    private: bool = False
    approved: Display | None = None
    progress: CallProgress = field(default_factory=CallProgress)

    @property
    def tail(self) -> str:
        return self.progress.tail

    @property
    def waited(self) -> float:
        return self.progress.waited

    def report(self, text: str) -> None:
        """Show ``text`` in the call's pane while it runs."""
        self.progress.tail = (self.progress.tail + text)[-CallProgress.TAIL :]
        self.branch.emit(ToolProgress(self.id, text))

    async def ask(self, question: Question, meanwhile: Meanwhile | None = None) -> Reply:
        """Ask hooks, then the user; see ``Branch.ask``."""
        start = time.monotonic()
        try:
            for consult in self.consults:
                if settled := await consult(question):
                    return settled
                start = time.monotonic()
            return await self.branch.ask(question, meanwhile)
        finally:
            self.progress.waited += time.monotonic() - start


Run = Callable[[Mapping[str, Any], Call], Awaitable[ToolResult]]
Preview = Callable[[Mapping[str, Any]], Awaitable[Display | None]]
Concern = Callable[[Mapping[str, Any]], Awaitable[str]]
Shorten = Callable[[str, OutputLevel, int], str]
"""Shortens a text to a level with room for so many characters."""


@frozen
class ToolFacts:
    """Facts about a tool. ``target``: the argument that names the subject of a call (shown in its row, matched by
    rules). ``paths``: the arguments with file paths, which the path policy judges. ``needs``: required modules and
    programs."""

    category: str = "other"
    target: str = ""
    paths: tuple[str, ...] = ()
    repeatable: bool = False
    """True for tools that are called repeatedly with the same arguments (polling, the clock): such a call is a
    repetition only if its result is the same too."""
    tags: tuple[str, ...] = ()
    version: str = "1"
    level: OutputLevel = "standard"
    bulky: bool = False
    """True if results can be long: the model may then choose an ``output_level`` for a call."""
    subagents: bool = True
    cacheable: bool = False
    """True only if a result depends only on the arguments and the files of ``paths``."""
    needs: tuple[str, ...] = ()
    paths_of: Callable[[Mapping[str, Any]], tuple[str, ...]] | None = None
    """Finds paths deeper in the arguments, such as in a patch. Accepts any arguments and never raises."""
    target_of: Callable[[Mapping[str, Any]], str] | None = None
    """Returns the subject of a call if no single argument names it. Accepts any arguments and never raises."""
    confined: bool = False
    """True for a tool without a command that runs its programs in the sandbox wherever there is one."""
    writes: str = ""
    """The argument with the path to write, for a tool that is read-only without it."""
    reads: bool = False
    """True for a tool whose code is read-only in the profile *reading*. Otherwise it counts as running code, although
    its effect may be READ."""
    sql: str = ""
    """The argument with SQL, which permissions analyse: the effect is that of the statement, not of the tool."""
    asks: str = ""
    """Why the user is asked in every mode, unless an allow rule names the tool."""
    examples: tuple[Mapping[str, Any], ...] = ()
    """Arguments of typical calls, for models that write calls as text."""
    dialect_of: Callable[[Mapping[str, Any]], str] | None = None
    """Returns the SQL dialect of a call; DuckDB by default. Accepts any arguments and never raises."""
    copied: bool = False
    """True for a tool that changes files only in a copy of the project, about which the mode does not ask."""
    below: Callable[[Mapping[str, Any]], Effect] | None = None
    """Returns the worst effect of the agents that a call starts. Only decides about parallel runs, because their own
    calls are judged one by one. Accepts any arguments and never raises."""


@frozen
class Tool:
    """A tool. ``timeout`` in seconds, None for tools that wait for people or limit time themselves.

    ``idempotent``: may be retried after a failure; None allows it for read-only tools. ``shorten``: a custom function
    to shorten long results; None shortens by the kind of the result. ``so_far``: prepares the reports of an interrupted
    call for the model. ``concern``: returns why to ask the user about these arguments although no rule does; empty for
    most.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    run: Run
    effect: Effect = Effect.READ
    timeout: float | None = 120
    facts: ToolFacts = field(default_factory=ToolFacts)
    preview: Preview | None = None
    idempotent: bool | None = None
    shorten: Shorten | None = None
    so_far: Callable[[str], str] = str
    concern: Concern | None = None

    def target(self, args: Mapping[str, Any]) -> str:
        """Return the subject of a call in one line."""
        if self.facts.target_of:
            value = self.facts.target_of(args)
        else:
            value = args.get(self.facts.target, "") if self.facts.target else ", ".join(self.paths(args))
        return " ".join(str(value).split())

    def effect_of(self, args: Mapping[str, Any]) -> Effect:
        """Return the worst effect of a call."""
        saves = self.facts.writes and args.get(self.facts.writes) and self.effect is Effect.READ
        return Effect.WRITE if saves else self.effect

    def reach(self, args: Mapping[str, Any]) -> Effect:
        """Return the worst effect of a call including the agents that it starts."""
        own = self.effect_of(args)
        return self.facts.below(args) if self.facts.below and own is Effect.READ else own

    def paths(self, args: Mapping[str, Any]) -> tuple[str, ...]:
        """Return all paths in the arguments of a call, as written."""
        named = [text for name in self.facts.paths for text in _texts(args.get(name))]
        if self.facts.writes:
            named = [*named, *_texts(args.get(self.facts.writes) or ())]
        return (*named, *(self.facts.paths_of(args) if self.facts.paths_of else ()))


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list | tuple):
        return [item for item in cast("Sequence[Any]", value) if isinstance(item, str)]
    return []


Guard = Callable[[Tool], Tool]


class Toolset(Protocol):
    """The tools of an agent, which may grow during a turn. Read before each request: the same object while nothing
    changes, and listed tools keep their place (prompt cache)."""

    def visible(self) -> Sequence[Tool]:
        """Return the tools listed for the model."""
        ...

    def find(self, name: str) -> Tool | None:
        """Return a tool that may be called now, listed or not."""
        ...
