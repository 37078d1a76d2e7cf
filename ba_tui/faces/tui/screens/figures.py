"""The figures of an answer, each with its verdict and where it comes from. Enter goes to the source."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path

from ba_tui.core.text.figures import FigureReport, FigureVerdict
from ba_tui.faces.tui.screens.picker import Picker, PickerChoice

MOST = 300
"""Figures that are listed at a time; typing finds the others."""
KEYS = "Enter goes to the source · type to search · Esc closes"
ALSO = 3
"""Sources of a derived figure that are named below it."""


class FigureList(Picker):
    """In the order of the answer. ``go`` opens the source of a figure, and returns why it can't."""

    MOST = MOST

    def __init__(self, report: FigureReport, go: Callable[[FigureVerdict], Coroutine[None, None, str]]) -> None:
        self._verdicts = report.verdicts
        self._go = go
        rows = [_choice(at, verdict, report) for at, verdict in enumerate(report.verdicts)]
        super().__init__(" · ".join(report.parts), rows, keys=KEYS)
        self.empty = "This answer has no figures."

    def choose(self, id: str) -> None:
        self.run_worker(partial(self._open, self._verdicts[int(id)]), group="source", exclusive=True)

    async def _open(self, verdict: FigureVerdict) -> None:
        self.say(await self._go(verdict) or KEYS)


def _choice(at: int, verdict: FigureVerdict, report: FigureReport) -> PickerChoice:
    stale = [Path(path).name for path in report.stale_files(verdict)]
    changed = f" · changed since: {', '.join(stale)}" if stale else ""
    places = [source.where for source in verdict.sources[:ALSO]] if verdict.derivation else []
    more = f"  from {', '.join(dict.fromkeys(places))}" if places else ""
    return PickerChoice(
        str(at),
        (verdict.text, verdict.label),
        f"{verdict.reason}{more}{changed}",
        current=verdict.label == "unsourced",
        keywords=f"{verdict.text.replace(',', '')} {'' if verdict.value is None else f'{verdict.value:.15g}'}",
    )
