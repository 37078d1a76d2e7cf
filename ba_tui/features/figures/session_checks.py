"""Checks the figures of each final answer, and reports the verdicts as every face shows them.

Loaded at the first answer with a digit. Earlier events are read from the session's file then, so a resumed session
costs nothing before its next answer.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial

from ba_tui.core.errors import BaError, off_loop
from ba_tui.core.events import (
    Event,
    FiguresChecked,
    MessageDone,
    Notice,
    Steered,
    ToolFinished,
    ToolStarted,
    TurnStarted,
)
from ba_tui.core.messages import Message, reminder
from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.ports.tables import Cell, FoundRows
from ba_tui.core.questions import Option, Question
from ba_tui.core.text.figures import YOU, FigureReport, FigureSource, FigureVerdict, SourceFile
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count, one_line
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.feature import SessionContext
from ba_tui.features.figures.observed.evidence import Evidence
from ba_tui.features.figures.session_evidence import EvidenceFeed, EvidenceThread, LongResult, stored_text
from ba_tui.features.figures.source_files import changed, files_of
from ba_tui.features.figures.units import PERCENT
from ba_tui.features.figures.verdicts import PERSON, CheckedAnswer, Verdict, VerdictSource

log = logging.getLogger(__name__)
KINDS = (TurnStarted, Steered, ToolStarted, ToolFinished, MessageDone, FiguresChecked)
"""Events that the evidence is made of."""
TAIL = 2_000
"""Events at the end of the file that may repeat events which arrived while the file was read."""
CHECK, LEAVE = "Ask the model to check", "Leave as it is"
SHOWN = 5
"""Figures that the question to the user names."""


class _CheckRequest:
    """Whether the model was asked in this turn to check its figures."""

    def __init__(self) -> None:
        self.once = False


class FigureChecks:
    """Judges answers of the main agent, and indexes the session's events from the first judged answer on."""

    def __init__(self, context: SessionContext) -> None:
        self._verify = context.loaded.settings.analysis.verify
        self._scope = context.scope
        self._data = partial(context.offered, Datasets)
        self._thread: EvidenceThread | None = None
        self._meanwhile: list[Event] | None = None
        """Events that arrive while the history is read."""
        self._files: dict[str, Sequence[SourceFile]] = {}

    def apply(self, event: Event) -> None:
        """Index an event that belongs to the evidence, in the thread."""
        if not isinstance(event, KINDS):
            return
        if self._thread is not None:
            self._thread.add((event,))
        elif self._meanwhile is not None:
            self._meanwhile.append(event)

    async def after(self, reply: Message, branch: Branch) -> None:
        """Check a final answer and emit the verdicts, or a notice when the check fails."""
        try:
            thread = self._thread or await self._begun()
            report = await self._report(reply.text, thread)
        except Exception:
            log.exception("the figures of an answer could not be checked")
            branch.emit(Notice("The figures of this answer were not checked.", "warning", "ba doctor names the log."))
            return
        branch.emit(FiguresChecked(reply.id, report))
        if report.doubtful and self._verify in {"ask", "fix"} and not branch.state(_CheckRequest).once:
            branch.state(_CheckRequest).once = True
            if self._verify == "fix" or await _agrees(report, branch):
                branch.post(reminder(await thread.run(lambda seen: follow_up(reply.text, report, seen.evidence))))

    async def close(self) -> None:
        """Stop indexing, after the current piece of work."""
        if self._thread is not None:
            await off_loop(self._thread.close)

    async def _begun(self) -> EvidenceThread:
        """Read the events of the session so far, once."""
        self._meanwhile = []
        events = await self._scope.history()
        self._thread = EvidenceThread(partial(stored_text, self._scope.results))
        known = {(event.type, event.at) for event in events[-TAIL:]}
        later = [event for event in self._meanwhile if (event.type, event.at) not in known]
        self._meanwhile = None
        self._thread.add((*events, *later))
        return self._thread

    async def _report(self, answer: str, thread: EvidenceThread) -> FigureReport:
        checked = await thread.run(lambda seen: seen.checked(answer))
        if await self._looked_up(answer, checked, thread):
            checked = await thread.run(lambda seen: seen.checked(answer))
        await self._know_files(checked, await thread.run(lambda seen: frozenset(seen.tables)))
        return await thread.run(lambda seen: _reported(checked, seen, self._files))

    async def _looked_up(self, answer: str, checked: CheckedAnswer, thread: EvidenceThread) -> bool:
        """Add rows of long results that may hold unsourced figures to the evidence; return whether there are any."""
        long = await thread.run(lambda seen: seen.long)
        if not long or not any(verdict.unfounded for verdict in checked.verdicts):
            return False
        rows = await rows_for(answer, checked, long, await off_loop(self._data))
        return await thread.run(lambda seen: seen.add_rows(rows))

    async def _know_files(self, checked: CheckedAnswer, results: frozenset[str]) -> None:
        """Ask the data engine once for the files behind those ``results`` that the answer uses."""
        used = results & {name for verdict in checked.verdicts for name in verdict.calls}
        if used - self._files.keys():
            with contextlib.suppress(BaError):
                self._files |= files_of(await (await off_loop(self._data)).catalogue())
            # The files of a result that the engine has dropped are unknown.
            self._files |= dict.fromkeys(used - self._files.keys(), ())
        self._files = {name: files for name, files in self._files.items() if name in results}


def _reported(checked: CheckedAnswer, seen: EvidenceFeed, files: Mapping[str, Sequence[SourceFile]]) -> FigureReport:
    report = report_of(checked, seen.calls, files)
    used = {at for verdict in report.verdicts for at in verdict.files}
    return replace(report, changed=changed(report.files[at] for at in sorted(used)))


async def _agrees(report: FigureReport, branch: Branch) -> bool:
    """Ask whether the model should check the unsourced figures."""
    unsourced = report.doubtful
    named = ", ".join(verdict.text for verdict in unsourced[:SHOWN])
    more = f" and {len(unsourced) - SHOWN} more" if len(unsourced) > SHOWN else ""
    text = f"{count(len(unsourced), 'figure')} of this answer came from no result: {named}{more}."
    reply = await branch.ask(Question("choice", text, options=(Option(CHECK), Option(LEAVE))))
    return reply.choice == "text" and reply.text.strip() == CHECK


# The request to the model to check its unsourced figures, with the nearest known numbers

MOST, NEAREST, WITHIN = 20, 3, 0.1
"""The most figures listed, near numbers for each, and their largest distance as a share of the figure."""
AROUND = 40
MOST_TABLES = 200
LEAD = (
    "These figures of your answer are in nothing that the tools returned in this session, and they do not follow from "
    "it by simple arithmetic:"
)
ASK = (
    "Check each one. Correct it from the results, call a tool to find it, or leave it out and say that it is not "
    "known. Then give the whole corrected answer again, as if it were the first, without a word about this check."
)


def follow_up(answer: str, report: FigureReport, evidence: Evidence) -> str:
    """Return the request to the model."""
    unsourced = report.doubtful
    lines = [_line(answer, verdict, evidence) for verdict in unsourced[:MOST]]
    if len(unsourced) > MOST:
        lines.append(f"- and {len(unsourced) - MOST} more")
    return "\n".join([LEAD, *lines, ASK])


def _line(answer: str, verdict: FigureVerdict, evidence: Evidence) -> str:
    start, end = max(0, verdict.start - AROUND), verdict.end + AROUND
    near = nearest(verdict.value, evidence)
    said = f"; the nearest numbers are {', '.join(near)}" if near else ""
    if verdict.label == "misplaced":
        said = f"; {verdict.reason}"
    return f"- {one_line(verdict.text, 60)} in “{one_line(answer[start:end], 2 * AROUND + 60)}”{said}"


def nearest(value: float | None, evidence: Evidence) -> Sequence[str]:
    """Return the numbers of the evidence that are closest to ``value``, each with its place."""
    if not value:
        return ()
    size = abs(value)
    low, high = size * (1 - WITHIN), size * (1 + WITHIN)
    found = [
        (abs(held - size), number, column, row)
        for number in [*evidence.holding(low, high)][-MOST_TABLES:]
        for held, column, row in evidence.within(number, low, high)
    ]
    named: list[str] = []
    for _, number, column, row in sorted(found):
        table = evidence.place(number).table
        held = table.columns[column]
        where = " · ".join(part for part in (table.call, held.name, *table.labels[row]) if part)
        text = f"{held.values[row]:.15g} ({one_line(where, 80)})"
        if text not in named:
            named.append(text)
        if len(named) == NEAREST:
            break
    return named


# Unsourced figures are looked up in the rows of long results that are not indexed.
#
# A hit counts when the answer names its row, or when so few rows would have such a value by accident.

MOST_FIGURES, MOST_LOOKED_UP, MOST_ROWS = 16, 8, 5
SECONDS = 2.0
"""The longest search of one result."""
BY_ACCIDENT = 0.05
"""A hit proves nothing when this many rows are expected to have such a value by accident."""
ROWS_AROUND = 0.5
"""The width of the range, as a share of its value, within which ``FoundRows.around`` are counted."""
NEAR = 300
"""Characters around a figure in which its row may be named."""
LEAST_NAME = 3
LARGEST = 1e300


@frozen
class WantedRange:
    """The range of values that are written as a figure of the answer is. ``near``: the text around the figure."""

    low: float
    high: float
    near: str


async def rows_for(
    answer: str, checked: CheckedAnswer, long: Sequence[LongResult], data: Datasets
) -> Mapping[str, Mapping[int, Sequence[Cell]]]:
    """Return the rows of ``long`` results that hold unsourced figures of ``answer``, by handle and row number."""
    unsourced = [verdict for verdict in checked.verdicts if verdict.unfounded][:MOST_FIGURES]
    wanted = [each for verdict in unsourced for each in _wanted(verdict, answer)]
    if not wanted:
        return {}
    ranges = [(each.low, each.high) for each in wanted]
    rows: dict[str, Mapping[int, Sequence[Cell]]] = {}
    for result in [*reversed(long)][:MOST_LOOKED_UP]:
        try:
            found = await data.find(result.name, ranges, most=MOST_ROWS, timeout=SECONDS)
        except BaError:
            # Its figures stay unsourced.
            continue
        if believed := _believed(found, wanted):
            rows[result.name] = believed
    return rows


def _wanted(verdict: Verdict, answer: str) -> list[WantedRange]:
    figure = verdict.figure
    if not figure.value.is_finite() or abs(figure.value) > LARGEST:
        return []
    near = answer[max(0, figure.start - NEAR) : figure.end + NEAR].casefold()
    low, high = float(figure.value - figure.step / 2), float(figure.value + figure.step / 2)
    found = [(low, high)]
    if figure.unit == PERCENT:
        found.append((low / 100, high / 100))
    if not figure.sign:
        found += [(-high, -low) for low, high in found]
    return [WantedRange(low, high, near) for low, high in found]


def _believed(found: Sequence[FoundRows], wanted: Sequence[WantedRange]) -> Mapping[int, Sequence[Cell]]:
    expected = [0.0] * len(wanted)
    for each in found:
        expected[each.range] += _expected(each, wanted[each.range])
    rows: dict[int, Sequence[Cell]] = {}
    for each in found:
        few = expected[each.range] < BY_ACCIDENT
        near = wanted[each.range].near
        held = zip(each.numbers, each.rows, strict=True)
        rows.update((number, row) for number, row in held if few or _is_named(row, near))
    return rows


def _expected(found: FoundRows, wanted: WantedRange) -> float:
    """Return how many rows would have a value in the range if values were spread evenly around it."""
    size = max(abs(wanted.low), abs(wanted.high))
    return found.around * (wanted.high - wanted.low) / (ROWS_AROUND * size) if size else float(found.around)


def _is_named(row: Sequence[Cell], near: str) -> bool:
    return any(isinstance(cell, str) and len(cell) >= LEAST_NAME and cell.casefold() in near for cell in row)


# Verdicts in the form that every face shows

MOST_SOURCES = 12
"""Operands of one derivation that a report names."""
LONGEST = 400
"""Characters of a derivation, and of a figure."""
LONGEST_LABEL = 80
_PERSON = regex(rf"\b{PERSON}\[")


def report_of(
    checked: CheckedAnswer, calls: Mapping[str, str], files: Mapping[str, Sequence[SourceFile]] | None = None
) -> FigureReport:
    """Return the verdicts on one answer. ``calls`` has call ids by source name, ``files`` the files by result."""
    files = files or {}
    known = list(dict.fromkeys(file for each in files.values() for file in each))
    verdicts = [_figure_verdict(each, calls, files, known) for each in checked.verdicts]
    used = sorted({at for verdict in verdicts for at in verdict.files})
    partly = tuple(dict.fromkeys(name[:LONGEST_LABEL] for name in checked.partly))
    return FigureReport(tuple(verdicts), partly, checked.unread, tuple(known) if used else ())


def _figure_verdict(
    verdict: Verdict,
    calls: Mapping[str, str],
    files: Mapping[str, Sequence[SourceFile]],
    known: Sequence[SourceFile],
) -> FigureVerdict:
    figure, derivation = verdict.figure, verdict.derivation
    found = derivation.operands if derivation else verdict.sources
    used = sorted({known.index(file) for name in verdict.calls for file in files.get(name, ())})
    return FigureVerdict(
        figure.text[:LONGEST],
        figure.start,
        figure.end,
        verdict.label,
        _number(figure.value),
        figure.unit.family if figure.unit else "",
        tuple([_figure_source(source, calls) for source in found[:MOST_SOURCES]]),
        _PERSON.sub(f"{YOU}[", derivation.text)[:LONGEST] if derivation else "",
        verdict.note,
        tuple(used),
    )


def _figure_source(source: VerdictSource, calls: Mapping[str, str]) -> FigureSource:
    if source.call == PERSON:
        return FigureSource(YOU, source.value, "", source.start, source.end, row=source.row[:LONGEST_LABEL])
    return FigureSource(
        source.call,
        source.value,
        calls.get(source.call, ""),
        source.start,
        source.end,
        source.column[:LONGEST_LABEL],
        source.row[:LONGEST_LABEL],
        source.line,
    )


def _number(value: Decimal) -> float | None:
    """Return ``value`` as a JSON number; None if no float can represent it."""
    return float(value) if value.is_finite() and abs(value) <= Decimal("1e300") else None
