"""The tools of one session, its permissions and skills, and what the tools share: guards, shells, results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ba_tui.agent_files.catalog import AgentFiles, project_agents
from ba_tui.agent_files.means import AgentMeans
from ba_tui.assembly.start import Startup
from ba_tui.context.files import find_ripgrep
from ba_tui.core.agent import AskModel, Interceptor
from ba_tui.core.errors import off_loop
from ba_tui.core.events import MAIN, Event, Notice, TurnEnded, TurnResumed, TurnStarted
from ba_tui.core.ports.contributions import MarkedShare, Ports
from ba_tui.core.results import SeenFile
from ba_tui.core.tool import Tool
from ba_tui.core.turn import Listener
from ba_tui.core.values import Once, late
from ba_tui.feature import AgentParts, OpenFeature, SessionContext, Stage, installed_features, known_features
from ba_tui.permissions.answers import GrantedRules, grantable, unknown_tools
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.sandbox.confinement import limits_for
from ba_tui.permissions.secrets.sharing import ingress_for
from ba_tui.permissions.session import SessionPermissions, started_files
from ba_tui.processes.values import WorkerSettings
from ba_tui.resources import bundled, project_root
from ba_tui.settings.hooks import FoundHooks, found_hooks
from ba_tui.skills.activation import MARK
from ba_tui.skills.active import (
    ActiveSkills,
    ConfirmedSkills,
    RecentSkills,
    SkillContext,
    active_folders,
    active_skills,
    joining,
    problems_of,
    readable_folders,
)
from ba_tui.skills.content import SkillFolders
from ba_tui.skills.prompt import SkillNotes
from ba_tui.tools.definitions import late_guard, late_tool, load_definitions, wrapped
from ba_tui.tools.registry import Registry
from ba_tui.tools.shells import Shells
from ba_tui.tools.toolbox import (
    SessionPlace,
    SessionScope,
    builtin_tools,
    lent_folders,
    own_tools,
    recover_changes,
    tool_files,
)
from ba_tui.write_ahead import write_ahead

if TYPE_CHECKING:
    from ba_tui.assembly.guards import SessionGuards
    from ba_tui.sessions.checkpoints.keeper import SessionCheckpoints
    from ba_tui.tools.command_runner import CommandRunner
    from ba_tui.tools.editing.seen_files import SeenFiles
    from ba_tui.tools.guards.checkpoint import CheckpointGuard

READERS = {"read_file", "list_files"}
QUERY = "query_data"
"""The tool that runs the user's own queries, when a feature brings it."""


def unusable(guarded: GuardedTools, tools: Iterable[str], skills: Iterable[str]) -> tuple[Notice, ...]:
    """Return notices for what a session can't use or has undone, with the reasons; ``guarded`` knows its own."""
    return (
        *(Notice(text, "warning") for text in guarded.recovered),
        *(Notice(f"A workflow can't be used: {text}", "warning") for text in guarded.registry.joined_problems()),
        *(Notice(text, "warning") for text in installed_features().problems),
        *(notice for feature in guarded.features for notice in feature.notices),
        *(Notice(text, "warning", "See ba tools list.") for text in tools),
        *(Notice(text, "warning", "See ba skills list.") for text in skills),
    )


class TurnCheckpoints:
    """core.tool.Guard and a listener: saves the files of turns that change some. ``make``: see CheckpointGuard; it is
    called before the first call of a tool."""

    def __init__(self, make: Callable[[], CheckpointGuard]) -> None:
        self._opening: Event | None = None
        """The event that opened the running turn."""

        def made() -> CheckpointGuard:
            guard = make()
            if self._opening:
                guard.apply(self._opening)
            return guard

        self._guard = Once(made)

    def guard(self, tool: Tool) -> Tool:
        return self._guard().guard(tool)

    def apply(self, event: Event) -> None:
        if self._guard.made:
            self._guard.made.apply(event)
        elif event.agent == MAIN and isinstance(event, TurnStarted | TurnResumed):
            self._opening = event
        elif event.agent == MAIN and isinstance(event, TurnEnded):
            self._opening = None

    async def close(self) -> None:
        if self._guard.made:
            await self._guard.made.close()


class GuardedTools:
    """The tools of a session, shared by all its agents."""

    def __init__(
        self,
        start: Startup,
        scope: SessionScope,
        permissions: SessionPermissions,
        notes: SkillNotes,
        hooks: FoundHooks,
        agents: Callable[[], AgentFiles],
    ) -> None:
        settings, where, skills, root = start.settings, start.where, notes.skills, project_root(scope.cwd)
        workspace, policy, limits = permissions.workspace, permissions.policy, limits_for(settings)
        self.writes = permissions.record(scope.instructions(settings, where, skills.catalog.ingress))
        runner: Once[CommandRunner] = Once(
            lambda: late("ba_tui.tools.command_runner:session_runner")(
                settings, permissions, SkillFolders(partial(active_folders, skills)), self.writes
            )
        )
        self._notes, self._egress, self.results = notes, permissions.egress, scope.results
        self.shells = Shells(scope.results.open)

        definitions = load_definitions(bundled("config") / "prompts" / "tools")
        self.search, self.ahead = definitions["tool_search"], write_ahead(root, scope.id, where)
        self.place = place = SessionPlace(
            workspace, start.shell, find_ripgrep(), settings.secrets, policy.denies_reading, self.ahead
        )
        seen: Callable[[Callable[[str], SeenFile | None]], SeenFiles] = late(
            "ba_tui.tools.editing.seen_files:SeenFiles"
        )
        known = Once(lambda: seen(lambda path: scope.transcript.seen.get(path)))
        naming = "ba_tui.tools.builtin.skills:naming_skill_files"
        skill_folders = Once(lambda: runner().skills)
        skill_tools = (definitions["activate_skill"].late(skills, notes), definitions["end_skill"].late(notes))
        tools = (
            *(
                wrapped(tool, naming, skill_folders, workspace.root)
                for tool in builtin_tools(definitions, place, scope, self.shells, runner, known)
            ),
            *(skill_tools if skills.choices.enabled else ()),
            definitions["run_skill_script"].late(
                where, partial(_skill_folder, skills), settings.commands.skill_timeout, place, self.shells, runner
            ),
        )
        named = {tool.name: tool for tool in tools}
        self.readers = {name: named[name] for name in READERS}
        """The tools without their guards, for files and commands that the user names."""

        ports = Ports()
        ports.add(
            {
                "ba_tui.ingress:Ingress": lambda: skills.catalog.ingress,
                "ba_tui.settings.hooks:FoundHooks": lambda: hooks,
                "ba_tui.skills.active:ActiveSkills": lambda: skills,
                "ba_tui.tools.shells:Shells": lambda: self.shells,
            }
        )
        self.context = context = SessionContext(
            scope, start.loaded, where, permissions, definitions, start.shell, runner, self.ahead, named,
            lambda: self.registry, start.access.variables(), root if start.trusts(root) else None,
            not start.strict, agents, ports,
        )  # fmt: skip
        opened = list[OpenFeature]()
        for feature in known_features():
            opened.append(feature.opened(context))
            ports.add(opened[-1].ports)
        self.features = tuple(opened)
        self.recovered = recover_changes(where, scope.cwd, settings)
        tools = (*tools, *(each for one in opened for each in one.tools))
        self.checkpoints: Once[SessionCheckpoints] = Once(
            lambda: late("ba_tui.sessions.checkpoints.keeper:checkpoints_for")(
                where, scope.cwd, scope.id, settings.checkpoints
            )
        )
        self.checkpointing = TurnCheckpoints(self._checkpointing)
        judging = [feature.judging for feature in opened if feature.judging]
        hooking = next((feature.hook_guards for feature in opened if feature.hook_guards), None)
        checkpoint = self.checkpointing.guard if scope.id else None
        self.guards: Once[SessionGuards] = Once(
            lambda: late("ba_tui.assembly.guards:SessionGuards")(
                context, place, tools, judging, checkpoint, self.writes, hooking
            )
        )
        shell, query = named["shell"], next((tool for tool in tools if tool.name == QUERY), None)
        self.own_shell = late_tool(shell, lambda: self.guards().own_shell(shell))
        self.own_query = late_tool(query, lambda: self.guards().own_query(query)) if query else None

        # The user's own tools are added when the registry is refreshed.
        workers = WorkerSettings(scope.cwd, start.shell.inherited(), limits.for_seconds())
        project = replace(workers, confine=lambda: runner().confine_worker())
        self.registry = Registry(
            late_guard(lambda writers: self.guards().guard(writers)),
            tool_files(where, skills.catalog.ingress),
            own_tools(where, skills.catalog.ingress, workers, settings.tool_dirs, project, permissions.sandbox),
            skills.catalog.ingress.clean_value,
            self.writes.close,
        )
        for tool in tools:
            self.registry.add(tool)
        self.registry.join(source for feature in opened for source in feature.sources)

    def _checkpointing(self) -> CheckpointGuard:
        scope, checkpoints = self.context.scope, self.checkpoints()
        return late("ba_tui.tools.guards.checkpoint:CheckpointGuard")(
            checkpoints.take,
            checkpoints.settle,
            lambda: scope.transcript.turns,
            lambda: any(job.state == "running" for job in self.shells.list()),
        )

    def at(self, stage: Stage, parts: AgentParts) -> Iterator[Interceptor]:
        """Yield the interceptors of features for an agent at ``stage``, in the order of features."""
        for feature in self.features:
            for wanted, make in feature.interceptors:
                if wanted is stage and (made := make(parts)):
                    yield made

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Return the listeners for the session's events in order; the one that saves a turn's files comes last."""
        features = (listener for feature in self.features for listener in feature.listeners)
        return (self._egress.apply, *features, self.checkpointing.apply)

    def needed(self) -> Sequence[str]:
        """Names of the tools that must be listed now. Blocks."""
        reading = ("read_artifact",) if self.results.begun else ()
        features = (name for feature in self.features if feature.needed for name in feature.needed())
        return (*reading, *joining(self._notes.skills), *features)

    def shell(self) -> Tool | None:
        """Return the shell within its guards."""
        return self.registry.get_tool("shell")

    async def close(self) -> None:
        """Close features, those that build on others first, then shells and workers of the user's own tools."""
        for feature in reversed(self.features):
            if feature.close:
                await feature.close()
        await self.checkpointing.close()
        await self.shells.close()
        await off_loop(self.registry.close)


def _skill_folder(skills: ActiveSkills, id: str) -> Path:
    """Return the folder of a skill. Raises BaError."""
    return skills.found(id).folder


class SessionTools:
    """The tools of a session, shared by all its agents."""

    def __init__(self, start: Startup, scope: SessionScope, ask: AskModel) -> None:
        self.ask, settings, where, root = ask, start.settings, start.where, project_root(scope.cwd)
        self.ingress = ingress_for(where, root, settings.secrets)
        self.plugins = start.plugins(root)
        catalog, choices = start.skills(self.ingress, self.plugins)
        hooks = found_hooks(start.loaded.hooks, root, start.trusts)

        lent = lent_folders(readable_folders(catalog, choices), self.plugins)
        told = scope.instructions(settings, where, self.ingress)(())
        started = started_files(root, [hook.command for hook in hooks.hooks], told)
        workspace = Workspace(scope.cwd, (root, *settings.add_dirs), (*scope.folders(), *lent), started)
        untrusted, missing = not start.strict and not start.trusts(root), partial(start.access.missing, in_file=True)
        self.permissions = SessionPermissions(settings, where, workspace, start.rules, untrusted=untrusted)
        self.policy = policy = self.permissions.policy

        context = SkillContext(
            scope.id, scope.cwd, self.permissions.confirms, missing, lambda: scope.transcript.skills,
            RecentSkills(where.state / "recent_skills.json"), lambda rules: grantable(rules, self.registry.names()),
        )  # fmt: skip
        self.skills = ActiveSkills(catalog, choices, ConfirmedSkills(where.config / "confirmed_skills.yaml"), context)
        self.skill_notes = SkillNotes(self.skills)
        policy.grant(GrantedRules(self.skills.granted, "an active skill"))

        self.guarded = GuardedTools(start, scope, self.permissions, self.skill_notes, hooks, lambda: self.agents)
        self.registry = registry = self.guarded.registry
        registry.refresh()

        means = AgentMeans(registry.names, start.access)
        self.agents: AgentFiles = project_agents(where, self.ingress, start.trusts, means, settings.agents.given)

        unknown = unknown_tools(start.rules, registry.names(), strict=start.strict)
        self.problems = unusable(self.guarded, unknown, problems_of(self.skills))

    @property
    def shares(self) -> Sequence[MarkedShare]:
        """Return the shares of the context report."""
        skills = MarkedShare("Skills", MARK, self.skill_notes.catalogue, active_skills)
        return (*(share for feature in self.guarded.features for share in feature.shares), skills)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close what loading the tools opened. After running a tool, await ``close`` first, in the same event loop."""
        self.registry.close()
        self.permissions.sandbox.close()

    async def close(self) -> None:
        await self.guarded.close()
        await self.permissions.close()
