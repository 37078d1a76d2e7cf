"""What a command lists: names of files below certain folders, which another command is given as its words.

Only commands whose every name is certain to lie there are known here; whether they may be read is judged elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.core.text.patterns import regex
from ba_tui.permissions.shell.tree import Chain, CommandList, SimpleCommand
from ba_tui.permissions.shell.walk.values import KnownListing, ShellWord
from ba_tui.permissions.shell.walk.word_values import words_of

_ROOT = regex(r"[\w.~/][\w.~/+@-]*")
_EITHER = frozenset({"-o", "-or", ",", "!", "-not", "(", ")"})
_LEADING = frozenset({"-P", "-H"})
_PRINTING = frozenset(
    {"-type", "-name", "-iname", "-maxdepth", "-mindepth", "-mtime", "-mmin", "-size", "-newermt", "-path", "-ipath"}
)
"""Tests and options of find with one word behind, which only make its list shorter."""
_OF_GIT = frozenset({"-z", "-c", "--cached", "-m", "--modified", "--full-name", "--exclude-standard", "-o", "--others"})


def listed(node: object) -> KnownListing | None:
    """What a command of a pipeline, or a substitution of one command, hands on."""
    while isinstance(node, CommandList | Chain) and len(node.items) == 1:
        node = node.items[0]
    if not isinstance(node, SimpleCommand) or node.redirects or node.assignments:
        return None
    words = [word for token in node.words for word in words_of(token, {})]
    texts = [word.text for word in words]
    if texts[:1] == ["find"]:
        return found(words)
    return _of_git(words) if texts[:2] == ["git", "ls-files"] else None


def found(words: Sequence[ShellWord]) -> KnownListing | None:
    """The files that ``find`` with these words finds; None when it may be others."""
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
        if text in {"-print", "-print0"}:
            ended, parted = ended or text == "-print0", parted or text == "-print"
        elif text in _PRINTING and rest and (value := rest.pop(0)).text and not value.glob:
            # Signs that not every reader takes alike say nothing.
            names += [value.text] if text in {"-name", "-iname"} and not set(value.text) & set("[]\\") else []
            regular = regular or (text == "-type" and value.text == "f")
        else:
            return None
    if ended and parted:
        return None
    # Each of several names has to fit, so that one of them says enough.
    return KnownListing(tuple(roots) or (".",), tuple(names[:1]), regular=regular, ended=ended)


def _of_git(words: Sequence[ShellWord]) -> KnownListing | None:
    """Names from where it runs on. Links are among them, and names may begin with a dash."""
    names: list[str] = []
    for word in words[2:]:
        if word.text is None or word.glob:
            return None
        if word.text.startswith("*.") and word.text[2:].isalnum():
            names.append(word.text)
        elif word.text not in _OF_GIT:
            return None
    return KnownListing((".",), tuple(names), ended=any(word.text == "-z" for word in words), bare=True)
