"""A session becomes a report: written from the app and the command line, and run again without a model."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from ba_tui.assembly import connect
from ba_tui.cli.main import run
from ba_tui.cli.sessions import write_report
from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import UsageError
from ba_tui.core.ports.datasets import Datasets, NeedsConfirmation
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.providers.scripted import ScriptedCall, Step
from ba_tui.tools.failures import ToolFailure
from tests.loopback import ModelServer
from tests.script import collect

SALES = "region,units\nNorth,12\nSouth,30\nNorth,5\n"
TOTALS = "SELECT region, sum(units) AS units FROM 'sales.csv' GROUP BY ALL ORDER BY region"
TITLE = "Units <script>alert(1)</script>"
KEY = "sk-ant-api03-" + "a1B2c3D4" * 12


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "sales.csv").write_text(SALES)
    (work / ".ba" / "metrics").mkdir(parents=True)
    (work / ".ba" / "metrics" / "sold.yaml").write_text("sql: sum(units)\nfrom: \"'sales.csv'\"\n")
    trust_folder(work)
    return work


async def asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Conversation:
    """A conversation with two queries, a chart and an answer."""
    steps = [
        Step(calls=(ScriptedCall("query_data", {"sql": TOTALS}),)),
        Step(calls=(ScriptedCall("query_data", {"sql": "FROM metric('sold', 'region') ORDER BY ALL"}),)),
        Step(
            calls=(ScriptedCall("chart", {"data": "R1", "kind": "bar", "x": "region", "y": "units", "title": TITLE}),)
        ),
        Step(say="South sold **30** units, <b>most</b>, 13 more than North; 318 came back."),
    ]
    with ModelServer(steps) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        made = connect({"model": "openai/any"}, folder).library.create()
        await collect(made.say(f"Who sold most? {KEY}"))
    return made


@pytest.fixture
async def talk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Conversation]:
    made = await asked(folder, monkeypatch)
    yield made
    await made.close()


@pytest.fixture
def saved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of such a conversation, which is closed."""

    async def closed() -> str:
        made = await asked(folder, monkeypatch)
        await made.close()
        # The loop ends with this: what closes connections must have run.
        for _ in range(10):
            await asyncio.sleep(0)
        return made.id

    return asyncio.run(closed())


def datasets(talk: Conversation) -> Datasets:
    found = talk.inventory.feature(Datasets)
    assert found
    return found


async def test_a_report_to_read(talk: Conversation, folder: Path) -> None:
    done = await datasets(talk).exports.report("out/sales.md", title="Sales")
    text = (folder / "out" / "sales.md").read_text()
    assert done.path == "out/sales.md"
    assert KEY not in text
    assert "South sold **30[^1]** units" in text
    assert "[^1]: `30` sourced: [R1](#r1) · units · South" in text
    assert "[^2]: `13` derived: " in text
    assert "[R1](#r1)\\[30\\]" in text
    assert "[^3]: `318` **unsourced**: nothing in this session supports it" in text
    assert "30 ┤  " in text
    assert "*From [R1](#r1), [R2](#r2).*" in text
    assert f"```sql\n{TOTALS}\n```" in text
    assert "| North | 17 |" in text
    assert "`sales`: sales.csv; 39 bytes, SHA-256" in text

    await datasets(talk).exports.report("sales.html", title="<i>Sales</i>")
    page = (folder / "sales.html").read_text()
    assert '<a href="#r1">R1</a>' in page
    assert '<h3 id="r1">R1</h3>' in page
    assert "&lt;b&gt;most&lt;/b&gt;" in page
    assert "<i>" not in page
    assert '13<sup class="derived"><a id="m2" href="#f2">2</a></sup>' in page
    assert 'sourced: <a href="#r1">R1</a> · units · South</li>' in page
    assert '318<sup class="unsourced">' in page
    assert "script-src" not in page
    assert "default-src 'none'; img-src data:" in page
    assert re.findall(r'(?:src|href)="(?!#)(.{26})', page) == ["data:image/svg+xml;base64,"]
    assert '<img alt="Units &lt;script&gt;alert(1)&lt;/script&gt;" src="data:image/svg+xml' in page
    found = re.search(r"base64,([^\"]+)", page)
    assert found
    svg = base64.b64decode(found[1]).decode()
    assert svg.startswith("<svg")
    assert "<script" not in svg
    assert "South" in svg


async def test_what_a_report_refuses(talk: Conversation, folder: Path) -> None:
    with pytest.raises(UsageError, match="does not end as a report does"):
        await datasets(talk).exports.report("sales.pdf", title="Sales")
    (folder / "sales-data").mkdir()
    (folder / "sales-data" / "mine.txt").write_text("mine")
    with pytest.raises(NeedsConfirmation, match="sales-data exists already"):
        await datasets(talk).exports.report("sales.py", title="Sales")
    assert not (folder / "sales.py").exists()
    await datasets(talk).exports.report("sales.py", title="Sales", confirmed=True)
    with pytest.raises(NeedsConfirmation, match=r"sales\.py exists already"):
        await datasets(talk).exports.report("sales.py", title="Sales")
    assert (folder / "sales-data" / "mine.txt").read_text() == "mine"
    empty = connect({"model": "openai/any"}, folder).library.create()
    with pytest.raises(UsageError, match="no results that could run again"):
        await datasets(empty).exports.report("none.py", title="Nothing")
    await empty.close()


async def test_a_report_that_can_not_be_written_whole_leaves_no_part_of_it(talk: Conversation, folder: Path) -> None:
    in_the_way = folder / "sales-data" / "rerun.py"
    in_the_way.mkdir(parents=True)
    with pytest.raises(ToolFailure, match="is a folder"):
        await datasets(talk).exports.report("sales.py", title="Sales", confirmed=True)
    assert not (folder / "sales.py").exists()
    assert list((folder / "sales-data").iterdir()) == [in_the_way]


def test_a_saved_session_runs_again_on_the_command_line(
    saved: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    library = connect({}, folder).library
    info = library.find(saved)
    assert write_report(library, info, "py", Path("again.py")).startswith("Wrote again.py (")
    for format, output, said in (
        ("py", None, "needs a file"),
        ("py", Path("x.ipynb"), r"does not end in \.py"),
        ("json", Path("x.json"), "can't be written as json"),
    ):
        with pytest.raises(UsageError, match=said):
            write_report(library, info, format, output)

    done = subprocess.run([sys.executable, "again.py"], capture_output=True, text=True, check=False, timeout=50)
    assert (
        done.returncode,
        "2 results worked out again, 0 taken from copies, 1 figure compared: no differences." in done.stdout,
    ) == (0, True), done
    assert "South   30" in done.stdout
    text = (folder / "again.py").read_text()
    assert "# South sold **30[1]** units" in text
    assert "\n# 30 ┤  " in text
    assert "# [1] 30 sourced: R1 · units · South" in text

    (folder / "next.csv").write_text(SALES.replace("30", "33"))
    capsys.readouterr()
    assert run(["report", "run", "again.py", "--data", "next.csv"]) == 6
    assert capsys.readouterr().out == (
        "R1: 2 rows\n  region=South: units 30 → 33 (+10.0%)\n"
        "R2: 2 rows\n  region=South: sold 30 → 33 (+10.0%)\n“30” of an answer (R1.units): is 33 now\n"
    )
    assert run(["report", "run", "again-data", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"][0]["after"] == 2
    assert run(["report", "run", "again.py", "--data", "none.csv"]) == 2
    assert "none.csv" in capsys.readouterr().err
