"""What one session may read, run and reach: its workspace, sandbox and rules, and what watches where data goes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from ba_tui.core.ports.permissions import RuleLine
from ba_tui.permissions.bounds import BYPASS, Bounds
from ba_tui.permissions.egress.detection import Egress
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.rules.approvals import Approvals
from ba_tui.permissions.rules.hit_counts import hits_of
from ba_tui.permissions.sandbox.from_settings import sandbox_for
from ba_tui.permissions.sandbox.pending_changes import PendingChanges
from ba_tui.permissions.secrets.disguises import search_for
from ba_tui.permissions.secrets.sharing import Sharing
from ba_tui.resources import Places, folder_slug, project_root
from ba_tui.settings import Settings

UNTRUSTED = (
    "This folder is not trusted, so nothing is changed, run or fetched here; reading is allowed. "
    "The person can trust it: /trust, or ba trust in a terminal."
)


class SessionPermissions:
    """Made once for a session; all its agents share it. ``untrusted``: the person has not agreed to the folder yet."""

    def __init__(
        self, settings: Settings, where: Places, workspace: Workspace, rules: Sequence[RuleLine], *, untrusted: bool
    ) -> None:
        root, mode = project_root(workspace.root), settings.permission_mode
        self.workspace = workspace
        self.sandbox = sandbox_for(settings, where, workspace)
        self.egress = Egress()
        self.sharing = Sharing(settings.secrets, search_for(root))
        self.pending = PendingChanges(where.set_aside / folder_slug(root))
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

    def confirms(self) -> bool:
        """Whether allowing tools beforehand would change anything: in other modes nobody is asked."""
        return self.policy.level == "default"

    def confinement(self) -> str:
        """See core.ports.brain.Inventory."""
        return self.sandbox.state

    async def close(self) -> None:
        await asyncio.to_thread(self.sandbox.close)
        await asyncio.to_thread(self.policy.save_hits)


def started_files(root: Path, commands: Sequence[str]) -> frozenset[Path]:
    """The files of the project ``root`` that ``commands`` of hooks start."""
    if not commands:
        return frozenset()
    from ba_tui.permissions.trust.named_files import named_by  # noqa: PLC0415 - most people have no hooks

    return frozenset(Path(os.path.realpath(file)) for file in named_by(root, commands))
