"""The events of a session as evidence: results, the person's words, attached files and earlier verdicts.

Runs in one thread at a time, beside the event loop. How figures are judged by it stands in the room figures.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation

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
from ba_tui.core.ports.mentions import ATTACHED
from ba_tui.core.ports.tables import Cell
from ba_tui.core.results import Table, ToolResult
from ba_tui.core.text.figures import YOU, FigureReport, FigureSource, FigureVerdict
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.figures.answers.extract import Figure, extract
from ba_tui.features.data.analysis.figures.check import check
from ba_tui.features.data.analysis.figures.observed.evidence import Evidence
from ba_tui.features.data.analysis.figures.verdicts import PERSON, Checked, Derivation, Source, Verdict

MOST_RESULTS = 64
"""Result tables, the newest, whose rows can be looked up."""
MOST_OPEN = 1_000
"""Calls that may be waited for: of more, the oldest have no result."""
MOST_LOOKED = 4_000
"""Rows that were looked up and are known not to be new."""
DECIMAL = regex(r"-?(?:0|[1-9]\d*)\.\d+")
Stored = Callable[[str], str]


@frozen
class LongResult:
    """A result table whose rows are not all indexed. ``name`` is its handle, ``rows`` counts all of them; ``whole``:
    all were, so that it is looked up only once the evidence has dropped it."""

    name: str
    columns: tuple[str, ...]
    rows: int
    asked: str
    whole: bool = False


class Observing:
    """Feed it every event in order. ``stored`` returns the beginning and the end of a stored result. Not safe for use
    by several threads at once."""

    def __init__(self, stored: Stored) -> None:
        self.evidence = Evidence()
        self._results: dict[str, LongResult] = {}
        """The newest result tables, by handle."""
        self.tables: set[str] = set()
        """The handles of results that figures may come from."""
        self.calls: dict[str, str] = {}
        """The ids of calls by the names of what they returned."""
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
        """The results whose rows can be looked up."""
        held = self.evidence.by_call
        return [each for name, each in self._results.items() if not each.whole or name not in held]

    def checked(self, answer: str) -> Checked:
        """Judge the figures of ``answer`` by everything so far."""
        return check(answer, self.evidence, self._prompt)

    def add_rows(self, found: Mapping[str, Mapping[int, Sequence[Cell]]]) -> bool:
        """Index rows of long results, by handle and place; returns whether one of them is new."""
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
            # A list that the model wrote itself.
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
        """Note which call returned ``name``. Names of results that are not held any more are dropped now and then."""
        self.calls[name] = call.id
        if len(self.calls) > 2 * (len(self.evidence.by_call) + MOST_RESULTS):
            held = {*self.evidence.by_call, *self._results, *self._sources(), name}
            self.calls = {each: id for each, id in self.calls.items() if each in held}
            self.tables &= held

    def _sources(self) -> set[str]:
        """The names of what earlier answers took their figures from."""
        return {call for verdict in self.evidence.verdicts for call in verdict.calls}


def _cells(rows: Sequence[Sequence[object]]) -> list[list[float | str | None]]:
    """The cells of a result as numbers and texts. Columns of decimals come as text."""
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


def _checked(answer: str, report: FigureReport) -> Checked:
    """The verdicts of an earlier answer, for figures that repeat them."""
    verdicts = {(verdict.start, verdict.end): verdict for verdict in report.verdicts}
    read = [(figure, verdicts.get((figure.start, figure.end))) for figure in extract(answer).figures]
    return Checked(tuple(_verdict(verdict, figure) for figure, verdict in read if verdict), ())


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


def _source(source: FigureSource) -> Source:
    name = PERSON if source.name == YOU else source.name
    return Source(name, source.start, source.end, source.value, source.column, source.row, line=source.line)
