"""Walks a folder without .git and ignored files, never through a symbolic link, and matches paths against globs."""

from __future__ import annotations

import fnmatch
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.tools.failures import ToolFailure

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


MAX_RULES = 1_000_000
"""Characters read of an ignore file, which may be a link to an endless device."""
MAX_RULE = 4_096
"""Characters of the longest rule: those of the longest path."""
_CLASS = regex(r"\[:(\w+):\]")
_CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "xdigit": "0-9a-fA-F",
    "space": " \t\n\r\v\f",
    "blank": " \t",
}
_ODD_SET = regex(r"\[[!^]?\[|\[[^\]]*(?:--|&&|~~|\|\|)")


@frozen
class WalkedFile:
    """An entry of the walk. ``path`` is absolute; ``depth`` is 1 directly in the folder; ``link``: the target of a
    symbolic link."""

    path: str
    name: str
    depth: int
    folder: bool
    link: str | None = None
    more: bool = False
    """Whether this is a folder with entries that was not entered."""


@frozen
class IgnoreRules:
    """The ignore files that apply within a folder, outermost first, each with its own folder."""

    files: tuple[tuple[str, GitIgnoreSpec], ...] = ()

    def within(self, folder: str) -> IgnoreRules:
        """Return these rules with those of ``folder`` added."""
        return self._with(folder, os.path.join(folder, ".gitignore"))  # noqa: PTH118 - a walk's inner loop

    def ignore(self, path: str, *, folder: bool) -> bool:
        for base, spec in reversed(self.files):
            inside = path[len(base) :].lstrip("/")
            verdict = spec.check_file(f"{inside}/" if folder else inside).include
            if verdict is not None:
                return verdict
        return False

    @classmethod
    def ignored(cls, path: Path, root: Path) -> bool:
        """Return whether ``path``, or a folder between ``root`` and ``path``, is ignored."""
        rules = cls.above(root)
        for place in reversed((path, *path.parents)):
            if place != root and place.is_relative_to(root):
                rules = rules.within(str(place.parent))
                if rules.ignore(str(place), folder=place != path):
                    return True
        return False

    def _with(self, folder: str, file: str) -> IgnoreRules:
        try:
            with open(file, encoding="utf-8-sig", errors="replace", opener=_opened) as text:
                spec = _spec([line for line in text.read(MAX_RULES).split("\n") if len(line) <= MAX_RULE])
        except OSError:
            return self
        return IgnoreRules((*self.files, (folder, spec)))

    @classmethod
    def above(cls, folder: Path) -> IgnoreRules:
        """Return the rules that apply to ``folder`` from the repository's folders above it."""
        rules = cls()
        home = next((place for place in (folder, *folder.parents) if os.path.exists(place / ".git")), None)  # noqa: PTH110 - must not raise
        if home is None:
            return rules
        rules = rules._with(str(home), str(home / ".git" / "info" / "exclude"))
        for place in reversed([place for place in folder.parents if place.is_relative_to(home)]):
            rules = rules.within(str(place))
        return rules


def _opened(path: str, flags: int) -> int:
    """Open without waiting for a pipe's writer."""
    return os.open(path, flags | os.O_NONBLOCK)


def _spec(lines: Sequence[str]) -> GitIgnoreSpec:
    """Parse lines of an ignore file; invalid lines are skipped, as by git."""
    from pathspec import GitIgnoreSpec  # noqa: PLC0415 - loads with the first search

    known = [_CLASS.sub(lambda found: _CLASSES.get(found[1], found[0]), line) for line in lines]
    if any(map(_ODD_SET.search, known)):
        # Python warns of a bracket within brackets, which is valid in git.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            return _read(known, GitIgnoreSpec.from_lines)
    return _read(known, GitIgnoreSpec.from_lines)


def _read(lines: Sequence[str], read: Callable[[Sequence[str]], GitIgnoreSpec]) -> GitIgnoreSpec:
    try:
        return read(lines)
    except (ValueError, re.error):
        return read([line for line in lines if _means(line, read)])


def _means(line: str, read: Callable[[Sequence[str]], object]) -> bool:
    try:
        read([line])
    except (ValueError, re.error):
        return False
    return True


@dataclass(slots=True)
class FolderWalk:
    """Limits and findings of a walk. ``stop`` ends it early. Afterwards ``cut`` tells whether the limit was reached,
    ``deeper`` whether folders of the last level have entries; ``links`` are the links to folders, which are skipped."""

    limit: int = 200_000
    depth: int = 64
    everything: bool = False
    stop: Event = field(default_factory=Event)
    cut: bool = False
    deeper: bool = False
    links: list[Path] = field(default_factory=list[Path])


def walked(root: Path, walk: FolderWalk) -> Iterator[WalkedFile]:
    """Yield all entries below ``root``, a folder before its entries, sorted by name."""
    rules = IgnoreRules() if walk.everything else IgnoreRules.above(root)
    left = walk.limit
    for entry in _below(str(root), 1, rules, walk):
        if left <= 0 or walk.stop.is_set():
            walk.cut = True
            return
        left -= 1
        yield entry


def _below(folder: str, depth: int, rules: IgnoreRules, walk: FolderWalk) -> Iterator[WalkedFile]:
    if not walk.everything:
        rules = rules.within(folder)
    for item in _sorted(folder):
        is_folder = item.is_dir(follow_symlinks=False)
        if item.name == ".git" or (not walk.everything and rules.ignore(item.path, folder=is_folder)):
            continue
        link = _link(item.path) if item.is_symlink() else None
        if link is not None and os.path.isdir(item.path):  # noqa: PTH112 - a walk's inner loop
            walk.links.append(Path(item.path))
        deeper = is_folder and depth < walk.depth
        more = is_folder and not deeper and bool(_sorted(item.path))
        walk.deeper = walk.deeper or more
        yield WalkedFile(item.path, item.name, depth, is_folder, link, more)
        if deeper:
            yield from _below(item.path, depth + 1, rules, walk)


def _sorted(folder: str) -> Sequence[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as items:
            return sorted(items, key=lambda item: item.name)
    except OSError:
        return ()


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - a walk's inner loop
    except OSError:
        return "?"


MAX_ALTERNATIVES = 100


class Glob:
    """A glob pattern: ``*`` and ``?`` within a name, ``**`` over folders, ``[ab]`` and ``{a,b}``.

    A pattern without ``/`` matches a name at any depth; a pattern that ends in ``/`` matches folders, any other matches
    files. Matching takes polynomial time for every pattern.

    Raises:
        ToolFailure: the pattern leaves the folder or has too many alternatives.
    """

    def __init__(self, pattern: str) -> None:
        if pattern.startswith(("/", "~")) or ".." in pattern.split("/"):
            message = f"The pattern {pattern!r} leaves the folder."
            raise ToolFailure("invalid_parameters", message, "Give a relative pattern, and the folder in path.")
        self._folder = pattern.endswith("/")
        texts = expanded(pattern.removeprefix("./").rstrip("/"))
        self._alternatives = [_parts(text) for text in texts]

    def fits(self, path: str, *, folder: bool) -> bool:
        """Return whether ``path``, relative to the searched folder, matches."""
        if folder is not self._folder:
            return False
        names = path.split("/")
        return any(_fits(names, parts) for parts in self._alternatives)


def expanded(pattern: str) -> list[str]:
    """Return the patterns without braces that ``pattern`` means."""
    done: list[str] = []
    todo = [pattern]
    while todo:
        text = todo.pop()
        match = re.search(r"\{([^{}]*,[^{}]*)\}", text)
        if match is None:
            done.append(text)
        else:
            todo += [text[: match.start()] + choice + text[match.end() :] for choice in match[1].split(",")]
        if len(done) + len(todo) > MAX_ALTERNATIVES:
            raise ToolFailure("invalid_parameters", f"The pattern has more than {MAX_ALTERNATIVES} alternatives.")
    return done


def _parts(text: str) -> list[re.Pattern[str] | None]:
    """Return one expression for each name; None for any number of folders."""
    names = [name for name in text.split("/") if name]
    if len(names) == 1:
        names.insert(0, "**")
    if names and names[-1] == "**":
        names.append("*")
    parts: list[re.Pattern[str] | None] = []
    for name in names:
        if name != "**":
            parts.append(re.compile(fnmatch.translate(name)))
        elif not parts or parts[-1] is not None:
            parts.append(None)
    return parts


def _fits(names: Sequence[str], parts: Sequence[re.Pattern[str] | None]) -> bool:
    """Return whether ``parts`` match all of ``names``: after each part, mark the prefixes of ``names`` that match."""
    reached = [True] + [False] * len(names)
    for part in parts:
        following = [False] * (len(names) + 1)
        for at in range(len(names) + 1):
            if part is None:
                following[at] = reached[at] or (at > 0 and following[at - 1])
            elif at > 0 and reached[at - 1]:
                following[at] = part.match(names[at - 1]) is not None
        if not any(following):
            return False
        reached = following
    return reached[-1]
