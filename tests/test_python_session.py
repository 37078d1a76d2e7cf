"""Python in a session: which tool a model is told of, what needs no question, tables, and what a restart takes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ba_tui.assembly import connect
from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import UsageError
from ba_tui.core.events import Asked, Event, ToolFinished
from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.questions import Reply
from ba_tui.core.results import CommandText, Table, ToolResult
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.providers.scripted import ScriptedCall, Step
from tests.loopback import ModelServer

SALES = "region,units\nNorth,12\nSouth,30\nNorth,5\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "sales.csv").write_text(SALES)
    trust_folder(work)
    return work


@pytest.fixture
def replies() -> list[Step]:
    """What the model does next."""
    return []


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, replies: list[Step]) -> Iterator[ModelServer]:
    def steps() -> Iterator[Step]:
        while True:
            yield replies.pop(0) if replies else Step(say="Noted.")

    with ModelServer(steps()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        yield server


def code(*lines: str, **more: Any) -> Step:
    return Step(calls=(ScriptedCall("python", {"code": "\n".join(lines), **more}),))


def sql(query: str) -> Step:
    return Step(calls=(ScriptedCall("query_data", {"sql": query}),))


def opened(folder: Path, **flags: Any) -> Conversation:
    return connect({"model": "openai/any", **flags}, folder).library.create()


async def said(talk: Conversation, replies: list[Step], *steps: Step) -> tuple[list[ToolResult], list[Asked]]:
    """The results of a turn of these steps, and what was asked; that is denied."""
    replies[:] = [*steps, Step(say="Done.")]
    turn, events = talk.say("go on"), list[Event]()
    async for event in turn:
        events.append(event)
        if isinstance(event, Asked):
            turn.answer(event.ask_id, Reply("deny"))
    results = [event.result for event in events if isinstance(event, ToolFinished)]
    return results, [event for event in events if isinstance(event, Asked)]


def described(server: ModelServer) -> list[str]:
    """What the last request says of the tool python."""
    tools = [tool["function"] for tool in json.loads(server.requests[-1].body)["tools"]]
    return [tool["description"] for tool in tools if tool["name"].startswith("python")]


async def test_tables_go_to_python_and_come_back_without_a_question_and_outlive_a_restart(
    folder: Path, server: ModelServer, replies: list[Step]
) -> None:
    talk = opened(folder, permission_mode="plan")
    (totals, frame, kept, read), asked = await said(
        talk,
        replies,
        sql("SELECT region, sum(units)::INT AS units FROM 'sales.csv' GROUP BY ALL ORDER BY ALL"),
        code("df = ba.table('R1')", "df['twice'] = df.units * 2", "df"),
        code("ba.keep(df[df.units > 20].reset_index(drop=True), 'large')"),
        sql("SELECT twice FROM R2"),
    )
    assert not asked
    (description,) = described(server)
    assert "keeps variables between calls" in description
    assert not totals.is_error
    assert frame.display == Table(("region", "units", "twice"), (("North", 17, 34), ("South", 30, 60)), total=2)
    assert frame.text.splitlines()[-2:] == ["North,17,34", "South,30,60"]
    assert kept.display == Table(("region", "units", "twice"), (("South", 30, 60),), handle="R2", total=1)
    assert read.text.endswith("twice\n60")

    datasets = talk.inventory.feature(Datasets)
    assert datasets
    assert datasets.python
    provenance = (await datasets.catalogue()).results[1].provenance
    assert (provenance.source, provenance.results, provenance.rows) == ("python", ("R1",), 1)
    assert provenance.sql.startswith("# large\nba.keep(")
    assert "pandas" in provenance.engine
    state = await datasets.python.state()
    assert [(each.name, each.type, each.shape) for each in state.variables] == [("df", "DataFrame", "2 × 3")]
    assert await datasets.python.keep("df") == "R4"
    with pytest.raises(UsageError, match="'x' is not defined"):
        await datasets.python.keep("x")
    await talk.close()

    library = connect({"model": "openai/any"}, folder).library
    again = library.open(library.sessions()[0].id)
    (gone, there), asked = await said(again, replies, code("df"), code("len(R4)"))
    await again.close()
    assert not asked
    assert "NameError: name 'df' is not defined" in gone.text
    assert "[ba was started again: variables of earlier Python calls are gone; tables are still there]" in gone.text
    assert gone.exit_status == 1
    assert gone.summary == "NameError: name 'df' is not defined"
    assert there.text == "2"


def commit_secret(folder: Path, token: str) -> None:
    """A file of data with the token, and a secret file that was committed once."""
    (folder / "notes.csv").write_text(f"units,note\n12,{token}\n30,none\n5,{token}\n")
    (folder / ".env").write_text(f"TOKEN={token}\n")
    for words in ("init -q", "add -f .env", "-c user.name=A -c user.email=a@b.c commit -qm one", "rm -q --cached .env"):
        subprocess.run(["git", *words.split()], cwd=folder, check=True)


async def test_no_code_and_no_query_shows_a_token_or_a_committed_secret_and_numbers_stay_right(
    folder: Path, server: ModelServer, replies: list[Step]
) -> None:
    token = "ghp_" + "q7Rk82hVn51xLzQ4mTb9" * 2
    commit_secret(folder, token)
    talk = opened(folder, permission_mode="plan")
    (spaced, undone, stored, summed, refused), asked = await said(
        talk,
        replies,
        code("'-'.join(open('notes.csv').read() + open('.e' + 'nv').read())"),
        code("[ord(c) + 1 for c in open('notes.csv').read()]"),
        code(
            "import glob, zlib",
            "[zlib.decompress(open(f, 'rb').read())[::-1] for f in glob.glob('.git/objects/??/*')]",
        ),
        code("import pandas", "int(pandas.read_csv('notes.csv').units.sum())"),
        sql("SELECT reverse(content) FROM read_text('.env')"),
    )
    await talk.close()
    assert not asked
    assert "m-a-s-k-e-d" in spaced.text
    assert token not in spaced.text.replace("-", "")
    assert ", ".join(str(ord(letter) + 1) for letter in token[:6]) not in undone.text
    assert stored.text == "[]"
    assert summed.text == "47"
    assert refused.is_error
    assert token[::-1] not in refused.text


async def test_without_a_sandbox_the_stateless_tool_stays_and_asks(
    folder: Path, server: ModelServer, replies: list[Step]
) -> None:
    talk = opened(folder, sandbox="off")
    (result,), (asked,) = await said(talk, replies, code("print(1)"))
    await talk.close()
    assert result.error
    assert result.error.kind == "permission_denied"
    assert asked.question.preview == CommandText("print(1)", ".")
    (description,) = described(server)
    assert "Nothing is kept between calls" in description


async def test_a_rule_can_deny_python(folder: Path, server: ModelServer, replies: list[Step]) -> None:
    talk = opened(folder, **{"permissions.deny": ["python"]})
    (result,), asked = await said(talk, replies, code("1 + 1"))
    await talk.close()
    assert not asked
    assert "Denied by the rule python" in result.text


async def test_a_rule_about_files_brings_the_tool_that_asks_and_stops_one_that_does_not(
    folder: Path, server: ModelServer, replies: list[Step]
) -> None:
    talk = opened(folder, **{"permissions.deny": ["read_file(private/**)"]})
    _, asked = await said(talk, replies, code("open('private/pay.csv').read()"))
    await talk.close()
    assert len(asked) == 1
    assert "Nothing is kept between calls" in described(server)[0]

    talk = opened(folder)
    await said(talk, replies)
    assert "keeps variables between calls" in described(server)[0]
    talk.permissions.add("read_file(private/**)", "ask", "session")
    (result,), asked = await said(talk, replies, code("open('private/pay.csv').read()"))
    await talk.close()
    assert not asked
    assert "the sandbox can't hide the files of the rule read_file(private/**) from it" in result.text


async def test_a_folder_that_is_not_trusted_runs_nothing(
    tmp_path: Path, server: ModelServer, replies: list[Step]
) -> None:
    (tmp_path / "away").mkdir()
    talk = opened(tmp_path / "away")
    (result,), asked = await said(talk, replies, code("1 + 1"))
    await talk.close()
    assert not asked
    assert "not trusted" in result.text
