"""The tools of one session within their guards, and what they share: shells, checkpoints, results, failures."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING

from ba_tui.core.agent import Interceptor
from ba_tui.core.errors import off_loop
from ba_tui.core.events import Notice
from ba_tui.core.ports.delegation import Delegation
from ba_tui.core.text.wording import sentence
from ba_tui.core.tool import Tool
from ba_tui.core.turn import Listener
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.sandbox.from_settings import limits_for
from ba_tui.permissions.session import SessionPermissions
from ba_tui.planning.plan_mode import NAME as PLANNING
from ba_tui.planning.plan_mode import PlanMode
from ba_tui.processes.worker_values import WorkerSettings
from ba_tui.resources import Places, bundled, project_root
from ba_tui.sessions.checkpoints.keeper import checkpoints_for
from ba_tui.settings import Loaded
from ba_tui.skills.active import active_folders, folder_named, joining
from ba_tui.skills.dependencies import Environments
from ba_tui.skills.folders import SkillFolders
from ba_tui.skills.prompt import SkillNotes
from ba_tui.skills.scripts import Allowed
from ba_tui.team.catalog import AgentFiles
from ba_tui.tools.builtin.own_shell import own_query, own_shell
from ba_tui.tools.builtin.present_plan import present_plan_tool
from ba_tui.tools.builtin.python import Python, python_tool
from ba_tui.tools.builtin.search import find_ripgrep
from ba_tui.tools.builtin.shell import Shell, started_in
from ba_tui.tools.builtin.skill_scripts import ScriptPlace, SkillScripts, run_skill_script_tool
from ba_tui.tools.builtin.skills import locating_skills, naming_skill_files, skill_tools
from ba_tui.tools.data.exports import ExportRules
from ba_tui.tools.data.python_kernels import NAME as PYTHON
from ba_tui.tools.data.session_room import DataRoom, DataScope
from ba_tui.tools.data.source_places import SourceSetup
from ba_tui.tools.data_engine import DataAccess, agreed_metrics
from ba_tui.tools.definitions import Definition, load_definitions, with_examples
from ba_tui.tools.delegating.agent_skills import skilled
from ba_tui.tools.delegating.isolated_tools import IsolatedTools
from ba_tui.tools.delegating.session_room import APPLY, DelegationRoom, DelegationScope
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
from ba_tui.tools.isolating.apply_changes import Applying, apply_changes_tool, judging
from ba_tui.tools.mcp.session_room import McpRoom, McpScope, McpSetup
from ba_tui.tools.memory.session_room import MemoryRoom
from ba_tui.tools.planning.scope import PlanScope
from ba_tui.tools.planning.session_room import PlanRoom
from ba_tui.tools.registry import Registry
from ba_tui.tools.running.background import Shells
from ba_tui.tools.running.outside import runner_for
from ba_tui.tools.session_scope import SessionScope
from ba_tui.tools.teams.scope import Escalation, TeamScope
from ba_tui.tools.teams.session_room import TeamRoom
from ba_tui.tools.toolbox import SessionPlace, Shared, Supply, ToolContext, builtin_tools, stocked
from ba_tui.tools.visible import Joining, Visible
from ba_tui.tools.web.tools import web_options
from ba_tui.write_ahead import write_ahead

if TYPE_CHECKING:
    from ba_tui.hooks.turns import HookTurns

READERS = {"read_file", "list_files"}


def unusable(
    guarded: GuardedTools, hooks: Iterable[str], tools: Iterable[str], skills: Iterable[str]
) -> tuple[Notice, ...]:
    """Return notices for what a session can't use or has undone, with the reasons; ``guarded`` knows its own."""
    return (
        *(Notice(text, "warning") for text in guarded.recovered),
        *(Notice(f"A workflow can't be used: {text}", "warning") for text in guarded.registry.joined_problems()),
        *(Notice(f"MCP servers: {sentence(text)}", "warning", "See ba mcp list.") for text in guarded.mcp.problems),
        *guarded.memory.problems,
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
    mcp: McpSetup = field(default_factory=McpSetup)
    agents: Callable[[], AgentFiles] | None = None
    """Where agents are described."""


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
        self.plan_mode = PlanMode(lambda: policy.mode, policy.set_mode, attended=process.attended)
        self.shells, self.copies = Shells(scope.results.open), scope.copies(policy.denies_reading)

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
            present_plan_tool(definitions["present_plan"], self.plan_mode),
        )
        gate = Gate(policy.judge, policy.remember, partial(started_in, workspace), workspace.shown)
        named = {tool.name: tool for tool in tools}
        self.readers = {name: named[name] for name in READERS}
        """Without their guards: for what the person names."""

        access = DataAccess(
            workspace,
            named["read_file"],
            policy.judge,
            ExportRules(workspace, named["write_file"], policy.judge, self.ahead),
            agreed_metrics(where, skills.catalog.ingress),
        )
        inherited, self.recovered = process.shell.inherited(), recover_changes(where, scope.cwd, settings)
        data_scope = DataScope(
            SourceSetup(settings, where, permissions.sandbox, workspace.root),
            scope.folder, scope.results, scope.history, scope.modalities, inherited,
        )  # fmt: skip
        python = python_tool(definitions["python"], workspace, process.shell, Python(None, limits, runner), self.shells)
        self.data = data = DataRoom(definitions, access, data_scope, permissions, python)
        self.mcp = McpRoom(
            process.mcp,
            McpScope(where, permissions, runner, inherited, scope.modalities, process.attended),
        )
        self.memory = MemoryRoom(
            definitions,
            process.loaded,
            where,
            scope.memory(workspace.root, attended=process.attended),
        )
        self.delegation = delegation = DelegationRoom(
            definitions,
            settings.agents,
            DelegationScope(
                process.agents,
                scope.delegating,
                scope.transcript,
                scope.history,
                lambda: self.registry.tools(),
                lambda: policy.mode == "plan",
                process.attended,
                partial(skilled, skills=skills),
                self.copies,
            ),
        )
        self.plans = PlanRoom(
            definitions["plan"],
            settings.plans,
            PlanScope(
                scope.transcript,
                lambda: self.registry.tools(),
                delegation.agents,
                self.memory,
                scope.results,
                self.plan_mode,
                scope.requests,
                process.attended,
                agents=process.agents,
                history=scope.history,
            ),
        )
        self.teams = TeamRoom(
            settings.team,
            replace(
                team_scope(process, scope, delegation.agents, self.memory, skills.catalog.ingress.clean),
                tool=self._tool,
            ),
            definitions,
        )
        tools = tuple(with_examples(tool, definitions) for tool in (*tools, *self._of_rooms(definitions, workspace)))

        delivery = Delivery(scope.results, scope.fullness, settings.secrets)
        self.own_shell = own_shell(named["shell"], permission(gate), permissions.sharing, delivery)
        self.own_query = own_query(data.query, permission(gate), permissions.sharing, delivery)

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
        self.isolated = IsolatedTools(
            definitions,
            place,
            judging(within_skill(policy.judge, skills.limits)),
            policy.remember,
            shared,
            lambda: self.registry,
            hook_guards(hooks),
        )

        # People's own tools join when the registry is refreshed.
        workers = WorkerSettings(scope.cwd, inherited, limits.for_seconds())
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
                (*data.sources, *delegation.sources, *self.teams.sources, *self.mcp.sources),
                self.writes.close,
            ),
        )

    def _of_rooms(self, definitions: Mapping[str, Definition], workspace: Workspace) -> tuple[Tool, ...]:
        """The tools of rooms; what brings the changes of agents in copies in is left out where there are no copies."""
        own = (*self.data.tools, *self.memory.tools, self.plans.tool)
        if self.copies is None:
            return own
        applying = Applying(self.copies, workspace, self.ahead, self.delegation.agents.works)
        return (*own, apply_changes_tool(definitions[APPLY], applying))

    def joining(self, visible: Visible) -> tuple[Interceptor, ...]:
        """Interceptors that bring further tools before requests: servers are met first, then tools are listed."""
        joining = (Joining(visible, self.needed), self.delegation, self.teams.joining(visible))
        return (self.mcp, *joining) if self.mcp.sources else joining

    def closing(self) -> tuple[Interceptor, ...]:
        """Interceptors for the main agent that look at its final answer, in their order: a plan ends the turn with a
        question to the person, and figures are checked once nothing else goes on."""
        return (self.plan_mode, self.data.figures, self.plans)

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """What hears the events of the session, in order; last what keeps the files of a turn that ends."""
        rooms = (
            self._egress,
            self.data.figures,
            self.memory,
            self.delegation,
            self.plans,
            self.teams,
            self.checkpointing,
        )
        return tuple(room.apply for room in rooms)

    def needed(self) -> Sequence[str]:
        """Tools that are listed once there is something for them."""
        reading = ("read_artifact",) if self.results.begun else ()
        planning = (PLANNING,) if self.plan_mode.presents else ()
        data = self.data.needed()
        entry = self.registry.entry(PYTHON) if data else None
        return (
            *reading,
            *data,
            *((PYTHON,) if entry and entry.enabled else ()),
            *planning,
            *joining(self._notes.skills),
            *self.memory.needed(),
            *self.delegation.needed(),
            *self.plans.needed(),
        )

    def _tool(self, name: str) -> Tool | None:
        return self.registry.get_tool(name)

    def shell(self) -> Tool | None:
        """The shell within its guards."""
        return self.registry.get_tool("shell")

    async def close(self) -> None:
        """End shells, Python, the data engine and the workers of people's own tools; wait for what is being kept."""
        await self.delegation.close()
        await self.plans.close()
        await self.mcp.close()
        await self.memory.close()
        await self.data.close()
        await self.checkpointing.close()
        await self.shells.close()
        await off_loop(self.registry.close)


def team_scope(
    process: ToolSettings, scope: SessionScope, agents: Delegation, memory: MemoryRoom, redact: Callable[[str], str]
) -> TeamScope:
    """What the session gives its teams, whose members are ``agents``."""
    team, inherited = process.loaded.settings.team, process.shell.inherited()
    escalation = Escalation(team.escalate, team.escalate_after, scope.cwd, inherited, scope.id, redact)
    remember = None if memory.off() else memory.memory.remember
    return TeamScope(
        agents, process.agents, scope.results, scope.history, escalation, redact, scope.ask, remember, scope.requests
    )


def hook_guards(along: HookTurns | None) -> HookGuards:
    """The guards that fire the hooks on tools."""
    if along is None:
        return UNHOOKED
    from ba_tui.tools.guards.hooks import hooking  # noqa: PLC0415 - most people have no hooks

    return hooking(along.hooks)
