"""What of files and programs may enter a request by itself, for one project: our rules as a value for all rooms."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from ba_tui.ingress import Ingress
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.secrets.disguises import search_for
from ba_tui.permissions.secrets.hard_links import secret_file
from ba_tui.permissions.secrets.sharing import Secrecy
from ba_tui.resources import Places


@lru_cache(maxsize=8)
def ingress_for(where: Places, root: Path, secrecy: Secrecy = "redact") -> Ingress:
    """The same value for the same project and settings. Nobody can be asked while a request is built, so secrets
    are masked unless they are shared with every model."""
    workspace = Workspace(root)

    def secret(path: Path, status: os.stat_result) -> bool:
        return secret_file(path, status, workspace)

    return Ingress(
        workspace.root, (where.config,), secret, str if secrecy == "allow" else search_for(workspace.root).masked
    )
