"""Where the figures of an answer come from: the list of them, and the way to the source of one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.events import FiguresChecked
from ba_tui.core.ports.brain import Inventory
from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.text.figures import FigureReport, FigureSource, FigureVerdict
from ba_tui.faces.tui.acts.editor import page
from ba_tui.faces.tui.acts.port import Actions, Room
from ba_tui.faces.tui.commands import SlashCommand
from ba_tui.faces.tui.inspected import inspected
from ba_tui.faces.tui.inspector.model import Inspected
from ba_tui.faces.tui.transcript.figure_marks import Grounded
from ba_tui.faces.tui.transcript.records import ProseRecord, ToolRow

AUDIENCES = ("short", "json", "audit")
LONGEST = 4_000_000
"""Bytes of a stored result in which the line of a figure is looked for."""
EVENTS = 2_000
"""Events at the end of the session in which the newest turn is looked for."""


async def verify(chat: Actions, _: str) -> None:
    """The figures of the answer under the cursor, else of the newest one that has any."""
    here = chat.transcript.current() if chat.transcript.has_focus else None
    records = [here, *reversed(chat.transcript.records)]
    found = next((each.grounded for each in records if isinstance(each, ProseRecord) and each.grounded), None)
    if found is None:
        raise UsageError("No answer with figures was checked yet.", "analysis.verify in /config turns checks on.")
    await show_figures(chat, found)


async def show_figures(chat: Actions, grounded: Grounded) -> None:
    """The list of them; files are looked at again first."""
    from ba_tui.faces.tui.screens.figures import FigureList  # noqa: PLC0415 - most runs never show it

    report = await _now(chat, grounded)
    chat.ba.push_screen(FigureList(report, partial(go_to_source, chat)))


async def _now(chat: Actions, grounded: Grounded) -> FigureReport:
    """The report with the files that have changed by now, which the transcript shows as well."""
    datasets, report = _inventory(chat).feature(Datasets), grounded.report
    if datasets is None or not report.files:
        return report
    changed = await datasets.changed(report.files)
    if changed == report.changed:
        return report
    report = replace(report, changed=changed)
    chat.transcript.apply(FiguresChecked(grounded.message, report))
    return report


async def open_figure(chat: Actions, grounded: Grounded, number: int) -> None:
    """The source of one figure, or all figures when ``number`` is negative."""
    if number < 0:
        await show_figures(chat, grounded)
    elif why := await go_to_source(chat, grounded.report.verdicts[number]):
        chat.activity.hint(why)


async def go_to_source(chat: Actions, verdict: FigureVerdict) -> str:
    """Open the place that a figure comes from. Returns a line instead where there is none to open."""
    source = next((each for each in verdict.sources if each.call), None)
    if source is None:
        return f"{verdict.text}: {verdict.label}, {verdict.reason}"
    datasets = _inventory(chat).feature(Datasets)
    if source.line >= 0 and datasets is not None:
        from ba_tui.faces.tui.grid.screen import GridScreen  # noqa: PLC0415 - loaded for the first grid

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


def _text(value: Inspected) -> str:
    """All of a result; of a very long one the beginning."""
    if value.whole is None:
        return value.text
    try:
        return value.whole.reader.read(value.whole.ref, 0, LONGEST).text
    except BaError:
        return ""


def _line(text: str, source: FigureSource) -> tuple[str, int]:
    """The line of a result that a number stands in, and its number from 1; nothing where it is not in ``text``."""
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
    """Which evidence and decisions led to the newest answer: for a reader, as JSON, or with every decision."""
    audience = words.strip().lower() or "short"
    if audience not in AUDIENCES:
        raise UsageError(f"There is no explanation “{audience}”.", f"Use {', '.join(AUDIENCES)}.")
    from ba_tui.faces.tui.explained import Explanation  # noqa: PLC0415 - most runs never show it
    from ba_tui.faces.tui.screens.report import ReportPane  # noqa: PLC0415 - likewise

    _services, conversation = chat.session.live
    if not chat.session.started:
        raise UsageError("This session is still empty.", "Ask after the first turn.")
    found = Explanation(await asyncio.to_thread(conversation.tail, EVENTS))
    if audience == "json":
        await page(chat, json.dumps(found.value(), ensure_ascii=False, indent=2), ".json")
        return
    rows = list(found.audit() if audience == "audit" else found.short())
    chat.ba.push_screen(ReportPane("Why this answer", "What the newest answer rests on.", rows))


FIGURES = Room(
    {
        SlashCommand("verify", "Show where each figure of an answer comes from", aliases=("figures",)): verify,
        SlashCommand("why", "Show what led to the newest answer", "[short|json|audit]"): why,
    }
)
