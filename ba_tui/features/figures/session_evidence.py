"""The evidence of a session, collected from its events: results, the user's words, attached files, earlier verdicts.

It grows in a thread of its own, beside the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal, InvalidOperation
from typing import TypeVar

from ba_tui.core.errors import StorageError
from ba_tui.core.events import (
    Event,
    FiguresChecked,
    MessageDone,
    Steered,
    ToolFinished,
    ToolStarted,
    TurnStarted,
)
from ba_tui.core.messages import Message, ToolUse
from ba_tui.core.ports.context import ATTACHED
from ba_tui.core.ports.tables import Cell
from ba_tui.core.results import Table, ToolResult
from ba_tui.core.text.figures import YOU, FigureReport, FigureSource, FigureVerdict
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.figures.check import check
from ba_tui.features.figures.extract import Figure, extract
from ba_tui.features.figures.observed.evidence import Evidence
from ba_tui.features.figures.verdicts import PERSON, CheckedAnswer, Derivation, Verdict, VerdictSource
from ba_tui.sessions.artifacts import Artifacts

log = logging.getLogger(__name__)
T = TypeVar("T")
MOST_RESULTS = 64
"""The newest result tables; the rows of older ones can't be looked up."""
MOST_OPEN = 1_000
"""Open calls; the results of the oldest ones beyond this number are ignored."""
MOST_LOOKED = 4_000
"""Rows that are remembered as looked up."""
DECIMAL = regex(r"-?(?:0|[1-9]\d*)\.\d+")
WHOLE = 4_000_000
"""Bytes up to which a stored result is read completely."""
HEAD, TAIL = 120_000, 40_000
"""Bytes read from the beginning and the end of a longer one."""
Stored = Callable[[str], str]


def stored_text(results: Artifacts, ref: str) -> str:
    """Return a stored result, shortened to its beginning and end when it is long; empty when it is gone. Blocks."""
    try:
        if results.about(ref).size <= WHOLE:
            return results.read(ref, 0, WHOLE).text
        first = results.read(ref, 0, HEAD)
        return f"{first.text}\n{results.read(ref, first.size - TAIL, TAIL).text}"
    except StorageError:
        return ""


@frozen
class LongResult:
    """A result table whose rows can be looked up. ``name`` is its handle, ``rows`` the number of its rows, ``asked``
    the input of its call. ``whole``: all rows were indexed; they are looked up only once the evidence dropped them."""

    name: str
    columns: tuple[str, ...]
    rows: int
    asked: str
    whole: bool = False


class EvidenceFeed:
    """Collects evidence from every event, in order. ``stored`` returns the text of a stored result. Not thread-safe."""

    def __init__(self, stored: Stored) -> None:
        self.evidence = Evidence()
        self._results: dict[str, LongResult] = {}
        """The newest result tables, by handle."""
        self.tables: set[str] = set()
        """The handles of results that figures may come from."""
        self.calls: dict[str, str] = {}
        """Call ids by the name of the result."""
        self._stored = stored
        self._prompt = ""
        self._answer: Message | None = None
        self._started: dict[str, ToolUse] = {}
        self._named: Counter[str] = Counter()
        self._looked: set[tuple[str, int]] = set()

    def apply(self, event: Event) -> None:
        match event:
            case TurnStarted(agent="main", prompt=message):
                self._prompt = message.said
                self.evidence.add_words(self._prompt)
            case Steered(agent="main", message=message):
                self._steered(message)
            case ToolStarted(call=call) if not call.input.get("private"):
                self._started[call.id] = call
                while len(self._started) > MOST_OPEN:
                    del self._started[next(iter(self._started))]
            case ToolFinished(call_id=call_id, result=result):
                if call := self._started.pop(call_id, None):
                    self._returned(call, result)
            case MessageDone(agent="main", message=message):
                self._answer = message
            case FiguresChecked(agent="main", message=id, report=report):
                if self._answer is not None and self._answer.id == id:
                    self.evidence.add_checked(_checked(self._answer.text, report))
            case _:
                pass

    @property
    def long(self) -> Sequence[LongResult]:
        """Return the results whose rows can be looked up."""
        held = self.evidence.by_call
        return [each for name, each in self._results.items() if not each.whole or name not in held]

    def checked(self, answer: str) -> CheckedAnswer:
        """Judge the figures of ``answer`` by the evidence so far."""
        return check(answer, self.evidence, self._prompt)

    def add_rows(self, found: Mapping[str, Mapping[int, Sequence[Cell]]]) -> bool:
        """Index rows of long results, by handle and row number; return whether one of them is new."""
        held = self.evidence.by_call if len(self._looked) < MOST_LOOKED else {}
        self._looked = {each for each in self._looked if each[0] in held}
        before = len(self._looked)
        for name, rows in found.items():
            fresh = {number: row for number, row in rows.items() if (name, number) not in self._looked}
            if fresh and (long := self._results.get(name)):
                self._looked.update((name, number) for number in fresh)
                self.evidence.add_table(name, long.columns, _cells([*fresh.values()]), long.asked, tuple(fresh))
        return len(self._looked) > before

    def _steered(self, message: Message) -> None:
        text = message.text
        if not message.hidden:
            if message.origin in {"user", "steer"}:
                self._prompt = f"{self._prompt}\n{message.said}"
                self.evidence.add_words(message.said)
        elif ATTACHED in text:
            head, _, body = text.partition(ATTACHED)
            name = head.rpartition("\n")[2].strip()[:80] or "attachment"
            self.evidence.add(name, body)

    def _returned(self, call: ToolUse, result: ToolResult) -> None:
        if result.changes is not None and result.changes.todos is not None:
            # The model wrote this list of tasks itself.
            return
        table = result.display
        if isinstance(table, Table) and table.handle:
            self._table(call, table)
            return
        self._named[call.name] += 1
        name = f"{call.name}#{self._named[call.name]}"
        self._call(name, call)
        self.evidence.add(name, self._stored(result.artifact) if result.artifact else result.text, call.input)

    def _table(self, call: ToolUse, table: Table) -> None:
        asked = " ".join(str(value) for value in call.input.values())
        self._call(table.handle, call)
        self.tables.add(table.handle)
        self.evidence.add_table(table.handle, table.columns, _cells(table.rows), asked)
        self.evidence.add(table.handle, f"{table.length} rows")
        self._results.pop(table.handle, None)
        whole = table.length <= len(table.rows)
        self._results[table.handle] = LongResult(table.handle, table.columns, table.length, asked, whole)
        while len(self._results) > MOST_RESULTS:
            del self._results[next(iter(self._results))]

    def _call(self, name: str, call: ToolUse) -> None:
        """Record which call returned ``name``, and drop the names of forgotten results when there are too many."""
        self.calls[name] = call.id
        if len(self.calls) > 2 * (len(self.evidence.by_call) + MOST_RESULTS):
            held = {*self.evidence.by_call, *self._results, *self._sources(), name}
            self.calls = {each: id for each, id in self.calls.items() if each in held}
            self.tables &= held

    def _sources(self) -> set[str]:
        """Return the names of the sources of earlier answers' figures."""
        return {call for verdict in self.evidence.verdicts for call in verdict.calls}


def _cells(rows: Sequence[Sequence[object]]) -> list[list[float | str | None]]:
    """Return the cells of a result as numbers and texts. Decimals arrive as text and become numbers."""
    decimals = {at for at in range(len(rows[0]) if rows else 0) if _is_decimal([row[at] for row in rows])}
    return [[_cell(cell, decimal=at in decimals) for at, cell in enumerate(row)] for row in rows]


def _is_decimal(cells: Sequence[object]) -> bool:
    texts = [cell for cell in cells if cell is not None]
    return bool(texts) and all(isinstance(cell, str) and DECIMAL.fullmatch(cell) for cell in texts)


def _cell(cell: object, *, decimal: bool) -> float | str | None:
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, str):
        return float(cell) if decimal else cell
    if isinstance(cell, int | float):
        try:
            number = float(cell)
        except OverflowError:
            return None
        return number if math.isfinite(number) else None
    return None


def _checked(answer: str, report: FigureReport) -> CheckedAnswer:
    """Return the verdicts on an earlier answer, for later figures that repeat its figures."""
    verdicts = {(verdict.start, verdict.end): verdict for verdict in report.verdicts}
    read = [(figure, verdicts.get((figure.start, figure.end))) for figure in extract(answer).figures]
    return CheckedAnswer(tuple(_verdict(verdict, figure) for figure, verdict in read if verdict), ())


def _verdict(verdict: FigureVerdict, figure: Figure) -> Verdict:
    sources = tuple(map(_source, verdict.sources))
    if not verdict.derivation:
        return Verdict(figure, verdict.label, sources)
    operation, value = verdict.derivation.partition("(")[0], verdict.derivation.rpartition("= ")[2]
    try:
        number = float(Decimal(value))
    except InvalidOperation:
        number = verdict.value or 0.0
    return Verdict(figure, verdict.label, derivation=Derivation(operation, sources, number, verdict.derivation))


def _source(source: FigureSource) -> VerdictSource:
    name = PERSON if source.name == YOU else source.name
    return VerdictSource(name, source.start, source.end, source.value, source.column, source.row, line=source.line)


class EvidenceThread:
    """The thread that indexes events and judges answers, one piece of work after the other. ``stored`` as in
    EvidenceFeed."""

    def __init__(self, stored: Callable[[str], str]) -> None:
        self._stored = stored
        self._thread = ThreadPoolExecutor(1, "figures")
        self._observing: EvidenceFeed | None = None

    def add(self, events: Sequence[Event]) -> None:
        """Queue ``events`` for indexing and return."""
        self._thread.submit(self._index, events)

    async def run(self, work: Callable[[EvidenceFeed], T]) -> T:
        """Run ``work`` once all queued events are indexed."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(self._evidence()))

    def close(self) -> None:
        """Wait for the current piece of work and drop the others."""
        self._thread.shutdown(cancel_futures=True)

    def _index(self, events: Sequence[Event]) -> None:
        # The executor would swallow an error, and the remaining events would be lost.
        for event in events:
            try:
                self._evidence().apply(event)
            except Exception:
                log.exception("an event was not indexed for figures")

    def _evidence(self) -> EvidenceFeed:
        if self._observing is None:
            self._observing = EvidenceFeed(self._stored)
        return self._observing
