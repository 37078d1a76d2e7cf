"""Features: how a feature joins a session, and what it adds to an open one.

Strings such as ``"ba_tui.features.memory.session:open_memory"`` name functions. They are imported when they are called.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from enum import Enum
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

from ba_tui.command import AppParts, ShellParts
from ba_tui.core.values import Once, frozen

if TYPE_CHECKING:
    from ba_tui.agent_files.catalog import AgentFiles
    from ba_tui.context.compression.compressor import AgentWindow
    from ba_tui.context.mentions import MentionSource
    from ba_tui.core.agent import Interceptor, Toolset
    from ba_tui.core.events import Notice
    from ba_tui.core.ports.context import MentionKind
    from ba_tui.core.ports.contributions import CheckResult, MarkedShare, Ports, ToolSource
    from ba_tui.core.teamwork import AgentSpec
    from ba_tui.core.tool import Tool
    from ba_tui.core.turn import Listener
    from ba_tui.permissions.session import SessionPermissions
    from ba_tui.providers.agent_model import AgentModel
    from ba_tui.resources import UserFolders
    from ba_tui.settings import LoadedSettings
    from ba_tui.tools.command_runner import CommandRunner
    from ba_tui.tools.definitions import Definition
    from ba_tui.tools.guards.permission import CallJudge
    from ba_tui.tools.guards.pipeline import HookGuards
    from ba_tui.tools.registry import Registry
    from ba_tui.tools.shells import Shell
    from ba_tui.tools.toolbox import SessionScope
    from ba_tui.tools.visible import Visible
    from ba_tui.write_ahead import WriteAhead

T = TypeVar("T")
LIST = "ba_tui.features:FEATURES"
"""The names of all features. It is named here only: no module of the base imports a feature."""

UPDATE = "Update or remove the package, or take it from features in config.yaml."
LONGEST_SETTINGS = 1_000_000
"""Bytes of config.yaml that are read for the names of features."""


class Stage(Enum):
    """Where an interceptor of a feature runs. ``assembly.session`` lists these among the interceptors of the base."""

    RECALL = "before anything that was read may be carried away"
    CONNECT = "before tools are listed"
    JOIN = "after tools were listed"
    HOOK = "after the notes of the base"
    PLAN = "when the main agent would stop: a plan is presented"
    VERIFY = "when the main agent would stop: its answer is checked"
    FINISH = "when the main agent would stop: last of all features"


@frozen
class AgentParts:
    """One agent's own parts, whichever model answers."""

    spec: AgentSpec
    model: AgentModel
    visible: Visible
    tools: Toolset
    window: AgentWindow

    @property
    def main(self) -> bool:
        from ba_tui.core.events import MAIN  # noqa: PLC0415 - a Feature is read at every start

        return self.spec.name == MAIN


MakeInterceptor: TypeAlias = "Callable[[AgentParts], Interceptor | None]"


@frozen
class SessionContext:
    """The opening session, for a feature. ``trusted`` is the root of the project when the user trusts it; ``builtin``
    has the small tools without their guards, ``registry`` all tools within them."""

    scope: SessionScope
    loaded: LoadedSettings
    where: UserFolders
    permissions: SessionPermissions
    definitions: Mapping[str, Definition]
    shell: Shell
    runner: Once[CommandRunner]
    """Runs commands; made at the first one."""
    ahead: WriteAhead
    builtin: Mapping[str, Tool]
    registry: Callable[[], Registry]
    key_variables: frozenset[str]
    """Names of the environment variables that hold keys."""
    trusted: Path | None
    attended: bool
    agent_files: Callable[[], AgentFiles] | None
    """Describes agents; read when it is called."""
    ports: Ports
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
    """The parts that a feature adds to one session."""

    tools: tuple[Tool, ...] = ()
    sources: tuple[ToolSource, ...] = ()
    """Tools that may change while ba runs."""
    needed: Callable[[], Sequence[str]] | None = None
    """Names of the tools that must be listed now."""
    judging: Callable[[CallJudge], CallJudge] | None = None
    """Wraps the permission policy, to name the files that a tool of the feature changes."""
    hook_guards: Callable[[], HookGuards] | None = None
    """Returns the guards for hooks; called at the first call of a tool. One is inside the
    guards that shorten a result, the other outside."""
    interceptors: tuple[tuple[Stage, MakeInterceptor], ...] = ()
    """Made for each agent."""
    listeners: tuple[Listener, ...] = ()
    ports: Mapping[str, Callable[[], object]] = field(default_factory=dict[str, Callable[[], object]])
    """What interfaces and later features look up by type: the type as ``module:class``, and a function that returns
    the object."""
    mentions: Mapping[MentionKind, MentionSource] = field(default_factory=dict["MentionKind", "MentionSource"])
    """Sources of mentions in prompts, by kind."""
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
    open: str = ""
    checks: str = ""
    app: AppParts = field(default_factory=AppParts)
    shell: ShellParts = field(default_factory=ShellParts)
    installed: bool = False
    """Whether it comes from an installed package. Such a feature brings tools, commands and screens; it can't judge
    calls, act before a request or hear events, and an error in it costs that feature only."""

    def opened(self, context: SessionContext) -> OpenFeature:
        """Return what the feature brings to a session."""
        if not self.open:
            return OpenFeature()
        if not self.installed:
            return cast("OpenFeature", resolve_name(self.open)(context))
        try:
            brought = cast("OpenFeature", resolve_name(self.open)(context))
            return _without_powers(brought, self.name)
        except Exception as error:  # noqa: BLE001 - code of a package must not keep a session from opening
            return OpenFeature(notices=(_warning(f"The feature {self.name} can't be opened: {_reason(error)}"),))

    def checked(self, context: CheckContext) -> Iterable[CheckResult]:
        """Return the lines of `ba doctor` about the feature."""
        if not self.checks:
            return ()
        if not self.installed:
            return cast("Iterable[CheckResult]", resolve_name(self.checks)(context))
        try:
            return list(cast("Iterable[CheckResult]", resolve_name(self.checks)(context)))
        except Exception as error:  # noqa: BLE001 - code of a package must not end the doctor
            from ba_tui.core.ports.contributions import CheckResult  # noqa: PLC0415 - see known_features

            return [CheckResult(self.name, "fail", f"The checks of the feature failed: {_reason(error)}", UPDATE)]


@frozen
class CheckContext:
    """What the doctor gives to a feature's checks: the ``folder`` that it examines, and the root of its project."""

    loaded: LoadedSettings
    where: UserFolders
    folder: Path
    root: Path
    trusts: Callable[[Path], bool]


def known_features() -> tuple[Feature, ...]:
    """Return the features in the order in which they open; those of installed packages come last."""
    return (*_built_in(), *installed_features().features)


def _built_in() -> tuple[Feature, ...]:
    return tuple(cast("Feature", resolve_name(name)) for name in cast("tuple[str, ...]", resolve_name(LIST)))


@frozen
class InstalledFeatures:
    """Features of installed packages. ``problems`` says which of the named ones can't be used, and why."""

    features: tuple[Feature, ...] = ()
    problems: tuple[str, ...] = ()


_loaded: dict[tuple[str, ...], InstalledFeatures] = {}


def installed_features() -> InstalledFeatures:
    """Return the features that the user's setting ``features`` names, from the entry points of group ``ba.features``.

    A start without that setting reads one file and imports nothing. Only the user's own config.yaml and
    ``BA_FEATURES`` count: a project names no code to load.
    """
    names = tuple(dict.fromkeys(_named_features()))
    if names not in _loaded:
        found = [_installed(name) for name in names]
        features = tuple(each for each in found if isinstance(each, Feature))
        _loaded[names] = InstalledFeatures(features, tuple(each for each in found if isinstance(each, str)))
    return _loaded[names]


def _installed(name: str) -> Feature | str:
    """Return the feature of this name, or why there is none."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - only who names a feature pays for the look

    if any(each.name == name for each in _built_in()):
        return f"features: {name} is built in, so it need not be listed."
    found = list(entry_points(group="ba.features", name=name))
    if not found:
        return f"features: no installed package has a feature {name!r}. Install the package beside ba."
    try:
        feature: object = found[0].load()
    except Exception as error:  # noqa: BLE001 - code of a package must not keep ba from starting
        return f"features: {name} can't be loaded: {_reason(error)}"
    if not isinstance(feature, Feature) or feature.name != name:
        return f"features: {found[0].value} is not a ba_tui.feature.Feature named {name!r}."
    # Panes hear events, and openers see records: of the app a package gets commands only.
    return replace(feature, installed=True, shell=ShellParts(), app=AppParts(feature.app.commands))


def _named_features() -> list[str]:
    from ba_tui.core.text.patterns import regex  # noqa: PLC0415 - see known_features
    from ba_tui.resources import places, read_regular  # noqa: PLC0415

    value: object = os.environ.get("BA_FEATURES", "").replace(",", " ").split()
    if not value:
        try:
            text = read_regular(places().settings, LONGEST_SETTINGS).decode("utf-8-sig", "replace")
        except OSError:
            return []
        if not regex(r"(?m)^features[ \t]*:").search(text):
            return []
        import yaml  # noqa: PLC0415 - only who names a feature pays for it

        try:
            value = cast("dict[str, object]", yaml.safe_load(text)).get("features")
        except (yaml.YAMLError, AttributeError):
            # The settings report what is wrong with their file.
            return []
    return [each for each in cast("list[object]", value) if isinstance(each, str)] if isinstance(value, list) else []


def _without_powers(brought: OpenFeature, name: str) -> OpenFeature:
    """Return the parts that a package may add. Its tools are listed like the user's own."""
    from ba_tui.core.ports.contributions import SourceTool, ToolsFound, ToolSource  # noqa: PLC0415 - see known_features

    found = ToolsFound(tuple(SourceTool(tool, f"the feature {name}") for tool in brought.tools), [])
    sources = (*brought.sources, ToolSource("feature", lambda: found))
    return replace(brought, tools=(), sources=sources, judging=None, hook_guards=None, interceptors=(), listeners=())


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")


def _warning(text: str) -> Notice:
    from ba_tui.core.events import Notice  # noqa: PLC0415 - a Feature is read at every start

    return Notice(text, "warning", UPDATE)


def for_every_agent(interceptor: Interceptor) -> MakeInterceptor:
    return lambda parts: interceptor


def for_main(interceptor: Interceptor) -> MakeInterceptor:
    """Leave the interceptor out for sub-agents."""
    return lambda parts: interceptor if parts.main else None
