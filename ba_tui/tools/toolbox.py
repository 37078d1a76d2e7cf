"""The session that tools belong to, its built-in tools, and where the user's own come from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ba_tui.context.attachments import FOLDER as ATTACHED
from ba_tui.context.instructions import InstructionPlace, instruction_files
from ba_tui.context.reminders import BudgetLimits, SessionSpending
from ba_tui.core.agent import AskModel, MakeAgent
from ba_tui.core.errors import ProviderError
from ba_tui.core.events import (
    MessageDone,
    MessageRestarted,
    Notice,
    PromptProgress,
    Retrying,
    SideRequest,
    TextDelta,
    ThinkingDelta,
)
from ba_tui.core.messages import Message
from ba_tui.core.ports.sessions import ReadHistory, nothing_said
from ba_tui.core.provider import Modalities, ModelRequest, Provider, answer_of, charged
from ba_tui.core.tool import Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch
from ba_tui.core.values import Once, frozen, late
from ba_tui.ingress import Ingress
from ba_tui.permissions.paths import ReadOnlyFolder, Workspace
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.permissions.secrets.sharing import Secrecy
from ba_tui.permissions.session import InstructionFiles
from ba_tui.permissions.trust.grants import Trust
from ba_tui.processes.values import WorkerSettings
from ba_tui.providers.agent_model import AgentModel
from ba_tui.resources import UserFolders, bundled, clear_unfinished, project_root, user_home
from ba_tui.sessions.artifacts import FOLDER, Artifacts
from ba_tui.settings import Settings
from ba_tui.settings.plugins import Plugin
from ba_tui.tools.definitions import Definition, wrapped
from ba_tui.tools.discovery import Discovery, DiscoveryOptions, ToolFolder
from ba_tui.tools.registry import ToolFiles
from ba_tui.tools.shells import Shell, Shells
from ba_tui.write_ahead import WriteAhead, write_ahead

if TYPE_CHECKING:
    from ba_tui.tools.command_runner import CommandRunner
    from ba_tui.tools.editing.seen_files import SeenFiles


class ModelRequests:
    """Requests to the session's model besides its main agent, for the planner and the answer to a plan.

    They use a connection of their own, because a provider caches the body of its last request. The session's limits
    apply.
    """

    def __init__(self, model: AgentModel, spending: SessionSpending, settings: Settings) -> None:
        self._model = model
        self._limits = BudgetLimits(spending, model.info, settings.max_cost, settings.max_tokens)
        self._provider: Provider | None = None
        self._named = ""

    async def ask(self, branch: Branch, system: str, messages: Sequence[Message], tools: Sequence[Tool]) -> Message:
        """Send a request that is not part of the conversation, and return the answer. The session pays for it.

        Raises:
            ProviderError: no answer comes. StopTurn: a limit is reached.
        """
        provider = await self._ready(branch)
        request = ModelRequest(system, messages, tools, call_tools=bool(tools), must_call=bool(tools))
        answer = await _answer(provider, request, branch)
        branch.emit(SideRequest("plan", answer.model, answer.usage, *charged(provider.model.prices, answer.usage)))
        return answer

    async def say(self, branch: Branch, system: str, messages: Sequence[Message]) -> Message:
        """Return an answer of the branch's agent, streamed to the user. Raises as ``ask`` does."""
        provider = await self._ready(branch)
        answer = await _answer(provider, ModelRequest(system, messages, (), call_tools=False), branch, aloud=True)
        branch.emit(MessageDone(answer, *charged(provider.model.prices, answer.usage)))
        return answer

    def offered(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Return the tools that the model sees: a plan of a small model uses only these."""
        return self._model.request_head("", tools)[1]

    async def close(self) -> None:
        if self._provider:
            await self._provider.close()
        self._provider = None

    async def _ready(self, branch: Branch) -> Provider:
        await self._limits.before(branch)
        named = self._model.info().id
        if self._provider is None or self._named != named:
            await self.close()
            # It may read keys and load an SDK.
            self._provider, self._named = await asyncio.to_thread(self._model.provider, named), named
        return self._provider


async def _answer(provider: Provider, request: ModelRequest, branch: Branch, *, aloud: bool = False) -> Message:
    """Return the answer; ``aloud`` streams it to the user."""
    async with answer_of(provider, request) as chunks:
        async for chunk in chunks:
            match chunk:
                case Message():
                    return chunk
                case Retrying() | Notice():
                    branch.emit(chunk)
                case TextDelta() | ThinkingDelta() | MessageRestarted() | PromptProgress() if aloud:
                    branch.emit(chunk)
                case _:
                    pass
    raise ProviderError("The model's answer ended without a message.", "Send the request again.")


PYTHON_FILES = "artifacts"
"""Folder of a session for files that Python writes."""


@frozen
class AgentSource:
    """The source of sub-agents: the main agent's model id, and the function that makes agents."""

    model: Callable[[], str]
    make: MakeAgent


@frozen
class SessionScope:
    """The session that tools belong to: its folder, ``results``, history, and how full the model's window is. ``id``
    and ``file`` are empty for tools outside of a conversation."""

    cwd: Path
    results: Artifacts
    id: str = ""
    file: Path = Path()
    transcript: Transcript = field(default_factory=Transcript)
    history: ReadHistory = nothing_said
    fullness: Callable[[], float] = float
    modalities: Modalities = field(default_factory=Modalities)
    ask: AskModel | None = None
    """Asks the small model."""
    delegating: AgentSource | None = None
    """Makes sub-agents; None outside of a conversation."""
    requests: ModelRequests | None = None
    """Requests to the session's model besides its main agent."""

    @property
    def folder(self) -> Path | None:
        """Return the session's folder; None if no conversation is stored."""
        return self.file.parent if self.id else None

    def instructions(self, settings: Settings, where: UserFolders, ingress: Ingress) -> InstructionFiles:
        """Return a function that lists instruction files, given those in the project."""
        place = InstructionPlace(self.cwd, ingress.root, where.config, user_home(), foreign=settings.other_instructions)
        return partial(instruction_files, place, ingress)

    def folders(self) -> tuple[ReadOnlyFolder, ...]:
        """Return the session's readable folders: long results, attached files, files of Python."""
        results = ReadOnlyFolder(FOLDER, self.results.folder)
        own = (ReadOnlyFolder(name, self.file.parent / name) for name in (ATTACHED, PYTHON_FILES))
        return (results, *own) if self.id else (results,)


def lent_folders(skills: Iterable[tuple[str, Path]], plugins: Iterable[Plugin]) -> list[ReadOnlyFolder]:
    """Return the folders of skills and of the user's plugins, which may be read without a question."""
    lent = [ReadOnlyFolder(name, folder) for name, folder in skills]
    return lent + [ReadOnlyFolder(f"@plugin:{each.name}", each.folder) for each in plugins if each.source == "user"]


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


def builtin_tools(
    definitions: Mapping[str, Definition],
    place: SessionPlace,
    scope: SessionScope | None = None,
    shells: Shells | None = None,
    runner: Once[CommandRunner] | None = None,
    known: Once[SeenFiles] | None = None,
) -> tuple[Tool, ...]:
    """Return the tools of one conversation, which share their knowledge of files; with ``scope`` also those for its
    results, its history and its background ``shells``."""
    workspace = place.workspace
    seen = known or Once(late("ba_tui.tools.editing.seen_files:SeenFiles"))
    named, denied, ahead = definitions, place.denied, place.ahead or write_ahead(workspace.root)
    shells, modalities = shells or Shells(), scope.modalities if scope else Modalities()
    tools = (
        named["read_file"].late(workspace, seen, modalities, place.secrecy),
        named["write_file"].late(workspace, seen),
        named["edit_file"].late(workspace, seen),
        named["list_files"].late(workspace),
        named["glob"].late(workspace),
        named["grep"].late(workspace, place.rg, place.secrecy, denied),
        named["shell"].late(workspace, place.shell, shells, *((runner,) if runner else ())),
        named["todo_write"].late(),
        named["todo_read"].late(),
        named["ask_user"].late(),
        named["calculator"].late(),
        named["now"].late(),
        named["apply_patch"].late(workspace, seen, ahead),
    )
    remembering = "ba_tui.tools.editing.seen_files:remembering"
    tools = tuple(wrapped(tool, remembering, seen) if tool.facts.category == "files" else tool for tool in tools)
    if scope is None:
        return tools
    return (
        *tools,
        named["shell_output"].late(shells),
        named["shell_kill"].late(shells),
        named["read_artifact"].late(scope.results, place.rg, place.secrecy),
        named["recall"].late(scope.history),
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
