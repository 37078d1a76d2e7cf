"""The tools of one session within their guards, and what they share: shells, checkpoints, results, failures."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ba_tui.agent_files.catalog import AgentFiles
from ba_tui.core.agent import Interceptor
from ba_tui.core.errors import off_loop
from ba_tui.core.events import Notice
from ba_tui.core.tool import Tool
from ba_tui.core.turn import Listener
from ba_tui.core.values import frozen
from ba_tui.feature import AgentParts, OpenFeature, SessionContext, Stage, known_features
from ba_tui.ingress import Ingress
from ba_tui.permissions.sandbox.from_settings import limits_for
from ba_tui.permissions.session import SessionPermissions
from ba_tui.processes.worker_values import WorkerSettings
from ba_tui.resources import Places, bundled, project_root
from ba_tui.sessions.checkpoints.keeper import checkpoints_for
from ba_tui.settings import Loaded
from ba_tui.skills.active import ActiveSkills, active_folders, folder_named, joining
from ba_tui.skills.dependencies import Environments
from ba_tui.skills.folders import SkillFolders
from ba_tui.skills.prompt import SkillNotes
from ba_tui.skills.scripts import Allowed
from ba_tui.tools.builtin.own_shell import own_query, own_shell
from ba_tui.tools.builtin.search import find_ripgrep
from ba_tui.tools.builtin.shell import Shell, started_in
from ba_tui.tools.builtin.skill_scripts import ScriptPlace, SkillScripts, run_skill_script_tool
from ba_tui.tools.builtin.skills import locating_skills, naming_skill_files, skill_tools
from ba_tui.tools.definitions import load_definitions, with_examples
from ba_tui.tools.editing.seen import SeenFiles
from ba_tui.tools.editing.undoing import recover_changes
from ba_tui.tools.guards.breaker import Health
from ba_tui.tools.guards.checkpoint import Checkpointing
from ba_tui.tools.guards.hook_guards import UNHOOKED, HookGuards
from ba_tui.tools.guards.once import Memory
from ba_tui.tools.guards.output import Delivery
from ba_tui.tools.guards.permission import Gate, permission
from ba_tui.tools.guards.recording import Recording
from ba_tui.tools.guards.skill_limits import within_skill
from ba_tui.tools.isolated_tools import IsolatedTools
from ba_tui.tools.registry import Registry
from ba_tui.tools.running.background import Shells
from ba_tui.tools.running.outside import runner_for
from ba_tui.tools.session_scope import SessionScope
from ba_tui.tools.toolbox import SessionPlace, Shared, Supply, ToolContext, builtin_tools, stocked
from ba_tui.tools.web.tools import web_options
from ba_tui.write_ahead import write_ahead

if TYPE_CHECKING:
    from ba_tui.hooks.turns import HookTurns

READERS = {"read_file", "list_files"}
QUERY = "query_data"
"""The tool that runs the user's own queries, when a feature brings it."""
T = TypeVar("T")


def unusable(
    guarded: GuardedTools, hooks: Iterable[str], tools: Iterable[str], skills: Iterable[str]
) -> tuple[Notice, ...]:
    """Return notices for what a session can't use or has undone, with the reasons; ``guarded`` knows its own."""
    return (
        *(Notice(text, "warning") for text in guarded.recovered),
        *(Notice(f"A workflow can't be used: {text}", "warning") for text in guarded.registry.joined_problems()),
        *(notice for feature in guarded.features for notice in feature.notices),
        *(Notice(f"A hook can't be used: {text}", "warning") for text in hooks),
        *(Notice(text, "warning", "See ba tools list.") for text in tools),
        *(Notice(text, "warning", "See ba skills list.") for text in skills),
    )


@frozen
class ToolSettings:
    """What the process knows of tools: the ``loaded`` settings, folders, and the ``shell`` for commands."""

    loaded: Loaded
    where: Places
    shell: Shell
    attended: bool = False
    """Whether somebody can be asked."""
    agents: Callable[[], AgentFiles] | None = None
    """Where agents are described."""
    key_variables: frozenset[str] = frozenset()
    """Names of the environment variables that hold keys."""
    trusted: Path | None = None
    """The root of the project, when the user trusts it."""


class GuardedTools:
    """Made once for a session; all its agents share it."""

    def __init__(
        self,
        process: ToolSettings,
        scope: SessionScope,
        permissions: SessionPermissions,
        notes: SkillNotes,
        hooks: HookTurns | None,
    ) -> None:
        settings, where, skills = process.loaded.settings, process.where, notes.skills
        workspace, policy, limits = permissions.workspace, permissions.policy, limits_for(settings)
        self.writes = permissions.record(scope.instructions(settings, where, skills.catalog.ingress))
        runner = runner_for(settings, permissions, SkillFolders(partial(active_folders, skills)), self.writes)
        self._notes, self._egress, self.results = notes, permissions.egress, scope.results
        self.shells = Shells(scope.results.open)

        definitions = load_definitions(bundled("config") / "prompts" / "tools")
        self.search, self.ahead = definitions["tool_search"], write_ahead(project_root(scope.cwd), scope.id, where)
        place = SessionPlace(
            workspace, process.shell, find_ripgrep(), settings.secrets, policy.denies_reading, self.ahead
        )
        means = ToolContext(
            self.shells, scope.results, web_options(settings, process.loaded.own, os.environ), scope.history, runner,
            scope.modalities,
        )  # fmt: skip
        allowed, seconds = Allowed(where.state / "skill_scripts.json"), settings.commands.skill_timeout
        scripts = SkillScripts(
            lambda id: skills.found(id).folder, Environments(where.cache / "skills"), allowed, seconds
        )
        builtin = builtin_tools(definitions, place, means, SeenFiles(lambda path: scope.transcript.seen.get(path)))
        tools = (
            *(naming_skill_files(tool, runner.skills, workspace.root) for tool in builtin),
            *skill_tools(definitions, skills, notes),
            run_skill_script_tool(
                definitions["run_skill_script"], ScriptPlace(workspace, process.shell, self.shells, runner), scripts
            ),
        )
        gate = Gate(policy.judge, policy.remember, partial(started_in, workspace), workspace.shown)
        named = {tool.name: tool for tool in tools}
        self.readers = {name: named[name] for name in READERS}
        """Without their guards: for what the person names."""

        ports: dict[type[Any], object] = {
            Ingress: skills.catalog.ingress,
            ActiveSkills: skills,
            Shells: self.shells,
        }
        self.context = context = SessionContext(
            scope,
            process.loaded,
            where,
            permissions,
            definitions,
            process.shell,
            runner,
            self.ahead,
            named,
            lambda: self.registry,
            process.key_variables,
            process.trusted,
            process.attended,
            process.agents,
            ports,
        )
        opened = list[OpenFeature]()
        for feature in known_features():
            opened.append(feature.opened(context))
            ports |= opened[-1].ports
        self.features = tuple(opened)
        self.recovered = recover_changes(where, scope.cwd, settings)
        tools = tuple(
            with_examples(tool, definitions) for tool in (*tools, *(each for one in opened for each in one.tools))
        )

        delivery = Delivery(scope.results, scope.fullness, settings.secrets)
        self.own_shell = own_shell(named["shell"], permission(gate), permissions.sharing, delivery)
        query = next((tool for tool in tools if tool.name == QUERY), None)
        self.own_query = query and own_query(query, permission(gate), permissions.sharing, delivery)

        self.health = Health(tools)
        self.checkpoints = checkpoints_for(where, scope.cwd, scope.id, settings.checkpoints)
        self.checkpointing = Checkpointing(
            self.checkpoints.take,
            self.checkpoints.settle,
            lambda: scope.transcript.turns,
            lambda: any(job.state == "running" for job in self.shells.list()),
        )
        shared = Shared(
            Memory(workspace.resolve),
            self.health,
            delivery,
            permissions.sharing,
            self.checkpointing.guard if scope.id else None,
            Recording(self.writes, workspace, permissions.sandbox.holds).guard,
            runner.review.settle,
            naming=locating_skills(partial(folder_named, skills)),
            mode_changed=policy.mode_changes.settled,
        )
        wrappers = [feature.judging for feature in opened if feature.judging]
        self.isolated = IsolatedTools(
            definitions,
            place,
            reduce(lambda judge, wrap: wrap(judge), wrappers, within_skill(policy.judge, skills.limits)),
            policy.remember,
            shared,
            lambda: self.registry,
            hook_guards(hooks),
        )

        # People's own tools join when the registry is refreshed.
        workers = WorkerSettings(scope.cwd, process.shell.inherited(), limits.for_seconds())
        self.registry: Registry = stocked(
            tools,
            self.isolated.session_guard(),
            Supply(
                where,
                skills.catalog.ingress,
                workers,
                settings.tool_dirs,
                replace(workers, confine=runner.confine_worker),
                permissions.sandbox,
                tuple(source for feature in opened for source in feature.sources),
                self.writes.close,
            ),
        )

    def at(self, stage: Stage, parts: AgentParts) -> Iterator[Interceptor]:
        """Yield the interceptors of features for an agent at ``stage``, in the order of features."""
        for feature in self.features:
            for wanted, make in feature.interceptors:
                if wanted is stage and (made := make(parts)):
                    yield made

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """What hears the events of the session, in order; last what keeps the files of a turn that ends."""
        features = (listener for feature in self.features for listener in feature.listeners)
        return (self._egress.apply, *features, self.checkpointing.apply)

    def needed(self) -> Sequence[str]:
        """Names of the tools that must be listed now. Blocks."""
        reading = ("read_artifact",) if self.results.begun else ()
        features = (name for feature in self.features if feature.needed for name in feature.needed())
        return (*reading, *joining(self._notes.skills), *features)

    def shell(self) -> Tool | None:
        """The shell within its guards."""
        return self.registry.get_tool("shell")

    async def close(self) -> None:
        """Close features, those that build on others first, then shells and workers of the user's own tools."""
        for feature in reversed(self.features):
            if feature.close:
                await feature.close()
        await self.checkpointing.close()
        await self.shells.close()
        await off_loop(self.registry.close)


def hook_guards(along: HookTurns | None) -> HookGuards:
    """The guards that fire the hooks on tools."""
    if along is None:
        return UNHOOKED
    from ba_tui.tools.guards.hooks import hooking  # noqa: PLC0415 - most people have no hooks

    return hooking(along.hooks)
