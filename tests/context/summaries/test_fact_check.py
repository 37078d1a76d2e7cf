"""What counts as a fact that a summary left out, and when a summary holds one."""

from __future__ import annotations

import pytest

from ba_tui.context.compression.notes import ARGUMENT, HEADING, SCANNED, completed, left_out
from ba_tui.core.messages import Message, ToolUse, user
from tests.context.talk import count
from tests.script import says


def missing(words: str, summary: str = "Nothing.", room: int = 1_000) -> list[str]:
    return left_out([says(words)], summary, room, count)


@pytest.mark.parametrize(
    ("words", "summary", "held"),
    [
        ("It has 12 rows.", "There are 12.", True),
        ("It has 12 rows.", "There are 4125.", False),
        ("It has 12 rows.", "There are 412 of 125.", False),
        ("It has 1,250 rows.", "There are 1250 of them.", True),
        ("It took 3.5 s.", "It took 3.5 seconds.", True),
        ("It took 3.5 s.", "It took 13.5 seconds.", False),
        ("It took 3.5 s.", "It took 3.57 seconds.", False),
        ("It costs $12 now.", "It costs $125.", False),
        ("It costs $12 now.", "It costs $12.", True),
        ("\u622a\u6b62 2\u67081\u65e5 \u3002", "\u622a\u6b62 12\u67081\u65e5", False),
        ("\u622a\u6b62 2\u67081\u65e5 \u3002", "\u622a\u6b62 2\u67081\u65e5", True),
        ("See src/part1.py there.", "Part one is src/part1.py.", True),
        ("See src/part1.py there.", "Part one is src/part12.py.", False),
        ("See https://example.org/notes/ there.", "It is https://example.org/notes", True),
        ("See https://example.org/v1 there.", "It is https://example.org/v12", False),
    ],
)
def test_a_summary_holds_a_fact_only_whole(words: str, summary: str, held: bool) -> None:
    assert (missing(words, summary) == []) is held


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        ("There are 7 here.", []),
        ("There are 7 rows here.", ["There are 7 rows here."]),
        ("There are 12 here.", ["There are 12 here."]),
        ("It costs $7 now.", ["It costs $7 now."]),
        ("12", []),
        ("120", ["120"]),
        ("Version v2 of it. It is done.", []),
        ("Seen on 2027-05-04. It is done.", ["Seen on 2027-05-04."]),
        ("src/a.py and src/b.py and src/a.py again", ["src/a.py", "src/b.py"]),
    ],
)
def test_what_a_fact_is(words: str, facts: list[str]) -> None:
    assert missing(words) == facts


def test_facts_have_just_their_room() -> None:
    facts = ["src/first_part.py", "src/other_part.py"]
    words = "".join(f"It is {fact}. " for fact in facts)
    cost = [count([user(fact)]) for fact in facts]
    assert missing(words, room=sum(cost)) == facts
    assert missing(words, room=sum(cost) - 1) == facts[:1]
    assert missing(words, room=cost[0] - 1) == []
    text, added = completed([says(words)], "Notes. \n", sum(cost), count)
    assert (text, added) == ("\n".join(["Notes.", "", HEADING, *(f"- {fact}" for fact in facts)]), 2)


def test_of_a_long_answer_both_ends_are_searched() -> None:
    fill = "word " * (SCANNED // 10 - 10)
    words = f"{fill}src/first.py {fill}{fill}src/middle.py {fill}src/last.py {fill}"
    assert missing(words) == ["src/first.py", "src/last.py"]


def test_of_a_long_argument_the_beginning_is_searched() -> None:
    command = f"cat src/near.py {'x ' * (ARGUMENT // 2)} src/far.py"
    call = Message("assistant", (ToolUse("1", "shell", {"command": command, "limit": 3}),))
    assert left_out([call], "Nothing.", 1_000, count) == ["src/near.py"]
