"""The settings of a folder as the app would have them: a project's own count when the person trusts it."""

from __future__ import annotations

from pathlib import Path

from ba_tui.permissions.trust.grants import Trust
from ba_tui.resources import Places, project_root
from ba_tui.settings import Loaded, load_settings


def settings_of(folder: Path, where: Places) -> Loaded:
    """Return the settings of a new start in ``folder``, without flags."""
    root = project_root(folder)
    return load_settings({}, where, root, trusted=Trust(where).trusted(root))
