"""Keeps git from running what a repository's own settings name, and tells which secrets a repository would print.

Works through the environment, so it holds for each git that a command starts, with a sandbox and without.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path

from ba_tui.core.errors import started
from ba_tui.core.profiles import Profile
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import SECRET_FOLDERS, SECRET_NAMES, SECRET_TAILS, is_secret
from ba_tui.permissions.sandbox.git_printing import call_words, is_current, may_print
from ba_tui.permissions.shell.resolved_command import ResolvedCommand
from ba_tui.processes.brief import BriefRun, run_briefly

# Files with secrets in a repository's history, also removed ones. The history is read once, in the background; later
# looks read what was added.

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


MENTIONS = regex(r"\bgit\b")
HOOKED = regex(r"\b(?:commit|merge|push|pull|rebase|checkout|switch|am|cherry-pick|revert)\b")
NO_HOOKS = (("core.hooksPath", "/dev/null"),)
READING = (
    *NO_HOOKS,
    ("core.pager", "cat"),
    ("log.showSignature", "false"),
    ("blame.ignoreRevsFile", ""),
    ("help.format", "man"),
    ("man.viewer", "man"),
)
UNHELD = (("diff.ignoreSubmodules", "dirty"), ("status.submoduleSummary", "false"))
"""Without a sandbox: submodules have settings of their own, which nobody has looked at."""
OWN_DIFF = 'f() { diff -u --label "a/$1" --label "b/$1" "$2" "$5"; true; }; f "$@"'
"""Stands in for a program that shows differences: git can't be told here to show them itself."""
INSTEAD = {
    "diff.external": OWN_DIFF,
    "diff.*.command": OWN_DIFF,
    "diff.*.textconv": "cat",
}
"""What programs are replaced with wherever they are set."""
LOCAL_INSTEAD = {
    "filter.*.clean": "",
    "filter.*.smudge": "",
    "filter.*.process": "",
    "filter.*.required": "false",
    "merge.*.driver": "false",
    "tar.*.command": "cat",
    "gpg.program": "gpg",
    "gpg.*.program": "false",
    "gpg.ssh.defaultkeycommand": "",
    "man.*.cmd": "true",
    "man.*.path": "true",
    "browser.*.cmd": "true",
    "browser.*.path": "true",
    "web.browser": "true",
    "help.browser": "true",
    "pager.*": "false",
}
"""What they are replaced with where the repository itself sets them."""
STORING = frozenset({"add", "stage", "commit", "stash"})
"""Subcommands that may store files which git does not track yet."""
_ELSEWHERE = ("--git-dir", "--work-tree", "--namespace", "--super-prefix")
_NESTED = ("--submodule", "--recurse-submodules")


def git_environment(
    folder: Path, text: str, profile: Profile, inherited: Mapping[str, str], *, held: bool
) -> dict[str, str]:
    """Variables for a program in ``folder`` that runs ``text``, over those that it inherits. Blocks: asks git for the
    settings that hold in the folder. Empty for what runs no git, or may run it as it is. ``held``: a sandbox hides
    what lies outside of the workspace, and secrets in it."""
    reading = profile.name == "reading"
    if not (reading or profile.git) or not MENTIONS.search(text):
        return {}
    settings = [*ALWAYS, *(READING if reading else NO_HOOKS)]
    variables = dict(OFFLINE) if reading else {}
    if reading:
        told = _settings(folder, inherited)
        settings += _programs(told)
        if not held:
            settings += UNHELD
            variables |= {"GIT_WORK_TREE": str(top)} if _is_moved(told) and (top := _top(folder)) else {}
    first = int(count) if (count := inherited.get("GIT_CONFIG_COUNT", "")).isdigit() else 0
    for number, (key, value) in enumerate(settings, first):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return {**variables, "GIT_CONFIG_COUNT": str(first + len(settings))}


def skipped_hooks(folder: Path, text: str) -> str:
    """The names of the hooks that git would have run for ``text`` in ``folder``; empty for none. Blocks."""
    if not HOOKED.search(text):
        return ""
    said = ask_git(folder, "rev-parse", "--git-path", "hooks")
    place = folder / os.fsdecode(said.rstrip(b"\n")) if said else None
    try:
        found = list(place.iterdir()) if place else []
    except OSError:
        return ""
    return ", ".join(sorted(path.name for path in found if path.suffix != ".sample" and os.access(path, os.X_OK)))


def exposed(commands: Sequence[ResolvedCommand], folder: Path) -> str:
    """Why a git call among ``commands`` may print a file with secrets that git keeps, whatever hides the file itself;
    empty when none does. Blocks."""
    for command in commands:
        words = [word or "" for word in call_words(command)]
        if words[:1] == ["git"] and (place := _place(command, folder)) and (why := _exposed(command, words, place)):
            return why
    return ""


def _exposed(command: ResolvedCommand, words: Sequence[str], folder: Path) -> str:
    if not may_print(command, lambda revisions: _kinds(folder, revisions)):
        return ""
    if any((word or "").startswith(_ELSEWHERE) for word in command.words) or "GIT_" in command.stops:
        return "git reads another repository, whose history ba has not searched for secrets"
    top = _top(folder)
    if top is None:
        # Git takes no bare repository that it only comes upon.
        return ""
    if any(word.startswith(_NESTED) for word in words) and (top / ".gitmodules").exists():
        return "git may print files of a submodule, whose history ba has not searched for secrets"
    index = _index_of(folder)
    found: Sequence[str] | None = _tracked(index, folder, _stamp(index)) if index else ()
    if not found and not (len(words) > 1 and is_current(words)):
        found = past_secrets(top)
    if found is None:
        return "this may print secrets from git's history, which ba has not searched completely yet"
    return f"git's history has {found[0]}, which holds secrets, and this may print it" if found else ""


def _place(command: ResolvedCommand, folder: Path) -> Path:
    """The folder in which git runs, with its options ``-C``."""
    words = [word or "" for word in command.words]
    for at, word in enumerate(words[:-1]):
        if word == "-C" and at and (words[at - 1] == "git" or at > 2):
            folder = folder / words[at + 1]
        if word in command.plain[1:2]:
            break
    return Path(os.path.realpath(folder))


def _kinds(folder: Path, revisions: Sequence[str]) -> dict[str, str]:
    """The kind of object that each revision leads to, behind tags; see ``git_printing.KindsOf``."""
    if any("\n" in revision for revision in revisions):
        return {}
    asked = "".join(f"{revision}^{{}}\n" for revision in revisions).encode("utf-8", "surrogateescape")
    said = ask_git(folder, "cat-file", "--batch-check=%(objecttype)", told=asked)
    lines = (said or b"").decode("utf-8", "replace").splitlines()
    return dict(zip(revisions, lines, strict=True)) if len(lines) == len(revisions) else {}


def stored_secrets(commands: Sequence[ResolvedCommand], folder: Path) -> tuple[Path, ...]:
    """The files with secrets that a git call among ``commands`` stores, or is about to store. Blocks."""
    calls = [words for command in commands if (words := _words(command))[:1] == ["git"] and not command.harmless]
    return tracked_secrets(folder, new=any(set(words) & STORING for words in calls)) if calls else ()


def tracked_secrets(folder: Path, *, new: bool = False) -> tuple[Path, ...]:
    """The files with secrets that git tracks, ``new``: or would track, which are there now. Blocks."""
    index = _index_of(folder)
    if index is None:
        return ()
    top = _top(folder) or folder
    found = _listed(folder, new=True) if new else _tracked(index, folder, _stamp(index))
    return tuple(path for name in found if (path := top / name).is_file() and not path.is_symlink())


def _words(command: ResolvedCommand) -> list[str]:
    return [word or "" for word in (command.plain or command.words)]


@frozen
class GitSetting:
    """One setting that git was told; ``local``: by the repository itself."""

    key: str
    value: str
    local: bool


def _settings(folder: Path, inherited: Mapping[str, str]) -> list[GitSetting]:
    """All settings that hold in ``folder``."""
    told = ask_git(folder, "config", "-z", "--list", "--show-scope", environment=inherited)
    fields = (told or b"").split(b"\0")
    found: list[GitSetting] = []
    for scope, entry in zip(fields[::2], fields[1::2], strict=False):
        key, _, value = os.fsdecode(entry).partition("\n")
        found.append(GitSetting(key, value, scope in {b"local", b"worktree"}))
    return found


def _programs(settings: Sequence[GitSetting]) -> Iterator[tuple[str, str]]:
    """Settings that keep git from running the programs that ``settings`` name."""
    for each in settings:
        section, _, rest = each.key.partition(".")
        below, _, name = rest.rpartition(".")
        general = f"{section}.*.{name}" if below else each.key
        known = INSTEAD.get(each.key, INSTEAD.get(general))
        if known is None and each.local and not each.value.startswith("git-lfs "):
            known = LOCAL_INSTEAD.get(each.key, LOCAL_INSTEAD.get(general, LOCAL_INSTEAD.get(f"{section}.*")))
        if known is not None:
            yield each.key, known


def _is_moved(settings: Sequence[GitSetting]) -> bool:
    """Whether the repository says that its files lie elsewhere, where git would look at others' files then."""
    return any(each.local and each.key == "core.worktree" for each in settings)


def _top(folder: Path) -> Path | None:
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), None)


def _index_of(folder: Path) -> Path | None:
    top = _top(folder)
    if top is None or (top / ".git").is_dir():
        return top / ".git" / "index" if top else None
    said = ask_git(folder, "rev-parse", "--git-path", "index")
    return folder / os.fsdecode(said.rstrip(b"\n")) if said else None


def _stamp(index: Path) -> tuple[int, ...]:
    """Tells whether the index is still the same; empty while there is none."""
    try:
        status = index.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_mtime_ns, status.st_size


@lru_cache(maxsize=16)
def _tracked(index: Path, folder: Path, stamp: tuple[int, ...]) -> tuple[str, ...]:
    """The tracked files with secrets. ``stamp`` tells whether the index is still the same."""
    del index
    return _listed(folder, new=False) if stamp else ()


def _listed(folder: Path, *, new: bool) -> tuple[str, ...]:
    """The files with secrets that git tracks, from the top; ``new``: also those that it would."""
    further = ("-c", "-o", "--exclude-standard") if new else ()
    said = ask_git(folder, "ls-files", "-z", "--full-name", *further, "--", *PATTERNS)
    return tuple(name for raw in (said or b"").split(b"\0") if raw and is_secret(Path(name := os.fsdecode(raw))))
