"""The tools of a conversation: which are built in, the guards around every one, and where others come from.

What a tool does is in its own file; which of them a model is told of is ``visible``'s business.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path

from ba_tui.core.ports.rooms import ToolSource
from ba_tui.core.tool import Effect, Guard, Tool
from ba_tui.core.values import frozen
from ba_tui.ingress import Ingress
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.permissions.secrets.sharing import Secrecy, Sharing
from ba_tui.permissions.trust.grants import Trust
from ba_tui.processes.worker_values import WorkerSettings
from ba_tui.resources import Places, bundled
from ba_tui.sessions.results.artifacts import Artifacts
from ba_tui.tools.builtin.artifacts import read_artifact_tool
from ba_tui.tools.builtin.ask_user import ask_user_tool
from ba_tui.tools.builtin.calculator import calculator_tool
from ba_tui.tools.builtin.clock import now_tool
from ba_tui.tools.builtin.files import read_file_tool, write_file_tool
from ba_tui.tools.builtin.listing import glob_tool, list_files_tool
from ba_tui.tools.builtin.recall import ReadHistory, recall_tool
from ba_tui.tools.builtin.search import grep_tool
from ba_tui.tools.builtin.shell import Shell, shell_tool, started_in
from ba_tui.tools.builtin.shell_output import shell_kill_tool, shell_output_tool
from ba_tui.tools.builtin.todos import todo_read_tool, todo_write_tool
from ba_tui.tools.definitions import Definition
from ba_tui.tools.editing.edits import edit_file_tool
from ba_tui.tools.editing.patching import apply_patch_tool
from ba_tui.tools.editing.seen import SeenFiles, remembering
from ba_tui.tools.guards.breaker import Health, breaker
from ba_tui.tools.guards.hook_guards import UNHOOKED, HookGuards, unhooked
from ba_tui.tools.guards.once import Memory, once
from ba_tui.tools.guards.output import NOWHERE, Delivery, output
from ba_tui.tools.guards.permission import CallJudge, Gate, Remember, Settle, never, permission, settled
from ba_tui.tools.guards.repeats import repeats
from ba_tui.tools.guards.retry import retry
from ba_tui.tools.guards.secrets import secrets
from ba_tui.tools.guards.timeout import timeout
from ba_tui.tools.guards.validate import validate
from ba_tui.tools.modalities import Modalities
from ba_tui.tools.own.discovery import Discovery, DiscoveryOptions, ToolFolder
from ba_tui.tools.registry import Registry, ToolFiles
from ba_tui.tools.running.background import Shells
from ba_tui.tools.running.command_runner import UNCONFINED, CommandRunner
from ba_tui.tools.web.tools import WebOptions, web_tools
from ba_tui.write_ahead import WriteAhead, write_ahead


@frozen
class SessionPlace:
    """Where tools work: the ``workspace``, the ``shell`` for commands and ripgrep's path, None where it is missing;
    whether secrets are kept from models, which files a rule denies to read, and where lists of changes are (None: where
    those of the workspace's folder are)."""

    workspace: Workspace
    shell: Shell
    rg: Path | None
    secrecy: Secrecy = "redact"
    denied: Callable[[Path], bool] = lambda path: False
    ahead: WriteAhead | None = None


@frozen
class ToolContext:
    """What further tools work with: background shells, stored results, the web, what was said before."""

    shells: Shells
    results: Artifacts
    web: WebOptions
    history: ReadHistory
    runner: CommandRunner = UNCONFINED
    modalities: Modalities = field(default_factory=Modalities)


@frozen
class Shared:
    """What the guards of one conversation share, beside consent: results kept, failures counted, where files go,
    which secrets the model may see."""

    memory: Memory
    health: Health
    delivery: Delivery = NOWHERE
    sharing: Sharing = field(default_factory=Sharing)
    checkpoint: Guard | None = None
    """Keeps the files before the first change of a turn; None where nothing is kept."""
    recording: Guard | None = None
    """Lists what a call writes of the files that run or instruct models; None where a copy is worked in."""
    settle: Settle = settled
    """Asks about protected files that commands changed, before another one runs unasked."""
    naming: Guard | None = None
    """Gives calls that run something the whole paths of skills."""
    mode_changed: Callable[[], Awaitable[None]] = never
    """Returns when the person chose another mode, which may answer a question that waits."""


@frozen
class Supply:
    """Where people's own tools come from: their config folder, the project's own, ``extra`` folders; ``ingress`` says
    what of their files models may be told."""

    where: Places
    ingress: Ingress
    worker_settings: WorkerSettings
    extra: Sequence[Path] = ()
    project: WorkerSettings | None = None
    """Where tools of the project run; None: where all others do."""
    sandbox: Sandbox | None = None
    """What holds tools that declare to only read; None where nothing does, so that they ask."""
    sources: Sequence[ToolSource] = ()
    """Further tools, which become known when tools are looked for."""
    closed: Callable[[], None] = lambda: None
    """Called when no tool runs any more."""

    @property
    def trust(self) -> Trust:
        return Trust(self.where)


def builtin_tools(
    definitions: Mapping[str, Definition],
    place: SessionPlace,
    means: ToolContext | None = None,
    known: SeenFiles | None = None,
) -> tuple[Tool, ...]:
    """One set for one conversation: the tools share what they know of the files it has read."""
    workspace, seen = place.workspace, known or SeenFiles()
    shells = means.shells if means else None
    tools = (
        read_file_tool(definitions["read_file"], workspace, seen, means.modalities if means else None, place.secrecy),
        write_file_tool(definitions["write_file"], workspace, seen),
        edit_file_tool(definitions["edit_file"], workspace, seen),
        list_files_tool(definitions["list_files"], workspace),
        glob_tool(definitions["glob"], workspace),
        grep_tool(definitions["grep"], workspace, place.rg, place.secrecy, place.denied),
        shell_tool(definitions["shell"], workspace, place.shell, shells, means.runner if means else UNCONFINED),
        todo_write_tool(definitions["todo_write"]),
        todo_read_tool(definitions["todo_read"]),
        ask_user_tool(definitions["ask_user"]),
        calculator_tool(definitions["calculator"]),
        now_tool(definitions["now"]),
        apply_patch_tool(definitions["apply_patch"], workspace, seen, place.ahead or write_ahead(workspace.root)),
    )
    tools = tuple([remembering(tool, seen) if tool.facts.category == "files" else tool for tool in tools])
    return (*tools, *further_tools(definitions, place, means)) if means else tools


def further_tools(definitions: Mapping[str, Definition], place: SessionPlace, means: ToolContext) -> tuple[Tool, ...]:
    """Those that need more than a place."""
    shells = means.shells
    return (
        shell_output_tool(definitions["shell_output"], shells),
        shell_kill_tool(definitions["shell_kill"], shells),
        read_artifact_tool(definitions["read_artifact"], means.results, place.rg, place.secrecy),
        *web_tools(definitions, means.web),
        recall_tool(definitions["recall"], means.history),
    )


def pipeline(
    place: SessionPlace,
    judge: CallJudge,
    remember: Remember,
    shared: Shared | None = None,
    hooks: HookGuards = UNHOOKED,
) -> Guard:
    """The guard of every tool of one conversation, also of those that join later."""
    workspace = place.workspace
    kept = shared or Shared(Memory(workspace.resolve), Health())
    writers: set[str] = set()

    consent = permission(
        Gate(judge, remember, partial(started_in, workspace), workspace.shown, kept.settle, kept.mode_changed)
    )
    again = repeats(writers)

    def guard(tool: Tool) -> Tool:
        if tool.effect is Effect.WRITE:
            writers.add(tool.name)
        return guarded(tool, consent, again, kept, hooks)

    return guard


def guarded(
    tool: Tool, permission: Guard, repeats: Guard, shared: Shared | None = None, hooks: HookGuards = UNHOOKED
) -> Tool:
    """Every call passes these, the outermost first, without exception."""
    kept = shared or Shared(Memory(Path), Health())
    guards: tuple[Guard, ...] = (
        # Nothing leaves a tool, not even a failure or a part of an output, before secrets are taken out.
        secrets(kept.sharing),
        # What hooks say of a result is not cut with it.
        hooks.after,
        # What is delivered is shortened once, whichever guard below made the result.
        partial(output, delivery=kept.delivery),
        # A call made in circles is stopped before anybody is bothered with it.
        repeats,
        # Everybody below gets arguments that fit the schema; those that a hook rewrites are checked again.
        validate,
        # Hooks, rules and the user see the paths that a call will use.
        kept.naming or unhooked,
        # Hooks may deny or rewrite; their "allow" skips no rule, so permission comes after them.
        hooks.before,
        permission,
        # Only calls that are allowed are answered from memory, and only those count for the breaker.
        once(kept.memory),
        breaker(kept.health),
        # Files are kept before the first attempt, and once for all attempts.
        kept.checkpoint or unhooked,
        # What a call writes of files that run later, or instruct models, is listed until the user has accepted it.
        kept.recording or unhooked,
        # Each attempt has the whole timeout; the time that people take to answer counts towards none.
        retry(),
        timeout,
    )
    for guard in reversed(guards):
        tool = guard(tool)
    return tool


def stocked(tools: Sequence[Tool], guard: Guard, supply: Supply) -> Registry:
    """A registry with ``tools`` and all that people put where ``supply`` says. Finds the latter when refreshed."""
    trust, where, root, ingress = supply.trust, supply.where, supply.ingress.root, supply.ingress

    def files() -> Sequence[Path]:
        own = where.config / "tools.yaml"
        return (own, root / ".ba" / "tools.yaml") if trust.trusted(root) else (own,)

    folders = (
        ToolFolder(where.config / "tools", "user"),
        ToolFolder(root / ".ba" / "tools", "project", lambda: trust.trusted(root)),
        *(ToolFolder(path, "extra") for path in supply.extra),
    )
    options = DiscoveryOptions(folders, supply.worker_settings, where.cache / "tools.json", project=supply.project)
    discovery = Discovery(replace(options, sandbox=supply.sandbox, refusal=ingress.refusal))
    choices = ToolFiles(bundled("config") / "tools.yaml", files, ingress.raw)
    registry = Registry(guard, choices, discovery, ingress.clean_value, supply.closed)
    for tool in tools:
        registry.add(tool)
    registry.join(supply.sources)
    return registry
