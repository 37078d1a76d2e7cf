"""What all conversations of one process share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from ba_tui.context.compression.compressor import SummaryBudget
from ba_tui.context.instructions import InstructionPlace, read_instructions
from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import UsageError
from ba_tui.core.ports.permissions import RuleLine
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.values import frozen
from ba_tui.ingress import Ingress
from ba_tui.observe.logs import start_logging
from ba_tui.permissions.answers import ProjectApprovals, all_rules, problems_of
from ba_tui.permissions.sandbox.confinement import limits_for
from ba_tui.permissions.secrets.scanner import redact
from ba_tui.permissions.secrets.sharing import ingress_for
from ba_tui.permissions.trust.grants import Trust
from ba_tui.permissions.trust.session_writes import held_file
from ba_tui.permissions.trust.write_records import WriteRecords
from ba_tui.providers.access import ProviderAccess
from ba_tui.providers.catalog import chosen_catalog
from ba_tui.resources import UserFolders, bundled, folder_slug, open_places, project_root, user_home
from ba_tui.sessions.journal import JournalFile
from ba_tui.sessions.library import LibraryHabits, SessionLibrary
from ba_tui.settings import load_settings
from ba_tui.settings.plugins import Plugin, plugins_of
from ba_tui.skills.catalog import SkillCatalog, SkillChoices, plugin_roots, read_choices, skill_roots
from ba_tui.tools.shells import Shell
from ba_tui.tools.toolbox import recover_changes


@frozen
class StartOptions:
    """``flags`` win over settings. ``strict``: the run is unattended, so problems are errors. Otherwise the user is
    asked about an untrusted folder, and conversations are read-only until the answer."""

    flags: Mapping[str, object]
    strict: bool = True


class Startup:
    """Settings, models, rules, the shell and the sessions, for ``cwd``. ``make`` creates a conversation.

    Raises:
        UsageError: a flag is wrong, or, when strict, a settings file is. StorageError: no access to the user's folders.
    """

    def __init__(
        self, cwd: Path, options: StartOptions, make: Callable[[Startup, SessionInfo, JournalFile], Conversation]
    ):
        self.cwd, self.strict = cwd, options.strict
        self.where: UserFolders = open_places()
        root = project_root(cwd)
        trusted = self.trusts(root)
        self.loaded = load_settings(options.flags, self.where, root, trusted=trusted)
        if options.strict:
            self.loaded.check()
        self.settings = settings = self.loaded.settings
        start_logging(self.where, settings.log_level, redact)
        self.recovered = recover_changes(self.where, cwd, settings)
        self.catalog, self.catalog_notices = chosen_catalog(self.where, strict=options.strict)
        self.access = ProviderAccess(self.loaded, self.catalog, self.where)
        self.catalog_notices += self.access.slots.problems(strict=options.strict)
        self.budget = SummaryBudget(settings.compression.hourly_budget)
        given, limits = settings.environment, limits_for(settings)
        self.shell = Shell(shutil.which("bash"), os.environ, self.access.variables(), given.keep, limits, given.set)
        self.rules: Sequence[RuleLine] = all_rules(self.loaded.rules, settings.commands.domains)
        approvals = ProjectApprovals(self.where.approvals, root)
        self.rule_problems = problems_of(self.rules, approvals)
        counting = [rule for rule in self.rules if rule.layer != "claude" and (trusted or rule.layer != "project")]
        if options.strict and (wrong := problems_of(counting, approvals)):
            raise UsageError(wrong[0])
        habits = LibraryHabits(redact, attended=not options.strict)
        self.library = SessionLibrary(self.where.sessions, cwd, folder_slug, partial(make, self), habits)
        self._skills: dict[Ingress, SkillCatalog] = {}

    def given(self, key: str) -> bool:
        """Return whether a flag sets ``key``."""
        return self.loaded.sources.get(key, "").startswith("flag ")

    def trusts(self, root: Path) -> bool:
        return Trust(self.where).trusted(root)

    def plugins(self, root: Path) -> Sequence[Plugin]:
        """Return the user's plugins and those of the project at ``root``. Blocks."""
        return plugins_of(user_home(), self.where.config, root, lambda: self.trusts(root))

    def skills(self, ingress: Ingress, plugins: Sequence[Plugin]) -> tuple[SkillCatalog, SkillChoices]:
        """Return the skills of a project; its conversations share one catalog, which reads changed files only."""
        root, config = ingress.root, self.where.config
        if ingress not in self._skills:
            shipped, *roots = skill_roots(bundled("skills"), user_home(), config, root, lambda: self.trusts(root))
            self._skills[ingress] = SkillCatalog([shipped, *plugin_roots(plugins), *roots], ingress)
        own = [config / "skills.yaml", *([root / ".ba" / "skills.yaml"] if self.trusts(root) else [])]
        return self._skills[ingress], read_choices(bundled("config") / "skills.yaml", own, ingress.raw)


def trust_for(where: UserFolders, cwd: Path) -> Trust:
    """Return the user's trust; a review of the project of ``cwd`` shows its instructions too."""

    def instructions(root: Path) -> Sequence[str]:
        read = InstructionPlace(cwd, root, None, held=partial(held_file, WriteRecords(where.written), root))
        return [item.line for item in read_instructions(read, ingress_for(where, root))]

    return Trust(where, instructions)
