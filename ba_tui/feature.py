"""What a feature is: one value that says how it joins a session, and what it brings to one that is open.

Strings such as ``"ba_tui.features.memory.session:open_memory"`` name functions. They are imported when they are called.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from ba_tui.agent_files.catalog import AgentFiles
from ba_tui.context.mentions import MentionSource
from ba_tui.core.agent import Interceptor, Toolset
from ba_tui.core.agent_spec import AgentSpec
from ba_tui.core.events import MAIN, Notice
from ba_tui.core.ports.mentions import MentionKind
from ba_tui.core.ports.rooms import CheckResult, MarkedShare, ToolSource
from ba_tui.core.tool import Tool
from ba_tui.core.turn import Listener
from ba_tui.core.values import frozen
from ba_tui.permissions.session import SessionPermissions
from ba_tui.resources import Places
from ba_tui.settings import Loaded
from ba_tui.tools.builtin.shell import Shell
from ba_tui.tools.definitions import Definition
from ba_tui.tools.guards.permission import CallJudge
from ba_tui.tools.registry import Registry
from ba_tui.tools.running.command_runner import CommandRunner
from ba_tui.tools.session_scope import SessionScope
from ba_tui.tools.visible import Visible
from ba_tui.write_ahead import WriteAhead

if TYPE_CHECKING:
    from ba_tui.context.compression.agent_window import AgentWindow
    from ba_tui.providers.in_use import ModelInUse

T = TypeVar("T")
LIST = "ba_tui.features:FEATURES"
"""The list of features. It is named here only: no module of the base imports a feature."""


class Stage(Enum):
    """Where an interceptor of a feature runs. ``assembly.agents`` lists these among the interceptors of the base."""

    RECALL = "before anything that was read may be carried away"
    CONNECT = "before tools are listed"
    JOIN = "after tools were listed"
    PLAN = "when the main agent would stop: a plan is presented"
    VERIFY = "when the main agent would stop: its answer is checked"
    FINISH = "when the main agent would stop: last of all features"


@frozen
class AgentParts:
    """One agent's own parts, whichever model answers."""

    spec: AgentSpec
    model: ModelInUse
    visible: Visible
    tools: Toolset
    window: AgentWindow

    @property
    def main(self) -> bool:
        return self.spec.name == MAIN


MakeInterceptor: TypeAlias = "Callable[[AgentParts], Interceptor | None]"


@frozen
class SessionContext:
    """What a feature gets of the session that opens. ``trusted`` is the root of the project when the user trusts it;
    ``builtin`` has the small tools without their guards, ``registry`` all tools within them."""

    scope: SessionScope
    loaded: Loaded
    where: Places
    permissions: SessionPermissions
    definitions: Mapping[str, Definition]
    shell: Shell
    runner: CommandRunner
    ahead: WriteAhead
    builtin: Mapping[str, Tool]
    registry: Callable[[], Registry]
    key_variables: frozenset[str]
    """Names of the environment variables that hold keys."""
    trusted: Path | None
    attended: bool
    agent_files: Callable[[], AgentFiles] | None
    """Describes agents; read when it is called."""
    ports: Mapping[type[Any], object]
    """What the base and the features that are open so far offer, each under its type."""

    def port(self, kind: type[T]) -> T | None:
        """Return what the base or an open feature offers under ``kind``; None when none does."""
        return cast("T | None", self.ports.get(kind))

    def offered(self, kind: type[T]) -> T:
        """As ``port``. Raises LookupError when none does."""
        found = self.port(kind)
        if found is None:
            raise LookupError(f"No feature offers {kind.__name__}.")
        return found


@frozen
class OpenFeature:
    """What a feature brings to one session."""

    tools: tuple[Tool, ...] = ()
    sources: tuple[ToolSource, ...] = ()
    """Tools that may change while ba runs."""
    needed: Callable[[], Sequence[str]] | None = None
    """Names of the tools that must be listed now."""
    judging: Callable[[CallJudge], CallJudge] | None = None
    """Wraps what judges calls, to name the files that a tool of the feature changes."""
    interceptors: tuple[tuple[Stage, MakeInterceptor], ...] = ()
    """Made for each agent."""
    listeners: tuple[Listener, ...] = ()
    ports: Mapping[type[Any], object] = field(default_factory=dict[type[Any], object])
    """What faces and later features look up by its type."""
    mentions: Mapping[MentionKind, MentionSource] = field(default_factory=dict["MentionKind", "MentionSource"])
    """What a prompt may mention, by its kind."""
    refresh: Callable[[], None] | None = None
    """Called before mentions are searched; returns at once."""
    shares: tuple[MarkedShare, ...] = ()
    """Shares of the context report."""
    notices: tuple[Notice, ...] = ()
    close: Callable[[], Awaitable[None]] | None = None


@frozen
class Feature:
    """``open`` names a function from SessionContext to OpenFeature; it is called once for each session and must be
    cheap. ``checks`` names one from CheckContext to the lines that `ba doctor` prints; these may take seconds."""

    name: str
    open: str
    checks: str = ""

    def opened(self, context: SessionContext) -> OpenFeature:
        return cast("OpenFeature", resolve(self.open)(context))

    def checked(self, context: CheckContext) -> Iterable[CheckResult]:
        return cast("Iterable[CheckResult]", resolve(self.checks)(context)) if self.checks else ()


@frozen
class CheckContext:
    """What the doctor gives to a feature's checks: the ``folder`` that it examines, and the root of its project."""

    loaded: Loaded
    where: Places
    folder: Path
    root: Path
    trusts: Callable[[Path], bool]


def resolve(name: str) -> Any:
    """Return what ``"module:name"`` names. Raises ImportError or AttributeError when there is none."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def known_features() -> tuple[Feature, ...]:
    """Return the features in the order in which they open."""
    return cast("tuple[Feature, ...]", resolve(LIST))


def for_every_agent(interceptor: Interceptor) -> MakeInterceptor:
    return lambda parts: interceptor


def for_main(interceptor: Interceptor) -> MakeInterceptor:
    """Leave the interceptor out for sub-agents."""
    return lambda parts: interceptor if parts.main else None
