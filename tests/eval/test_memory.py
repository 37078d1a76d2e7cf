"""The evaluation of memory: which cases it reads, what it prints, and that retrieval by words keeps its figures."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.eval.memory.__main__ import main
from tests.eval.memory.cases import BadCases, case_of, loaded, seconds
from tests.eval.memory.handwritten import HERE, handwritten, unrelated, written
from tests.eval.memory.measure import ranks, reminders, stores

LINE = re.compile(r"recall@1 [\d.]+ recall@5 [\d.]+ recall@10 [\d.]+ recall@25 [\d.]+ mrr [\d.]+")
CASE: dict[str, Any] = {
    "id": 7,
    "extra": True,
    "memories": [
        {"id": 1, "text": "Which tea do you like?"},
        {"id": 2, "text": "Oolong \ud800\0.", "mood": "calm"},
        {"text": "I was in Rome."},
        {"id": 4},
        {"id": 5, "text": ""},
        "no object",
    ],
    "questions": [
        {"id": 1, "text": "Who likes oolong?", "evidence": [2]},
        {"text": "Who was in Rome?", "evidence": "2"},
        {"text": "Nothing to find", "evidence": []},
        {"evidence": [1]},
    ],
}


def kinds(*memories: dict[str, Any]) -> list[str]:
    return [entry.kind for entry in case_of({"memories": list(memories)}).entries]


def test_incomplete_memories_and_questions_are_read_as_far_as_possible():
    case = case_of(CASE)
    assert [entry.id for entry in case.entries] == ["1", "2", "2", "5"]
    assert [(asked.text, asked.evidence) for asked in case.questions] == [
        ("Who likes oolong?", ("2",)),
        ("Who was in Rome?", ("2",)),
    ]
    assert case.questions[0].today is None
    assert case_of({}).entries == []


def test_memories_are_turns_when_people_speak_or_ask_each_other():
    assert kinds({"text": "Tea."}, {"text": "Rome."}) == ["fact", "fact"]
    assert kinds({"text": "Tea?"}, {"text": "Rome."}) == ["turn", "turn"]
    assert kinds({"text": "Tea.", "speaker": "Ada"}) == ["turn"]
    assert kinds({"text": "Tea.", "session": 3}) == ["turn"]
    assert kinds({"text": "Tea?"}, {"text": "Rome.", "kind": "preference"}) == ["turn", "preference"]


def test_memories_without_sessions_stand_in_one_unless_hours_lie_between():
    times = ["2023-05-08T10:00", "2023-05-08T10:01", "2023-05-09T10:00", None]
    case = case_of({"memories": [{"text": f"Tea {time}?", "time": time} for time in times]})
    one, two, later, unknown = (entry.session for entry in case.entries)
    assert one == two != later == unknown
    assert [entry.sequence for entry in case.entries] == [0, 1, 2, 3]


def test_bare_cases_have_neither_speakers_nor_sessions_nor_times():
    whole, bare = written(HERE / "dialogues/devon_aiko.txt"), written(HERE / "dialogues/devon_aiko.txt", bare=True)
    assert {entry.speaker for entry in whole.entries} == {"Devon", "Aiko"}
    assert {(entry.speaker, entry.at, entry.session) for entry in bare.entries} == {("", 0.0, "part 0")}
    assert {entry.kind for entry in bare.entries} == {"turn"}
    assert {asked.today for asked in bare.questions} == {None}


@pytest.mark.parametrize(
    "time",
    [
        *("2023-05-08", "2023-05-08T00:00:00Z", "2023/5/8 (Mon) 02:21", "1:56 pm on 8 May, 2023", "20230508"),
        *(1683504000, "1683504000", 1683504000000),
    ],
)
def test_times_are_read_in_several_formats(time: object):
    assert int(seconds(time) // 86_400) == 19_485


@pytest.mark.parametrize("time", [None, "", "soon", True, [], {}, float("nan"), "inf", -5])
def test_other_times_are_unknown(time: object):
    assert seconds(time) <= 0


@pytest.mark.parametrize(
    "form", [json.dumps, lambda case: json.dumps([case]), lambda case: f"\n{json.dumps(case)}\n\n"]
)
def test_cases_may_be_lines_or_a_list(tmp_path: Path, form: Any):
    path = tmp_path / "cases"
    path.write_text(form(CASE), "utf-8")
    assert [case.id for case in loaded(path)] == ["7"]


@pytest.mark.parametrize(("text", "named"), [('{"id": 1}\n{"id": ', "Line 2"), ("[1]", "JSON object")])
def test_files_that_hold_no_cases_are_refused(tmp_path: Path, text: str, named: str):
    (tmp_path / "cases").write_text(text)
    with pytest.raises(BadCases, match=named):
        loaded(tmp_path / "cases")
    with pytest.raises(BadCases, match="Cannot read"):
        loaded(tmp_path / "absent")


def test_the_command_prints_each_part_and_ends_with_the_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "cases.jsonl"
    path.write_text(f"{json.dumps(CASE)}\n{json.dumps({'id': 'empty', 'memories': [], 'questions': []})}\n")
    main(["--cases", str(path), "--embedder", "none"])
    lines = capsys.readouterr().out.splitlines()
    assert LINE.fullmatch(lines[-1])
    assert {"without vectors", "without neighbours", "without dates"} <= {line[:22].strip() for line in lines}
    assert any(line.startswith("injected when relevant / when not: ") for line in lines)


@pytest.mark.parametrize("text", ["", '{"memories": [{"id": 1, "text": "x"}]}'])
def test_the_command_refuses_a_file_without_questions(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str):
    (tmp_path / "cases").write_text(text)
    with pytest.raises(SystemExit) as exit:
        main(["--cases", str(tmp_path / "cases")])
    assert exit.value.code == 2
    assert "No case has a question" in capsys.readouterr().err


def test_retrieval_by_words_is_no_worse_than_before():
    cases = [case for case in handwritten() if case.id in {"en", "zh", "devon_aiko"}]
    with stores(cases, "") as found:
        every = ranks(found)
        prompts = reminders(found, unrelated()[::5])
    assert every.recall(10) >= 63, every.line()
    assert prompts.evidence >= 30, prompts
    assert prompts.unrelated <= 8, prompts
