"""Walks a folder as git sees it: without .git and what .gitignore files leave out, never through a symbolic link.

What is done with the entries (listing, glob, grep) is the tools' business.
"""

from __future__ import annotations

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

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MAX_RULES = 1_000_000
"""Characters of an ignore file that count: one may lead to a device without an end."""
MAX_RULE = 4_096
"""Characters, as many as a path has."""
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
    """``path`` is absolute, ``depth`` 1 for what lies directly in the folder; ``link`` is where a symlink points."""

    path: str
    name: str
    depth: int
    folder: bool
    link: str | None = None
    more: bool = False
    """A folder that holds something but was not entered."""


@frozen
class IgnoreRules:
    """The ignore files that apply within a folder, outermost first, each with the folder it stands in."""

    files: tuple[tuple[str, GitIgnoreSpec], ...] = ()

    def within(self, folder: str) -> IgnoreRules:
        """These and the one of ``folder`` itself."""
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
        """Return whether ``path``, or a folder between ``root`` and it, is left out."""
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
        """Those of the repository that hold for ``folder`` from outside it."""
        rules = cls()
        home = next((place for place in (folder, *folder.parents) if os.path.exists(place / ".git")), None)  # noqa: PTH110 - must not raise
        if home is None:
            return rules
        rules = rules._with(str(home), str(home / ".git" / "info" / "exclude"))
        for place in reversed([place for place in folder.parents if place.is_relative_to(home)]):
            rules = rules.within(str(place))
        return rules


def _opened(path: str, flags: int) -> int:
    """Without waiting for a pipe's other end."""
    return os.open(path, flags | os.O_NONBLOCK)


def _spec(lines: Sequence[str]) -> GitIgnoreSpec:
    """What ``lines`` of an ignore file mean; those that mean nothing to git either are left out."""
    from pathspec import GitIgnoreSpec  # noqa: PLC0415 - not needed before the first search

    known = [_CLASS.sub(lambda found: _CLASSES.get(found[1], found[0]), line) for line in lines]
    if any(map(_ODD_SET.search, known)):
        # A bracket within brackets is git's way to write one, and suspect to Python alone.
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
    """How far to go. ``stop`` ends it from outside; ``cut`` tells afterwards that the limit was reached, ``deeper``
    that folders of the last level hold something, ``links`` which links to folders were passed by."""

    limit: int = 200_000
    depth: int = 64
    everything: bool = False
    stop: Event = field(default_factory=Event)
    cut: bool = False
    deeper: bool = False
    links: list[Path] = field(default_factory=list[Path])


def walked(root: Path, walk: FolderWalk) -> Iterator[WalkedFile]:
    """Everything below ``root``, each folder before what is in it, names in order."""
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
