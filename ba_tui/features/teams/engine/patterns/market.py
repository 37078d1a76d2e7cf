"""Market: members bid for each subtask, and the best bid by quality, cost and time gets it. Asks no model."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.core.teamwork.teams import Role
from ba_tui.core.text.patterns import regex
from ba_tui.features.teams.engine.messages import Bid

QUALITY, COST, TIME = 0.6, 0.2, 0.2
"""How much each counts."""
LOOP_SECONDS = 8.0
"""Seconds of one model request, roughly: to compare bids with each other, never to promise anything."""
_WORD = regex(r"[^\W_]{3,}")


def offer(role: Role, task: str, work: str, *, busy: bool) -> Bid:
    """What a member of ``role`` offers for ``work``: how well its words fit, and how long it may take at most.

    ``cost`` is 1 for the model of the session and what its budget says where it has one.
    """
    wanted = {word.casefold() for word in _WORD.findall(work)}
    offered = [word.casefold() for word in _WORD.findall(" ".join((role.name, *role.capabilities)))]
    described = {word.casefold() for word in _WORD.findall(role.description)}
    exact = {word for word in wanted if any(_alike(word, other) for other in offered)}
    loose = {word for word in wanted - exact if any(_alike(word, other) for other in described)}
    fit = (len(exact) + len(loose) / 2) / (1 + len(exact) + len(loose))
    quality = min(1.0, 0.8 * fit + 0.2 * role.authority)
    seconds = role.max_loops * LOOP_SECONDS * (2 if busy else 1)
    cost = role.budget.cost if role.budget and role.budget.cost is not None else 1.0
    return Bid(task, cost, quality, seconds, reason=", ".join(sorted(exact | loose)) or "no word of the task fits")


def _alike(one: str, other: str) -> bool:
    return one == other or (len(one) > 3 and len(other) > 3 and (one.startswith(other) or other.startswith(one)))


def awarded(bids: Sequence[tuple[str, Bid]]) -> tuple[str, Bid] | None:
    """The best bid: cost and time count against the dearest and the slowest of them. The first one wins a draw."""
    if not bids:
        return None
    dearest = max((bid.cost for _, bid in bids), default=0.0) or 1.0
    slowest = max((bid.seconds for _, bid in bids), default=0.0) or 1.0

    def worth(each: tuple[str, Bid]) -> float:
        bid = each[1]
        return QUALITY * bid.quality - COST * bid.cost / dearest - TIME * bid.seconds / slowest

    return max(bids, key=worth)
