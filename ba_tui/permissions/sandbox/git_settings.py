"""Keeps git from running programs that a repository's settings name, and finds secrets that a repository would print.

It uses environment variables, so it applies to every git that a command starts, with or without a sandbox.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path, PurePath

from ba_tui.core.effects import Profile
from ba_tui.core.errors import started
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import SECRET_FOLDERS, SECRET_NAMES, SECRET_TAILS, TouchedPath, is_secret
from ba_tui.permissions.shell.simple_commands import ResolvedCommand
from ba_tui.processes.programs import BriefRun, run_briefly

KindsOf = Callable[[Sequence[str]], Mapping[str, str]]
"""Returns the object type (``commit``, ``blob`` …) of each revision; unknown revisions are missing."""

_SILENT = (
    "switch merge cherry-pick revert pull push fetch clone init mv rm clean remote config worktree gc "
    "prune repack pack-refs maintenance update-index update-ref symbolic-ref rev-parse rev-list ls-files "
    "ls-tree ls-remote describe name-rev merge-base show-ref show-branch count-objects check-ignore "
    "check-attr shortlog version help var cherry write-tree commit-tree hash-object mktree "
    "sparse-checkout verify-commit verify-tag --version --help"
)
"""Subcommands that print no file contents whatever their options."""
_QUIET: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("add", "stage"), ("pie", "patch interactive edit")),
    "commit": ("vp", "verbose patch interactive"),
    **dict.fromkeys(("checkout", "restore", "reset"), ("p", "patch")),
    **dict.fromkeys(("rebase", "am"), ("", "show-current-patch edit-todo")),
    "status": ("v", "verbose"),
    **dict.fromkeys(("branch", "tag", "for-each-ref"), ("", "format")),
    "fsck": ("", "lost-found"),
    **dict.fromkeys(_SILENT.split(), ("", "")),
}
"""Subcommands that print no file contents unless one of these short or long options is given."""
_QUIET_BELOW = {
    "stash": {"", "push", "save", "pop", "apply", "drop", "clear", "branch", "create", "store"},
    "submodule": {"", "add", "init", "update", "sync", "status", "deinit", "set-branch", "set-url", "absorbgitdirs"},
    "lfs": {"fetch", "pull", "push", "track", "untrack", "ls-files", "status", "install", "env", "version"},
    "bundle": {"verify", "list-heads"},
    "notes": {"list", "add", "remove", "prune", "get-ref"},
    "reflog": {"expire", "delete", "exists"},
    "bisect": {"start", "good", "bad", "new", "old", "reset", "skip", "terms"},
}
"""The same by the word after the subcommand."""
_SUMMING = "stat numstat shortstat dirstat name-only name-status summary raw no-patch compact-summary s quiet q"
"""Options with which only the names or sizes of differences are printed."""
_PLAIN = (
    f"{_SUMMING} oneline graph decorate no-decorate abbrev abbrev-commit no-abbrev-commit no-abbrev format pretty date"
    " relative-date since after until before author committer grep regexp-ignore-case i all-match invert-grep E F P"
    " extended-regexp fixed-strings perl-regexp all branches tags remotes glob exclude merges no-merges min-parents"
    " max-parents first-parent reverse topo-order date-order author-date-order skip max-count n simplify-merges"
    " simplify-by-decoration full-history dense sparse ancestry-path boundary left-right left-only right-only"
    " cherry-pick cherry-mark cherry walk-reflogs g parents children count M C find-renames find-copies no-renames"
    " diff-filter R z source notes no-notes color no-color no-ext-diff no-textconv ignore-submodules relative"
    " no-relative mailmap no-mailmap use-mailmap exit-code cached staged merge-base ignore-all-space w"
    " ignore-space-change b ignore-blank-lines minimal patience histogram diff-algorithm no-pager stat-width"
    " stat-count full-index r t root no-commit-id pretty-format"
)
_PATCHES = (
    "p u c m cc patch patch-with-stat patch-with-raw unified U word-diff word-diff-regex color-words color-moved"
    " function-context W binary a text inter-hunk-context check ws-error-highlight no-prefix src-prefix dst-prefix"
    " remerge-diff diff-merges dd"
)
_READERS = {"log", "reflog", "show", "whatchanged", "diff", "diff-tree", "diff-index", "diff-files"}
_SILENT_READERS = {"log", "reflog"}
"""Subcommands that print no differences unless an option requests them."""
_BLAMES = "L w M C l s e f n t b c p porcelain line-porcelain incremental date since root"
_GREPS = (
    "n i l L c w E F G P v h H o q z line-number ignore-case files-with-matches name-only files-without-match count"
    " word-regexp extended-regexp fixed-strings basic-regexp perl-regexp invert-match only-matching heading break"
    " color no-color column A B C after-context before-context context show-function p W function-context m"
    " max-count e and or not quiet text a cached full-name threads max-depth"
)
_OF_PATHS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(_READERS - {"reflog"}, frozenset(f"{_PLAIN} {_PATCHES}".split())),
    "format-patch": frozenset(f"{_PLAIN} {_PATCHES} stdout o output-directory".split()),
    **dict.fromkeys(("blame", "annotate"), frozenset(_BLAMES.split())),
    "grep": frozenset(_GREPS.split()),
    "archive": frozenset({"format", "prefix", "worktree-attributes"}),
}
"""Subcommands that print only the paths after ``--``, and the options for which that holds."""
_LINES = regex(r"-?\d+|[-+]?\d*,?[-+]?\d*")
_MAGIC = regex(r"[*?\[\\]|^:")
_BATCH = frozenset({"-t", "-s", "-e", "--batch-check", "--batch-all-objects", "--buffer", "--unordered"})


@frozen
class _GitWords:
    """The words after a subcommand: ``options`` by name, ``operands``, and ``paths`` after ``--``."""

    options: tuple[str, ...]
    operands: tuple[str, ...]
    paths: tuple[str, ...]


def call_words(command: ResolvedCommand) -> list[str | None]:
    """Return ``git``, the subcommand and the words after it. Words in between don't affect the output."""
    words, plain = list(command.words), command.plain
    if len(plain) < 2 or plain[1] not in words[1:]:
        return list(plain or words)
    return [plain[0], *words[words.index(plain[1], 1) :]]


def may_print(command: ResolvedCommand, kinds: KindsOf) -> bool:
    """Return whether a git call may print the content of a file with secrets that the repository stores.

    A whitelist: unlisted subcommands and options, also abbreviated ones, may print.
    """
    given = call_words(command)
    words = [word or "" for word in given]
    if len(words) < 2 or _is_quiet([word or "\0" for word in given]):
        return False
    if None in given:
        return True
    name, said = words[1], _taken_apart(words[2:])
    if name == "cat-file":
        given = {word.partition("=")[0] for word in words[2:] if word.startswith("-")}
        return not given or not given <= _BATCH
    if name == "archive" and set(said.options) <= {"l", "list"} and said.options:
        return False
    if name == "stash" and words[2:3] == ["list"]:
        name, said = "log", _taken_apart(words[3:])
    elif name == "stash" and words[2:3] == ["show"]:
        name, said = "diff", _taken_apart(words[3:])
    if name in _READERS and set(said.options) <= set(_PLAIN.split()):
        summed = name in _SILENT_READERS or not set(said.options).isdisjoint(_SUMMING.split())
        if summed and (name != "show" or _shows_commits(said, kinds)):
            return False
    if name == "show" and not said.paths and said.operands and set(said.options) <= set(_PLAIN.split()):
        return not all(map(_is_open_blob, said.operands))
    return not _only_paths(name, said, command, kinds)


def is_current(words: Sequence[str]) -> bool:
    """Return whether a call prints nothing of commits, neither of older ones nor through the index."""
    said = _taken_apart(words[2:])
    if words[1] == "grep":
        # One operand is the pattern; others may be commits.
        return len(said.operands) <= 1 and set(said.options) <= _OF_PATHS["grep"] - {"e", "cached"}
    known = _OF_PATHS["diff"] - {"cached", "staged", "merge-base"}
    return words[1] in {"diff", "diff-files"} and not said.operands and not said.paths and set(said.options) <= known


def _is_quiet(words: Sequence[str]) -> bool:
    name, below = words[1], next((word for word in words[2:] if not word.startswith("-")), "")
    if name in _QUIET_BELOW and below in _QUIET_BELOW[name]:
        return name != "stash" or not _has(words[2:], "p", "patch")
    if name not in _QUIET:
        return False
    short, long = _QUIET[name]
    if name in {"branch", "tag", "for-each-ref"}:
        # ``%(raw)`` prints an object, possibly a file.
        return not any("raw" in word or "\0" in word for word in words[2:])
    return not _has(words[2:], short, long)


def _has(words: Sequence[str], short: str, long: str) -> bool:
    """Return whether one of the options is given, possibly abbreviated. A word that is unknown before it runs may be
    one."""
    for word in words:
        if word == "--":
            return False
        if word == "\0" and (short or long):
            return True
        if word.startswith("--"):
            name = word[2:].partition("=")[0]
            if any(option.startswith(name) for option in long.split()):
                return True
        elif word.startswith("-") and not set(short).isdisjoint(word[1:].partition("=")[0]):
            return True
    return False


def _taken_apart(words: Sequence[str]) -> _GitWords:
    options: list[str] = []
    operands: list[str] = []
    at = words.index("--") if "--" in words else len(words)
    for word in words[:at]:
        if word.startswith("--"):
            options.append(word[2:].partition("=")[0] or "--")
        elif word.startswith("-") and len(word) > 1:
            letters = word[1:]
            options += [] if letters.isdigit() else [letters] if letters in {"cc", "dd"} else _letters(letters)
        else:
            operands.append(word)
    return _GitWords(tuple(options), tuple(operands), tuple(words[at + 1 :]))


def _letters(letters: str) -> list[str]:
    """Return the options in a cluster such as ``-nU3``. A value after a letter must be a number or a range of lines."""
    found: list[str] = []
    for at, letter in enumerate(letters):
        if at and _LINES.fullmatch(letters[at:]):
            break
        found.append(letter)
    return found


def _shows_commits(said: _GitWords, kinds: KindsOf) -> bool:
    """Return whether ``git show`` gets commits only: it prints the whole content of a blob despite its options."""
    if {"all", "branches", "tags", "remotes", "glob", "walk-reflogs", "g"} & set(said.options):
        return False
    plain = [word for word in said.operands if ".." not in word and not word.startswith("^")]
    known: Mapping[str, str] = kinds(plain) if plain else {}
    return all(known.get(word) in {"commit", "tree"} for word in plain)


def _is_open_blob(word: str) -> bool:
    """Return whether an operand is ``REVISION:path`` with the path of a file that is not secret."""
    revision, sign, path = word.partition(":")
    if not sign or not path or word.startswith(":/") or "{" in revision:
        return False
    path = path[2:] if not revision and path[:2] in {"0:", "1:", "2:", "3:"} else path
    return bool(path.strip("./")) and not path.endswith("/") and not is_secret(PurePath(path))


def _only_paths(name: str, said: _GitWords, command: ResolvedCommand, kinds: KindsOf) -> bool:
    """Return whether a call prints only files that it names after ``--``, which all exist and are not secret."""
    if name not in _OF_PATHS or not said.paths or not set(said.options) <= _OF_PATHS[name]:
        return False
    if name == "show" and not _shows_commits(said, kinds):
        return False
    files = (*command.named, *command.reads)[-len(said.paths) :]
    return len(files) == len(said.paths) and all(map(_is_file_of, files, said.paths))


def _is_file_of(seen: TouchedPath, word: str) -> bool:
    # Git treats a name with these characters as a pattern, even if a file has that name.
    plain = not _MAGIC.search(word)
    return plain and seen.path.is_file() and not seen.secret and str(seen.path).endswith(word.removeprefix("./"))


PATIENCE = 3.0
"""Seconds that a verdict waits for an answer; the search continues meanwhile."""
LONGEST = 300.0
PATTERNS = (
    *(f":(top,icase,glob)**/{name}" for name in (*SECRET_NAMES, *SECRET_TAILS) if not name.startswith("/")),
    *(f":(top,icase,glob)**/{name}/**" for name in SECRET_FOLDERS),
)
"""The pathspecs to search for: the names that ``is_secret`` matches, and some more."""
ALWAYS = (("core.fsmonitor", "false"), ("safe.bareRepository", "explicit"))
SAFE = tuple(word for key, value in (*ALWAYS, ("log.showSignature", "false")) for word in ("-c", f"{key}={value}"))
OFFLINE = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
"""Don't refresh the index, and don't fetch missing objects."""


class GitHistory:
    """Files with secrets in the history of one repository, including deleted ones. Thread-safe.

    The history is read once, in the background; later searches read only what was added.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._seen: frozenset[str] = frozenset()
        """Commits that were searched together with all their ancestors."""
        self._names: dict[str, None] = {}
        self._search: threading.Thread | None = None

    def secrets(self, patience: float = PATIENCE) -> tuple[str, ...] | None:
        """Return their paths from the top of the repository; None if the search failed or is unfinished. Blocks."""
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
        """Search the commits that lead to ``tips`` and were not searched yet."""
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
    """Return the files with secrets in the whole history of the repository at ``top``; None if unknown so far."""
    return _known.setdefault(top, GitHistory(top)).secrets()


def ask_git(
    folder: Path,
    *words: str,
    told: bytes = b"",
    environment: Mapping[str, str] = os.environ,
    patience: float = PATIENCE,
) -> bytes | None:
    """Return git's output within ``patience`` seconds; None if it fails.

    Use it for names, commits and settings only: these calls run no program of the repository.
    """
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
"""Without a sandbox: submodules have their own settings, which were not checked."""
OWN_DIFF = 'f() { diff -u --label "a/$1" --label "b/$1" "$2" "$5"; true; }; f "$@"'
"""Replaces an external diff program: git has no setting here to show differences itself."""
INSTEAD = {
    "diff.external": OWN_DIFF,
    "diff.*.command": OWN_DIFF,
    "diff.*.textconv": "cat",
}
"""Replacements for programs in any settings."""
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
"""Replacements for programs in the settings of the repository itself."""
STORING = frozenset({"add", "stage", "commit", "stash"})
"""Subcommands that may store files that git does not track yet."""
_ELSEWHERE = ("--git-dir", "--work-tree", "--namespace", "--super-prefix")
_NESTED = ("--submodule", "--recurse-submodules")


def git_environment(
    folder: Path, text: str, profile: Profile, inherited: Mapping[str, str], *, held: bool
) -> dict[str, str]:
    """Return variables for a program in ``folder`` that runs ``text``, on top of the inherited ones. Blocks: asks git
    for the settings of the folder.

    Empty for a command that runs no git or may run it unchanged. ``held``: a sandbox hides secrets and everything
    outside the workspace.
    """
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
    """Return the names of the hooks that git would have run for ``text`` in ``folder``; empty for none. Blocks."""
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
    """Return why a git call among ``commands`` may print a stored file with secrets, even if the file is hidden; empty
    if none may. Blocks."""
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
        # Git ignores a bare repository that it merely discovers.
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
    """Return the folder in which git runs, considering ``-C`` options."""
    words = [word or "" for word in command.words]
    for at, word in enumerate(words[:-1]):
        if word == "-C" and at and (words[at - 1] == "git" or at > 2):
            folder = folder / words[at + 1]
        if word in command.plain[1:2]:
            break
    return Path(os.path.realpath(folder))


def _kinds(folder: Path, revisions: Sequence[str]) -> dict[str, str]:
    """Return the object type of each revision, tags resolved; see ``KindsOf``."""
    if any("\n" in revision for revision in revisions):
        return {}
    asked = "".join(f"{revision}^{{}}\n" for revision in revisions).encode("utf-8", "surrogateescape")
    said = ask_git(folder, "cat-file", "--batch-check=%(objecttype)", told=asked)
    lines = (said or b"").decode("utf-8", "replace").splitlines()
    return dict(zip(revisions, lines, strict=True)) if len(lines) == len(revisions) else {}


def stored_secrets(commands: Sequence[ResolvedCommand], folder: Path) -> tuple[Path, ...]:
    """Return the files with secrets that a git call among ``commands`` stores or will store. Blocks."""
    calls = [words for command in commands if (words := _words(command))[:1] == ["git"] and not command.harmless]
    return tracked_secrets(folder, new=any(set(words) & STORING for words in calls)) if calls else ()


def tracked_secrets(folder: Path, *, new: bool = False) -> tuple[Path, ...]:
    """Return existing files with secrets that git tracks; ``new``: also those that it would add. Blocks."""
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
    """One git setting; ``local``: set by the repository itself."""

    key: str
    value: str
    local: bool


def _settings(folder: Path, inherited: Mapping[str, str]) -> list[GitSetting]:
    """Return all settings that apply in ``folder``."""
    told = ask_git(folder, "config", "-z", "--list", "--show-scope", environment=inherited)
    fields = (told or b"").split(b"\0")
    found: list[GitSetting] = []
    for scope, entry in zip(fields[::2], fields[1::2], strict=False):
        key, _, value = os.fsdecode(entry).partition("\n")
        found.append(GitSetting(key, value, scope in {b"local", b"worktree"}))
    return found


def _programs(settings: Sequence[GitSetting]) -> Iterator[tuple[str, str]]:
    """Yield settings that keep git from running the programs that ``settings`` name."""
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
    """Return whether the repository declares another worktree, whose files git would then read."""
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
    """Return a stamp that changes with the index; empty while there is none."""
    try:
        status = index.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_mtime_ns, status.st_size


@lru_cache(maxsize=16)
def _tracked(index: Path, folder: Path, stamp: tuple[int, ...]) -> tuple[str, ...]:
    """Return the tracked files with secrets. ``stamp`` identifies the state of the index."""
    del index
    return _listed(folder, new=False) if stamp else ()


def _listed(folder: Path, *, new: bool) -> tuple[str, ...]:
    """Return tracked files with secrets, from the top; ``new``: also those that git would add."""
    further = ("-c", "-o", "--exclude-standard") if new else ()
    said = ask_git(folder, "ls-files", "-z", "--full-name", *further, "--", *PATTERNS)
    return tuple(name for raw in (said or b"").split(b"\0") if raw and is_secret(Path(name := os.fsdecode(raw))))
