"""Which files of a repository an agent gets a copy of: those that git knows or would know, as they are on the disk."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.values import frozen
from ba_tui.processes.brief import BriefRun, run_briefly

MOST_FILES = 50_000
MOST_BYTES = 2_000_000_000
DEEPEST = 40
"""Folders on the way to a repository within others."""
SECONDS = 60.0
ALONE = "Start the agent without isolation."
# Nothing of a repository's settings is run: it may come from anybody.
_QUIET = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")


@frozen
class Listed:
    """Regular files and links by their paths from the top of the repository. ``left``: what has no copy, and why."""

    files: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    left: tuple[str, ...]


def listed(project: Path, denied: Callable[[Path], bool]) -> Listed:
    """Look at what there is. A file that ``denied`` says may not be read is left out, and so is a link that leads out
    of the project.

    Raises:
        UsageError: it is in no git repository, or too large.
        StorageError: git can't list it.
    """
    if not os.path.lexists(project / ".git"):
        raise UsageError("This folder is in no git repository, so no agent can work in a copy of it.", ALONE)
    files, links, left, size = list[str](), list[tuple[str, str]](), list[str](), 0
    names = _all_names(project, left)
    for name in names:
        path = project / name
        try:
            found = path.lstat()
        except OSError:
            # Deleted, and git was not told of it yet.
            continue
        if os.path.realpath(path.parent) != str(path.parent):
            left.append(f"{name}: a link stands where its folder was")
        elif denied(path):
            left.append(f"{name}: a rule denies reading it")
        elif stat.S_ISLNK(found.st_mode):
            to = path.readlink()
            if to.is_absolute() or not _stays(project, path, to):
                left.append(f"{name}: a link that leads out of the project")
            else:
                links.append((name, str(to)))
        elif stat.S_ISREG(found.st_mode):
            files.append(name)
            size += found.st_size
        else:
            left.append(f"{name}: no regular file")
    if len(files) > MOST_FILES or size > MOST_BYTES:
        what = f"{len(files):,} files with {size / 1e9:.1f} GB"
        most = f"{MOST_FILES:,} files and {MOST_BYTES / 1e9:.0f} GB"
        raise UsageError(f"The project is too large for a copy: {what}; at most {most} are copied.", ALONE)
    return Listed(tuple(files), tuple(links), tuple(left))


def repository(folder: Path) -> Path:
    """The top of the git repository that ``folder`` lies in; ``folder`` itself where there is none."""
    real = Path(os.path.realpath(folder))
    return next((each for each in (real, *real.parents) if os.path.lexists(each / ".git")), real)


def _stays(project: Path, link: Path, to: Path) -> bool:
    target = Path(os.path.realpath(link.parent / to))
    return target.is_relative_to(os.path.realpath(project))


def _all_names(project: Path, left: list[str]) -> Sequence[str]:
    """The names of all files; those of submodules and other repositories within the project are listed in there. What
    can't be listed comes into ``left``."""
    found, waiting = list[str](), [""]
    while waiting:
        top = waiting.pop()
        try:
            names = _names(project / top)
        except StorageError as error:
            if not top:
                raise
            left.append(f"{top}: {str(error).rstrip('.')}")
            continue
        for name in names:
            path = project / top / name
            if not path.is_dir() or path.is_symlink():
                found.append(top + name)
            elif os.path.realpath(path) != str(path):
                left.append(f"{top}{name}: a link stands where its folder was")
            elif not os.path.lexists(path / ".git"):
                left.append(f"{top}{name}: a submodule that is not checked out")
            elif top.count("/") >= DEEPEST:
                left.append(f"{top}{name}: a repository within too many others")
            else:
                waiting.append(f"{top}{name.rstrip('/')}/")
    return sorted(found)


def _names(project: Path) -> Sequence[str]:
    git = shutil.which("git")
    if git is None:
        raise UsageError("No agent can work in a copy: git is not installed.", ALONE)
    argv = [git, *_QUIET, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = run_briefly(BriefRun(argv, SECONDS, project, {**environment, "GIT_OPTIONAL_LOCKS": "0"}))
    if done.code != 0:
        why = done.trouble or done.errors.decode("utf-8", "replace").strip().rpartition("\n")[2] or "git failed"
        raise StorageError(f"The project can't be listed for a copy: {why.removeprefix('fatal: ')}.", ALONE)
    return sorted({os.fsdecode(name) for name in done.output.split(b"\0") if name and not name.startswith(b"../")})
