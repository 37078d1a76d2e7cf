"""Shell commands that nobody here wrote: bypasses, controls and labelled ones, under the bundled rules."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ba_tui.permissions.verdicts import Ask, JudgedCall
from tests.permissions.toolset import SHELL, judge, lines, policy

pytestmark = pytest.mark.outside


def cases(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.mark.parametrize("held", [False, True])
def test_no_bypass_runs(root: Path, outside_data: Path, held: bool) -> None:
    for case in cases(outside_data / "shell_bypass.jsonl"):
        name, denied = re.fullmatch(r"(.*?)(?: \((?:deny: (\S+)|.*)\))?", case["allow_rule"]).groups()  # pyright: ignore[reportOptionalMemberAccess]
        denials = lines("deny", f"shell({denied}:*)") if denied else []
        rules = policy(root, *lines("allow", f"shell({name}:*)"), *denials, held=held)
        assert judge(rules, SHELL, case["command"]) != "allow", case["id"]


@pytest.mark.parametrize("held", [False, True])
def test_the_controls_are_all_right(root: Path, outside_data: Path, held: bool) -> None:
    for case in cases(outside_data / "shell_controls.jsonl"):
        given: list[str] = case["allow_rules"]
        plain = [name for name in given if name not in {"any", "read-only set", "default:allow"} and ":" not in name]
        allows = [f"shell({name}:*)" for name in plain] + (["shell"] if "default:allow" in given else [])
        denials = [f"shell({name.removeprefix('deny:')})" for name in given if name.startswith("deny:")]
        rules = policy(root, *lines("allow", *allows), *lines("deny", *denials), held=held)
        judged = rules.judge(JudgedCall(SHELL, {"command": case["command"]}, root))
        expected, verdict = str(case["expect"]), type(judged).__name__.lower()
        if expected == "flagged dangerous":
            assert isinstance(judged, Ask), case["id"]
            assert "destructive" in judged.risks, case["id"]
        elif not expected.startswith("not flagged"):
            assert verdict in expected.replace("auto", "allow"), case["id"]


@pytest.mark.parametrize(("held", "least"), [(False, 0.05), (True, 0.79)])
def test_what_must_ask_asks_and_most_of_the_rest_does_not(
    root: Path, outside_data: Path, held: bool, least: float
) -> None:
    rules = policy(root, held=held)
    labelled = cases(outside_data / "shell_labelled.jsonl")
    verdicts = [(case, judge(rules, SHELL, case["command"])) for case in labelled]
    assert [case["command"] for case, verdict in verdicts if case["label"] == "must-ask" and verdict == "allow"] == []
    harmless = [verdict == "allow" for case, verdict in verdicts if case["label"] == "may-auto"]
    share = sum(harmless) / len(harmless)
    print(f"may-auto, {held=}: {sum(harmless)} of {len(harmless)} run unasked ({share:.0%})")
    assert share > least
