"""Which hooks count in a project. Loads nothing else of hooks where there are none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ba_tui.core.values import frozen
from ba_tui.resources import user_home
from ba_tui.settings import HookLine

if TYPE_CHECKING:
    from ba_tui.hooks.config import Hook

CLAUDE = ".claude"


@frozen
class SessionFacts:
    """What every hook is told. ``environment``: what commands may see, without any key; ``mode`` now."""

    session: str
    transcript: Path
    cwd: Path
    project: Path
    environment: Mapping[str, str]
    mode: Callable[[], str]


def found_hooks(lines: Sequence[HookLine], root: Path, trusted: Callable[[Path], bool]) -> tuple[list[Hook], list[str]]:
    """All hooks that count in the project ``root``, and what is wrong with others. Claude Code's files count where they
    are the person's own, and in a project that is ``trusted``."""
    home = user_home()
    places = [folder for folder in dict.fromkeys((home, root)) if folder and (folder / CLAUDE).is_dir()]
    if not lines and not places:
        return [], []
    from ba_tui.hooks.claude_files import claude_hooks, hooks_off  # noqa: PLC0415 - most people have no hooks
    from ba_tui.hooks.config import read_hooks  # noqa: PLC0415
    from ba_tui.settings.claude.files import claude_paths, read_claude_file  # noqa: PLC0415

    found, problems = read_hooks(lines), list[str]()
    paths = [each for each in claude_paths(root) if not each[1] or trusted(root)] if places else []
    files = [(file, project) for path, project in paths if (file := read_claude_file(path, root if project else None))]
    # A project turns off its own hooks: those of the person may be there to guard them from it.
    off = {project for file, project in files if hooks_off(file)}
    for file, project in files:
        if off.isdisjoint({project, False}):
            more, wrong = claude_hooks(file)
            found += more
            problems += wrong
    return found, problems
