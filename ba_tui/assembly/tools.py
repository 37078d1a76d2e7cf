"""The tools of one session and what stands around them: permissions, skills, hooks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Self

from ba_tui.agent_files.catalog import AgentFiles, project_agents
from ba_tui.agent_files.means import AgentMeans
from ba_tui.assembly.session_tools import GuardedTools, ToolSettings, unusable
from ba_tui.assembly.start import Startup
from ba_tui.core.agent import AskModel
from ba_tui.core.ports.rooms import MarkedShare
from ba_tui.hooks.found import SessionFacts, found_hooks
from ba_tui.hooks.listing import ListedHooks
from ba_tui.hooks.session import hooks_along
from ba_tui.permissions.ingress import ingress_for
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.rules.granted import GrantedRules, grantable
from ba_tui.permissions.rules.rulebook import unknown_tools
from ba_tui.permissions.session import SessionPermissions, started_files
from ba_tui.resources import project_root
from ba_tui.skills.activation import MARK
from ba_tui.skills.active import ActiveSkills, SkillContext, active_skills, problems_of, readable_folders
from ba_tui.skills.confirmed import Confirmed
from ba_tui.skills.prompt import SkillNotes
from ba_tui.skills.recent import RecentSkills
from ba_tui.tools.session_scope import SessionScope, lent_folders


class SessionTools:
    """Made once for a session; all its agents share it."""

    def __init__(self, start: Startup, scope: SessionScope, ask: AskModel) -> None:
        self.ask, settings, where, root = ask, start.settings, start.where, project_root(scope.cwd)
        self.ingress = ingress_for(where, root, settings.secrets)
        self.plugins = start.plugins(root)
        catalog, choices = start.skills(self.ingress, self.plugins)
        hooks, hook_problems = found_hooks(start.loaded.hooks, root, start.trusts)

        lent = lent_folders(readable_folders(catalog, choices), self.plugins)
        told = scope.instructions(settings, where, self.ingress)(())
        started = started_files(root, [hook.command for hook in hooks], told)
        workspace = Workspace(scope.cwd, (root, *settings.add_dirs), (*scope.folders(), *lent), started)
        untrusted, missing = not start.strict and not start.trusts(root), partial(start.access.missing, in_file=True)
        self.permissions = SessionPermissions(settings, where, workspace, start.rules, untrusted=untrusted)
        self.policy = policy = self.permissions.policy

        context = SkillContext(
            scope.id, scope.cwd, self.permissions.confirms, missing, lambda: scope.transcript.skills,
            RecentSkills(where.state / "recent_skills.json"), lambda rules: grantable(rules, self.registry.names()),
        )  # fmt: skip
        self.skills = ActiveSkills(catalog, choices, Confirmed(where.config / "confirmed_skills.yaml"), context)
        self.skill_notes = SkillNotes(self.skills)
        policy.grant(GrantedRules(self.skills.granted, "an active skill"))

        facts = SessionFacts(scope.id, scope.file, scope.cwd, root, start.shell.inherited(), lambda: policy.mode)
        self.hooks = hooks_along(hooks, facts, self.ingress.clean, ask)
        runs = self.hooks.hooks.runs if self.hooks else {}
        self.hook_list = ListedHooks(hooks, hook_problems, root, lambda: start.trusts(root), runs.get)
        trusted = root if start.trusts(root) else None
        process = ToolSettings(
            start.loaded, where, start.shell, not start.strict, lambda: self.agents, start.access.variables(), trusted
        )
        self.guarded = GuardedTools(process, scope, self.permissions, self.skill_notes, self.hooks)
        self.registry = registry = self.guarded.registry
        registry.refresh()

        means = AgentMeans(registry.names, missing, start.access.model, start.access.slots.named)
        self.agents: AgentFiles = project_agents(where, self.ingress, start.trusts, means, settings.agents.given)

        unknown = unknown_tools(start.rules, registry.names(), strict=start.strict)
        self.problems = unusable(self.guarded, hook_problems, unknown, problems_of(self.skills))

    @property
    def shares(self) -> Sequence[MarkedShare]:
        """The shares of the context report."""
        skills = MarkedShare("Skills", MARK, self.skill_notes.catalogue, active_skills)
        return (*(share for feature in self.guarded.features for share in feature.shares), skills)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close what loading the tools opened. Who ran one calls ``close`` before, in the same event loop."""
        self.registry.close()
        self.permissions.sandbox.close()

    async def close(self) -> None:
        if self.hooks:
            await self.hooks.close()
        await self.guarded.close()
        await self.permissions.close()
