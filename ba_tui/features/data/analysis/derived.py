"""Tables that the engine works out of others: comparisons and cross tables."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ba_tui.core.ports.tables import Progress, QueryResult
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.wire import decoded

if TYPE_CHECKING:
    from ba_tui.features.data.analysis.comparison import Comparison

Aggregate: TypeAlias = Literal["sum", "avg", "median", "min", "max", "count", "count_distinct"]
Listener: TypeAlias = Callable[[Progress], None]


@frozen
class DerivedTables:
    """Part of ``engine.Analysis``. ``request`` asks its helper; ``head``: first rows that come with a result.

    Raises UnknownTable, and QueryFailed where columns are missing or of the wrong type.
    """

    request: Callable[[str, object, Listener | None], Awaitable[Any]]
    head: int

    async def compare(
        self,
        left: str,
        right: str,
        keys: Sequence[str] = (),
        *,
        tolerance: float = 0.0,
        on_progress: Listener | None = None,
    ) -> Comparison:
        """Compare two tables row by row. Without ``keys``, columns that are unique in both are found."""
        from ba_tui.features.data.analysis.comparison import Comparison  # noqa: PLC0415 - few sessions compare tables

        payload = {"left": left, "right": right, "keys": list(keys), "tolerance": tolerance, "head": self.head}
        return decoded(Comparison, await self.request("compare", payload, on_progress))

    async def pivot(
        self,
        name: str,
        rows: Sequence[str],
        columns: Sequence[str] = (),
        values: str = "",
        aggregate: Aggregate = "sum",
    ) -> QueryResult:
        """Keep a cross table of ``name`` as the next result, with a row and a column of totals."""
        payload = {"name": name, "rows": list(rows), "columns": list(columns), "values": values}
        reply = await self.request("pivot", {**payload, "aggregate": aggregate, "head": self.head}, None)
        return decoded(QueryResult, reply)
