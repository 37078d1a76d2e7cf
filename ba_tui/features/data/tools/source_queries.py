"""Queries on sources: what reads runs, what changes data asks and needs a writable source, what is heavy asks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ba_tui.core.errors import BaError
from ba_tui.core.ports.tables import QueryResult
from ba_tui.core.text.wording import count
from ba_tui.features.data.analysis.engine import Listener
from ba_tui.features.data.analysis.errors import QueryFailed, QueryRefused
from ba_tui.features.data.analysis.sources import Sources
from ba_tui.permissions.sql import StatementKind, classify

DIALECTS: Mapping[str, str] = {"postgresql": "postgres", "sc": "spark"}
"""Where the grammar has another name than the scheme of the address."""
LOCAL = "duckdb"
READS: frozenset[StatementKind] = frozenset({"read"})


class SourceQueries:
    """What ``query_data`` does with its argument ``source``."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources

    def dialect(self, args: Mapping[str, Any]) -> str:
        """Return the SQL dialect of a call. Takes anything and never raises."""
        place = self.sources.places.get(str(args.get("source") or ""))
        return DIALECTS.get(place.scheme, place.scheme) if place else LOCAL

    async def writes(self, args: Mapping[str, Any]) -> bool:
        """Return whether the statement changes data, where that is possible.

        Raises:
            UnknownTable: there is no such source. QueryRefused: it is only read, and the statement does more.
        """
        place = self.sources.place(args["source"])
        why = await asyncio.to_thread(_beyond_reading, args["sql"], self.dialect(args))
        if why and not place.writable:
            hint = f"Only statements that read run there; the person can set sources.{place.name}.writable."
            raise QueryRefused(f"{place.name} is read-only: {why}.", hint)
        return bool(why)

    async def concern(self, args: Mapping[str, Any]) -> str:
        """Return why to ask before a statement runs: it changes data, or is heavy. Empty for others."""
        try:
            place = self.sources.place(args["source"])
            if await self.writes(args):
                return f"it changes data on {place.name} ({place.engine})"
            cost = await self.sources.cost(place.name, args["sql"]) if place.ask_cost else None
        except QueryFailed as error:
            # What is wrong fails by itself, and says more; what may be heavy is not run unasked.
            return f"its cost is not known: {error}" if error.kind == "timeout" else ""
        except BaError:
            return ""
        if cost is None or cost.cost <= place.ask_cost:
            return ""
        expected = f"{cost.engine} expects cost {cost.cost:,.0f} and {count(round(cost.rows), 'row')} on {place.name}"
        return f"{expected}, above sources.{place.name}.ask_cost ({place.ask_cost:,.0f})"

    async def run(self, args: Mapping[str, Any], on_progress: Listener) -> QueryResult:
        """Run the statement, which was allowed. Raises BaError."""
        write = await self.writes(args)
        return await self.sources.query(args["source"], args["sql"], write=write, on_progress=on_progress)


def _beyond_reading(sql: str, dialect: str) -> str:
    """Why a statement does more than read; empty when it only reads. Blocks."""

    found = classify(sql, dialect)
    if found.kinds <= READS and not found.network:
        return ""
    if "unknown" in found.kinds:
        return f"this SQL can't be checked: {found.trouble or 'it is unknown'}"
    return "this statement changes data" if found.kinds & {"write", "ddl"} else "it reaches the network"
