"""The session's data for faces over a real engine: pages, output that becomes a table, and exports that obey rules."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.ports.datasets import NeedsConfirmation
from ba_tui.core.ports.tables import Arrangement, RowFilter, RowOrder
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Effect, Tool
from ba_tui.features.data.analysis.errors import AnalysisError
from ba_tui.features.data.tools.data_access import ColumnMasks
from ba_tui.features.data.tools.data_tools import SessionData
from ba_tui.features.data.tools.exports import ExportRules
from ba_tui.features.data.tools.sources import Sources
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.verdicts import Allow, Deny, JudgedCall, Judgement
from ba_tui.sessions.artifacts import Artifacts
from ba_tui.tools.failures import ToolFailure
from ba_tui.write_ahead import write_ahead
from tests.analysis.engines import engine_in

NORTH = Arrangement((RowOrder("amount", True),), (RowFilter("region", "=", "north"),))


async def nothing(args: object, call: Call) -> ToolResult:
    raise AssertionError


WRITER = Tool("write_file", "", {}, nothing, Effect.WRITE)


def judged(call: JudgedCall) -> Judgement:
    return Deny("a rule says so") if "closed" in str(call.args["path"]) else Allow()


@pytest_asyncio.fixture
async def data(tmp_path: Path) -> AsyncGenerator[SessionData]:
    folder = tmp_path / "work"
    folder.mkdir()
    rows = (f"{number},{'north' if number % 2 else 'south'},{number}.5" for number in range(1, 301))
    (folder / "sales.csv").write_text("\n".join(("id,region,amount", *rows)), encoding="utf-8")
    engine = engine_in(folder, state=tmp_path / "state" / "analysis")
    rules = ExportRules(Workspace(folder), WRITER, judged, write_ahead(folder))
    masks = ColumnMasks((), engine, print)
    yield SessionData(engine, Sources((), engine), masks, rules, Artifacts(tmp_path / "state" / "data"))
    await engine.close()


async def test_rows_and_exports(data: SessionData, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    assert not data.begun
    (sales,) = await data.register("sales.csv")
    page = await data.page("sales", NORTH, offset=1, limit=2)
    assert (page.total, page.numbers) == (150, (296, 294))
    assert [row[0] for row in page.rows] == [297, 295]
    assert (await data.column("sales", "region", NORTH)).distinct == 1

    done = await data.exports.table(sales.name, "new/north.csv", NORTH)
    lines = (folder / "new" / "north.csv").read_text().splitlines()
    assert (done.path, len(lines), lines[:2]) == ("new/north.csv", 151, ["id,region,amount", "299,north,299.5"])
    assert done.size == (folder / "new" / "north.csv").stat().st_size
    with pytest.raises(NeedsConfirmation, match="exists"):
        await data.exports.table(sales.name, "new/north.csv", Arrangement())
    with pytest.raises(NeedsConfirmation, match="outside the folders of this session"):
        await data.exports.table(sales.name, "../out.csv", Arrangement())
    await data.exports.table(sales.name, "new/north.csv", Arrangement(), confirmed=True)
    assert len((folder / "new" / "north.csv").read_text().splitlines()) == 301
    for name, head in (("a.parquet", b"PAR1"), ("a.xlsx", b"PK")):
        await data.exports.table(sales.name, name, Arrangement())
        assert (folder / name).read_bytes().startswith(head)
    assert sorted(path.name for path in folder.iterdir() if path.is_file()) == ["a.parquet", "a.xlsx", "sales.csv"]


async def test_what_an_export_refuses(data: SessionData, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    await data.register("sales.csv")
    (folder / "folder.csv").mkdir()
    refused: list[tuple[str, type[BaError], str]] = [
        ("a.txt", UsageError, "no ending of a known format"),
        ("closed.csv", UsageError, "may not be written: a rule says so"),
        (".env.csv", UsageError, "a file for secrets"),
        ("folder.csv", ToolFailure, "is a folder"),
    ]
    for path, error, words in refused:
        with pytest.raises(error, match=words):
            await data.exports.table("sales", path, Arrangement(), confirmed=True)
    with pytest.raises(AnalysisError):
        await data.exports.table("nothing", "b.csv", Arrangement())
    assert not (folder / "b.csv").exists()


async def test_output_becomes_a_table(data: SessionData) -> None:
    text = "id,name\n1,a\n2,b\n"
    first = await data.register_output(text, "csv")
    assert (first.rows, [column.name for column in first.columns]) == (2, ["id", "name"])
    assert await data.register_output(text, "csv") == first
    stored = data._results.store('{"a": 1}\n{"a": 2}\n{"a": 3}\n')
    assert (await data.register_output("", "jsonl", stored.ref)).rows == 3
    assert len((await data.catalogue()).datasets) == 2


async def test_a_file_may_not_be_placed_twice(data: SessionData, tmp_path: Path, ba_home: Path) -> None:
    """Nothing temporary is left beside the file, whatever happens."""
    await data.register("sales.csv")
    await data.exports.table("sales", "a.csv", Arrangement())
    (tmp_path / "work" / "a.csv").chmod(0o400)
    with pytest.raises(ToolFailure, match="read-only"):
        await data.exports.table("sales", "a.csv", Arrangement(), confirmed=True)
    assert [path.name for path in (tmp_path / "work").iterdir() if path.name.endswith(".tmp")] == []
