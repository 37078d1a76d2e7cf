"""Queries that add up a table together with the totals among its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ba_tui.core.ports.tables import Finding
from ba_tui.features.data.analysis.engine_process.database import quoted
from ba_tui.features.data.analysis.engine_process.traps.probing import Prober
from ba_tui.features.data.analysis.engine_process.traps.syntax import Node, Select, columns_in, is_call

TRAP = "total_rows"
TAKEN_IN = ("sum", "avg", "mean", "median", "max")
"""Calls whose value a row with a total makes wrong."""


def total_rows(known: Callable[[str], Sequence[Finding]]) -> Callable[[Select, Prober], Iterator[Finding]]:
    """Return a check; ``known`` gives the findings in the rows of a table."""

    def check(select: Select, probe: Prober) -> Iterator[Finding]:
        calls = [call for call, _ in select.aggregates() if is_call(call, *TAKEN_IN) and not call["filter"]]
        if not calls or select.node["having"]:
            return
        for table in dict.fromkeys(each.table for each in select.relations if each.table):
            for each in known(table):
                if each.trap == TRAP and not _named(each.column, select.groups()):
                    yield from _taken_in(select, probe, calls, each)

    return check


def _taken_in(select: Select, probe: Prober, calls: Sequence[Node], known: Finding) -> Iterator[Finding]:
    call = next((each for each in calls if not _named(known.column, [each])), None)
    condition = known.proof.partition(" WHERE ")[2]
    if call is None or not condition:
        return
    proof = f"{select.prefix}SELECT * FROM {select.source()}{select.where(None, f'({condition})')}"
    if rows := int(probe.number(f"SELECT count(*) FROM ({proof})")):
        part, told = select.query.part(call), "row is a total" if rows == 1 else "rows are totals"
        message = f"{part} counts twice: {rows:,} {told} of the others, as {quoted(known.column)} says."
        yield Finding(TRAP, known.dataset, message, proof, known.column, part)


def _named(column: str, nodes: Sequence[Node]) -> bool:
    return any(each["column_names"][-1].lower() == column.lower() for node in nodes for each in columns_in(node))
