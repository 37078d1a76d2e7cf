"""Which hooks count in a project. Loads nothing else of hooks where there are none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ba_tui.core.events import SideRequest
from ba_tui.core.values import frozen
from ba_tui.ingress import within
from ba_tui.settings import HookLine

if TYPE_CHECKING:
    from ba_tui.hooks.config import Hook

CLAUDE = ".claude"
AskModel: TypeAlias = Callable[[str, str, str], Awaitable[tuple[str, SideRequest]]]
"""Gives the small model's answer to a system prompt and a message for a purpose, and what it cost. Raises ProviderError
when none comes."""


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
    """All hooks that count in the project ``root``, and what is wrong with others. Files of another assistant count
    in a project that is ``trusted``."""
    claude = (root / CLAUDE).is_dir() and trusted(root)
    if not lines and not claude:
        return [], []
    from ba_tui.hooks.claude_files import CLAUDE_FILES, read_claude  # noqa: PLC0415 - most people have no hooks
    from ba_tui.hooks.config import read_hooks  # noqa: PLC0415

    found, problems = read_hooks(lines), list[str]()
    for name in CLAUDE_FILES if claude else ():
        more, wrong = read_claude(root / name, within(root))
        found += more
        problems += wrong
    return found, problems
