"""Git folders: where git stores contents, and the folders that worktrees and submodules use. Runs no git."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ba_tui.permissions.sandbox.workspace_scan import GIT
from ba_tui.resources import read_regular

STORED = ("objects", "modules", "lfs", "annex", "rr-cache", "rebase-apply", "rebase-merge")
"""Parts of a git folder with file contents, including those of submodules."""
OTHERS = (".hg/store", ".svn/pristine", ".jj/repo/store")
"""Stores of other version control systems, none of whose programs ba treats as a reader."""
ALTERNATES = "info/alternates"
DEEPEST = 5
"""Length of a chain of stores that borrow from each other; git's own limit."""
MOST_TEXT = 65_536


def stores(folders: Iterable[Path], links: Iterable[Path]) -> Iterator[Path]:
    """Yield the stores of git ``folders`` and of the folders that ``links`` (files named ``.git``) point to, including
    stores they borrow from. Each one exists."""
    found: dict[Path, None] = {}
    pointed = (target for link in links if (target := pointed_to(link)))
    for folder in (*folders, *pointed):
        for place in dict.fromkeys((folder, _common(folder))):
            for name in STORED:
                if (place / name).is_dir():
                    found[place / name] = None
            for store in _borrowed(place / "objects"):
                found[store] = None
    yield from found


def pointed_to(link: Path) -> Path | None:
    """Return the git folder that a file named ``.git`` points to; None if it points to none."""
    text = _read_text(link)
    if not text.startswith("gitdir:"):
        return None
    return Path(os.path.realpath(link.parent / text.removeprefix("gitdir:").strip()))


def is_in_git(path: Path) -> bool:
    """Return whether ``path`` is in a git folder, also a bare one."""
    if GIT in path.parts:
        return True
    return any(_is_bare(folder) for folder in (path, *path.parents))


def holds_git(folder: Path) -> bool:
    """Return whether reading all of ``folder`` reaches a git folder."""
    return os.path.lexists(folder / GIT) or is_in_git(folder)


def _is_bare(folder: Path) -> bool:
    return os.path.lexists(folder / "HEAD") and (
        os.path.lexists(folder / "objects") or os.path.lexists(folder / "commondir")
    )


def _common(folder: Path) -> Path:
    """Return the git folder whose worktree ``folder`` belongs to, otherwise ``folder``."""
    text = _read_text(folder / "commondir").strip()
    return Path(os.path.realpath(folder / text)) if text else folder


def _borrowed(objects: Path, depth: int = 0) -> Iterator[Path]:
    """Yield the stores that a store borrows from."""
    if depth >= DEEPEST:
        return
    for line in _read_text(objects / ALTERNATES).splitlines():
        if line.strip() and not line.startswith("#"):
            store = Path(os.path.realpath(objects / line.strip().strip('"')))
            if store.is_dir():
                yield store
                yield from _borrowed(store, depth + 1)


def _read_text(file: Path) -> str:
    try:
        return os.fsdecode(read_regular(file, MOST_TEXT))
    except (OSError, ValueError):
        return ""


def git_folders_of(roots: Sequence[Path]) -> Iterator[Path]:
    """Yield git folders outside of ``roots`` whose worktrees or submodules the roots are, if these folders confirm
    it."""
    for root in roots:
        link = root / GIT
        text = "" if os.path.islink(link) else _read_text(link)  # noqa: PTH114 - must not raise
        if not text.startswith("gitdir:"):
            continue
        own = Path(os.path.normpath(root / text.removeprefix("gitdir:").strip()))
        found = _main_of(own, link) or _module_of(own, root)
        if found and not any(found.is_relative_to(root) for root in roots):
            yield found


def _main_of(own: Path, link: Path) -> Path | None:
    """Return the git folder whose worktree ``own`` belongs to, if it names ``link`` in turn."""
    if own.parent.name != "worktrees":
        return None
    return own.parent.parent if _read_text(own / "gitdir").strip() == str(link) else None


def _module_of(own: Path, root: Path) -> Path | None:
    """Return ``own`` if it is the git folder of a submodule and names ``root`` as its worktree."""
    if "modules" not in own.parts or GIT not in own.parts:
        return None
    found = re.search(r"(?m)^\s*worktree\s*=\s*(\S.*?)\s*$", _read_text(own / "config"))
    return own if found and os.path.realpath(own / found[1].strip('"')) == os.path.realpath(root) else None
