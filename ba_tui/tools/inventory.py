"""core.ports.tools.Tools: every tool that was found, with its state and figures, and a switch for this conversation."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.tools import ToolFigures, ToolLine, ToolState
from ba_tui.observe.metrics import Metrics
from ba_tui.tools.guards.breaker import Health
from ba_tui.tools.registry import Registry, ToolEntry
from ba_tui.tools.visible import Visible


class ToolList:
    """Over the registry; ``visible`` knows which tools this conversation's model is told of."""

    def __init__(self, registry: Registry, health: Health, visible: Visible, metrics: Metrics) -> None:
        self._registry = registry
        self._health = health
        self._visible = visible
        self._metrics = metrics

    def lines(self) -> Sequence[ToolLine]:
        registry = self._registry
        registry.refresh()
        shown = {tool.name for tool in self._visible.visible()}
        deferred = {tool.name for tool in self._visible.deferred()}
        found = [self._line(entry, _state(entry, shown, deferred)) for entry in registry.entries()]
        broken = [
            ToolLine(problem.file.rsplit("/", 1)[-1], "broken", problem.file, trouble=str(problem))
            for problem in registry.problems()
        ]
        return [*found, *broken]

    def switch(self, name: str, *, on: bool) -> None:
        entry = self._registry.entry(name)
        if entry is None:
            raise UsageError(f"There is no tool {name!r} that can be used.", "Check its file.")
        if not on and entry.core:
            raise UsageError(f"{name} is one of the core tools.", "They are always there; see tools.yaml.")
        if on:
            self._visible.show([name])
        self._registry.switch(name, on=on)

    def _line(self, entry: ToolEntry, state: ToolState) -> ToolLine:
        tool, condition = entry.tool, self._health.condition(entry.tool.name)
        done = self._metrics.tools.get(tool.name)
        figures = (
            ToolFigures(done.calls, done.failures, done.retries, done.cached, done.average, done.p95)
            if done
            else ToolFigures()
        )
        return ToolLine(
            tool.name,
            state,
            entry.place,
            tool.description,
            tool.facts.category,
            tool.facts.tags,
            tool.effect.value,
            tool.input_schema,
            entry.lacking(),
            figures,
            condition.state,
            condition.rest,
            condition.slow,
        )


def _state(entry: ToolEntry, shown: set[str], deferred: set[str]) -> ToolState:
    if entry.lacking():
        return "lacking"
    if entry.core:
        return "core"
    if not entry.enabled:
        return "off"
    if entry.tool.name in deferred:
        return "deferred"
    return "on" if entry.tool.name in shown else "off"
