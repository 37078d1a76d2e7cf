"""Values that look personal, masked in what a model reads of a result until the person allows them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.tables import Cell, Column, Personal, Provenance, QueryResult, Row
from ba_tui.core.text.patterns import regex
from ba_tui.features.data.analysis.card import MASKS
from ba_tui.features.data.analysis.engine import Analysis

_ENTRY = regex(r"[^\s.]+(?:\.[^\s.]+)*\.[^.]+")


class Masking:
    """Which columns a model may see although they look personal: ``unmasked`` of the settings, as TABLE.COLUMN, and
    those that the person allows later; ``keep`` writes one down (blocks, may raise BaError)."""

    def __init__(self, unmasked: Iterable[str], analysis: Analysis, keep: Callable[[str], object]) -> None:
        self._allowed = {entry.lower() for entry in unmasked}
        self._analysis = analysis
        self._keep = keep

    async def allow(self, entry: str) -> None:
        """Show the values of ``entry``, a column as TABLE.COLUMN, from now on. Raises BaError."""
        if not _ENTRY.fullmatch(entry):
            raise UsageError("Name one column as TABLE.COLUMN.", "As in /unmask customers.mail")
        await asyncio.to_thread(self._keep, entry)
        self._allowed.add(entry.lower())

    def columns(self, table: str) -> tuple[str, ...]:
        """The columns of ``table``, a dataset or a table of a source, that may be seen."""
        allowed = (entry.rpartition(".") for entry in self._allowed)
        return tuple(column for owner, _, column in allowed if _covers(owner, table.lower()))

    async def masked(self, result: QueryResult) -> QueryResult:
        """Return ``result`` with masks in its head, and a note that says so."""
        rows, notes = await self.rows(result.columns, result.head, result.provenance)
        return replace(result, head=rows, notes=(*result.notes, *notes))

    async def rows(
        self, columns: Sequence[Column], rows: Sequence[Row], provenance: Provenance
    ) -> tuple[tuple[Row, ...], tuple[str, ...]]:
        """Return ``rows`` with masks in place of personal values, and a note for the model about them."""
        from ba_tui.features.data.analysis.personal import personal_kind  # noqa: PLC0415 - not before the first result

        personal: dict[int, Personal] = {}
        for place, column in enumerate(columns):
            if kind := personal_kind(column, _values(rows, place)):
                personal[place] = kind
        if not personal:
            return tuple(rows), ()
        used = await self._used(provenance)
        allowed = {column for table in used for column in self.columns(table)}
        masks = {place: MASKS[kind] for place, kind in personal.items() if columns[place].name.lower() not in allowed}
        if not masks:
            return tuple(rows), ()
        made = tuple(tuple(_mask(value, masks.get(place)) for place, value in enumerate(row)) for row in rows)
        names = ", ".join(columns[place].name for place in masks)
        owner = used[0] if used else "TABLE"
        first = columns[next(iter(masks))].name
        return made, (
            f"values of {names} look personal and are masked here; the person sees them, and can show them to you with "
            f"/unmask {owner}.{first}",
        )

    async def _used(self, provenance: Provenance) -> Sequence[str]:
        """The datasets and sources that a result comes from, also by way of other results."""
        found = [each.name for each in provenance.datasets]
        if provenance.results:
            known = {each.handle: each.provenance for each in (await self._analysis.catalogue()).results}
            waiting, seen = list(provenance.results), set[str]()
            while waiting:
                handle = waiting.pop()
                if handle not in seen and handle in known:
                    seen.add(handle)
                    found += [each.name for each in known[handle].datasets]
                    waiting += known[handle].results
        return list(dict.fromkeys(found))


def _covers(owner: str, table: str) -> bool:
    """Whether an entry of ``owner`` is about ``table``: itself, or a table of the source that it names."""
    return owner == table or owner.startswith(f"{table}.") or table.startswith(f"{owner}.")


def _values(rows: Sequence[Row], place: int) -> list[Cell]:
    return [row[place] for row in rows if row[place] is not None]


def _mask(value: Cell, mask: str | None) -> Cell:
    return mask if mask and value is not None else value
