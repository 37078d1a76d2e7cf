"""Spark Connect: Spark, Databricks and engines that speak its protocol."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import ibis

from ba_tui.features.data.analysis.source_process.engine import IbisEngine, SourceQuery, done
from ba_tui.features.data.analysis.source_process.landing import CHUNK, Landed, land_arrow


def connected(url: str) -> SparkEngine:
    """Connect. Raises what the client raises."""
    # By name: hardly any environment has this client.
    session: Any = import_module("pyspark.sql").SparkSession.builder.remote(url).create()
    return SparkEngine(session)


class SparkEngine(IbisEngine):
    label = "Spark"

    def __init__(self, session: Any) -> None:
        self._session = session
        super().__init__(ibis.pyspark.connect(session))

    def query(self, query: SourceQuery) -> Landed:
        # Arrow as it comes: on its way through pandas, ibis loses maps and large integers beside NULLs.
        table: Any = self.backend.raw_sql(query.limited).toArrow()
        return Landed(land_arrow(query.file, table.to_reader(max_chunksize=CHUNK), query.most), {})

    def execute(self, query: SourceQuery) -> Landed:
        self._session.sql(query.sql)
        return done(query, "done", None)

    def interrupt(self) -> None:
        self._session.interruptAll()
