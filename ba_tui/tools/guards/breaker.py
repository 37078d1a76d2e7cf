"""Stops calling a tool that keeps failing: open after five failures in a row, tried again after a while.

The states are purgatory's; the rest doubles from a minute to ten. Faults of the arguments do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ba_tui.core.errors import PERMANENT
from ba_tui.core.events import Notice
from ba_tui.core.results import ToolResult, failure
from ba_tui.core.tool import Call, Guard, Tool
from ba_tui.core.values import frozen
from ba_tui.tools.failed import outcome

if TYPE_CHECKING:
    from purgatory.domain.model import Context

FAILURES = 5
COOL_DOWN = 60.0
LONGEST = 600.0
SLOW = 2
"""So many time-outs mark a tool as slow."""

BreakerState: TypeAlias = Literal["closed", "opened", "half-opened"]


@frozen
class ToolHealth:
    """How a tool is doing. ``rest``: seconds that an open breaker waits before it is tried again."""

    state: BreakerState = "closed"
    timeouts: int = 0
    rest: float = 0.0

    @property
    def slow(self) -> bool:
        return self.timeouts >= SLOW


class _Failing(Exception):
    """Tells purgatory of a failed result."""


def circuit_open() -> type[Exception]:
    """What purgatory raises for a call that may not go through."""
    from purgatory.domain.model import OpenedState  # noqa: PLC0415 - most sessions see no tool fail

    return OpenedState


class Health:
    """The breakers of one conversation's tools. ``tools`` are those that can stand in for one another."""

    def __init__(self, tools: Iterable[Tool] = (), cool_down: float = COOL_DOWN) -> None:
        self._categories = {tool.name: tool.facts.category for tool in tools}
        self._cool_down = cool_down
        self._circuits: dict[str, Context] = {}
        self._timeouts: Counter[str] = Counter()

    def condition(self, name: str) -> ToolHealth:
        circuit = self._circuits.get(name)
        if circuit is None:
            return ToolHealth(timeouts=self._timeouts[name])
        return ToolHealth(circuit.state, self._timeouts[name], circuit.ttl)

    def alternatives(self, name: str) -> str:
        """Others of the same category, as words for the model; empty when there are none."""
        category = self._categories.get(name, "other")
        others = [other for other, kind in self._categories.items() if kind == category and other != name]
        return f"Others that may serve: {', '.join(others)}." if others and category != "other" else ""

    def admits(self, name: str) -> bool:
        """Whether a call may go through now; opens the way for one try after the rest."""
        circuit = self._circuits.get(name)
        if circuit is None:
            return True
        try:
            circuit.handle_new_request()
        except circuit_open():
            return False
        return True

    def note(self, name: str, result: ToolResult) -> bool:
        """Count a result; True when it opened the breaker."""
        kind = result.error.kind if result.error else ""
        if kind == "timeout":
            self._timeouts[name] += 1
        failed = result.is_error and kind not in PERMANENT and kind != "interrupted"
        circuit = self._circuits.get(name)
        if circuit is None:
            if not failed:
                return False
            circuit = self._circuits[name] = self._circuit(name)
        before = circuit.state
        if failed:
            circuit.handle_exception(_Failing())
        else:
            circuit.handle_end_request()
        # purgatory keeps a message of every change for stores that we do not use.
        circuit.messages.clear()
        if circuit.state == "opened":
            circuit.ttl = min(LONGEST, circuit.ttl * 2) if before == "half-opened" else self._cool_down
        return circuit.state == "opened"

    def _circuit(self, name: str) -> Context:
        from purgatory.domain.model import Context  # noqa: PLC0415 - see circuit_open

        return Context(name, FAILURES, self._cool_down)


def breaker(health: Health) -> Guard:
    def guard(tool: Tool) -> Tool:
        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            if not health.admits(tool.name):
                return _off(tool, health)
            result = await outcome(tool, args, call)
            if health.note(tool.name, result):
                rest = health.condition(tool.name).rest
                text = f"{tool.name} failed {FAILURES} times in a row and is paused for {rest:.0f} s."
                call.branch.emit(Notice(text, "warning"))
            return _with_advice(tool, health, result)

        return replace(tool, run=run)

    return guard


def _off(tool: Tool, health: Health) -> ToolResult:
    rest = health.condition(tool.name).rest
    message = f"{tool.name} failed {FAILURES} times in a row and is paused for up to {rest:.0f} s."
    return failure("resource_error", message, hint=f"Do not call it now. {health.alternatives(tool.name)}".strip())


def _with_advice(tool: Tool, health: Health, result: ToolResult) -> ToolResult:
    if result.error is None or result.error.kind != "timeout":
        return result
    condition = health.condition(tool.name)
    if not condition.slow:
        return result
    advice = f"{tool.name} timed out {condition.timeouts} times: it is slow. {health.alternatives(tool.name)}".strip()
    return replace(result, text=f"{result.text}\n{advice}", meta={**result.meta, "slow": True})
