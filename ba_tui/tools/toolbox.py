"""The built-in tools of a conversation, and the sources of further tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ba_tui.core.ports.contributions import ToolSource
from ba_tui.core.ports.sessions import ReadHistory
from ba_tui.core.provider import Modalities
from ba_tui.core.tool import Guard, Tool
from ba_tui.core.values import Once, frozen, late
from ba_tui.ingress import Ingress
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.permissions.secrets.sharing import Secrecy
from ba_tui.permissions.trust.grants import Trust
from ba_tui.processes.values import WorkerSettings
from ba_tui.resources import UserFolders, bundled, clear_unfinished, project_root
from ba_tui.sessions.artifacts import Artifacts
from ba_tui.settings import Settings
from ba_tui.tools.definitions import Definition, wrapped
from ba_tui.tools.own.discovery import Discovery, DiscoveryOptions, ToolFolder
from ba_tui.tools.registry import Registry, ToolFiles
from ba_tui.tools.running.background import Shells
from ba_tui.tools.running.shell_program import Shell
from ba_tui.write_ahead import WriteAhead, write_ahead

if TYPE_CHECKING:
    from ba_tui.tools.editing.seen_files import SeenFiles
    from ba_tui.tools.running.command_runner import CommandRunner


@frozen
class SessionPlace:
    """The place where tools work: the ``workspace``, the ``shell`` for commands, and ripgrep's path, None if
    missing. ``secrecy``: whether secrets are hidden from models; ``denied``: files that a rule denies to read;
    ``ahead``: lists of changes, None for those of the workspace."""

    workspace: Workspace
    shell: Shell
    rg: Path | None
    secrecy: Secrecy = "redact"
    denied: Callable[[Path], bool] = lambda path: False
    ahead: WriteAhead | None = None


@frozen
class ToolContext:
    """The services of further tools: background shells, stored results, the session's history."""

    shells: Shells
    results: Artifacts
    history: ReadHistory
    runner: Once[CommandRunner] | None = None
    modalities: Modalities = field(default_factory=Modalities)


@frozen
class Supply:
    """The sources of the user's own tools: the config folder, the project's, ``extra`` folders; ``ingress`` checks
    what models may read of their files."""

    where: UserFolders
    ingress: Ingress
    worker_settings: WorkerSettings
    extra: Sequence[Path] = ()
    project: WorkerSettings | None = None
    """Settings for workers of the project's tools; None: those of all workers."""
    sandbox: Sandbox | None = None
    """The sandbox of tools that declare to only read; None: they ask."""
    sources: Sequence[ToolSource] = ()
    """Further sources of tools, asked at each refresh."""
    closed: Callable[[], None] = lambda: None
    """Called after the last tool has ended."""

    @property
    def trust(self) -> Trust:
        return Trust(self.where)


def builtin_tools(
    definitions: Mapping[str, Definition],
    place: SessionPlace,
    means: ToolContext | None = None,
    known: Once[SeenFiles] | None = None,
) -> tuple[Tool, ...]:
    """Return the tools of one conversation, which share their knowledge of files."""
    workspace = place.workspace
    seen = known or Once(late("ba_tui.tools.editing.seen_files:SeenFiles"))
    named, denied, ahead = definitions, place.denied, place.ahead or write_ahead(workspace.root)
    shells, modalities = (means.shells, means.modalities) if means else (Shells(), Modalities())
    runner = (means.runner,) if means and means.runner else ()
    tools = (
        named["read_file"].late(workspace, seen, modalities, place.secrecy),
        named["write_file"].late(workspace, seen),
        named["edit_file"].late(workspace, seen),
        named["list_files"].late(workspace),
        named["glob"].late(workspace),
        named["grep"].late(workspace, place.rg, place.secrecy, denied),
        named["shell"].late(workspace, place.shell, shells, *runner),
        named["todo_write"].late(),
        named["todo_read"].late(),
        named["ask_user"].late(),
        named["calculator"].late(),
        named["now"].late(),
        named["apply_patch"].late(workspace, seen, ahead),
    )
    remembering = "ba_tui.tools.editing.seen_files:remembering"
    tools = tuple(wrapped(tool, remembering, seen) if tool.facts.category == "files" else tool for tool in tools)
    return (*tools, *further_tools(definitions, place, means)) if means else tools


def further_tools(definitions: Mapping[str, Definition], place: SessionPlace, means: ToolContext) -> tuple[Tool, ...]:
    """Return the tools that need a ToolContext."""
    shells = means.shells
    return (
        definitions["shell_output"].late(shells),
        definitions["shell_kill"].late(shells),
        definitions["read_artifact"].late(means.results, place.rg, place.secrecy),
        definitions["recall"].late(means.history),
    )


def stocked(tools: Sequence[Tool], guard: Guard, supply: Supply) -> Registry:
    """Return a registry with ``tools`` and the user's own tools, which are found at the first refresh."""
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


def recover_changes(where: UserFolders, cwd: Path, settings: Settings) -> list[str]:
    """Remove temporary files of killed processes and undo their incomplete changes in the workspace of ``cwd``;
    return one or two sentences for each. Blocks."""
    clear_unfinished(where)
    if not write_ahead(project_root(cwd), where=where).lists():
        return []
    return cast("list[str]", late("ba_tui.tools.editing.transaction:undo_changes")(where, cwd, settings))
