"""Where the figures of an answer come from: the list of them, and the way to the source of one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.events import FiguresChecked
from ba_tui.core.ports.brain import Inventory
from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.text.figures import DOUBTFUL, FigureReport, FigureSource, FigureVerdict
from ba_tui.faces.tui.acts.editor import page
from ba_tui.faces.tui.acts.port import Actions
from ba_tui.faces.tui.inspector.model import InspectorValue, inspected
from ba_tui.faces.tui.screens.list_screen import ListRow, ListScreen
from ba_tui.faces.tui.transcript.figure_marks import AnswerFigures
from ba_tui.faces.tui.transcript.records import ProseRecord, Record, ToolRow
from ba_tui.features.figures.source_files import changed

AUDIENCES = ("short", "json", "audit")
LONGEST = 4_000_000
"""Bytes of a stored result in which the line of a figure is looked for."""
EVENTS = 2_000
"""Events at the end of the session in which the newest turn is looked for."""


async def verify(chat: Actions, _: str) -> None:
    """Show the figures of the answer at the cursor, else of the newest answer with figures."""
    here = chat.transcript.current() if chat.transcript.has_focus else None
    records = [here, *reversed(chat.transcript.records)]
    found = next((each.grounded for each in records if isinstance(each, ProseRecord) and each.grounded), None)
    if found is None:
        raise UsageError("No answer with figures was checked yet.", "analysis.verify in /config turns checks on.")
    await show_figures(chat, found)


async def show_figures(chat: Actions, grounded: AnswerFigures) -> None:
    """Show the list of figures, after checking whether files have changed."""
    report = await _updated(chat, grounded)
    chat.ba.push_screen(FigureList(report, partial(go_to_source, chat)))


async def _updated(chat: Actions, grounded: AnswerFigures) -> FigureReport:
    """Return the report with the source files that have changed by now, and update the transcript."""
    report = grounded.report
    if not report.files:
        return report
    now = await asyncio.to_thread(changed, report.files)
    if now == report.changed:
        return report
    report = replace(report, changed=now)
    chat.transcript.apply(FiguresChecked(grounded.message, report))
    return report


def open_record(chat: Actions, record: Record | None) -> bool | Awaitable[None]:
    """Open the source of the selected figure of an answer. Returns False for any other record."""
    if isinstance(record, ProseRecord) and record.grounded and record.figure is not None:
        return open_figure(chat, record.grounded, record.figure)
    return False


async def open_figure(chat: Actions, grounded: AnswerFigures, number: int) -> None:
    """Open the source of one figure; for a negative ``number`` list all figures."""
    if number < 0:
        await show_figures(chat, grounded)
    elif why := await go_to_source(chat, grounded.report.verdicts[number]):
        chat.activity.hint(why)


async def go_to_source(chat: Actions, verdict: FigureVerdict) -> str:
    """Open the source of a figure. Return why that is not possible, else an empty text."""
    source = next((each for each in verdict.sources if each.call), None)
    if source is None:
        return f"{verdict.text}: {verdict.label}, {verdict.reason}"
    datasets = _inventory(chat).feature(Datasets)
    if source.line >= 0 and datasets is not None:
        from ba_tui.faces.tui.grid.pane import GridScreen  # noqa: PLC0415 - loaded for the first grid

        chat.ba.push_screen(GridScreen(datasets, source.name, (source.line, source.column)))
        return ""
    row = next((each for each in reversed(_rows(chat)) if each.call_id == source.call), None)
    if row is None:
        return f"{verdict.text} comes from {source.where}, which is no longer shown here."
    await _inspect(chat, row, source)
    return ""


async def _inspect(chat: Actions, row: ToolRow, source: FigureSource) -> None:
    from ba_tui.faces.tui.inspector.pane import InspectorScreen  # noqa: PLC0415 - not before the first paint

    has = _inventory(chat)
    value = inspected(row, has.results, has.feature(Datasets))
    line, number = _line(await asyncio.to_thread(_text, value), source)
    chat.ba.push_screen(InspectorScreen(replace(value, sought=line, sought_line=number)))


def _text(value: InspectorValue) -> str:
    """Return the text of a result, cut at LONGEST bytes."""
    if value.whole is None:
        return value.text
    try:
        return value.whole.reader.read(value.whole.ref, 0, LONGEST).text
    except BaError:
        return ""


def _line(text: str, source: FigureSource) -> tuple[str, int]:
    """Return the line of a result with a number, and its number from 1; empty and 0 if it is not in ``text``."""
    if not source.end or source.end > len(text):
        return "", 0
    start = text.rfind("\n", 0, source.start) + 1
    end = text.find("\n", source.end)
    return text[start : end if end >= 0 else len(text)].strip(), text.count("\n", 0, start) + 1


def _rows(chat: Actions) -> Sequence[ToolRow]:
    return [each for each in chat.transcript.records if isinstance(each, ToolRow)]


def _inventory(chat: Actions) -> Inventory:
    conversation = chat.session.conversation
    return conversation.inventory if conversation else Inventory()


async def why(chat: Actions, words: str) -> None:
    """Show the evidence and decisions that led to the newest answer: short, as JSON, or with every decision."""
    audience = words.strip().lower() or "short"
    if audience not in AUDIENCES:
        raise UsageError(f"There is no explanation “{audience}”.", f"Use {', '.join(AUDIENCES)}.")
    from ba_tui.faces.tui.explained import Explanation  # noqa: PLC0415 - most runs never show it
    from ba_tui.faces.tui.screens.sheet import ReportPane  # noqa: PLC0415 - likewise

    _services, conversation = chat.session.live
    if not chat.session.started:
        raise UsageError("This session is still empty.", "Ask after the first turn.")
    found = Explanation(await asyncio.to_thread(conversation.tail, EVENTS))
    if audience == "json":
        await page(chat, json.dumps(found.value(), ensure_ascii=False, indent=2), ".json")
        return
    rows = list(found.audit() if audience == "audit" else found.short())
    chat.ba.push_screen(ReportPane("Why this answer", "What the newest answer rests on.", rows))


ALSO = 3
"""Sources of a derived figure that are named below it."""


class FigureList(ListScreen[FigureVerdict]):
    """In the order of the answer. ``go`` opens the source of a figure, and returns why it can't."""

    MOST = 300
    ENTER = "go to the source"
    EMPTY = "This answer has no figures."

    def __init__(self, report: FigureReport, go: Callable[[FigureVerdict], Coroutine[None, None, str]]) -> None:
        rows = [_figure_row(at, verdict, report) for at, verdict in enumerate(report.verdicts)]
        super().__init__(" · ".join(report.parts), rows)
        self._go = go

    def choose(self, row: ListRow[FigureVerdict]) -> None:
        if row.value:
            self.run_worker(partial(self._open, row.value), group="source", exclusive=True)

    async def _open(self, verdict: FigureVerdict) -> None:
        self.say(await self._go(verdict))


def _figure_row(at: int, verdict: FigureVerdict, report: FigureReport) -> ListRow[FigureVerdict]:
    stale = [Path(path).name for path in report.stale_files(verdict)]
    changed = f" · changed since: {', '.join(stale)}" if stale else ""
    places = [source.where for source in verdict.sources[:ALSO]] if verdict.derivation else []
    more = f"  from {', '.join(dict.fromkeys(places))}" if places else ""
    return ListRow(
        str(at),
        (verdict.text, verdict.label),
        f"{verdict.reason}{more}{changed}",
        current=verdict.label in DOUBTFUL,
        keywords=f"{verdict.text.replace(',', '')} {'' if verdict.value is None else f'{verdict.value:.15g}'}",
        value=verdict,
    )
