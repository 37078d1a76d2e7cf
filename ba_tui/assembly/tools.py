"""The tools of one session with its permissions and skills."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Self

from ba_tui.agent_files.catalog import AgentFiles, project_agents
from ba_tui.agent_files.means import AgentMeans
from ba_tui.assembly.session_tools import GuardedTools, ToolSettings, unusable
from ba_tui.assembly.start import Startup
from ba_tui.core.agent import AskModel
from ba_tui.core.ports.contributions import MarkedShare
from ba_tui.permissions.answers import GrantedRules, grantable, unknown_tools
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.secrets.sharing import ingress_for
from ba_tui.permissions.session import SessionPermissions, started_files
from ba_tui.resources import project_root
from ba_tui.settings.hooks import found_hooks
from ba_tui.skills.activation import MARK
from ba_tui.skills.active import (
    ActiveSkills,
    ConfirmedSkills,
    RecentSkills,
    SkillContext,
    active_skills,
    problems_of,
    readable_folders,
)
from ba_tui.skills.prompt import SkillNotes
from ba_tui.tools.session_scope import SessionScope, lent_folders


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

        trusted = root if start.trusts(root) else None
        process = ToolSettings(
            start.loaded, where, start.shell, not start.strict, lambda: self.agents, start.access.variables(), trusted
        )
        self.guarded = GuardedTools(process, scope, self.permissions, self.skill_notes, hooks)
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
