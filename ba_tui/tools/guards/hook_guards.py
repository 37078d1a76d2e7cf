"""Where hooks stand among the guards of a tool. What they do is in hooks.py, which loads for those who have some."""

from __future__ import annotations

from ba_tui.core.tool import Guard, Tool
from ba_tui.core.values import frozen


@frozen
class HookGuards:
    """``before`` a call is judged and run, and ``after`` its result is as the model will read it."""

    before: Guard
    after: Guard


def unhooked(tool: Tool) -> Tool:
    """Return ``tool`` as it is: the guard where there are no hooks."""
    return tool


UNHOOKED = HookGuards(unhooked, unhooked)
