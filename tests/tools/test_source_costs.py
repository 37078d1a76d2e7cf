"""Whether a query on a source asks, when its engine does not tell what it costs."""

from __future__ import annotations

from typing import Any, cast

import pytest

from ba_tui.features.data.analysis.errors import QueryFailed
from ba_tui.features.data.tools.sources import SourceQueries, Sources


class Place:
    name, engine, scheme, writable, ask_cost = "warehouse", "PostgreSQL", "postgresql", False, 1_000.0


class SlowSources:
    """One that fails to tell a cost in this way."""

    def __init__(self, kind: str) -> None:
        self.places = {"warehouse": Place()}
        self._kind: Any = kind

    def place(self, name: str) -> Place:
        return self.places[name]

    async def cost(self, name: str, sql: str) -> None:
        raise QueryFailed(f"{name} did not answer within 60 s.", kind=self._kind)


@pytest.mark.parametrize(
    ("kind", "asked"),
    [("timeout", "its cost is not known: warehouse did not answer within 60 s."), ("validation_error", "")],
)
async def test_a_cost_that_is_not_told_in_time_asks(kind: str, asked: str) -> None:
    queries = SourceQueries(cast("Sources", SlowSources(kind)))
    assert await queries.concern({"source": "warehouse", "sql": "SELECT 1"}) == asked
