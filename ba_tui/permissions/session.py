"""The permissions of one session: workspace, sandbox, rules, where data goes; and checks of a folder's settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ba_tui.core.errors import UsageError, off_loop
from ba_tui.core.events import Notice
from ba_tui.core.ports.contributions import CheckResult
from ba_tui.core.ports.permissions import RuleLine, TrustState
from ba_tui.core.text.wording import suggestion
from ba_tui.core.values import Once, late
from ba_tui.permissions.answers import ProjectApprovals, all_rules, hits_of, problems_of
from ba_tui.permissions.egress import Egress
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.rule import read_rule
from ba_tui.permissions.sandbox.confinement import sandbox_for
from ba_tui.permissions.sandbox.workspace_scan import is_protected
from ba_tui.permissions.secrets.disguises import search_for
from ba_tui.permissions.secrets.sharing import SecretSharing
from ba_tui.permissions.trust.files import named_by
from ba_tui.permissions.trust.grants import Trust
from ba_tui.permissions.trust.session_writes import SessionWrites, WatchedPlace
from ba_tui.permissions.trust.write_records import WriteRecords
from ba_tui.permissions.verdicts import BYPASS, Bounds
from ba_tui.resources import UserFolders, bundled, folder_slug, places, project_root
from ba_tui.settings import LoadedSettings, Settings, load_settings, printable

if TYPE_CHECKING:
    from ba_tui.permissions.sandbox.protected_watch import ProtectedWatch


InstructionFiles: TypeAlias = Callable[[Sequence[Path]], Iterable[Path]]
"""Returns the files that instruct models, given those found in the workspace."""
UNTRUSTED = (
    "This folder is not trusted, so nothing is changed, run or fetched here; reading is allowed. "
    "The user can trust it: /trust, or ba trust in a terminal."
)


class SessionPermissions:
    """Permissions shared by all agents of a session. ``untrusted``: the user has not trusted the folder yet."""

    def __init__(
        self,
        settings: Settings,
        where: UserFolders,
        workspace: Workspace,
        rules: Sequence[RuleLine],
        *,
        untrusted: bool,
    ) -> None:
        root, mode = project_root(workspace.root), settings.permission_mode
        self.workspace = workspace
        search = search_for(root)
        self.sandbox = sandbox_for(settings, where, workspace, search.known)
        self.egress = Egress()
        self.sharing = SecretSharing(settings.secrets, search)
        watch, kept = late("ba_tui.permissions.sandbox.protected_watch:watch_in"), where.set_aside / folder_slug(root)
        self.watch: Once[ProtectedWatch] = Once(lambda: watch(self.sandbox.scan, kept, workspace.shown))
        """Watches protected files while commands run."""
        self._records, self._own, self._root = WriteRecords(where.written), where.config, root
        bounds = Bounds(
            where,
            UNTRUSTED if untrusted else "",
            bypass=mode == BYPASS,
            confined=self.sandbox.holds,
            unheld=self.sandbox.unheld,
            walled=self.sandbox.walled,
            suspicion=self.egress.reason,
            unnamed=self.egress.unnamed,
            hits=hits_of(where, root),
        )
        allowed = mode if mode in bounds.modes() else "default"
        self.policy = Policy(workspace, rules, allowed, ProjectApprovals(where.approvals, root), bounds)

    def record(self, instructions: InstructionFiles) -> SessionWrites:
        """Return a recorder of tools' writes to files that run or instruct models. ``instructions``: see
        WatchedPlace."""
        place = WatchedPlace(self._root, self._own, self.sandbox.scan, instructions)
        return SessionWrites(self._records, place, lambda: self.watch.made.running if self.watch.made else ())

    def confirms(self) -> bool:
        """Return whether allowing tools in advance has an effect: other modes ask nothing."""
        return self.policy.level == "default"

    def confinement(self) -> str:
        """See core.ports.brain.Inventory."""
        return self.sandbox.state

    async def close(self) -> None:
        await off_loop(self.sandbox.close)
        await off_loop(self.policy.save_hits)


def started_files(root: Path, commands: Sequence[str], told: Iterable[Path] = ()) -> frozenset[Path]:
    """Return the files of ``root`` that hook ``commands`` start, and instruction files (``told``) with unprotected
    names."""
    real = frozenset(Path(os.path.realpath(file)) for file in told if not is_protected(file))
    if not commands:
        return real
    return real | {Path(os.path.realpath(file)) for file in named_by(root, commands)}


def rule_problems(loaded: LoadedSettings, where: UserFolders, folder: Path) -> Sequence[str]:
    """Return problems of permission rules and kept answers, one per line."""
    rules = all_rules(loaded.rules, loaded.settings.commands.domains)
    return problems_of(rules, ProjectApprovals(where.approvals, project_root(folder)))


def rule_checks(loaded: LoadedSettings, where: UserFolders, folder: Path) -> Iterator[CheckResult]:
    for text in rule_problems(loaded, where, folder):
        fix = "ba permissions list, ba config edit; see ba guide permissions"
        yield CheckResult("permissions", "fail", printable(text), fix)


def trust_check(seen: TrustState) -> CheckResult:
    """Return the trust state of a folder as a check result."""
    root, brought = printable(str(seen.root)), ", ".join(part.kind for part in seen.holds)
    if seen.trouble:
        return CheckResult("trust", "warn", printable(seen.trouble), "The folder can't be trusted until then.")
    if seen.state == "trusted":
        return CheckResult("trust", "ok", f"{root} is trusted; it contains {brought or 'nothing that runs'}")
    if seen.state == "changed":
        fix = "ba trust shows the change; see ba guide trust."
        return CheckResult("trust", "warn", f"what {root} runs has changed since you trusted it", fix)
    if not brought:
        return CheckResult("trust", "ok", f"{root} contains nothing that runs, so nothing is off")
    fix = "ba trust; see ba guide trust."
    return CheckResult("trust", "warn", f"{root} is not trusted, so these are off: {brought}", fix)


def check_value(key: str, value: Any) -> None:
    """Refuse a value that fits the type of ``key`` but is invalid. An unreadable rule would break every later start.

    Raises:
        UsageError: the value is invalid.
    """
    group, _, verdict = key.partition(".")
    if group == "permissions":
        for item in cast("list[str | dict[str, Any]]", value):
            read_rule(item if isinstance(item, str) else str(item["rule"]), verdict)
    if key == "theme":
        folders = (bundled("themes"), places().config / "themes")
        names = ["auto", *sorted({file.stem for folder in folders for file in folder.glob("*.yaml")})]
        if value not in names:
            raise UsageError(f"There is no theme {value!r}; {suggestion(value, names)}")


def settings_of(folder: Path, where: UserFolders) -> LoadedSettings:
    """Return the settings of a new start in ``folder``, without flags. A project's own settings require trust."""
    root = project_root(folder)
    return load_settings({}, where, root, trusted=Trust(where).trusted(root))


def untrusted_notices(seen: TrustState, *, attended: bool) -> list[Notice]:
    """Return notices about an untrusted folder: what it contains and what stays off until the user trusts it."""
    if seen.state == "trusted":
        return []

    kinds = ", ".join("context files" if part.kind == "context" else part.kind for part in seen.holds)
    untold = [name for part in seen.holds if part.kind == "context" for name in part.names]
    files = f" Models don't see {'; '.join(untold)}." if untold else ""
    if seen.trouble:
        return [Notice(seen.trouble, "warning", "Until then the folder can't be trusted.")]
    if attended:
        off = f" Turned off: {kinds}.{files}" if kinds else ""
        return [Notice(f"This folder is not trusted: ba only reads here.{off}", "warning", "/trust changes that.")]
    if not kinds:
        return []
    text = f"This folder is not trusted. Turned off: {kinds}.{files}"
    return [Notice(text, "info", "Review it, then run `ba trust`, or start with --trust. See ba guide trust.")]
