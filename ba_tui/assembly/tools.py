"""The tools of one session within their guards, and what they share: permissions, sandbox, skills, hooks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ba_tui.assembly.start import Startup
from ba_tui.context.attachments import FOLDER as ATTACHED
from ba_tui.core.events import Event
from ba_tui.core.tool import Guard
from ba_tui.core.transcript import Transcript
from ba_tui.core.values import frozen
from ba_tui.hooks.found import found_hooks
from ba_tui.permissions.egress.detection import Egress
from ba_tui.permissions.ingress import ingress_for
from ba_tui.permissions.paths import ReadOnlyFolder
from ba_tui.permissions.rules.granted import GrantedRules
from ba_tui.permissions.sandbox.from_settings import limits_for, sandbox_for
from ba_tui.permissions.sandbox.pending_changes import PendingChanges
from ba_tui.permissions.secrets.sharing import Sharing
from ba_tui.processes.worker_values import WorkerSettings
from ba_tui.resources import bundled, folder_slug, project_root
from ba_tui.sessions.checkpoints.keeper import checkpoints_for
from ba_tui.sessions.results.artifacts import FOLDER, Artifacts
from ba_tui.settings import Settings
from ba_tui.skills.activation import rules_of
from ba_tui.skills.active import ActiveSkills, SkillContext, joining, readable_folders
from ba_tui.skills.config import read_choices
from ba_tui.skills.confirmed import Confirmed
from ba_tui.skills.dependencies import Environments
from ba_tui.skills.prompt import SkillNotes, catalogue
from ba_tui.skills.scripts import Allowed
from ba_tui.tools.builtin.python import Python
from ba_tui.tools.builtin.recall import ReadHistory
from ba_tui.tools.builtin.search import find_ripgrep
from ba_tui.tools.builtin.skill_scripts import ScriptPlace, SkillScripts, run_skill_script_tool
from ba_tui.tools.builtin.skills import skill_tools
from ba_tui.tools.definitions import load_definitions
from ba_tui.tools.guards.breaker import Health
from ba_tui.tools.guards.checkpoint import Checkpointing
from ba_tui.tools.guards.once import Memory
from ba_tui.tools.guards.output import Delivery
from ba_tui.tools.guards.skill_limits import within_skill
from ba_tui.tools.modalities import Modalities
from ba_tui.tools.running.background import Shells
from ba_tui.tools.running.outside import runner_for
from ba_tui.tools.toolbox import SessionPlace, Shared, Supply, ToolContext, builtin_tools, pipeline, stocked, unhooked
from ba_tui.tools.web.tools import SearchChoice, WebOptions

if TYPE_CHECKING:
    from ba_tui.hooks.turns import HookTurns

READERS = {"read_file", "list_files"}


async def nothing_said() -> Sequence[Event]:
    return ()


@frozen
class SessionScope:
    """The session that tools belong to: its folder, its ``results``, what was said, and how full the window of the
    model in use is. ``id`` and ``file`` are empty for tools that no conversation uses."""

    cwd: Path
    results: Artifacts
    id: str = ""
    file: Path = Path()
    transcript: Transcript = field(default_factory=Transcript)
    history: ReadHistory = nothing_said
    fullness: Callable[[], float] = float
    modalities: Modalities = field(default_factory=Modalities)


class SessionTools:
    """Made once for a session; all its agents share it."""

    def __init__(self, start: Startup, scope: SessionScope) -> None:
        root, settings, where = project_root(scope.cwd), start.settings, start.where
        self.ingress = ingress_for(where, root, settings.secrets)
        self.results = scope.results
        catalog = start.skills(self.ingress)
        own = [where.config / "skills.yaml", *([root / ".ba" / "skills.yaml"] if start.trusts(root) else [])]
        choices = read_choices(bundled("config") / "skills.yaml", own, self.ingress.raw)

        # What may be read, run and reached.
        lent = [ReadOnlyFolder(name, folder) for name, folder in readable_folders(catalog, choices)]
        self.workspace = start.workspace(scope.cwd, (*_own_folders(scope), *lent))
        self.sandbox = sandbox_for(settings, where, self.workspace)
        self.egress = Egress()
        self.permissions = start.policy(self.workspace, self.sandbox, self.egress.reason)
        self.sharing = Sharing(settings.secrets)
        limits, pending = limits_for(settings), PendingChanges(where.set_aside / folder_slug(root))
        runner = runner_for(settings, pending, self.permissions, self.sandbox)
        self.shells = Shells(scope.results.open)

        # Skills.
        facts = SkillContext(
            scope.id, scope.cwd, own_names, self.confirms, start.access.missing, lambda: scope.transcript.skills
        )
        self.skills = ActiveSkills(catalog, choices, Confirmed(where.config / "confirmed_skills.yaml"), facts)
        self.skill_notes = SkillNotes(self.skills)
        self.permissions.grant(GrantedRules(self.skills.granted, "an active skill"))

        # Tools.
        definitions = load_definitions(bundled("config") / "prompts" / "tools")
        self.search = definitions["tool_search"]
        place = SessionPlace(self.workspace, start.shell, find_ripgrep(), settings.secrets)
        web, python = web_options(settings), Python(None, limits, runner)
        means = ToolContext(self.shells, scope.results, web, scope.history, python, runner, scope.modalities)
        scripts = SkillScripts(
            lambda id: self.skills.found(id).folder,
            Environments(where.cache / "skills"),
            Allowed(where.state / "skill_scripts.json"),
            settings.commands.skill_timeout,
        )
        tools = (
            *builtin_tools(definitions, place, means),
            *skill_tools(definitions, self.skills, self.skill_notes),
            run_skill_script_tool(
                definitions["run_skill_script"], ScriptPlace(self.workspace, start.shell, self.shells, runner), scripts
            ),
        )
        self.readers = {tool.name: tool for tool in tools if tool.name in READERS}
        """Without their guards: for what the person names."""

        # Guards: in which order they stand around a tool is said in tools/toolbox.py.
        self.health = Health(tools)
        self.checkpoints = checkpoints_for(where, scope.cwd, scope.id, settings.checkpoints.max_file_mb)
        self.checkpointing = Checkpointing(
            self.checkpoints.take, self.checkpoints.settle, lambda: scope.transcript.turns
        )
        self.hooks, self.hook_problems, hook_guard = hooks_for(start, self, scope)
        shared = Shared(
            Memory(self.workspace.resolve),
            self.health,
            Delivery(scope.results, scope.fullness, settings.secrets),
            self.sharing,
            self.checkpointing.guard if scope.id else None,
            runner.review.settle,
        )
        judge = within_skill(self.permissions.judge, self.skills.limits)
        guard = pipeline(place, judge, self.permissions.remember, shared, hook_guard)

        # People's own tools join when the registry is refreshed.
        workers = WorkerSettings(scope.cwd, start.shell.inherited(), limits.for_seconds())
        confined = replace(workers, confine=runner.confine_worker)
        self.registry = stocked(tools, guard, Supply(where, self.ingress, workers, settings.tool_dirs, confined))

    @cached_property
    def catalogue(self) -> str:
        """The skills that the system prompt lists; the same as long as the session is open. Blocks the first time."""
        return catalogue(self.skills)

    @cached_property
    def own_catalogue(self) -> str:
        """The part of it that ships with ba, and so shares the room of the first request."""
        return catalogue(self.skills, ("bundled",))

    def confirms(self) -> bool:
        """Whether allowing tools beforehand would change anything: in other modes nobody is asked."""
        return self.permissions.level == "default"

    def confinement(self) -> str:
        return self.sandbox.state

    def needed(self) -> Sequence[str]:
        """Tools that are listed once there is something for them."""
        return (*(("read_artifact",) if self.results.begun else ()), *joining(self.skills))

    async def close(self) -> None:
        """End background shells and the workers of people's own tools; wait for what is being kept."""
        await self.checkpointing.close()
        await self.shells.close()
        await asyncio.to_thread(self.registry.close)
        await asyncio.to_thread(self.sandbox.close)
        await asyncio.to_thread(self.permissions.save_hits)


def _own_folders(scope: SessionScope) -> tuple[ReadOnlyFolder, ...]:
    """The folders of the session itself that may be read: long results, and copies of files that came with prompts."""
    results = ReadOnlyFolder(FOLDER, scope.results.folder)
    return (results, ReadOnlyFolder(ATTACHED, scope.file.parent / ATTACHED)) if scope.id else (results,)


def hooks_for(
    start: Startup, tools: SessionTools, scope: SessionScope
) -> tuple[HookTurns | None, Sequence[str], Guard]:
    """What runs along the conversation, None where there are no hooks; what is wrong with others; the guard."""
    root = project_root(scope.cwd)
    found, problems = found_hooks(start.loaded.hooks, root, start.trusts)
    if not found:
        return None, problems, unhooked
    from ba_tui.hooks.runner import Hooks, SessionFacts  # noqa: PLC0415 - most people have no hooks
    from ba_tui.hooks.turns import HookTurns  # noqa: PLC0415
    from ba_tui.tools.guards.hooks import hooking  # noqa: PLC0415

    environment, mode = start.shell.inherited(), lambda: tools.permissions.mode
    facts = SessionFacts(scope.id, scope.file, scope.cwd, root, environment, mode)
    hooks = Hooks(found, facts, tools.ingress.clean)
    return HookTurns(hooks), problems, hooking(hooks)


def web_options(settings: Settings) -> WebOptions:
    chosen = settings.web_search
    return WebOptions(
        settings.web.allow_private, SearchChoice(chosen.backend, chosen.url, chosen.api_key_env, os.environ)
    )


def own_names() -> Mapping[str, str]:
    """Our names of tools by those of another assistant."""
    from ba_tui.hooks.config import own_names  # noqa: PLC0415 - most skills name no tools

    return own_names()


def rules_for(tools: Iterable[str]) -> tuple[str, ...]:
    """The allow rules of tools that a front matter names."""
    return rules_of(tools, own_names())
