"""Figures of answers in a running session: checked after the answer, from everything that its tools returned."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ba_tui.assembly import connect
from ba_tui.core.conversation import Conversation
from ba_tui.core.events import Asked, Event, FiguresChecked, Steered, TurnEnded
from ba_tui.core.questions import Reply
from ba_tui.core.text.figures import FigureReport
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.providers.scripted import ScriptedCall, Step
from tests.house.test_imports import loaded_by
from tests.loopback import ModelServer

ROWS = 400
SALES = "region,units,price\n" + "".join(f"Branch {at:03},{at * 7919 % 9973},{at * 13.37:.2f}\n" for at in range(ROWS))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "sales.csv").write_text(SALES)
    (work / "log.txt").write_text("".join(f"entry {at} took {at * 31 % 977} ms\n" for at in range(40)))
    trust_folder(work)
    return work


class Steps(list[Step]):
    """Replies in order; more may be added while the server runs."""

    def __next__(self) -> Step:
        return self.pop(0)

    def __iter__(self) -> Steps:
        return self


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[Steps]:
    steps = Steps()
    with ModelServer(steps) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        yield steps


def opened(folder: Path, **flags: Any) -> Conversation:
    return connect({"model": "openai/any", **flags}, folder).library.create()


def query(sql: str) -> Step:
    return Step(calls=(ScriptedCall("query_data", {"sql": sql}),))


async def heard(talk: Conversation, prompt: str, reply: Reply | None = None) -> list[Event]:
    turn = talk.say(prompt)
    events: list[Event] = []
    async for event in turn:
        events.append(event)
        if isinstance(event, Asked) and reply:
            turn.answer(event.ask_id, reply)
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].reason == "done", events[-1]
    return events


def reports(events: Sequence[Event]) -> list[FigureReport]:
    return [event.report for event in events if isinstance(event, FiguresChecked)]


def labels(report: FigureReport) -> dict[str, str]:
    return {verdict.text: verdict.label for verdict in report.verdicts}


async def test_every_figure_says_where_it_comes_from(folder: Path, steps: Steps) -> None:
    steps += [
        query("SELECT * FROM (VALUES ('North', 7919), ('South', 5865)) t(region, units)"),
        Step(say="North sold 7919 units and South 5865, so North was 2,054 units ahead. Returns were 318."),
    ]
    talk = opened(folder)
    (report,) = reports(await heard(talk, "compare"))
    await talk.close()
    assert labels(report) == {"7919": "sourced", "5865": "sourced", "2,054": "derived", "318": "unsourced"}
    source = report.verdicts[0].sources[0]
    assert (source.name, source.column, source.line) == ("R1", "units", 0)
    assert source.call
    assert report.parts == ["4 figures", "2 sourced", "1 derived", "1 unsourced"]


async def test_an_answer_without_figures_is_not_checked(folder: Path, steps: Steps) -> None:
    steps += [Step(say="Nothing to count here.")]
    talk = opened(folder)
    events = await heard(talk, "hello")
    await talk.close()
    assert reports(events) == []


async def test_a_figure_beyond_the_first_rows_is_looked_up_in_the_result(folder: Path, steps: Steps) -> None:
    units = 377 * 7919 % 9973
    steps += [
        query("SELECT * FROM 'sales.csv' ORDER BY region"),
        Step(say=f"Branch 377 sold {units} units at {377 * 13.37:.2f}; nobody sold 123456.78."),
    ]
    talk = opened(folder)
    (report,) = reports(await heard(talk, "how much?"))
    await talk.close()
    found = labels(report)
    assert found[str(units)] == found[f"{377 * 13.37:.2f}"] == "sourced"
    assert found["123456.78"] == "unsourced"
    assert report.verdicts[0].sources[0].line == 377


async def test_a_result_that_was_cut_for_the_model_counts_in_full(folder: Path, steps: Steps) -> None:
    (folder / "long.txt").write_text("".join(f"measurement {at}: {at * 7919 % 99991}\n" for at in range(3_000)))
    middle = 1_500 * 7919 % 99991
    steps += [
        Step(calls=(ScriptedCall("shell", {"command": "cat long.txt"}),)),
        Step(say=f"Measurement 1500 shows {middle}."),
    ]
    talk = opened(folder, permission_mode="bypass")
    (report,) = reports(await heard(talk, "measure"))
    await talk.close()
    assert labels(report)[str(middle)] == "sourced"


async def test_a_resumed_session_knows_what_was_seen_before(folder: Path, steps: Steps) -> None:
    steps += [
        query("SELECT * FROM (VALUES ('North', 7919), ('South', 5865)) t(region, units)"),
        Step(say="Both are known."),
    ]
    talk = opened(folder)
    await heard(talk, "look")
    await talk.close()
    again = connect({"model": "openai/any"}, folder).library.open(talk.id)
    steps += [Step(say="South sold 5865 units.")]
    (report,) = reports(await heard(again, "and South?"))
    steps += [Step(say="As I said: 5865 units.")]
    (repeated,) = reports(await heard(again, "sure?"))
    await again.close()
    assert labels(report) == labels(repeated) == {"5865": "sourced"}
    assert report.verdicts[0].sources[0].name == "R1"


async def test_the_person_and_attached_files_are_evidence(folder: Path, steps: Steps) -> None:
    steps += [Step(say="Of your 250 entries, the slowest shown needed 217 ms and the last one 232 ms.")]
    talk = opened(folder)
    (report,) = reports(await heard(talk, "I expected 250 entries, see @log.txt"))
    await talk.close()
    found = labels(report)
    assert (found["250"], found["217"], found["232"]) == ("given", "sourced", "sourced")


async def test_a_source_file_that_changed_since_is_named(folder: Path, steps: Steps) -> None:
    steps += [query("SELECT max(units) AS most FROM 'sales.csv'"), Step(say="Fine.")]
    talk = opened(folder)
    await heard(talk, "look")
    most = max(at * 7919 % 9973 for at in range(ROWS))
    steps += [Step(say=f"The largest has {most} units.")]
    (before,) = reports(await heard(talk, "which is it?"))
    (folder / "sales.csv").write_text(SALES + "Branch 999,1,1\n")
    steps += [Step(say=f"Still {most} units.")]
    (after,) = reports(await heard(talk, "and now?"))
    await talk.close()
    assert before.changed == ()
    assert [Path(path).name for path in after.changed] == ["sales.csv"]
    assert after.stale(after.verdicts[0])
    assert "1 from a file that changed since" in after.parts


async def test_fix_asks_the_model_once_with_the_nearest_numbers(folder: Path, steps: Steps) -> None:
    steps += [
        query("SELECT * FROM (VALUES ('North', 7919), ('South', 5865)) t(region, units)"),
        Step(say="North sold 7991 units."),
        Step(say="North sold 7919 units, and 46.5 kg each."),
    ]
    talk = opened(folder, **{"analysis.verify": "fix"})
    events = await heard(talk, "look")
    await talk.close()
    first, second = reports(events)
    assert labels(first) == {"7991": "unsourced"}
    assert labels(second) == {"7919": "sourced", "46.5": "unsourced"}
    notes = [event.message.text for event in events if isinstance(event, Steered) and "7991" in event.message.text]
    assert len(notes) == 1
    assert "7919 (R1 · units · North)" in notes[0]


@pytest.mark.parametrize(("choice", "answers"), [("Ask the model to check", 2), ("Leave as it is", 1)])
async def test_ask_leaves_it_to_the_person(folder: Path, steps: Steps, choice: str, answers: int) -> None:
    steps += [query("SELECT 7919 AS units"), Step(say="It was 7991 units."), Step(say="I don't know: not 7991 units.")]
    talk = opened(folder, **{"analysis.verify": "ask"})
    events = await heard(talk, "how many?", Reply("text", choice))
    await talk.close()
    assert len(reports(events)) == answers
    (asked,) = [event.question for event in events if isinstance(event, Asked)]
    assert "7991" in asked.text


async def test_off_checks_nothing(folder: Path, steps: Steps) -> None:
    steps += [Step(say="It was 7991 units.")]
    talk = opened(folder, **{"analysis.verify": "off"})
    assert reports(await heard(talk, "how many?")) == []
    await talk.close()


HOSTILE = [
    " ".join(str(at * 7919 % 99_991) for at in range(20_000)),
    f"It is 1{'0' * 400}, 10^400, 1e400, NaN, inf and −∞.",
    "全角 １２３４５ と ٣٤٥٦٧ and 1**2**3,4_5_6 and 1\u200b234.",
    "| a | b | c | d | e |\n|---|---|---|---|---|\n" + "| 1.5 | 2.25 | 33 | 404 | 5.05 |\n" * 1_000,
    "```\n" + "99 red balloons 123456\n" * 500 + "```\nand 17",
    "`" * 4_001 + "12" + "*" * 5_000,
]


async def test_hostile_answers_are_judged_in_bounded_time(folder: Path, steps: Steps) -> None:
    talk = opened(folder)
    for text in HOSTILE:
        steps += [Step(say=text)]
        events = await asyncio.wait_for(heard(talk, "go on"), 30)
        for report in reports(events):
            assert all(text[each.start : each.end][:400] == each.text for each in report.verdicts)
    await talk.close()


def test_nothing_is_loaded_before_the_first_figure(folder: Path, steps: Steps) -> None:
    steps += [Step(calls=(ScriptedCall("read_file", {"path": "log.txt"}),)), Step(say="Read.")]
    loaded = loaded_by(folder, "-p", "look", BA_MODEL="openai/any", OPENAI_API_KEY="test")
    assert {name for name in loaded if "features.figures." in name} == {
        "ba_tui.features.figures.feature",
        "ba_tui.features.figures.session",
    }


def printed(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "BA_MODEL": "openai/any", "OPENAI_API_KEY": "test"}
    command = [sys.executable, "-m", "ba_tui", "-p", "I have 12 of them", *flags]
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )


def test_print_mode_tells_of_figures_without_any_result_and_may_fail_for_them(folder: Path, steps: Steps) -> None:
    steps += [Step(say="Of your 12 boxes, 38.5 kg are sand.") for _ in range(3)]
    plain = printed(folder)
    assert (plain.returncode, plain.stdout) == (0, "Of your 12 boxes, 38.5 kg are sand.\n")
    told = "ba: 1 figure of this answer could not be checked: there is no result to check against."
    assert told in plain.stderr.splitlines()
    strict = printed(folder, "--strict-figures", "--output-format", "json")
    assert strict.returncode == 5
    found = json.loads(strict.stdout)
    assert found["figure_counts"] == {"given": 1, "unchecked": 1}
    assert found["figures"][1]["note"] == "no result to check against"
    assert [found["result"][each["start"] : each["end"]] for each in found["figures"]] == ["12", "38.5"]
    lines = [json.loads(line) for line in printed(folder, "--output-format", "stream-json").stdout.splitlines()]
    (figures,) = [line for line in lines if line["type"] == "figures"]
    assert [each["label"] for each in figures["figures"]] == ["given", "unchecked"]
    assert lines[-1]["figures"] == figures["figures"]


def test_a_strict_run_passes_when_each_figure_comes_from_somewhere(folder: Path, steps: Steps) -> None:
    steps += [Step(say="You have 12 boxes."), Step(say="Written on 2026-11-23 with version 1.2.3.")]
    assert printed(folder, "--strict-figures").returncode == 0
    assert printed(folder, "--strict-figures").returncode == 0
