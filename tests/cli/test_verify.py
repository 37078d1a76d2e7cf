"""``ba verify``: verdicts on answers from anywhere, and lines that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ba_tui.cli.main import run

CASE: dict[str, Any] = {
    "id": "may",
    "prompt": "How are sales?",
    "observations": [{"call": "R1", "tool": "query", "input": {"sql": "SELECT 1"}, "text": "a,b\nNorth,48210\n"}],
    "answer": "North sold 48,210, and 91,733 were returned.",
}


def written(tmp_path: Path, *lines: object) -> str:
    file = tmp_path / "answers.jsonl"
    file.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n", "utf-8")
    return str(file)


def test_an_unsourced_figure_is_shown_where_it_stands_and_ends_with_5(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(["verify", written(tmp_path, CASE)]) == 5
    assert capsys.readouterr().out.splitlines() == [
        "may: 2 figures · 1 sourced · 1 unsourced",
        "  unsourced  91,733   North sold 48,210, and 91,733 were returned.",
    ]


def test_json_has_a_line_for_each_answer_with_spans_and_sources(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    sound: dict[str, Any] = {**CASE, "id": 2, "answer": "Es waren 48.210 Stück."}
    assert run(["verify", "--json", written(tmp_path, sound)]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    found = json.loads(line)
    (figure,) = found["figures"]
    assert (found["id"], figure["label"], figure["source"]) == (2, "sourced", ["R1"])
    assert sound["answer"][figure["start"] : figure["end"]] == "48.210"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("nope", "is not JSON"),
        ("[1]", 'no object with an "answer"'),
        ('{"answer": 5}', 'no object with an "answer"'),
        ('{"answer": "5", "prompt": 1}', '"prompt" is no text'),
        ('{"answer": "5", "observations": ["x"]}', '"observations" are no list'),
        ("[" * 5_000, "not JSON|nested too deeply"),
    ],
)
def test_a_broken_line_is_named_and_the_others_are_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, why: str
):
    assert run(["verify", written(tmp_path, line, CASE)]) == 1
    told = capsys.readouterr()
    assert "Line 1 was skipped" in told.err
    assert any(part in told.err for part in why.split("|"))
    assert "may: 2 figures" in told.out


def test_a_missing_file_and_an_answer_without_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["verify", str(tmp_path / "none.jsonl")]) == 1
    assert "can't be read" in capsys.readouterr().err
    assert run(["verify", written(tmp_path, {"answer": "All is well."})]) == 0
    assert capsys.readouterr().out == "1: 0 figures\n"
