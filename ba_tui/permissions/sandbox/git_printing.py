"""Which git calls may print contents of files that a repository stores.

A whitelist: a subcommand or an option that is not listed here may print, an abbreviated one too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import TouchedPath, is_secret
from ba_tui.permissions.shell.resolved_command import ResolvedCommand

KindsOf = Callable[[Sequence[str]], Mapping[str, str]]
"""Returns the kind of object (``commit``, ``blob`` …) that each revision leads to; unknown ones are missing."""

_QUIET: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("add", "stage"), ("pie", "patch interactive edit")),
    "commit": ("vp", "verbose patch interactive"),
    **dict.fromkeys(("checkout", "restore", "reset"), ("p", "patch")),
    **dict.fromkeys(("rebase", "am"), ("", "show-current-patch edit-todo")),
    "status": ("v", "verbose"),
    **dict.fromkeys(("branch", "tag", "for-each-ref"), ("", "format")),
    "fsck": ("", "lost-found"),
    **dict.fromkeys(
        (
            *(
                "switch",
                "merge",
                "cherry-pick",
                "revert",
                "pull",
                "push",
                "fetch",
                "clone",
                "init",
                "mv",
                "rm",
                "clean",
            ),
            *("remote", "config", "worktree", "gc", "prune", "repack", "pack-refs", "maintenance", "update-index"),
            *("update-ref", "symbolic-ref", "rev-parse", "rev-list", "ls-files", "ls-tree", "ls-remote", "describe"),
            *("name-rev", "merge-base", "show-ref", "show-branch", "count-objects", "check-ignore", "check-attr"),
            *("shortlog", "version", "help", "var", "cherry", "write-tree", "commit-tree", "hash-object", "mktree"),
            *("sparse-checkout", "verify-commit", "verify-tag", "--version", "--help"),
        ),
        ("", ""),
    ),
}
"""Subcommands that print no contents of files, unless one of these short or long options is given."""
_QUIET_BELOW = {
    "stash": {"", "push", "save", "pop", "apply", "drop", "clear", "branch", "create", "store"},
    "submodule": {"", "add", "init", "update", "sync", "status", "deinit", "set-branch", "set-url", "absorbgitdirs"},
    "lfs": {"fetch", "pull", "push", "track", "untrack", "ls-files", "status", "install", "env", "version"},
    "bundle": {"verify", "list-heads"},
    "notes": {"list", "add", "remove", "prune", "get-ref"},
    "reflog": {"expire", "delete", "exists"},
    "bisect": {"start", "good", "bad", "new", "old", "reset", "skip", "terms"},
}
"""The same by what follows the subcommand."""
_SUMMING = "stat numstat shortstat dirstat name-only name-status summary raw no-patch compact-summary s quiet q"
"""Options after which only what differs is named."""
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
"""Those that print no differences unless an option says so."""
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
"""Subcommands that print nothing but the paths after ``--``, with the options for which that holds."""
_LINES = regex(r"-?\d+|[-+]?\d*,?[-+]?\d*")
_MAGIC = regex(r"[*?\[\\]|^:")
_BATCH = frozenset({"-t", "-s", "-e", "--batch-check", "--batch-all-objects", "--buffer", "--unordered"})


@frozen
class _Words:
    """The words after a subcommand: ``options`` by their names, ``operands``, and ``paths`` after ``--``."""

    options: tuple[str, ...]
    operands: tuple[str, ...]
    paths: tuple[str, ...]


def call_words(command: ResolvedCommand) -> list[str | None]:
    """Return ``git``, the subcommand and all that follows it: what stands before it changes nothing that is printed."""
    words, plain = list(command.words), command.plain
    if len(plain) < 2 or plain[1] not in words[1:]:
        return list(plain or words)
    return [plain[0], *words[words.index(plain[1], 1) :]]


def may_print(command: ResolvedCommand, kinds: KindsOf) -> bool:
    """Return whether a git call may print what stands in a file with secrets that the repository stores."""
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
    """Return whether a call prints nothing of commits: neither those before the newest, nor what the index takes from
    that."""
    said = _taken_apart(words[2:])
    if words[1] == "grep":
        # One operand is the pattern; further ones may be commits.
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
        # ``%(raw)`` prints an object, which may be a file.
        return not any("raw" in word or "\0" in word for word in words[2:])
    return not _has(words[2:], short, long)


def _has(words: Sequence[str], short: str, long: str) -> bool:
    """Whether one of the options is given, abbreviated or not; a word that is known only when it runs may be one."""
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


def _taken_apart(words: Sequence[str]) -> _Words:
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
    return _Words(tuple(options), tuple(operands), tuple(words[at + 1 :]))


def _letters(letters: str) -> list[str]:
    """The options in a cluster such as ``-nU3``; a value that follows a letter must be a number or a range of lines."""
    found: list[str] = []
    for at, letter in enumerate(letters):
        if at and _LINES.fullmatch(letters[at:]):
            break
        found.append(letter)
    return found


def _shows_commits(said: _Words, kinds: KindsOf) -> bool:
    """Whether ``git show`` gets commits only: of a blob it prints everything, whatever its options say."""
    if {"all", "branches", "tags", "remotes", "glob", "walk-reflogs", "g"} & set(said.options):
        return False
    plain = [word for word in said.operands if ".." not in word and not word.startswith("^")]
    known: Mapping[str, str] = kinds(plain) if plain else {}
    return all(known.get(word) in {"commit", "tree"} for word in plain)


def _is_open_blob(word: str) -> bool:
    """Whether an operand is ``REVISION:path`` with the path of a file that is not secret."""
    revision, sign, path = word.partition(":")
    if not sign or not path or word.startswith(":/") or "{" in revision:
        return False
    path = path[2:] if not revision and path[:2] in {"0:", "1:", "2:", "3:"} else path
    return bool(path.strip("./")) and not path.endswith("/") and not is_secret(PurePath(path))


def _only_paths(name: str, said: _Words, command: ResolvedCommand, kinds: KindsOf) -> bool:
    """Whether a call prints nothing but files that it names after ``--``, all of which are there and not secret."""
    if name not in _OF_PATHS or not said.paths or not set(said.options) <= _OF_PATHS[name]:
        return False
    if name == "show" and not _shows_commits(said, kinds):
        return False
    files = (*command.named, *command.reads)[-len(said.paths) :]
    return len(files) == len(said.paths) and all(map(_is_file_of, files, said.paths))


def _is_file_of(seen: TouchedPath, word: str) -> bool:
    # Git takes a name with such letters for a pattern, also where a file has this very name.
    plain = not _MAGIC.search(word)
    return plain and seen.path.is_file() and not seen.secret and str(seen.path).endswith(word.removeprefix("./"))
