"""The files with secrets that a repository's history holds, also those that were removed long ago.

A history is read once, in the background, and later only what was added to it.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from ba_tui.core.errors import started
from ba_tui.permissions.paths import SECRET_FOLDERS, SECRET_NAMES, SECRET_TAILS, is_secret
from ba_tui.processes.brief import BriefRun, run_briefly

PATIENCE = 3.0
"""Seconds that a verdict waits for an answer; a search goes on meanwhile."""
LONGEST = 300.0
PATTERNS = (
    *(f":(top,icase,glob)**/{name}" for name in (*SECRET_NAMES, *SECRET_TAILS) if not name.startswith("/")),
    *(f":(top,icase,glob)**/{name}/**" for name in SECRET_FOLDERS),
)
"""What git is told to look for: the names that ``is_secret`` takes for those of secrets, and some more."""
ALWAYS = (("core.fsmonitor", "false"), ("safe.bareRepository", "explicit"))
SAFE = tuple(word for key, value in (*ALWAYS, ("log.showSignature", "false")) for word in ("-c", f"{key}={value}"))
OFFLINE = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
"""The index is not refreshed, and nothing that is missing is fetched."""


class GitHistory:
    """What is known of one repository. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._seen: frozenset[str] = frozenset()
        """Commits that were looked at with all before them."""
        self._names: dict[str, None] = {}
        self._search: threading.Thread | None = None

    def secrets(self, patience: float = PATIENCE) -> tuple[str, ...] | None:
        """Their paths from the top of the repository; None when the search failed or goes on. Blocks."""
        said = ask_git(self._folder, "rev-list", "--no-walk", "--all", "--reflog", patience=LONGEST)
        if said is None:
            return None
        tips = frozenset(said.decode().split())
        with self._lock:
            if tips <= self._seen:
                return tuple(self._names)
            if self._search is None or not self._search.is_alive():
                self._search = started(partial(self._look, tips), "git history")
            search = self._search
        search.join(patience)
        with self._lock:
            return tuple(self._names) if tips <= self._seen else None

    def _look(self, tips: frozenset[str]) -> None:
        """Look at the commits that lead to ``tips`` and were not looked at yet."""
        words = ("log", "--stdin", "--ignore-missing", "--format=", "--name-only", "-z", "-c", "--root", "--no-renames")
        commits = "\n".join([*(tips - self._seen), *(f"^{seen}" for seen in self._seen)])
        told = f"{commits}\n".encode()
        said = ask_git(self._folder, *words, "--", *PATTERNS, told=told, patience=LONGEST)
        if said is None:
            return
        names = (os.fsdecode(raw.strip(b"\n")) for raw in said.split(b"\0"))
        with self._lock:
            self._names |= {name: None for name in names if name and is_secret(Path(name))}
            self._seen = tips | self._seen


_known: dict[Path, GitHistory] = {}


def past_secrets(top: Path) -> tuple[str, ...] | None:
    """The files with secrets in all of the history of the repository at ``top``; None when they are not known yet."""
    return _known.setdefault(top, GitHistory(top)).secrets()


def ask_git(
    folder: Path,
    *words: str,
    told: bytes = b"",
    environment: Mapping[str, str] = os.environ,
    patience: float = PATIENCE,
) -> bytes | None:
    """What git prints within ``patience`` seconds; None when it fails. For names, commits and settings only: then no
    program of the repository's runs."""
    path = shutil.which("git", path=environment.get("PATH"))
    if path is None:
        return None
    try:
        done = run_briefly(BriefRun([path, *SAFE, *words], patience, folder, {**environment, **OFFLINE}, told))
    except (OSError, ValueError):
        return None
    return done.output if done.code == 0 else None
