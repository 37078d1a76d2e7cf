"""The process: what all conversations of one start share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from ba_tui.context.compression.selection import SummaryBudget
from ba_tui.context.instructions import InstructionFile, read_instructions
from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import UsageError
from ba_tui.core.ports.permissions import RuleLine
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.hooks.found import found_hooks
from ba_tui.ingress import Ingress
from ba_tui.observe.logs import start_logging
from ba_tui.permissions.bounds import BYPASS, Bounds
from ba_tui.permissions.ingress import ingress_for
from ba_tui.permissions.paths import ReadOnlyFolder, Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.rules.approvals import Approvals, problems_of
from ba_tui.permissions.rules.hit_counts import hits_of
from ba_tui.permissions.rules.rulebook import all_rules
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.permissions.sandbox.from_settings import limits_for
from ba_tui.permissions.secrets.scanner import redact
from ba_tui.permissions.trust.grants import Trust
from ba_tui.providers.access import ProviderAccess
from ba_tui.providers.catalog import chosen_catalog
from ba_tui.resources import Places, bundled, clear_unfinished, folder_slug, open_places, project_root, user_home
from ba_tui.sessions.journal import JournalFile
from ba_tui.sessions.library import SessionLibrary
from ba_tui.settings import HookLine, load_settings
from ba_tui.skills.catalog import SkillCatalog, skill_roots
from ba_tui.tools.builtin.shell import Shell

UNTRUSTED = (
    "This folder is not trusted, so nothing is changed, run or fetched here; reading is allowed. "
    "The person can trust it: /trust, or ba trust in a terminal."
)


@frozen
class StartOptions:
    """``flags`` win over settings. ``strict``: nobody attends, so what is wrong is an error. ``asks``: in a folder that
    is not trusted the person is asked, and until they answer conversations only read."""

    flags: Mapping[str, object]
    strict: bool = True
    asks: bool = False


class Startup:
    """Settings, models, rules, the shell and the sessions, for ``cwd``. ``make`` puts a conversation together.

    Raises:
        UsageError: a flag is wrong, or, when strict, a settings file is. StorageError: the person's folders are closed.
    """

    def __init__(
        self, cwd: Path, options: StartOptions, make: Callable[[Startup, SessionInfo, JournalFile], Conversation]
    ):
        self.cwd = cwd
        self.strict = options.strict
        self.where: Places = open_places()
        root = project_root(cwd)
        trusted = self.trusts(root)
        self.loaded = load_settings(options.flags, self.where, root, trusted=trusted)
        if options.strict:
            self.loaded.check()
        self.settings = self.loaded.settings
        start_logging(self.where, self.settings.log_level, redact)
        clear_unfinished(self.where)
        self.catalog, self.catalog_notices = chosen_catalog(self.where, strict=options.strict)
        self.access = ProviderAccess(self.loaded, self.catalog, self.where)
        self.catalog_notices += self.access.slots.problems(strict=options.strict)
        self.budget = SummaryBudget(self.settings.compression.hourly_budget)
        keep, limits = self.settings.environment.keep, limits_for(self.settings)
        self.shell = Shell(shutil.which("bash"), os.environ, self.access.variables(), keep, limits)
        self.rules: Sequence[RuleLine] = all_rules(self.loaded.rules, self.settings.commands.domains)
        self.rule_problems = self._problems(self.rules)
        if options.strict and (wrong := self._problems([r for r in self.rules if trusted or r.layer != "project"])):
            raise UsageError(wrong[0])
        self.flags = {key for key, source in self.loaded.sources.items() if source.startswith("flag ")}
        self.asks = options.asks
        self.library = SessionLibrary(self.where.sessions, cwd, folder_slug, partial(make, self), redact)
        self._skills: dict[Ingress, SkillCatalog] = {}

    def trusts(self, root: Path) -> bool:
        return Trust(self.where).trusted(root)

    def skills(self, ingress: Ingress) -> SkillCatalog:
        """One for all conversations of a project: a file is read again only when it has changed."""
        if ingress not in self._skills:
            root = ingress.root
            roots = skill_roots(bundled("skills"), user_home(), self.where.config, root, lambda: self.trusts(root))
            self._skills[ingress] = SkillCatalog(roots, ingress)
        return self._skills[ingress]

    def workspace(self, cwd: Path, lent: Sequence[ReadOnlyFolder]) -> Workspace:
        root = project_root(cwd)
        started = started_by_hooks(self.loaded.hooks, root, self.trusts)
        return Workspace(cwd, (root, *self.settings.add_dirs), tuple(lent), started)

    def policy(
        self, workspace: Workspace, sandbox: Sandbox, suspicion: Callable[[Tool, Mapping[str, Any]], str]
    ) -> Policy:
        root, mode = project_root(workspace.root), self.settings.permission_mode
        bounds = Bounds(
            self.where,
            UNTRUSTED if self.asks and not self.trusts(root) else "",
            bypass=mode == BYPASS,
            confined=sandbox.holds,
            unheld=sandbox.unheld,
            suspicion=suspicion,
            hits=hits_of(self.where, root),
        )
        allowed = mode if mode in bounds.modes() else "default"
        return Policy(workspace, self.rules, allowed, Approvals(self.where.approvals, root), bounds)

    def _problems(self, rules: Sequence[RuleLine]) -> Sequence[str]:
        return problems_of(rules, Approvals(self.where.approvals, project_root(self.cwd)))


MakeConversation: TypeAlias = Callable[[Startup, SessionInfo, JournalFile], Conversation]


def trust_for(where: Places, cwd: Path) -> Trust:
    """What the person trusts; who reviews the project of ``cwd`` is shown its instructions too."""

    def instructions(root: Path) -> Sequence[str]:
        return [item.line for item in read_instructions(InstructionFile(cwd, root, None), ingress_for(where, root))]

    return Trust(where, instructions)


def started_by_hooks(lines: Sequence[HookLine], root: Path, trusted: Callable[[Path], bool]) -> frozenset[Path]:
    """The files of the project ``root`` that its hooks and the person's own start."""
    found, _ = found_hooks(lines, root, trusted)
    if not found:
        return frozenset()
    from ba_tui.permissions.trust.named_files import named_by  # noqa: PLC0415 - most people have no hooks

    return frozenset(Path(os.path.realpath(file)) for file in named_by(root, [hook.command for hook in found]))
