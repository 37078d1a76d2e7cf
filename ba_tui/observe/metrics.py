"""Figures about tools and the conversation, folded from events.

Durations are in seconds, without the time in which ba waited for answers of the user.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from ba_tui.core.events import Event, ToolFinished, ToolStarted, TurnEnded
from ba_tui.core.ledger import Account, Ledger, cached_share

SAMPLES = 1_000
"""Newest durations of a tool that its p95 is computed from."""


@dataclass
class ToolMetrics:
    """The calls of one tool."""

    calls: int = 0
    failures: int = 0
    retries: int = 0
    cached: int = 0
    total: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter[str])
    recent: deque[float] = field(default_factory=lambda: deque[float](maxlen=SAMPLES))

    @property
    def average(self) -> float:
        return self.total / self.calls if self.calls else 0.0

    @property
    def p95(self) -> float:
        """Return the 95th percentile of the newest durations."""
        if len(self.recent) < 2:
            return self.recent[0] if self.recent else 0.0
        import statistics  # noqa: PLC0415 - only for displays

        return statistics.quantiles(self.recent, n=20, method="inclusive")[-1]

    @property
    def success_rate(self) -> float:
        """Return the share of successful calls, from 0 to 1; 1 without calls."""
        return 1 - self.failures / self.calls if self.calls else 1.0

    def as_dict(self) -> dict[str, object]:
        return {
            "calls": self.calls,
            "failures": self.failures,
            "retries": self.retries,
            "cached": self.cached,
            "success_rate": round(self.success_rate, 4),
            "average_ms": round(self.average * 1000, 1),
            "p95_ms": round(self.p95 * 1000, 1),
            "errors": dict(self.kinds),
        }


class CallMetrics:
    """Figures of one conversation; ``apply`` takes every event."""

    def __init__(self) -> None:
        self.tools: dict[str, ToolMetrics] = {}
        self.ledger = Ledger()
        self.endings: Counter[str] = Counter()
        self._running: dict[tuple[str, str], str] = {}

    def apply(self, event: Event) -> None:
        self.ledger.apply(event)
        match event:
            case ToolStarted(call=call, agent=agent):
                self._running[agent, call.id] = call.name
            case ToolFinished(call_id=call_id, agent=agent):
                self._finished(self._running.pop((agent, call_id), ""), event)
            case TurnEnded(agent="main", reason=reason):
                self.endings[reason] += 1
                self._running.clear()
            case _:
                pass

    def _finished(self, name: str, event: ToolFinished) -> None:
        if not name:
            return
        tool = self.tools.get(name) or self.tools.setdefault(name, ToolMetrics())
        tool.calls += 1
        tool.total += event.duration
        tool.recent.append(event.duration)
        retries = event.result.meta.get("retries", 0)
        tool.retries += retries if isinstance(retries, int) else 0
        tool.cached += "cached_s" in event.result.meta
        if event.result.failed:
            tool.failures += 1
            tool.kinds[event.result.error.kind if event.result.error else "error"] += 1

    def report(self) -> Mapping[str, object]:
        """Return the figures as JSON values."""
        ledger = self.ledger
        share = cached_share(ledger.session.usage)
        return {
            "turns": len(ledger.turns),
            **account(ledger.session),
            "cached_share": None if share is None else round(share, 4),
            "models": {model: account(each) for model, each in sorted(ledger.models.items())},
            "compressions": len(ledger.shortened),
            "summaries_cost_usd": ledger.summaries,
            "summaries_usage": ledger.summed.record,
            "endings": dict(self.endings),
            "tools": {name: tool.as_dict() for name, tool in sorted(self.tools.items())},
        }


def account(of: Account) -> dict[str, object]:
    """Return an account as JSON values."""
    return {"requests": of.requests, "usage": of.usage.record, "cost_usd": of.cost}
