"""What counts as a fact that a person states: English, German and Chinese, and what does not."""

from __future__ import annotations

import pytest

from ba_tui.features.memory.engine.stated import MOST, classified, stated, value_changed

STATED = {
    "Our fiscal year starts in July. What was Q1 revenue?": ("fact", "project", "fiscal year starts"),
    "By the way, my editor is Helix. Fix src/app.py": ("fact", "person", "editor"),
    "I prefer bar charts over pie charts.": ("preference", "person", ""),
    "Please call me Sam": ("fact", "person", "name"),
    "I'm a data analyst at ACME": ("fact", "person", "role"),
    "always use ISO dates": ("preference", "person", ""),
    "We use Snowflake for sales data": ("fact", "project", ""),
    "Our deadline is 3.5 weeks away": ("fact", "project", "deadline"),
    "Unser Geschäftsjahr beginnt im Juli": ("fact", "project", "geschäftsjahr beginnt"),
    "Nenn mich Chris.": ("fact", "person", "name"),
    "Bitte antworte immer auf Deutsch": ("preference", "person", "language of answers"),
    "Ich bevorzuge Balkendiagramme": ("preference", "person", ""),
    "我们的财年从七月开始": ("fact", "project", "财年 从"),
    "叫我小王": ("fact", "person", "name"),
    "我更喜欢柱状图": ("preference", "person", ""),
    "请用中文回答我": ("preference", "person", "language of answers"),
    "我的编辑器是Vim": ("fact", "person", "编辑器"),
}
SILENT = (
    "",
    "When does our fiscal year start?",
    "If our fiscal year starts in July, what is Q1?",
    "Would our fiscal year be better in July",
    "I prefer the second option",
    "my code is broken",
    "Call me back when you are done",
    "```\nI prefer tabs\n```",
    "> I prefer tabs\n> our key is public",
    "Fix the bug in src/app.py and run the tests",
    "我们的财年是什么时候开始",
    "Our plan is " + "very " * 100 + "long",
)


@pytest.mark.parametrize("text", STATED)
def test_a_statement_is_found_with_what_it_is_about(text: str) -> None:
    (draft,) = stated(text, "message-1")
    assert (draft.kind, draft.subject, draft.attribute) == STATED[text]
    assert (draft.origin, draft.source, draft.scope) == ("person", "message-1", "project")


@pytest.mark.parametrize("text", SILENT)
def test_what_states_nothing_is_not_proposed(text: str) -> None:
    assert stated(text) == ()


def test_a_prompt_full_of_statements_yields_few() -> None:
    text = " ".join(f"I prefer style number {at}." for at in range(50)) * 50
    assert len(stated(text)) == MOST


def test_what_the_person_wants_stored_keeps_its_words_where_no_rule_fits() -> None:
    assert classified("the staging server reboots at 4 am").text == "the staging server reboots at 4 am"


def test_another_value_is_told_from_another_thing() -> None:
    assert value_changed("The VAT rate is 19 percent", "The VAT rate is 21 percent")
    assert value_changed("Die Frist beträgt 14 Tage", "Die Frist beträgt 30 Tage")
    assert not value_changed("Invoice 12 is paid", "Invoice 13 is paid")
    assert not value_changed("The rate is 19", "The rate is 19")
