"""Where git stores old versions of files: what a command needs in order to read a file that was committed and removed.

Nothing of a repository is run; a store is known by its files and by what points to it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from ba_tui.permissions.sandbox.protected_files import GIT
from ba_tui.resources import read_regular

STORED = ("objects", "modules", "lfs", "annex", "rr-cache", "rebase-apply", "rebase-merge")
"""What holds contents of files below a git folder, those of submodules among it."""
OTHERS = (".hg/store", ".svn/pristine", ".jj/repo/store")
"""Where other systems keep old versions, none of whose programs ba takes for a reader."""
ALTERNATES = "info/alternates"
DEEPEST = 5
"""How many stores may point to another one, one after the other, which git follows too."""
MOST_TEXT = 65_536


def stores(folders: Iterable[Path], links: Iterable[Path]) -> Iterator[Path]:
    """Return the stores of git ``folders`` and of those that ``links`` (files called ``.git``) point to, with all
    that they borrow from. Each exists."""
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
    """Return the git folder that a file called ``.git`` names; None when it names none."""
    text = _said(link)
    if not text.startswith("gitdir:"):
        return None
    return Path(os.path.realpath(link.parent / text.removeprefix("gitdir:").strip()))


def is_in_git(path: Path) -> bool:
    """Return whether ``path`` lies in a git folder, a bare one included."""
    if GIT in path.parts:
        return True
    return any(_is_bare(folder) for folder in (path, *path.parents))


def holds_git(folder: Path) -> bool:
    """Return whether whoever goes through ``folder`` comes upon a git folder of its own."""
    return os.path.lexists(folder / GIT) or is_in_git(folder)


def _is_bare(folder: Path) -> bool:
    return os.path.lexists(folder / "HEAD") and (
        os.path.lexists(folder / "objects") or os.path.lexists(folder / "commondir")
    )


def _common(folder: Path) -> Path:
    """The git folder whose worktree ``folder`` belongs to, else ``folder``."""
    text = _said(folder / "commondir").strip()
    return Path(os.path.realpath(folder / text)) if text else folder


def _borrowed(objects: Path, depth: int = 0) -> Iterator[Path]:
    """The stores that a store borrows from."""
    if depth >= DEEPEST:
        return
    for line in _said(objects / ALTERNATES).splitlines():
        if line.strip() and not line.startswith("#"):
            store = Path(os.path.realpath(objects / line.strip().strip('"')))
            if store.is_dir():
                yield store
                yield from _borrowed(store, depth + 1)


def _said(file: Path) -> str:
    try:
        return os.fsdecode(read_regular(file, MOST_TEXT))
    except (OSError, ValueError):
        return ""
