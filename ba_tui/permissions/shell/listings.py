"""What a command lists: file names below certain folders, or commits, which another command receives as words.

Only commands are known here whose names are certain to be there; other modules judge whether they may be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ba_tui.core.text.patterns import regex
from ba_tui.permissions.shell.simple_commands import KnownListing, ShellWord
from ba_tui.permissions.shell.tree import Chain, CommandList, Pipeline, SimpleCommand, Token
from ba_tui.permissions.shell.word_values import value_of, words_of

_ROOT = regex(r"[\w.~/][\w.~/+@-]*")
_EITHER = frozenset({"-o", "-or", ",", "!", "-not", "(", ")"})
_LEADING = frozenset({"-P", "-H"})
_PRINTING = frozenset(
    {"-type", "-name", "-iname", "-maxdepth", "-mindepth", "-mtime", "-mmin", "-size", "-newermt", "-path", "-ipath"}
)
"""Tests and options of find with one argument, which only shorten its list."""
_REFUSING = frozenset({"!", "-not"})
_LONE = frozenset({"-empty", "-readable", "-writable", "-executable"})
"""Tests of find without an argument."""
_OF_GIT = frozenset({"-z", "-c", "--cached", "-m", "--modified", "--full-name", "--exclude-standard", "-o", "--others"})


_BRIEF = regex(r"-[1ABcdFprRStuUvX]+")
"""Flags of ``ls`` with which it prints only names in a folder. ``-a`` also prints the parent folder, ``-l`` link
targets."""
_DOTS = regex(r"(?:.*/)?\.[^/]*[*?\[].*")
"""Patterns that may match the parent folder."""
_NAMES_ONLY = regex(r"-[lrREFGPiwvsI]*l[lrREFGPiwvsI]*|--files-with-matches|--name-only")
_SEARCHES = regex(r"-[lrREFGPiwvsI]+|--files-with-matches|--name-only|--(?:include|exclude|exclude-dir)=[\w*.?/-]+")
_COMMITS = {
    "merge-base": regex(r"--octopus|--fork-point|-a|--all"),
    "describe": regex(r"--tags|--all|--always|--long|--abbrev=\d+|--first-parent|--match=[\w*.-]+|--exact-match"),
    "rev-parse": regex(r"--short(?:=\d+)?|--verify|-q|--quiet|--abbrev-ref"),
    "rev-list": regex(r"-n|-\d+|--max-count=\d+|--all|--tags|--max-parents=0|--first-parent|--reverse|--no-merges"),
    "branch": regex(r"--show-current"),
    "tag": regex(r"-l|--list|--sort=-?[\w:]+"),
    "ls-tree": regex(r"-r|--name-only"),
}  # fmt: skip
"""Git calls that print only commits, branches, tags or names, with their options."""
_CHANGED = regex(r"--name-only|--cached|--staged|--diff-filter=[A-Za-z]+|--no-renames|-r|--no-commit-id")
_FILTERS = {
    "head": regex(r"(?:(?:-n ?|-|--lines=)\d+)?"),
    "tail": regex(r"(?:(?:-n ?[+]?|-|--lines=)\d+)?"),
    "sort": regex(r"(?:(?:-[rnuVfh]+|--reverse|--unique|--version-sort) ?)*"),
    "uniq": regex(r"(?:-[ud])?"),
    "tac": regex(r""),
    "shuf": regex(r"(?:-n ?\d+)?"),
    "grep": regex(r"(?:-[vEFPiwx]+ )*(?!-)[^ ]+"),
}
"""Programs that pass on some input lines unchanged, with the arguments for which that holds."""
_LISTING = frozenset({"find", "git", "ls", "dir", "which", "command", "grep", "rg"})
_PROGRAM_NAME = regex(r"\w[\w.+-]*")


def listing_of(node: object) -> KnownListing | None:
    """Return what a command of a pipeline, or of a substitution, lists; None if unknown."""
    while isinstance(node, CommandList | Chain) and len(node.items) == 1:
        node = node.items[0]
    if isinstance(node, Pipeline):
        first = listing_of(node.items[0])
        passed = first is not None and all(_hands_on(_words(item)) for item in node.items[1:])
        return replace(first, held=True) if first and passed else None
    if not isinstance(node, SimpleCommand) or not node.words or node.words[0].bare() not in _LISTING:
        return None
    words = _words(node)
    texts = [word.text for word in words]
    if texts[:1] == ["find"]:
        return found(words)
    return (_of_git(words) if texts[:2] == ["git", "ls-files"] else None) or _named(words)


def listing_in_word(token: Token) -> KnownListing | None:
    """Return the listing that ``token``'s only substitution yields; None if unknown."""
    if len(token.runs) != 1 or token.behind or "<(" in token.raw or ">(" in token.raw:
        return None
    open_, plain = ([part for part in token.parts if (part.kind == "text") is text] for text in (False, True))
    if len(open_) != 1 or open_[0].kind != "unknown" or open_[0].text:
        return None
    listing = listing_of(token.runs[0])
    if listing is None:
        return None
    glued = "".join(part.text for part in plain)
    if not glued:
        return replace(listing, held=listing.held or open_[0].quoted)
    # Text around it must not turn a name into another path or an option.
    return None if "/" in glued or glued[0] in "-~+=@" else replace(listing, held=True)


def reader_of_environment(node: object, after: object) -> tuple[str, ...]:
    """Return the words of the next command in a pipeline if they are certain and it alone shows ``node``'s
    environment."""
    if not isinstance(node, SimpleCommand) or not node.words or node.words[0].bare() not in ("env", "printenv"):
        return ()
    words = _words(after) if _words(node) else []
    return tuple(word.text or "" for word in words) if not any(word.text is None or word.glob for word in words) else ()


def _words(node: object) -> list[ShellWord]:
    """Return the words of a simple command that writes no file; empty for anything else."""
    if not isinstance(node, SimpleCommand) or node.assignments:
        return []
    if any(each.kind != "write" or each.target.literal() != "/dev/null" for each in node.redirects):
        return []
    return [word for token in node.words for word in words_of(token, {})]


def prints_folder(run: object) -> bool:
    """Return whether a substitution only prints the working directory."""
    while isinstance(run, CommandList | Chain) and len(run.items) == 1:
        run = run.items[0]
    if not isinstance(run, SimpleCommand) or run.redirects or run.assignments:
        return False
    return [value_of(token, {}) for token in run.words] in (["pwd"], ["pwd", "-P"], ["pwd", "-L"])


def _hands_on(words: Sequence[ShellWord]) -> bool:
    """Return whether a command of a pipeline only drops or reorders lines."""
    if not words or any(word.text is None or word.glob for word in words):
        return False
    name, *rest = (word.text or "" for word in words)
    return name in _FILTERS and bool(_FILTERS[name].fullmatch(" ".join(rest)))


def _named(words: Sequence[ShellWord]) -> KnownListing | None:
    """Return the listing of a command that prints names below its folders, or commits; None if unknown."""
    if not words or any(word.text is None for word in words):
        return None
    name, *rest = (word.text or "" for word in words)
    if any(text.startswith(("/", "~")) or ".." in text.split("/") for text in rest):
        return None
    if name in ("ls", "dir"):
        options, operands = _parted(rest)
        inside = all(map(_BRIEF.fullmatch, options)) and not any(map(_DOTS.fullmatch, operands))
        return _held(operands or ["."]) if inside else None
    if name == "which" or (name == "command" and rest[:1] == ["-v"]):
        programs = rest if name == "which" else rest[1:]
        return _held([]) if programs and all(map(_PROGRAM_NAME.fullmatch, programs)) else None
    if any(word.glob for word in words):
        return None
    if name == "git" and rest:
        return _git_names(rest[0], rest[1:])
    options, operands = _parted(rest)
    if name in ("grep", "rg") and all(map(_SEARCHES.fullmatch, options)) and any(map(_NAMES_ONLY.fullmatch, options)):
        return _held(operands[1:] or ["."])
    if name == "rg" and rest[:1] == ["--files"] and len(options) == 1:
        return _held(operands or ["."])
    return None


def _git_names(call: str, rest: Sequence[str]) -> KnownListing | None:
    options, operands = _parted(rest)
    if call in _COMMITS:
        known = all(map(_COMMITS[call].fullmatch, options))
        # An argument that is a file instead of a commit is printed as it is.
        return KnownListing(tuple(operands), held=True) if known and "--" not in rest else None
    if call in ("diff", "diff-tree", "diff-index", "diff-files"):
        known = "--name-only" in options and all(map(_CHANGED.fullmatch, options))
        return _held(operands or ["."]) if known else None
    if call == "grep":
        known = all(map(_SEARCHES.fullmatch, options)) and any(map(_NAMES_ONLY.fullmatch, options))
        return _held(operands[1:] or ["."]) if known and operands else None
    return _held(operands or ["."]) if call == "ls-files" and all(each in _OF_GIT for each in options) else None


def _parted(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split words into options, up to ``--``, and operands."""
    end = words.index("--") if "--" in words else len(words)
    options = [word for word in words[:end] if word.startswith("-")]
    return options, [word for word in words[:end] if not word.startswith("-")] + list(words[end + 1 :])


def _held(roots: Sequence[str]) -> KnownListing:
    """Return a listing of names anywhere in the folder where they are listed, since they are resolved from there. The
    other ``roots`` must not lead out of it."""
    plain = (root.partition("*")[0].partition("?")[0].partition("[")[0] for root in roots)
    return KnownListing(tuple(dict.fromkeys([".", *filter(None, plain)])) if roots else (), held=True)


def found(words: Sequence[ShellWord]) -> KnownListing | None:
    """Return the files that ``find`` with these words finds; None if it may find others."""
    rest = list(words[1:])
    while rest and rest[0].text in _LEADING:
        rest.pop(0)
    roots: list[str] = []
    while rest and (rest[0].text is None or not (rest[0].text.startswith("-") or rest[0].text in _EITHER)):
        word = rest.pop(0)
        if word.text is None or word.glob or not _ROOT.fullmatch(word.text):
            return None
        roots.append(word.text)
    names: list[str] = []
    regular = ended = parted = False
    while rest:
        text = rest.pop(0).text
        if refused := text in _REFUSING and bool(rest):
            text = rest.pop(0).text
        if text in _LONE:
            continue
        if text in {"-print", "-print0"} and not refused:
            ended, parted = ended or text == "-print0", parted or text == "-print"
        elif text in _PRINTING and rest and (value := rest.pop(0)).text and not value.glob:
            # Ignore characters that programs read differently.
            if refused:
                # A negated test may match anything else.
                continue
            names += [value.text] if text in {"-name", "-iname"} and not set(value.text) & set("[]\\") else []
            regular = regular or (text == "-type" and value.text == "f")
        else:
            return None
    if ended and parted:
        return None
    # All names must match, so the first one suffices.
    return KnownListing(tuple(roots) or (".",), tuple(names[:1]), regular=regular, ended=ended)


def _of_git(words: Sequence[ShellWord]) -> KnownListing | None:
    """Return the listing of ``git ls-files``, relative to the working directory. It may include links and names with a
    leading dash."""
    names: list[str] = []
    for word in words[2:]:
        if word.text is None or word.glob:
            return None
        if word.text.startswith("*.") and word.text[2:].isalnum():
            names.append(word.text)
        elif word.text not in _OF_GIT:
            return None
    return KnownListing((".",), tuple(names), ended=any(word.text == "-z" for word in words), bare=True)
