"""Whether a session has data or agreed definitions, and whether Python can run. Looking loads nothing of the engine."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from ba_tui.context.mentions import JSON, dataset_kind
from ba_tui.core.ports.permissions import RuleLine
from ba_tui.core.values import frozen
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.sandbox.confinement import Sandbox

OWN_METRICS, PROJECT_METRICS = "metrics", ".ba/metrics"
"""Folders of definitions: in the user's configuration, and in a project."""


def has_metrics(config: Path, root: Path) -> bool:
    """Return whether the user or the project at ``root`` has a folder of definitions."""
    return (config / OWN_METRICS).is_dir() or (root / PROJECT_METRICS).is_dir()


MOST_ENTRIES = 2_000
"""Directory entries read in search of a data file."""


SETTLED_NS = 2 * 10**9
"""Nanoseconds without a change after which a folder's listing may be cached."""


class DataNearby:
    """Whether a session has data: some was registered, or a data file is in its ``root`` or one folder below. JSON
    files are ignored, as most are settings."""

    def __init__(self, root: Path, begun: Callable[[], bool]) -> None:
        self._root = str(root)
        self._begun = begun
        self._found = False
        self._without: dict[str, _Folder] = {}
        """Cached listings of folders without data."""

    def found(self) -> bool:
        """Return whether there is data. Reads a limited number of entries, and only folders that changed. Blocks."""
        self._found = self._found or self._begun() or self._look()
        return self._found

    def _look(self) -> bool:
        left, below = self._read(self._root, MOST_ENTRIES)
        for folder in below:
            if left >= 0:
                left, _ = self._read(folder, left)
        return left < 0

    def _read(self, folder: str, most: int) -> tuple[int, Sequence[str]]:
        """Return the remaining number of entries to read, -1 when a data file was found, and the subfolders of
        ``folder``."""
        try:
            changed = os.stat(folder).st_mtime_ns  # noqa: PTH116 - called for each folder at each step
            known = self._without.get(folder)
            if known and known.changed == changed:
                return most, known.below
            read, below = 0, list[str]()
            with os.scandir(folder) as found:
                for entry in islice(found, most):
                    read += 1
                    if dataset_kind(entry.name) not in {"", JSON} and entry.is_file():
                        return -1, ()
                    if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                        below.append(entry.path)
        except OSError:
            return most, ()
        whole = read < most or most == MOST_ENTRIES
        if whole and changed < time.time_ns() - SETTLED_NS:
            # A change within the file system's clock resolution would not alter the time.
            self._without[folder] = _Folder(changed, tuple(below))
        return most - read, below


@frozen
class _Folder:
    """A folder without data: its modification time in nanoseconds, and its subfolders."""

    changed: int
    below: tuple[str, ...]


NEEDED = ("ipykernel", "jupyter_client")


def missing_packages() -> str:
    """Return which packages are missing, in words; empty when none is."""
    lacking = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    return f"{' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} not installed" if lacking else ""


def _about_files(line: RuleLine) -> bool:
    """Return whether a rule denies reading some files. The sandbox hides files with secrets anyway."""
    tool, _, pattern = line.rule.partition("(")
    strict = line.verdict in {"deny", "ask"} and pattern and not pattern.startswith("@")
    return bool(strict) and (tool == "@read" or fnmatchcase("read_file", tool))


def why_no_kernel(policy: Policy, sandbox: Sandbox) -> str:
    """Return why no Python kernel may run, as words after "because"; empty when one may. Blocks."""
    rule = next((line.rule for line in policy.rules() if _about_files(line)), "")
    if rule:
        return f"the sandbox can't hide the files of the rule {rule} from it"
    return missing_packages() or sandbox.unheld()
