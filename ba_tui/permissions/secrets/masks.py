"""All masked copies of one workspace: of files named as secret, and of those whose text holds secrets."""

from __future__ import annotations

import os
import threading
import weakref
from pathlib import Path

from ba_tui.permissions.sandbox.layout import FileReach, shown_in
from ba_tui.permissions.secrets.content_process import ScanOrder
from ba_tui.permissions.secrets.content_scan import ContentScan
from ba_tui.permissions.secrets.copies import MaskedCopies, private_folder
from ba_tui.permissions.secrets.known import MaskPlaces
from ba_tui.processes.scratch import remove_scratch


class WorkspaceMasks:
    """The copies lie in a private folder until ``close``. Thread-safe."""

    def __init__(self, reach: FileReach, places: MaskPlaces) -> None:
        self._reach = reach
        self._places = places
        self._folder: Path | None = None
        self._lock = threading.Lock()
        self._copies = MaskedCopies(self._private, places.known, lambda path: shown_in(reach.roots, path))
        self.content = ContentScan(self._order, self._copies, places.known)

    def of_secret(self, path: Path) -> Path:
        """Return the masked copy of a file that is named as secret. Blocks."""
        return self._copies.of_secret(path)

    def of_rule(self, path: Path) -> Path:
        """Return what is seen in place of a file that a permission rule is about. Blocks."""
        return self._copies.of_rule(path)

    def close(self) -> None:
        """End the search and remove the copies. Blocks."""
        self.content.close()
        with self._lock:
            folder, self._folder = self._folder, None
        if folder:
            remove_scratch(folder)

    def _order(self) -> ScanOrder:
        allowed = (*self._reach.readable, *self._reach.writable, *self._reach.hidden)
        skipped = tuple(dict.fromkeys(os.path.realpath(path) for path in allowed))
        kept = self._places.kept
        roots = tuple(str(root) for root in self._reach.roots if not _inside(root, self._reach.roots))
        return ScanOrder(roots, skipped, str(self._private()), str(kept) if kept else "")

    def _private(self) -> Path:
        with self._lock:
            known = self._folder
            if known is None or not known.is_dir():
                known = self._folder = private_folder(self._places.copies)
                # Also where nobody closes it, as at an end in a hurry.
                weakref.finalize(self, remove_scratch, known)
            return known


def _inside(root: Path, roots: tuple[Path, ...]) -> bool:
    return any(root != other and root.is_relative_to(other) for other in roots)
