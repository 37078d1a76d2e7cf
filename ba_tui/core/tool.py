"""What a tool is: a value with a name, a schema and a function. Guards wrap a tool into a tool."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol, TypeAlias, cast

from ba_tui.core.effects import Effect
from ba_tui.core.events import ToolProgress
from ba_tui.core.profiles import WORKING, Profile, ProfileStep
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import Display, OutputLevel, ToolResult
from ba_tui.core.turn import Branch, Meanwhile
from ba_tui.core.values import frozen

Consult: TypeAlias = Callable[[Question], Awaitable[Reply | None]]
"""Hears a question of a call before the person does; a reply settles it."""


class Progress:
    """What a call has done so far; shared by all forms that guards give the call on its way to the tool."""

    TAIL = 8_000

    def __init__(self) -> None:
        self.tail = ""
        """The last characters reported, kept for the case that the call is interrupted."""
        self.waited = 0.0
        """Seconds that people took to answer; they count neither as duration nor towards a timeout."""
        self.given: Mapping[str, Any] | None = None
        """The arguments as hooks left them; None until hooks have let the call through."""
        self.committing = False
        """Whether a cancelled call still makes a change that must not be broken off; a guard waits for its end."""
        self.outlasted = False
        """Whether the call was cancelled while it made a change, and went on to the end of it."""
        self.changed = ""
        """The result's text once a change was completed: a cancel that comes later does not make it undone."""


@frozen
class Call:
    """What a running tool may do beside returning: report progress and ask the person. Never a service.

    A guard that has something to say to the next inner one hands on a changed copy.
    ``patience``: what the tool's timeout is multiplied with; grows when a call that timed out is tried again.
    ``concerns``: why a person is to be asked although no rule asks.
    ``again``: the person was asked about it before and has not answered, so they are asked whatever the mode says now.
    ``rewritten``: who changed the arguments that the model had given; empty when nobody did.
    ``profile``: how what the call runs is confined, as whoever allowed it decided.
    ``steps``: the commands that are to run one after the other; empty where the call runs as it is.
    ``consults``: hear a question in this order before the person does.
    ``private``: the person made it for themselves; no model may learn of it.
    ``approved``: the change that the user was shown and allowed; None where they were shown none.
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
    progress: Progress = field(default_factory=Progress)

    @property
    def tail(self) -> str:
        return self.progress.tail

    @property
    def waited(self) -> float:
        return self.progress.waited

    def report(self, text: str) -> None:
        """Show ``text`` in the call's pane while it runs."""
        self.progress.tail = (self.progress.tail + text)[-Progress.TAIL :]
        self.branch.emit(ToolProgress(self.id, text))

    async def ask(self, question: Question, meanwhile: Meanwhile | None = None) -> Reply:
        """Ask hooks, then the person; see ``Branch.ask``."""
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
"""Makes a long text fit a level, which has room for so many characters."""


@frozen
class ToolFacts:
    """``target``: the argument that names what a call is about (shown in its row, matched by rules).
    ``paths``: the arguments that hold file paths, which the path policy judges.
    ``needs``: modules and programs without which the tool can't run."""

    category: str = "other"
    target: str = ""
    paths: tuple[str, ...] = ()
    repeatable: bool = False
    """True for tools that are meant to be called again with the same arguments (polling, the clock): such a call is a
    repetition only when its result is the same, too."""
    tags: tuple[str, ...] = ()
    version: str = "1"
    level: OutputLevel = "standard"
    bulky: bool = False
    """True when results can be long: the model may then choose an ``output_level`` for a call."""
    subagents: bool = True
    cacheable: bool = False
    """True only when all that a result depends on is in the arguments and in the files of ``paths``."""
    needs: tuple[str, ...] = ()
    paths_of: Callable[[Mapping[str, Any]], tuple[str, ...]] | None = None
    """Finds paths that lie deeper in the arguments, such as within a patch. Takes anything and never raises."""
    target_of: Callable[[Mapping[str, Any]], str] | None = None
    """Says what a call is about where no single argument does. Takes anything and never raises."""
    confined: bool = False
    """True for a tool that names no command, but runs its programs in the sandbox wherever there is one."""
    writes: str = ""
    """The argument that names a file to write, for a tool that only reads without it."""
    reads: bool = False
    """True for a tool whose code only reads where the profile *reading* holds it. Elsewhere it counts as running code,
    although its effect may be READ."""
    sql: str = ""
    """The argument that holds SQL, which permissions look into: what it does counts, not what the tool usually does."""
    asks: str = ""
    """Why a person is asked in every mode: only an allow rule that names the tool lets it run unasked."""
    examples: tuple[Mapping[str, Any], ...] = ()
    """Arguments of typical calls, shown to models that need examples: those that write their calls."""
    dialect_of: Callable[[Mapping[str, Any]], str] | None = None
    """Says in which dialect that SQL is; DuckDB's without it. Takes anything and never raises."""
    copied: bool = False
    """True for a tool that changes files in a copy of the project only, about which the mode does not ask."""
    below: Callable[[Mapping[str, Any]], Effect] | None = None
    """Says what the agents that a call starts can do at worst. Their own calls are judged one by one: it only decides
    what runs side by side. Takes anything and never raises."""


@frozen
class Tool:
    """``timeout`` in seconds, None for tools that wait for people or keep time themselves.
    ``idempotent``: may be tried again after a failure; None means that reading tools may.
    ``shorten``: its own way to shorten what is too long; None shortens by the kind of the result.
    ``so_far``: makes the reports of an interrupted call fit for the model.
    ``concern``: why a person is to be asked about these arguments although no rule asks; empty for most."""

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
        """What a call with ``args`` is about, as one line."""
        if self.facts.target_of:
            value = self.facts.target_of(args)
        else:
            value = args.get(self.facts.target, "") if self.facts.target else ", ".join(self.paths(args))
        return " ".join(str(value).split())

    def effect_of(self, args: Mapping[str, Any]) -> Effect:
        """The worst that a call with ``args`` can do."""
        saves = self.facts.writes and args.get(self.facts.writes) and self.effect is Effect.READ
        return Effect.WRITE if saves else self.effect

    def reach(self, args: Mapping[str, Any]) -> Effect:
        """The worst that a call with ``args`` and the agents which it starts can do."""
        own = self.effect_of(args)
        return self.facts.below(args) if self.facts.below and own is Effect.READ else own

    def paths(self, args: Mapping[str, Any]) -> tuple[str, ...]:
        """Every path that a call with ``args`` names, as written there."""
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
    """Tools that may grow more while a turn runs. Read before each request; the same object while nothing changed,
    and what was listed once stays listed, in its place (prompt cache)."""

    def visible(self) -> Sequence[Tool]:
        """What the model is told of."""
        ...

    def find(self, name: str) -> Tool | None:
        """A tool that may be called now; also one that is not listed yet."""
        ...
