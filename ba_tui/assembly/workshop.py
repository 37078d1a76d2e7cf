"""Puts conversations together: what all of one start have in common, and the rules for all of them."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ba_tui.assembly.commanding import Admission
from ba_tui.assembly.confining import limits_for
from ba_tui.assembly.desk import Desk
from ba_tui.context.compression.selection import Budget
from ba_tui.core.conversation import Conversation, Library
from ba_tui.core.errors import UsageError
from ba_tui.core.ports.permissions import RuleLine
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.observe.calls import CallLog
from ba_tui.permissions.bounds import BYPASS, Bounds
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.rules.approvals import Approvals, problems_of
from ba_tui.permissions.rules.hit_counts import hits_of
from ba_tui.permissions.rules.rulebook import all_rules
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.permissions.trust.grants import Trust
from ba_tui.providers.access import ProviderAccess
from ba_tui.resources import Places, project_root
from ba_tui.sessions.journal import JournalFile
from ba_tui.settings import HookLine, Loaded
from ba_tui.tools.builtin.shell import Shell

UNTRUSTED = (
    "This folder is not trusted, so nothing is changed, run or fetched here; reading is allowed. "
    "The person can trust it: /trust, or ba trust in a terminal."
)
SOON = 0.05
"""Seconds that what nobody waits for is put off."""


class Workshop:
    """What all conversations of one start have in common. In folders that ``asked`` does not trust they only read."""

    def __init__(
        self, loaded: Loaded, where: Places, cwd: Path, access: ProviderAccess, asked: Trust | None = None
    ) -> None:
        self.loaded = loaded
        self.settings = loaded.settings
        self.hooks: Sequence[HookLine] = loaded.hooks
        self.where = where
        self.cwd = cwd
        self.access = access
        self.budget = Budget(loaded.settings.compression.hourly_budget)
        self.library: Library | None = None
        """Where all of them lie, once it is made."""
        self._asked = asked
        keep, limits = self.settings.environment.keep, limits_for(self.settings)
        self.shell = Shell(shutil.which("bash"), os.environ, access.variables(), keep, limits)
        self._flags = {key for key, source in loaded.sources.items() if source.startswith("flag ")}
        self.rules: Sequence[RuleLine] = all_rules(loaded.rules, self.settings.commands.domains)
        self.strict = False
        """Whether a flag about a tool that does not exist is an error, not only told."""
        self.problems = self._problems(self.rules)

    def _problems(self, rules: Sequence[RuleLine]) -> Sequence[str]:
        return problems_of(rules, Approvals(self.where.approvals, project_root(self.cwd)))

    def check(self, *, trusted: bool) -> None:
        """Raises UsageError for a rule that can't be read; one of a project counts only where that is ``trusted``."""
        if wrong := self._problems([rule for rule in self.rules if trusted or rule.layer != "project"]):
            raise UsageError(wrong[0])

    def workspace(self, cwd: Path) -> Workspace:
        return Workspace(cwd, (project_root(cwd), *self.settings.add_dirs))

    def policy(self, workspace: Workspace, sandbox: Sandbox | None = None) -> Policy:
        root, mode = project_root(workspace.root), self.settings.permission_mode
        restricted = UNTRUSTED if self._asked and not self._asked.trusted(root) else ""
        bounds = Bounds(self.where, restricted, mode == BYPASS, hits=hits_of(self.where, root))
        if sandbox:
            bounds = replace(bounds, confined=sandbox.holds, unheld=sandbox.unheld)
        allowed = mode if mode in bounds.modes() else "default"
        return Policy(workspace, self.rules, allowed, Approvals(self.where.approvals, root), bounds)

    def opens(self, root: Path) -> bool:
        """Whether models read the context files of the project at ``root``: the person trusts it as it is."""
        return Trust(self.where).trusted(root)

    def conversation(self, info: SessionInfo, journal: JournalFile) -> Conversation:
        """In the session's own folder, or in this one when that is gone. Flags win over what the session had."""
        cwd = info.cwd if info.cwd.is_dir() else self.cwd
        model = info.model or self.access.default_model()
        desk = Desk(self, cwd, journal)
        named = replace(info, cwd=cwd, model=model)
        hooks = desk.hooks
        listening = (desk.metrics.apply, desk.spending.apply, CallLog(info.id, _later).apply, desk.keeping.apply)
        admission = Admission(desk.commands, hooks.admit if hooks else None, desk.mentioning.attaching)
        listening = (*listening, admission.apply)
        observers = (*listening, *((hooks.apply,) if hooks else ()))
        conversation = Conversation(named, journal, desk, observers, desk.inventory)
        conversation.admit = admission.admit
        admission.choose = partial(setattr, conversation, "turn_model")
        conversation.condenser = desk.condenser
        desk.skilling.skills.active = lambda: conversation.transcript.skills
        desk.keeping.turn = lambda: conversation.transcript.turns + admission.opening
        if info.model and "model" in self._flags and self.settings.model != info.model:
            conversation.use_model(self.settings.model)
        mode = self.settings.permission_mode
        if info.model and "permission_mode" in self._flags and mode in desk.permissions.modes():
            conversation.set_mode(mode)
        return conversation


def _later(work: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(SOON, work)
