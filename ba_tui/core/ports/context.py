"""What fills the context window, and who compresses it."""

from __future__ import annotations

from typing import Protocol

from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen


@frozen
class ContextItem:
    """One thing in a share of the window, with the ``text`` that the model reads of it. ``said``: a message or a
    result, which a compression could shorten."""

    label: str
    tokens: int
    detail: str = ""
    text: str = ""
    said: bool = False


@frozen
class ContextPart:
    """A share of the window: ``tokens`` are an estimate unless ``exact``; ``detail`` says what is in it and why.

    ``kept_free``: nothing stands there yet.
    """

    label: str
    tokens: int
    detail: str = ""
    exact: bool = False
    items: tuple[ContextItem, ...] = ()
    kept_free: bool = False


class Condenser(Protocol):
    """Compresses a conversation when the person says so; emits Compressed."""

    async def now(self, branch: Branch, focus: str = "") -> None:
        """``focus``: what to pay attention to. Raises UsageError when it can't be, or nothing gets smaller."""
        ...

    async def undo(self, branch: Branch) -> None:
        """Back to what was before the last one, with what came since. Raises UsageError when there is none."""
        ...
