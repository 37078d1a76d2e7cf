"""The hooks along one session. Loads nothing of them where there are none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ba_tui.core.agent import AskModel
from ba_tui.hooks.found import SessionFacts

if TYPE_CHECKING:
    from ba_tui.hooks.config import Hook
    from ba_tui.hooks.turns import HookTurns


def hooks_along(
    found: Sequence[Hook], facts: SessionFacts, clean: Callable[[str], str], ask: AskModel
) -> HookTurns | None:
    """What fires ``found`` along a conversation; None where there are none. See Hooks for ``clean`` and ``ask``."""
    if not found:
        return None
    from ba_tui.hooks.runner import Hooks  # noqa: PLC0415 - most people have no hooks
    from ba_tui.hooks.turns import HookTurns  # noqa: PLC0415

    return HookTurns(Hooks(found, facts, clean, ask))
