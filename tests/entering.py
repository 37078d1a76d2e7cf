"""Ways in for tests: one that lets every file in, and the real one of a project."""

from __future__ import annotations

from pathlib import Path

from ba_tui.ingress import Ingress
from ba_tui.permissions.secrets.sharing import ingress_for
from ba_tui.resources import places


def open_ingress() -> Ingress:
    """Reads every regular file, and masks nothing."""
    return Ingress(Path("/"), (), lambda path, status: False, str)


def guarded_ingress(root: Path) -> Ingress:
    """As conversations in ``root`` have it."""
    return ingress_for(places(), root)
