"""The values that the user has allowed in a project's settings, by the real path of the project's root.

They are saved in the user's config folder, never in the project. Each new value needs a new permission.
"""

from __future__ import annotations

import os
from collections.abc import Set
from pathlib import Path
from typing import Any, cast

import yaml

from ba_tui.core.errors import StorageError
from ba_tui.core.ports.permissions import AskedSetting
from ba_tui.resources import UserFolders, exclusive, save_whole
from ba_tui.settings.document import load_mapping

FILE = "allowed-settings.yaml"
HEADER = """\
# Values that you allowed the settings of a project to have. Remove one to take that back, or run:
# ba trust --revoke FOLDER
"""


class AllowedSettings:
    """The file of allowed values. All methods read or write it: call them off the event loop."""

    def __init__(self, where: UserFolders) -> None:
        self.path = where.config / FILE

    def of(self, root: Path) -> Set[tuple[str, str]]:
        """Return the allowed settings and values of the project at ``root``; none when the file can't be parsed."""
        try:
            entries: Any = load_mapping(self.path).get(os.path.realpath(root))
        except StorageError:
            return frozenset()
        listed = cast("list[Any]", entries) if isinstance(entries, list) else []
        pairs = (cast("dict[str, Any]", each) for each in listed if isinstance(each, dict))
        return frozenset((str(pair.get("setting")), str(pair.get("value"))) for pair in pairs)

    def add(self, root: Path, asked: AskedSetting) -> None:
        """Save one allowed value. Raises StorageError."""
        entry = {"setting": asked.setting, "value": asked.value}
        with exclusive(self.path.parent):
            kept = load_mapping(self.path)
            name = os.path.realpath(root)
            before: Any = kept.get(name)
            entries = cast("list[Any]", before) if isinstance(before, list) else []
            kept[name] = [*(each for each in entries if each != entry), entry]
            self._save(kept)

    def drop(self, root: Path, setting: str = "") -> None:
        """Remove the allowed values of a project, or only those of ``setting``. Raises StorageError."""
        if not self.path.exists():
            return
        with exclusive(self.path.parent):
            kept = load_mapping(self.path)
            before: Any = kept.pop(os.path.realpath(root), None)
            entries = cast("list[Any]", before) if setting and isinstance(before, list) else []
            pairs = [cast("dict[str, Any]", each) for each in entries if isinstance(each, dict)]
            if left := [pair for pair in pairs if pair.get("setting") != setting]:
                kept[os.path.realpath(root)] = left
            if before is not None:
                self._save(kept)

    def _save(self, kept: dict[str, Any]) -> None:
        save_whole(self.path, HEADER + yaml.safe_dump(kept, allow_unicode=True, sort_keys=False), mode=0o600)
