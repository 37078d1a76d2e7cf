"""The composition root: settings in, doors out. The only file that names concrete classes.

Late imports are its right: an SDK loads when a model of its kind is first asked.
"""

from __future__ import annotations

import gc
import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ba_tui.context.files import FileIndex
from ba_tui.context.instructions import Instructions, read_instructions, said
from ba_tui.core.agent import Agent
from ba_tui.core.conversation import Conversation, Doors
from ba_tui.core.errors import UsageError
from ba_tui.core.events import Notice
from ba_tui.core.messages import Message, Text, Thinking, ToolOutput, ToolUse, reminder
from ba_tui.core.provider import ModelInfo, Provider
from ba_tui.core.session import ContextPart, Journal, SessionInfo
from ba_tui.core.tool import Tool
from ba_tui.core.transcript import Transcript
from ba_tui.observe.logs import start_logging
from ba_tui.permissions.approvals import Approvals
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.rulebook import bundled_rules
from ba_tui.providers.access import DEMO, Access
from ba_tui.providers.catalog import Catalog, load_catalog
from ba_tui.providers.retrying import Persistent
from ba_tui.resources import Places, bundled, folder_slug, places, project_root
from ba_tui.sessions.artifacts import Artifacts
from ba_tui.sessions.library import SessionLibrary
from ba_tui.settings import Loaded, Problem, Settings, load_settings
from ba_tui.tools.definitions import load_definitions
from ba_tui.tools.guards.breaker import Health
from ba_tui.tools.guards.once import Memory
from ba_tui.tools.guards.output import Delivery
from ba_tui.tools.search import find_ripgrep
from ba_tui.tools.shell import Shell
from ba_tui.tools.todos import UnfinishedTodos
from ba_tui.tools.toolbox import Place, Shared, builtin_tools, default_tools, pipeline

CHARACTERS_PER_TOKEN = 4


def connect(flags: Mapping[str, object], cwd: Path, *, strict: bool = False) -> Doors:
    """Everything a face needs, for ``cwd``. ``strict`` turns wrong settings into an error.

    Raises:
        UsageError: a flag is wrong, or, when strict, a settings file is.
    """
    where = places()
    loaded = load_settings(flags, where, project_root(cwd))
    if strict and loaded.errors:
        raise UsageError(str(loaded.errors[0]), "Correct it: ba config edit.")
    start_logging(where, loaded.settings.log_level)
    catalog, trouble = _catalog(where, strict=strict)
    access = Access(loaded, catalog, where)
    workshop = Workshop(loaded, where, cwd, access)
    if strict and workshop.problems:
        raise UsageError(workshop.problems[0])
    library = SessionLibrary(where.sessions, cwd, folder_slug, workshop.conversation)
    shelf = Shelf(catalog, loaded, FileIndex(cwd, find_ripgrep()))
    notices = [*map(_notice, loaded.warnings), *trouble, *(Notice(text, "warning") for text in workshop.problems)]
    return Doors(library, shelf, access, tuple(notices), loaded.settings.output_format)


def tools_for(flags: Mapping[str, object], cwd: Path, results: Artifacts) -> Sequence[Tool]:
    """The tools of ``cwd`` within their guards, for work that needs no model; long results go to ``results``.

    Raises:
        UsageError: a flag or a settings file is wrong.
    """
    where = places()
    loaded = load_settings(flags, where, project_root(cwd))
    if loaded.errors:
        raise UsageError(str(loaded.errors[0]), "Correct it: ba config edit.")
    start_logging(where, loaded.settings.log_level)
    access = Access(loaded, _catalog(where, strict=True)[0], where)
    workshop = Workshop(loaded, where, cwd, access)
    if workshop.problems:
        raise UsageError(workshop.problems[0])
    workspace = workshop.workspace(cwd)
    policy = workshop.policy(workspace)
    place = Place(workspace, Shell(shutil.which("bash"), os.environ, access.variables()), find_ripgrep())
    shared = Shared(Memory(workspace.resolve), Health(), Delivery(results))
    tools = builtin_tools(load_definitions(bundled("config") / "prompts" / "tools"), place)
    return tuple(map(pipeline(place, policy.judge, policy.remember, shared), tools))


def _catalog(where: Places, *, strict: bool) -> tuple[Catalog, list[Notice]]:
    """The models that ship with ba and, over them, the person's own; a broken file of theirs is left out and told."""
    ours, theirs = bundled("config") / "models.yaml", where.config / "models.yaml"
    try:
        return load_catalog([ours, theirs] if theirs.exists() else [ours]), []
    except UsageError as error:
        if strict:
            raise
        return load_catalog([ours]), [Notice(str(error), "warning", error.hint)]


class Shelf:
    """core.conversation.Catalogue over the model catalogue and the file index."""

    def __init__(self, catalog: Catalog, loaded: Loaded, files: FileIndex) -> None:
        self._catalog = catalog
        self._providers = frozenset(loaded.settings.providers)
        self._files = files

    def models(self) -> Sequence[ModelInfo]:
        return [info for info in self._catalog.models() if info.provider in self._providers]

    async def files(self, query: str, limit: int = 50) -> Sequence[str]:
        return await self._files.search(query, limit)


class Workshop:
    """Puts conversations together: each has rules, tools and file knowledge of its own."""

    def __init__(self, loaded: Loaded, where: Places, cwd: Path, access: Access) -> None:
        self.settings = loaded.settings
        self.where = where
        self.cwd = cwd
        self.access = access
        self._flags = {key for key, source in loaded.sources.items() if source.startswith("flag ")}
        self._rules = (*bundled_rules(), *loaded.rules)
        self.problems = self.policy(self.workspace(cwd)).problems

    def workspace(self, cwd: Path) -> Workspace:
        return Workspace(cwd, (project_root(cwd), *self.settings.add_dirs))

    def policy(self, workspace: Workspace) -> Policy:
        approvals = Approvals(self.where.approvals, project_root(workspace.root))
        return Policy(workspace, self._rules, self.settings.permission_mode, approvals, self.where)

    def conversation(self, info: SessionInfo, journal: Journal) -> Conversation:
        """In the session's own folder, or in this one when that is gone. Flags win over what the session had."""
        cwd = info.cwd if info.cwd.is_dir() else self.cwd
        model = info.model or self.access.default_model()
        conversation = Conversation(replace(info, cwd=cwd, model=model), journal, Desk(self, cwd))
        if info.model and "model" in self._flags and self.settings.model != info.model:
            conversation.use_model(self.settings.model)
        if info.model and "permission_mode" in self._flags:
            conversation.set_mode(self.settings.permission_mode)
        return conversation


class Desk:
    """core.conversation.Brain: what one conversation works with."""

    def __init__(self, workshop: Workshop, cwd: Path) -> None:
        self._workshop = workshop
        self._cwd = cwd
        workspace = workshop.workspace(cwd)
        self.permissions = workshop.policy(workspace)
        definitions = load_definitions(bundled("config") / "prompts" / "tools")
        shell = Shell(shutil.which("bash"), os.environ, workshop.access.variables())
        place = Place(workspace, shell, find_ripgrep())
        self._tools = default_tools(definitions, place, self.permissions.judge, self.permissions.remember)
        self._system = system_prompt(workshop.settings, cwd)

    def model(self, name: str) -> ModelInfo:
        return self._workshop.access.model(name)

    def agent(self, model: str) -> Agent:
        settings = self._workshop.settings
        provider = Persistent(provider_for(self.model(model), settings, self._workshop.access))
        if not gc.isenabled():
            # Start-up is over (see __main__): what was imported stays, and no collection need look at it again.
            gc.freeze()
            gc.enable()
        return Agent(provider, self._tools, self._system, (UnfinishedTodos(),), settings.max_loops)

    def reminders(self, transcript: Transcript) -> Sequence[Message]:
        now = datetime.now().astimezone()
        notes = [reminder(f"It is {now:%A, %Y-%m-%d %H:%M} ({now:%Z}).")]
        if told := said(self._instructions(), transcript.messages):
            notes.append(told)
        return notes

    def context(self, transcript: Transcript, model: str) -> Sequence[ContextPart]:
        talk, results = conversation_tokens(transcript.messages)
        info = self.model(model)
        return [
            ContextPart("System prompt", estimate(self._system)),
            ContextPart("Tools", sum(map(tool_tokens, self._tools)), ", ".join(tool.name for tool in self._tools)),
            *(
                ContextPart(f"Instructions {item.shown}", estimate(item.text), item.note)
                for item in self._instructions()
            ),
            ContextPart("Conversation", talk, f"{len(transcript.messages)} messages"),
            ContextPart("Tool results", results),
            ContextPart("Kept free for the answer", info.max_output, f"of a window of {info.window:,}"),
        ]

    def _instructions(self) -> Sequence[Instructions]:
        return read_instructions(self._cwd, project_root(self._cwd), self._workshop.where.config)


def provider_for(info: ModelInfo, settings: Settings, access: Access) -> Provider:
    """The provider of a model. Imports its SDK.

    Raises:
        AuthFailed: there is no key. UsageError: a script can't be read.
    """
    profile = access.profile(info)
    if profile.kind == "scripted":
        from ba_tui.providers.scripted import ScriptedProvider, load_script  # noqa: PLC0415

        tour = bundled("config") / "demo" / "tour.yaml"
        path = tour if info.provider == DEMO else Path(info.name)
        return ScriptedProvider(load_script(path), info)
    key, url = access.key(info.provider, profile), profile.base_url
    options: dict[str, Any] = {}
    if settings.max_output_tokens:
        options["max_tokens"] = min(settings.max_output_tokens, info.max_output)
    if profile.kind == "anthropic":
        from ba_tui.providers.anthropic import AnthropicProvider  # noqa: PLC0415

        if settings.effort and info.thinking:
            options["output_config"] = {"effort": settings.effort}
        return AnthropicProvider(info, api_key=key, base_url=url, options=options, idle=settings.request_timeout)
    from ba_tui.providers.openai_compat import OpenAIProvider  # noqa: PLC0415

    if settings.effort and info.thinking:
        options["reasoning_effort"] = settings.effort
    return OpenAIProvider(info, api_key=key, base_url=url, options=options, idle=settings.request_timeout)


def system_prompt(settings: Settings, cwd: Path) -> str:
    """The stable part of every request; made once for a conversation, so that the provider's cache holds.

    Raises:
        UsageError: the person's own prompt file can't be read.
    """
    path = settings.system_prompt_file or bundled("config") / "prompts" / "system.md"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The system prompt {path} can't be read: {error}.", "Check system_prompt_file.") from error
    if settings.system_prompt_file is None:
        facts = {
            "cwd": str(cwd),
            "platform": f"{platform.system()} {platform.machine()}",
            "shell": "bash",
            "date": f"{datetime.now().astimezone():%Y-%m-%d}",
            "git": _branch(project_root(cwd)),
        }
        for name, value in facts.items():
            text = text.replace(f"{{{name}}}", value)
    return "\n\n".join(part.strip() for part in (text, settings.append_system_prompt) if part.strip())


def _branch(root: Path) -> str:
    try:
        head = (root / ".git" / "HEAD").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    return f"Git branch at the start: {head.removeprefix('ref: refs/heads/')}" if head.startswith("ref: ") else ""


def estimate(text: str) -> int:
    """Tokens of ``text``, roughly."""
    return len(text.encode()) // CHARACTERS_PER_TOKEN


def tool_tokens(tool: Tool) -> int:
    return estimate(f"{tool.name}{tool.description}{tool.input_schema}")


def conversation_tokens(messages: Sequence[Message]) -> tuple[int, int]:
    """Estimates of what was said and of what tools returned."""
    talk = results = 0
    for message in messages:
        for block in message.blocks:
            match block:
                case ToolOutput(content=content):
                    results += estimate(content)
                case Text(text=text) | Thinking(thinking=text):
                    talk += estimate(text)
                case ToolUse(input=given):
                    talk += estimate(str(given))
                case _:
                    pass
    return talk, results


def _notice(problem: Problem) -> Notice:
    return Notice(str(problem), "warning", "Correct it: ba config edit." if problem.fatal else "")
