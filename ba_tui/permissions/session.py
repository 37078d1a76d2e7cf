"""The permissions of one session: workspace, sandbox, rules, and the checks of where data goes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ba_tui.core.errors import off_loop
from ba_tui.core.ports.permissions import RuleLine
from ba_tui.core.values import Once, late
from ba_tui.permissions.egress import Egress
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.rules.answers import ProjectApprovals, hits_of
from ba_tui.permissions.sandbox.confinement import sandbox_for
from ba_tui.permissions.sandbox.workspace_scan import is_protected
from ba_tui.permissions.secrets.disguises import search_for
from ba_tui.permissions.secrets.sharing import SecretSharing
from ba_tui.permissions.trust.files import named_by
from ba_tui.permissions.trust.session_writes import SessionWrites, WatchedPlace
from ba_tui.permissions.trust.write_records import WriteRecords
from ba_tui.permissions.verdicts import BYPASS, Bounds
from ba_tui.resources import UserFolders, folder_slug, project_root
from ba_tui.settings import Settings

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
