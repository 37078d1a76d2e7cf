"""The pure parts of asking: which answers there are, what is edited, what the body says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.core.errors import UsageError
from ba_tui.core.questions import Option, Question
from ba_tui.core.results import Diff
from ba_tui.faces.tui.widgets.ask_answers import answers_to, default_row, row_of, rule_fault
from ba_tui.faces.tui.widgets.ask_body import (
    Fit,
    WantedRows,
    accepted,
    body_builds,
    draft,
    facts,
    fit,
    heading,
    other_arguments,
)
from tests.faces.tui.asking.test_ask import EDIT, PUSH, REMOVE
from tests.faces.tui.sheets import sheet_text


def test_answers_of_a_permission_without_a_rule() -> None:
    answers = answers_to(REMOVE)
    assert [answer.name for answer in answers] == ["once", "no", "words"]
    assert default_row(REMOVE, answers) == 1
    assert row_of("2", answers) is None
    assert row_of("4", answers) == 1


def test_more_options_than_digits() -> None:
    question = Question("choice", "Which?", options=tuple(Option(str(n)) for n in range(12)))
    answers = answers_to(question)
    assert row_of("9", answers) == 8
    assert [answer.keys for answer in answers[9:]] == [(), (), (), ("w",)]


@pytest.mark.parametrize("rule", ["shell(git push:*)", "mcp.github.*", "edit_file(src/**)", "web_fetch(domain:a.b)"])
def test_rules(rule: str) -> None:
    assert rule_fault(rule) == ""


@pytest.mark.parametrize("rule", ["", "shell(", "shell()", "git push", "a(b)c"])
def test_what_is_no_rule(rule: str) -> None:
    assert rule_fault(rule)


def test_only_what_the_preview_does_not_show_is_listed_beside_it() -> None:
    assert other_arguments(PUSH) == {"timeout": 60}
    assert other_arguments(EDIT) == {}


def test_the_new_text_alone_is_edited_when_it_is_what_matters() -> None:
    assert draft(EDIT).key == "new_string"
    whole = Question("permission", "", args={"path": "a", "content": "x\n"}, preview=Diff("a", None, "x\n"))
    assert draft(whole).key == "content"
    twice = Question("permission", "", args={"path": "a", "p": "x", "q": "y"}, preview=Diff("a", None, "xy"))
    assert draft(twice).key is None


def test_edited_json_must_be_an_object() -> None:
    of = draft(Question("permission", "", args={"a": 1, "b": 2}))
    with pytest.raises(UsageError, match="must be an object"):
        accepted(of, "[1]", {"a": 1})
    assert accepted(of, '{"b": 2, "a": 1}', {"a": 1, "b": 2}) is None


def test_the_body_shows_every_argument_whole() -> None:
    question = Question("permission", "", tool="t", args={"text": "a\nb", "deep": {"list": [1, None, True, {"x": ""}]}})
    [build] = body_builds(question)
    text = sheet_text(build())
    shown = ["text: ", "a", "b", "deep: ", "  list: ", "    - 1", "    - null", "    - true", '    - x: ""']
    assert text.split("\n") == shown


def test_who_asks_is_said_when_it_is_not_the_main_agent() -> None:
    assert "explore-1" in facts(PUSH, "main/explore-1").plain
    assert "main" not in facts(PUSH, "main").plain
    assert heading(Question("permission", "", tool="shell")) == "Allow shell?"


def test_the_answers_come_first_when_lines_are_few() -> None:
    assert fit(10, WantedRows(2, 9, 4)) == Fit(1, 1, 4, 0, air=False)
    assert fit(12, WantedRows(2, 9, 4)) == Fit(1, 1, 4, 1, air=False)
    assert fit(24, WantedRows(2, 30, 5)) == Fit(2, 6, 5, 2, air=False)
    assert fit(50, WantedRows(2, 3, 5)) == Fit(2, 3, 5, 2, air=True)
    assert fit(3, WantedRows(0, 1, 9)) == Fit(0, 1, 2, 1, air=False)


@given(st.integers(1, 100), st.integers(0, 4), st.integers(0, 500), st.integers(0, 12))
def test_what_is_shared_out_is_there(height: int, known: int, body: int, answers: int) -> None:
    got = fit(height, WantedRows(known, body, answers))
    assert 1 + got.facts + got.body + got.answers + got.hint + (2 if got.air else 0) <= max(5, int(height * 0.7))
