"""Masks for personal values, and detection of secrets, in the data that a model reads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.tables import Column, Personal, Provenance, QueryResult, Row
from ba_tui.core.results import ToolResult
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Call, Tool
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.card import MASKS, personal_kind
from ba_tui.features.data.analysis.engine import Analysis, ColumnTexts
from ba_tui.features.data.analysis.errors import AnalysisError
from ba_tui.permissions.secrets.disguises import KnownSearch
from ba_tui.permissions.secrets.scanner import find

_ENTRY = regex(r"[^\s.]+(?:\.[^\s.]+)*\.[^.]+")


class ColumnMasks:
    """The columns that look personal but may be shown to the model: ``unmasked`` from the settings, as TABLE.COLUMN,
    and those that the user allows later. ``keep`` saves an entry (blocks, may raise BaError)."""

    def __init__(self, unmasked: Iterable[str], analysis: Analysis, keep: Callable[[str], object]) -> None:
        self._allowed = {entry.lower() for entry in unmasked}
        self._analysis = analysis
        self._keep = keep

    async def allow(self, entry: str) -> None:
        """Allow the values of ``entry``, a column as TABLE.COLUMN, from now on. Raises BaError."""
        if not _ENTRY.fullmatch(entry):
            raise UsageError("Name one column as TABLE.COLUMN.", "As in /unmask customers.mail")
        await asyncio.to_thread(self._keep, entry)
        self._allowed.add(entry.lower())

    def columns(self, table: str) -> tuple[str, ...]:
        """Return the allowed columns of ``table``, a dataset or a source's table."""
        allowed = (entry.rpartition(".") for entry in self._allowed)
        return tuple(column for owner, _, column in allowed if _covers(owner, table.lower()))

    async def masked(self, result: QueryResult) -> QueryResult:
        """Return ``result`` with personal values of its first rows masked, and a note about it."""
        rows, notes = await self.rows(result.columns, result.head, result.provenance)
        return replace(result, head=rows, notes=(*result.notes, *notes))

    async def rows(
        self, columns: Sequence[Column], rows: Sequence[Row], provenance: Provenance
    ) -> tuple[tuple[Row, ...], tuple[str, ...]]:
        """Return ``rows`` with personal values masked, and a note for the model."""
        personal: dict[int, Personal] = {}
        for place, column in enumerate(columns):
            if kind := personal_kind(column, [row[place] for row in rows if row[place] is not None]):
                personal[place] = kind
        if not personal:
            return tuple(rows), ()
        used = await self._used(provenance)
        allowed = {column for table in used for column in self.columns(table)}
        masks = {place: MASKS[kind] for place, kind in personal.items() if columns[place].name.lower() not in allowed}
        if not masks:
            return tuple(rows), ()
        made = tuple(
            tuple(
                mask if (mask := masks.get(place)) and value is not None else value for place, value in enumerate(row)
            )
            for row in rows
        )
        names = ", ".join(columns[place].name for place in masks)
        owner = used[0] if used else "TABLE"
        first = columns[next(iter(masks))].name
        return made, (
            f"values of {names} look personal and are masked here; the user sees them, and can show them to you with "
            f"/unmask {owner}.{first}",
        )

    async def _used(self, provenance: Provenance) -> Sequence[str]:
        """Return the datasets and sources of a result, including those of results that it was computed from."""
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
    """Return whether an entry for ``owner`` applies to ``table``: the same table, or a table of that source."""
    return owner == table or owner.startswith(f"{table}.") or table.startswith(f"{owner}.")


# Secrets are learned when data is read: a query may shorten or change a secret, so patterns would miss it in results.

log = logging.getLogger(__name__)


@frozen
class SecretColumns:
    """Searches the text columns of the engine for secrets and adds them to ``search``."""

    analysis: Analysis
    search: KnownSearch

    async def learn(self) -> None:
        """Learn the secrets of new datasets: of whole columns when a sample has values that look like secrets."""
        try:
            for sample in await self.analysis.new_samples():
                if await asyncio.to_thread(_secrets, sample):
                    whole = await self.analysis.texts(sample.dataset, sample.column)
                    await asyncio.to_thread(self._add, replace(whole, texts=(*sample.texts, *whole.texts)))
        except AnalysisError as error:
            # The call itself reports what is wrong with the data, and its result is searched by patterns anyway.
            log.warning("The columns of the data could not be searched for secrets: %s", error)

    def _add(self, found: ColumnTexts) -> None:
        for kind, values in _secrets(found).items():
            self.search.known.add(values, kind)
        self.search.prepare()

    def learning(self, tool: Tool) -> Tool:
        """Return ``tool`` such that secrets in newly read data are learned before its result is searched."""

        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            result = await tool.run(args, call)
            await self.learn()
            return result

        return replace(tool, run=run)


def _secrets(found: ColumnTexts) -> Mapping[str, list[str]]:
    """Return the secrets of a column by kind. Patterns see ``column="value"``, as in an assignment."""
    secrets: dict[str, list[str]] = {}
    for text in dict.fromkeys(found.texts):
        line = f'{found.column}="{text}"'
        for secret in find(line):
            secrets.setdefault(secret.kind, []).append(line[secret.start : secret.end])
    return secrets
