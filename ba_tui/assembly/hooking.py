"""The hooks of one conversation, out of settings and of a trusted project. Loads nothing where there are none."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ba_tui.core.tool import Guard
from ba_tui.core.values import frozen
from ba_tui.ingress import Ingress, within
from ba_tui.permissions.trust.grants import Trust
from ba_tui.resources import Places, project_root
from ba_tui.settings import HookLine
from ba_tui.tools.builtin.shell import Shell
from ba_tui.tools.toolbox import unhooked

if TYPE_CHECKING:
    from ba_tui.hooks.config import Hook
    from ba_tui.hooks.turns import HookTurns

CLAUDE = ".claude"


class HookShop(Protocol):
    """What hooks take from the workshop."""

    hooks: Sequence[HookLine]
    where: Places
    shell: Shell


@frozen
class Hooking:
    """``guard`` goes around tools, ``turns`` along the conversation, None where there are no hooks.
    ``problems``: hooks that can't be used, one line each."""

    guard: Guard = unhooked
    turns: HookTurns | None = None
    problems: Sequence[str] = ()


def found_hooks(lines: Sequence[HookLine], where: Places, root: Path) -> tuple[list[Hook], list[str]]:
    """All hooks that count in the project ``root``, and what is wrong with others."""
    claude = (root / CLAUDE).is_dir() and Trust(where).trusted(root)
    if not lines and not claude:
        return [], []
    from ba_tui.hooks.config import CLAUDE_FILES, read_claude, read_hooks  # noqa: PLC0415 - most people have no hooks

    found, problems = read_hooks(lines), list[str]()
    for name in CLAUDE_FILES if claude else ():
        more, wrong = read_claude(root / name, within(root))
        found += more
        problems += wrong
    return found, problems


def started_by_hooks(lines: Sequence[HookLine], where: Places, root: Path) -> frozenset[Path]:
    """The files of the project ``root`` that its hooks and the person's own start."""
    found, _ = found_hooks(lines, where, root)
    if not found:
        return frozenset()
    from ba_tui.permissions.trust.named_files import named_by  # noqa: PLC0415 - see found_hooks

    return frozenset(Path(os.path.realpath(file)) for file in named_by(root, [hook.command for hook in found]))


def hooking_for(
    shop: HookShop, ingress: Ingress, cwd: Path, session: tuple[str, Path], mode: Callable[[], str]
) -> Hooking:
    """For a conversation in ``cwd``; ``session`` is its id and its file."""
    root = project_root(cwd)
    found, problems = found_hooks(shop.hooks, shop.where, root)
    if not found:
        return Hooking(problems=problems)
    from ba_tui.hooks.runner import Hooks, SessionFacts  # noqa: PLC0415 - see found_hooks
    from ba_tui.hooks.turns import HookTurns  # noqa: PLC0415
    from ba_tui.tools.guards.hooks import hooking  # noqa: PLC0415

    hooks = Hooks(found, SessionFacts(*session, cwd, root, shop.shell.inherited(), mode), ingress.clean)
    return Hooking(hooking(hooks), HookTurns(hooks), problems)
