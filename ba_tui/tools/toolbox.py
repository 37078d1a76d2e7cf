"""The built-in tools of a conversation, and the sources of further tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ba_tui.core.ports.sessions import ReadHistory
from ba_tui.core.provider import Modalities
from ba_tui.core.tool import Tool
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
from ba_tui.tools.registry import ToolFiles
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
    if means is None:
        return tools
    return (
        *tools,
        named["shell_output"].late(shells),
        named["shell_kill"].late(shells),
        named["read_artifact"].late(means.results, place.rg, place.secrecy),
        named["recall"].late(means.history),
    )


def own_tools(
    where: UserFolders,
    ingress: Ingress,
    workers: WorkerSettings,
    extra: Sequence[Path],
    project: WorkerSettings,
    sandbox: Sandbox,
) -> Discovery:
    """Return the discovery of the user's own tools, in the config folder, the project's and ``extra`` folders.
    ``workers``: settings of their workers, ``project``: of those for the project's tools. ``sandbox`` confines tools
    that declare to only read. ``ingress`` checks what models may read of their files."""
    root = ingress.root
    folders = (
        ToolFolder(where.config / "tools", "user"),
        ToolFolder(root / ".ba" / "tools", "project", lambda: Trust(where).trusted(root)),
        *(ToolFolder(path, "extra") for path in extra),
    )
    cache, refusal = where.cache / "tools.json", ingress.refusal
    return Discovery(DiscoveryOptions(folders, workers, cache, project=project, sandbox=sandbox, refusal=refusal))


def tool_files(where: UserFolders, ingress: Ingress) -> ToolFiles:
    """Return the bundled tools.yaml, the user's, and that of a trusted project."""

    def files() -> Sequence[Path]:
        own, root = where.config / "tools.yaml", ingress.root
        return (own, root / ".ba" / "tools.yaml") if Trust(where).trusted(root) else (own,)

    return ToolFiles(bundled("config") / "tools.yaml", files, ingress.raw)


def recover_changes(where: UserFolders, cwd: Path, settings: Settings) -> list[str]:
    """Remove temporary files of killed processes and undo their incomplete changes in the workspace of ``cwd``;
    return one or two sentences for each. Blocks."""
    clear_unfinished(where)
    if not write_ahead(project_root(cwd), where=where).lists():
        return []
    return cast("list[str]", late("ba_tui.tools.editing.transaction:undo_changes")(where, cwd, settings))
