"""What one session may read, run and reach: its workspace, sandbox and rules, and what watches where data goes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from ba_tui.core.errors import off_loop
from ba_tui.core.ports.permissions import RuleLine
from ba_tui.permissions.bounds import BYPASS, Bounds
from ba_tui.permissions.egress.detection import Egress
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.rules.approvals import Approvals
from ba_tui.permissions.rules.hit_counts import hits_of
from ba_tui.permissions.sandbox.from_settings import sandbox_for
from ba_tui.permissions.sandbox.pending_changes import PendingChanges
from ba_tui.permissions.sandbox.protected_files import is_protected
from ba_tui.permissions.sandbox.protected_watch import ProtectedWatch
from ba_tui.permissions.secrets.disguises import search_for
from ba_tui.permissions.secrets.sharing import Sharing
from ba_tui.permissions.trust.session_writes import SessionWrites, WatchedPlace
from ba_tui.permissions.trust.written import WriteRecords
from ba_tui.resources import Places, folder_slug, project_root
from ba_tui.settings import Settings

InstructionFiles: TypeAlias = Callable[[Sequence[Path]], Iterable[Path]]
"""Returns the files that instruct models, given those that were found in the workspace."""
UNTRUSTED = (
    "This folder is not trusted, so nothing is changed, run or fetched here; reading is allowed. "
    "The user can trust it: /trust, or ba trust in a terminal."
)


class SessionPermissions:
    """Made once for a session; all its agents share it. ``untrusted``: the person has not agreed to the folder yet."""

    def __init__(
        self, settings: Settings, where: Places, workspace: Workspace, rules: Sequence[RuleLine], *, untrusted: bool
    ) -> None:
        root, mode = project_root(workspace.root), settings.permission_mode
        self.workspace = workspace
        search = search_for(root)
        self.sandbox = sandbox_for(settings, where, workspace, search.known)
        self.egress = Egress()
        self.sharing = Sharing(settings.secrets, search)
        kept = PendingChanges(where.set_aside / folder_slug(root))
        self.watch = ProtectedWatch(self.sandbox.scan, kept, workspace.shown)
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
        self.policy = Policy(workspace, rules, allowed, Approvals(where.approvals, root), bounds)

    def record(self, instructions: InstructionFiles) -> SessionWrites:
        """What the tools of the session write of the files that run or instruct models. ``instructions``: see
        WatchedPlace."""
        place = WatchedPlace(self._root, self._own, self.sandbox.scan, instructions)
        return SessionWrites(self._records, place, lambda: self.watch.running)

    def confirms(self) -> bool:
        """Whether allowing tools beforehand would change anything: in other modes nobody is asked."""
        return self.policy.level == "default"

    def confinement(self) -> str:
        """See core.ports.brain.Inventory."""
        return self.sandbox.state

    async def close(self) -> None:
        await off_loop(self.sandbox.close)
        await off_loop(self.policy.save_hits)


def started_files(root: Path, commands: Sequence[str], told: Iterable[Path] = ()) -> frozenset[Path]:
    """The files of the project ``root`` that ``commands`` of hooks start, and those ``told`` to models whose names do
    not protect them."""
    real = frozenset(Path(os.path.realpath(file)) for file in told if not is_protected(file))
    if not commands:
        return real
    from ba_tui.permissions.trust.named_files import named_by  # noqa: PLC0415 - most people have no hooks

    return real | {Path(os.path.realpath(file)) for file in named_by(root, commands)}
