"""Questions about plans and scripts, and rules that hold for the session: what the panel shows and sends back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ba_tui.core.ports.permissions import EDITS, joined_rules
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import Prose, ScriptCall
from tests.faces.tui.asking.test_ask import EDIT, PUSH, Chat, asked, seen, settle

PLAN = Question(
    "plan", "Carry out this plan?", tool="present_plan", preview=Prose("# Tidy up\n\n1. Read\n2. Write", True)
)
SQL = "select region, sum(amount)\nfrom sales group by region"
INPUT = {"path": "shop.db", "sql": SQL}
SOURCE = "import sys\n\nprint(sys.stdin.read())\n"
SCRIPT = Question(
    "permission",
    "Allow run_skill_script?",
    tool="run_skill_script",
    args={"skill_id": "sql", "script_name": "query.py", "args": ["--top", "5 rows"], "stdin": INPUT, "timeout": 9},
    preview=ScriptCall("skills/sql/scripts/query.py", ("--top", "5 rows"), INPUT, SOURCE),
    reason="Running code needs approval in default mode.",
    risks=("runs a command",),
    rule="run_skill_script(sql/query.py)",
)


@pytest.mark.parametrize(
    ("keys", "reply", "interrupt"),
    [
        (["y"], Reply("once"), False),
        (["1"], Reply("once"), False),
        (["enter"], Reply("once"), False),
        (["2"], Reply("session"), False),
        (["a"], Reply("session"), False),
        (["3"], Reply("deny"), False),
        (["n"], Reply("deny"), False),
        (["tab", *"smaller", "enter"], Reply("deny", "smaller"), False),
        (["escape"], Reply("deny"), True),
    ],
)
async def test_a_plan_is_answered(keys: list[str], reply: Reply, interrupt: bool) -> None:
    async with Chat().run_test(size=(80, 24)) as pilot:
        app = await asked(pilot, PLAN)
        screen = seen(app)
        for words in ("Carry out this plan?", "# Tidy up", "Yes, and accept edits", "No, keep planning", "2. Write"):
            assert words in screen
        assert "edit the rule" not in screen
        await pilot.press(*keys)
        await settle(pilot)
        assert app.answers == [("q1", reply, interrupt)]


async def test_a_script_shows_its_arguments_and_sql_first_and_its_source_behind_a_key() -> None:
    async with Chat().run_test(size=(80, 30)) as pilot:
        app = await asked(pilot, SCRIPT)
        screen = seen(app)
        assert "print(sys" not in screen
        order = ("query.py --top '5 rows'", "standard input:", "select region", "path: shop.db", "skills/sql/scripts")
        places = [screen.index(text) for text in order]
        assert places == sorted(places)
        assert "3 lines: d shows the source" in screen
        assert "timeout: 9" in screen
        assert "skill_id" not in screen
        assert "Yes, for this session: query.py of the skill sql, with any arguments" in screen
        await pilot.press("d")
        await settle(pilot)
        full = seen(app)
        assert "print(sys.stdin.read())" in full
        assert "select region" in full


async def test_the_rule_for_the_session_is_another_than_for_good() -> None:
    wide = replace(EDIT, session_rule=joined_rules(EDITS))
    async with Chat().run_test(size=(80, 24)) as pilot:
        app = await asked(pilot, wide)
        assert "Yes, for this session: all edits in this folder" in seen(app)
        assert "Always in this project: edit_file on a.py" in seen(app)
        await pilot.press("s")
        await settle(pilot)
        app = await asked(pilot, wide)
        await pilot.press("a")
        await settle(pilot)
        assert "edit_file(a.py)" in seen(app)
        await pilot.press("enter")
        await settle(pilot)
        assert [reply for _, reply, _ in app.answers] == [
            Reply("session", rule=joined_rules(EDITS)),
            Reply("always", rule="edit_file(a.py)"),
        ]


async def test_a_rule_for_the_session_alone() -> None:
    async with Chat().run_test(size=(80, 24)) as pilot:
        app = await asked(pilot, replace(PUSH, rule=None, session_rule="python(@sandbox)"))
        screen = seen(app)
        assert "Yes, for this session: Python in the sandbox, without network" in screen
        assert "Always in this project" not in screen
        assert "too broad" not in screen
        await pilot.press("s")
        await settle(pilot)
        assert app.answers == [("q1", Reply("session", rule="python(@sandbox)"), False)]


async def test_several_rules_are_shown_before_they_are_kept() -> None:
    both = "shell(git add:*)\nshell(git commit:*)"
    async with Chat().run_test(size=(80, 24)) as pilot:
        app = await asked(pilot, replace(PUSH, rule=both))
        assert "Always in this project: git add … and git commit …" in seen(app)
        assert "edit the rule" not in seen(app)
        await pilot.press("a")
        await settle(pilot)
        assert "shell(git add:*) · shell(git commit:*)" in seen(app)
        assert "edits the rule" not in seen(app)
        await pilot.press("r", "enter")
        await settle(pilot)
        assert app.answers == [("q1", Reply("always", rule=both), False)]
