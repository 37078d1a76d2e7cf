"""What the name of an agent says: ``main/general-1/explore-2`` is the second explore of the first general of main."""

from __future__ import annotations

from ba_tui.core.errors import UsageError


def kind_of(agent_id: str) -> str:
    """Return the type in the last part of the name, such as ``explore``."""
    last = agent_id.rpartition("/")[2]
    name, _, number = last.rpartition("-")
    return name if number.isdecimal() else last


def depth_of(agent_id: str) -> int:
    """Return how many agents stand above it: 0 for main."""
    return agent_id.count("/")


def chain_of(agent_id: str) -> tuple[str, ...]:
    """Return the types of the agent and of all above it, main not included."""
    return tuple(kind_of(part) for part in agent_id.split("/")[1:])


def check_lineage(kind: str, parent: str, deepest: int) -> None:
    """Raise UsageError when ``parent`` may not start an agent of that type."""
    if depth_of(parent) >= deepest:
        message = f"Agents may be nested {deepest} deep, and {parent} is at that depth."
        raise UsageError(message, "Do the work yourself. The setting agents.depth is the limit.")
    if kind in chain_of(parent):
        message = f"{kind} is at work above this agent ({parent}), so it can't be started below itself."
        raise UsageError(message, "Do the work yourself, or choose another agent.")
