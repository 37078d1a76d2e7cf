"""The tool data_quality on real tables, and muting by a person."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ba_tui.core.results import Table
from ba_tui.features.data.tools.query_data import data_quality_tool
from ba_tui.tools.definitions import Definition
from tests.analysis.engines import engine_in
from tests.tools.conftest import Harness, answering_call


async def test_findings_come_with_their_proofs(harness: Harness, tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("order_id,customer_id,amount\n1,10,5\n2,99,7\n3,10,6\n4,10,\n")
    (tmp_path / "customers.csv").write_text("customer_id,name\n10,A\n11,B\n")
    asked: list[str] = []

    async def concern(args: Mapping[str, Any]) -> str:
        asked.append(args["sql"])
        return ""

    engine = engine_in(tmp_path)
    definition: Definition = harness.definitions["data_quality"]
    tool = data_quality_tool(definition, engine, concern)
    call = answering_call("call", harness.branch, harness)
    try:
        args = {"tables": ["orders.csv", "customers.csv"]}
        assert tool.concern
        assert await tool.concern(args) == ""
        assert asked == ["FROM 'orders.csv' UNION ALL FROM 'customers.csv'"]
        result = await tool.run(args, call)
        assert "customers: 2 rows, nothing was found wrong." in result.text
        assert "- broken_references: orders.customer_id: 1 row without a match" in result.text
        assert isinstance(result.display, Table)
        kinds = {row[1]: row[3] for row in result.display.rows}
        assert set(kinds) == {"missing_values", "broken_references"}
        for proof in kinds.values():
            assert (await engine.query(proof)).rows
        (dataset,) = await engine.register("orders.csv")
        engine.muted.mute("missing_values", [dataset.files[0].path], muted=True)
        assert "missing_values" not in (await tool.run({}, call)).text
    finally:
        await engine.close()
