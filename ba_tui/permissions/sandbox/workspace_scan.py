"""Finds the secret files, protected files and git folders of a workspace, and keeps the result current.

Protected files run later outside the sandbox, or instruct models; their names are defined here for the policy, the file
tools and the sandbox. No file is opened. Each folder is listed once; later scans list only folders whose change time
moved.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from ba_tui.core import instruction_names
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import (
    SECRET_FOLDERS,
    SECRET_IN_HOME,
    SECRET_NAMES,
    any_of,
    folded,
    is_secret,
    tail_matches,
    tails,
)

GIT = ".git"
GIT_SETTINGS = ("config", "config.worktree", "commondir", "gitdir", "hooks", "info/attributes")
"""Files that decide which programs git runs."""

VENV = "pyvenv.cfg"
"""The file that marks a virtual environment."""

FOLDERS = (
    GIT, ".ba", ".claude", ".agents", ".ci", ".circleci", ".buildkite", ".husky", ".gitea", ".forgejo",
    ".woodpecker", ".semaphore", ".teamcity", "profile.d", ".vscode", ".vs", ".idea", ".zed", ".fleet", ".nvim",
    ".devcontainer", ".cursor", ".windsurf", ".gemini", ".codex", ".opencode", ".vibe", ".roo", ".cline",
    ".kilocode", ".continue", ".direnv", ".mise", ".amazonq", ".amp", ".augment", ".crush", ".factory", ".junie",
    ".kiro", ".qwen", ".trae", ".githooks", ".git-hooks", "githooks", ".idx", ".codesandbox", ".theia", ".nova",
    ".helix", ".bsp", ".run", ".sl", ".tekton", ".azure-pipelines", ".cirrus",
)  # fmt: skip
TAILS = (
    ".github/workflows/**", ".github/actions/**", ".gitlab/ci/**", ".hg/hgrc", ".jj/repo/config.toml",
    ".cargo/config", ".cargo/config.toml", ".yarn/releases/**", ".yarn/plugins/**", ".bundle/config",
    ".venv/**", "venv/**", "node_modules/.bin/**", "site-packages/**",
    ".mvn/**", ".terraform/**", ".poetry/**", ".pdm-plugins/**", ".config/fish/**", ".config/autostart/**",
    ".config/systemd/**", ".config/mise.toml", ".config/mise/**", "mise/config.toml", "tools/bazel", "/etc/profile",
    *instruction_names.TAILS,
)  # fmt: skip
NAMES = (
    ".mcp.json", "opencode.json", "opencode.jsonc", ".crush.json", "crush.json", ".aider.conf.yml",
    ".gitconfig", ".gitmodules", ".hgrc", ".gitlab-ci.yml", ".travis.yml", ".drone.yml",
    ".woodpecker.yml", ".appveyor.yml", "appveyor.yml", "jenkinsfile", "azure-pipelines*.yml",
    "azure-pipelines*.yaml", ".cirrus.yml", ".cirrus.star", ".drone.jsonnet", ".jenkins.yml", ".gitpod.yml", ".replit",
    "bitbucket-pipelines.yml", "cloudbuild.yaml", "cloudbuild.yml", "buildspec.yml", "codemagic.yaml",
    ".pre-commit-config.yaml", ".pre-commit-config.yml", "lefthook*.yml", ".lefthook*.yml", ".overcommit.yml",
    ".huskyrc*", ".envrc", "mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml", "mise.*.toml",
    ".rtx.toml", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc",
    ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".xprofile",
    ".xinitrc", ".xsessionrc", ".pam_environment", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs",
    "bunfig.toml", "pip.conf", "uv.toml", "poetry.toml", ".condarc", ".gemrc", "nuget.config", ".bazelrc",
    ".bazeliskrc", ".sbtopts", ".jvmopts", "*.code-workspace", ".devcontainer.json", ".exrc", ".nvimrc",
    ".nvim.lua", ".vimrc", ".lvimrc", ".dir-locals.el", ".gdbinit", ".lldbinit", ".psqlrc", ".sqliterc", ".rprofile",
    ".renviron", ".ghci", ".pdbrc", ".vimspector.json", "*.sublime-project", ".factorypath", ".mavenrc", "flake.nix",
    "shell.nix", "devenv.nix", "devbox.json", ".autoenv", ".autoenv.zsh", ".simple-git-hooks.*",
    ".irbrc", ".pryrc", "pyvenv.cfg", "sitecustomize.py", "usercustomize.py",
)  # fmt: skip

INSTRUCTIONS = {folded(name): name for name in instruction_names.NAMES}
"""Names of instruction and memory files by folded form. On file systems that distinguish case, only the exact spelling
is protected: ``docs/agents.md`` is an ordinary page."""

_NAME, _TAIL, _PARTS = any_of(NAMES), tails(TAILS), frozenset(FOLDERS)
LAST = tuple(next(part for part in reversed(tail.split("/")) if part != "**") for tail in TAILS)
"""The last fixed parts of ``TAILS``."""


def is_protected(path: PurePath) -> bool:
    """Return whether writing ``path`` changes what runs later (git settings, CI files, shell startup files) or what
    models read as instructions (AGENTS.md and the like).

    Pass the path relative to the workspace's root if it is inside, so that parent folders are ignored.
    """
    parts = [folded(part) for part in path.parts]
    name = parts[-1] if parts else ""
    if path.name in instruction_names.NAMES or _NAME.match(name) or not _PARTS.isdisjoint(parts):
        return True
    return tail_matches(parts, _TAIL)


def respelled(path: Path) -> bool:
    """Return whether a case-insensitive file system treats ``path`` as an instruction file. Reads the disk."""
    name = INSTRUCTIONS.get(folded(path.name))
    if name is None or name == path.name:
        return False
    try:
        return path.samefile(path.with_name(name))
    except OSError:
        return False


FIRST_SECONDS = 3.0
"""Seconds that the first scan may take. The rest is scanned in later steps while ``complete`` is False."""
LATER_SECONDS = 0.05
COLD_SECONDS = 0.004
"""Processor seconds per scan for folders of dependencies, which take turns."""
MOST_FOLDERS = 300_000
SETTLED = 100_000_000
"""Nanoseconds after which a change shows in a folder's change time on any file system."""
COLD = frozenset({"node_modules", "site-packages", "__pycache__", ".venv", "venv", ".tox", ".nox", ".mypy_cache"})
_MARKS = frozenset({"HEAD", "commondir", "objects", "refs", VENV})
_NOT_FILES = ("/dev/", "/proc/", "/sys/")
_SECRET_LAST = ("config.json", "hosts.yml", "credentials", "credentials.toml", "rclone.conf", "gcloud")
_TELLING = (*SECRET_NAMES, *SECRET_FOLDERS, *SECRET_IN_HOME, *_SECRET_LAST, *NAMES, *FOLDERS, *LAST, *INSTRUCTIONS)
_NAMES = frozenset(name for name in _TELLING if "*" not in name)
_HEADS = tuple({name.partition("*")[0] for name in _TELLING if "*" in name} - {""})
_ENDS = tuple(name[1:] for name in _TELLING if name[0] == "*")


@frozen
class ScanResult:
    """``secrets``: regular files; ``hidden``: folders in which every file is secret; ``protected``: the outermost
    protected files and folders; ``git``: the folders with git's settings. ``linked``: see ``with_links``.

    ``complete``: every folder was listed. ``cost``: processor seconds of the scan.
    """

    secrets: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    protected: tuple[Path, ...] = ()
    git: tuple[Path, ...] = ()
    linked: tuple[Path, ...] = ()
    complete: bool = True
    cost: float = 0.0

    def concealed(self) -> frozenset[tuple[Path, int]]:
        """Return hidden paths with their inodes: a file rewritten under the same name is a different one."""
        return frozenset((path, _inode(path)) for path in (*self.secrets, *self.hidden))


def _inode(path: Path) -> int:
    try:
        return os.lstat(path).st_ino
    except OSError:
        return 0


@frozen
class _LinkedFile:
    """A file with several names: its path, device and inode, and number of names."""

    path: str
    inode: tuple[int, int]
    names: int


@dataclass(slots=True)
class _ScannedFolder:
    """One listed folder. ``stamp``: inode and change time; None if it may have changed unnoticed."""

    cold: bool
    guarded: bool
    stamp: tuple[int, int] | None = None
    folders: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    git: tuple[str, ...] = ()
    linked: tuple[_LinkedFile, ...] | None = None
    """Files with several names; None until searched for, since read-only programs don't need them."""

    @property
    def bare(self) -> bool:
        return not (self.secrets or self.hidden or self.protected or self.git)


@dataclass(slots=True)
class _Found:
    """The findings of one folder while it is read."""

    secrets: list[str] = field(default_factory=list[str])
    hidden: list[str] = field(default_factory=list[str])
    protected: list[str] = field(default_factory=list[str])
    git: list[str] = field(default_factory=list[str])


class WorkspaceScan:
    """The files below ``roots``, without following links. ``allowed``: secret files that the user lets commands see;
    ``started``: further protected files.

    Thread-safe. ``look`` blocks: some hundredths of a second at first, some milliseconds later.
    """

    def __init__(
        self,
        roots: Iterable[Path],
        allowed: Iterable[Path] = (),
        home: Path | None = None,
        started: Iterable[Path] = (),
    ) -> None:
        self._started = tuple(sorted(started))
        self._roots = _outermost(roots)
        self._allowed = {os.path.realpath(path) for path in allowed}
        self._home = home
        self._folders: dict[str, _ScannedFolder] = {}
        self._telling: set[str] = set()
        """Folders with findings."""
        self._todo: deque[tuple[str, bool, bool]] = deque()
        self._cold: deque[str] = deque()
        self._twins: set[int] = set()
        """Inodes of secret files with more than one name."""
        self._lock = threading.Lock()
        self._begun = False
        self._last = ScanResult(complete=False)
        self._looked = float("-inf")

    @property
    def roots(self) -> tuple[Path, ...]:
        """The outermost folders that are searched."""
        return self._roots

    @property
    def last(self) -> ScanResult:
        """The result of the last scan."""
        return self._last

    def look(self, recent: float = 0) -> ScanResult:
        """Return the current findings, or those of a scan at most ``recent`` seconds ago."""
        with self._lock:
            if time.monotonic() - self._looked < recent:
                return self._last
            begun, patience = time.thread_time(), LATER_SECONDS if self._begun else FIRST_SECONDS
            if not self._begun:
                self._begun = True
                self._twins.update(_keys_with_other_names(self._home))
                self._todo.extend((str(root), False, False) for root in self._roots)
            else:
                self._revisit()
            cost = time.thread_time() - begun
            until = time.monotonic() + patience
            known = -1
            while known != len(self._twins):
                # A folder that was already listed may contain another name of a secret.
                if known >= 0:
                    self._relist()
                known = len(self._twins)
                self._work(until)
            self._last, self._looked = self._findings(cost), time.monotonic()
            return self._last

    def with_links(self) -> ScanResult:
        """Return ``look`` with the files that have a hard link outside the workspace.

        Dependencies are left out: package managers link them to their stores, and replace them.
        """
        found = self.look()
        with self._lock:
            for path, folder in self._folders.items():
                if folder.linked is None:
                    folder.linked = () if folder.cold else tuple(_linked(path))
            every = (each for folder in self._folders.values() for each in folder.linked or ())
            return replace(found, linked=tuple(_leaving(every)))

    def _work(self, until: float) -> None:
        while self._todo and len(self._folders) < MOST_FOLDERS and time.monotonic() < until:
            path, cold, guarded = self._todo.popleft()
            if path not in self._folders:
                self._folders[path] = _ScannedFolder(cold, guarded)
                if cold:
                    self._cold.append(path)
            self._list(path)

    def _revisit(self) -> None:
        """List changed folders again; of dependencies only as many as time allows."""
        for path, folder in list(self._folders.items()):
            if not folder.cold and path in self._folders:
                self._check(path, folder)
        until = time.thread_time() + COLD_SECONDS
        for count in range(len(self._cold)):
            path = self._cold.popleft()
            if folder := self._folders.get(path):
                self._cold.append(path)
                self._check(path, folder)
            if not count % 32 and time.thread_time() > until:
                return

    def _check(self, path: str, folder: _ScannedFolder) -> None:
        try:
            status = os.stat(path)  # noqa: PTH116 - for thousands of folders
        except OSError:
            self._drop(path)
            return
        if folder.stamp != (status.st_ino, status.st_ctime_ns):
            self._todo.append((path, folder.cold, folder.guarded))

    def _relist(self) -> None:
        self._todo.extend((path, folder.cold, folder.guarded) for path, folder in self._folders.items())

    def _list(self, path: str) -> None:
        folder = self._folders[path]
        try:
            before = os.lstat(path)
            if not stat.S_ISDIR(before.st_mode):
                self._drop(path)
                return
            with os.scandir(path) as entries:
                found = list(entries)
        except OSError:
            self._drop(path)
            return
        known = set(folder.folders)
        self._read(path, folder, found)
        settled = before.st_ctime_ns < time.time_ns() - SETTLED
        folder.stamp = (before.st_ino, before.st_ctime_ns) if settled else None
        for gone in known.difference(folder.folders):
            self._drop(gone)
        if folder.bare:
            self._telling.discard(path)
        else:
            self._telling.add(path)

    def _read(self, path: str, folder: _ScannedFolder, entries: list[os.DirEntry[str]]) -> None:
        """Sort the entries of one folder into its record."""
        folders: list[str] = []
        found = _Found()
        twins = self._twins
        for entry in entries:
            name = entry.name
            lower = name.lower() if name.isascii() else folded(name)
            telling = lower in _NAMES or lower.startswith(_HEADS) or lower.endswith(_ENDS)
            below = entry.is_dir(follow_symlinks=False)
            guarded = folder.guarded
            if telling or (twins and entry.inode() in twins):
                if below and lower == GIT:
                    found.git.append(entry.path)
                    continue
                guarded = self._sort(entry, found, guarded=guarded)
            if below:
                folders.append(entry.path)
                if entry.path not in self._folders:
                    self._todo.append((entry.path, folder.cold or lower in COLD, guarded))
        names = {entry.name for entry in entries if entry.name in _MARKS}
        if "HEAD" in names and ("commondir" in names or {"objects", "refs"} <= names):
            found.git.append(path)
        folder.folders, folder.secrets, folder.hidden = tuple(folders), tuple(found.secrets), tuple(found.hidden)
        if VENV in names and not folder.guarded:
            found.protected = [path]
        folder.protected = tuple(each for each in found.protected if not folder.cold or _is_installed(each, path))
        folder.git, folder.linked = tuple(found.git), None

    def _sort(self, entry: os.DirEntry[str], found: _Found, *, guarded: bool) -> bool:
        """Record one entry; return whether it is protected or inside something protected."""
        below = entry.is_dir(follow_symlinks=False)
        (found.hidden if below else found.secrets).extend(self._secret(entry))
        if guarded:
            return True
        relative = self._relative(entry.path)
        if not is_protected(relative / "x" if below else relative) and (below or not respelled(Path(entry.path))):
            return False
        found.protected.append(entry.path)
        return True

    def _secret(self, entry: os.DirEntry[str]) -> Iterator[str]:
        """Yield the file or folder to hide for an entry whose name may be secret."""
        relative = self._relative(entry.path)
        if entry.is_dir(follow_symlinks=False):
            if is_secret(relative / "x"):
                yield entry.path
            return
        try:
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode) and is_secret(relative):
                target = os.path.realpath(entry.path)
                if stat.S_ISREG(os.lstat(target).st_mode) and not target.startswith(_NOT_FILES):
                    yield from () if target in self._allowed else (target,)
            elif stat.S_ISREG(status.st_mode) and (is_secret(relative) or status.st_ino in self._twins):
                if status.st_nlink > 1:
                    self._twins.add(status.st_ino)
                yield from () if entry.path in self._allowed else (entry.path,)
        except OSError:
            return

    def _relative(self, path: str) -> Path:
        root = next((root for root in self._roots if path.startswith(f"{root}/")), None)
        return Path(path[len(str(root)) + 1 :]) if root else Path(path)

    def _drop(self, path: str) -> None:
        """Forget a folder and everything below it."""
        folder = self._folders.pop(path, None)
        self._telling.discard(path)
        for below in folder.folders if folder else ():
            self._drop(below)

    def _findings(self, cost: float) -> ScanResult:
        found = [self._folders[path] for path in sorted(self._telling)]

        def every(lists: Iterable[tuple[str, ...]]) -> tuple[Path, ...]:
            return tuple(dict.fromkeys(Path(path) for paths in lists for path in paths))

        return ScanResult(
            every(folder.secrets for folder in found),
            every(folder.hidden for folder in found),
            (*every(folder.protected for folder in found), *filter(os.path.lexists, self._started)),
            every(folder.git for folder in found),
            complete=not self._todo,
            cost=cost,
        )


def _linked(folder: str) -> Iterator[_LinkedFile]:
    """Yield the files in ``folder`` that have several names."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    if status.st_nlink > 1:
                        yield _LinkedFile(entry.path, (status.st_dev, status.st_ino), status.st_nlink)
    except OSError:
        return


def _leaving(linked: Iterable[_LinkedFile]) -> Iterator[Path]:
    """Yield the files of which not every name was found."""
    names: dict[tuple[int, int], list[_LinkedFile]] = {}
    for each in linked:
        names.setdefault(each.inode, []).append(each)
    for found in names.values():
        if len(found) < max(each.names for each in found):
            yield from (Path(each.path) for each in found)


def _is_installed(path: str, folder: str) -> bool:
    """Return whether a protected path among dependencies matters: a virtual environment, or programs of packages.

    Other protected names in packages have no effect there.
    """
    return path == folder or path.endswith("/node_modules/.bin")


def _outermost(roots: Iterable[Path]) -> tuple[Path, ...]:
    """Return ``roots`` without those inside another one."""
    given = tuple(dict.fromkeys(roots))
    return tuple(root for root in given if not any(root != other and root.is_relative_to(other) for other in given))


def _keys_with_other_names(home: Path | None) -> Iterator[int]:
    """Yield inodes of the user's keys with several names: another name may be in the workspace."""
    if home is None:
        return
    for folder in (home, *(home / name for name in SECRET_FOLDERS)):
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_file(follow_symlinks=False) and is_secret(Path(entry.path)):
                        status = entry.stat(follow_symlinks=False)
                        if status.st_nlink > 1:
                            yield status.st_ino
        except OSError:
            continue


NOTHING = ScanResult()


@frozen
class FileReach:
    """``roots`` may be written except for protected files; ``writable`` and ``readable`` are further paths that the
    user chose; ``hidden`` is never visible. ``home`` is the user's home folder; ``started``: files of the roots that
    hooks start."""

    roots: tuple[Path, ...]
    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    network: bool = False
    home: Path | None = None
    started: frozenset[Path] = frozenset()


def shown_in(roots: Sequence[Path], path: Path) -> str:
    """Return ``path`` for display: relative to the first of ``roots`` that contains it, otherwise absolute."""
    root = next((root for root in roots if path.is_relative_to(root)), None)
    return str(path.relative_to(root) if root else path)
