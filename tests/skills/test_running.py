"""Scripts of skills in the house as it is put together: who is asked, what the settings say, what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ba_tui.assembly import connect
from ba_tui.core.events import Asked, ToolFinished
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import ScriptCall
from ba_tui.permissions.trust.grants import trust_folder

STEPS = """\
steps:
  - calls: [{tool: run_skill_script, args: {skill_id: forms, script_name: fill.py, stdin: {a: 1}}}]
  - say: Done.
last: {say: More.}
"""
CODE = "import os, sys\nprint(sys.stdin.read(), os.path.relpath(os.environ['AGENT_WORKSPACE_PATH']))\n"


class House:
    """A folder, a skill of the user's own and a model that runs its script."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self.skill = home / "skills" / "forms"
        (self.skill / "scripts").mkdir(parents=True)
        (self.skill / "SKILL.md").write_text("---\nname: forms\ndescription: Fills forms.\n---\n\nFill them.\n")
        self.script = self.skill / "scripts" / "fill.py"
        self.script.write_text(CODE)
        (folder / ".git").mkdir(parents=True)
        (folder / "steps.yaml").write_text(STEPS)
        trust_folder(folder)

    async def run(self, *replies: Reply, **flags: Any) -> tuple[Sequence[Question], str]:
        """What was asked in a new session, and what the script gave."""
        talk = connect({"model": f"scripted:{self.folder}/steps.yaml", **flags}, self.folder).library.create()
        asked: list[Question] = []
        results: list[str] = []
        left = list(replies)
        turn = talk.say("@run_skill_script go")
        async for event in turn:
            if isinstance(event, Asked):
                asked.append(event.question)
                turn.answer(event.ask_id, left.pop(0))
            elif isinstance(event, ToolFinished):
                results.append(event.result.text)
        await talk.close()
        (result,) = results
        return asked, result


@pytest.fixture
def house(tmp_path: Path, ba_home: Path) -> House:
    return House(tmp_path / "work", ba_home)


async def test_it_is_asked_for_once_and_again_when_it_changed(house: House) -> None:
    asked, result = await house.run(Reply("always"))
    (question,) = asked
    assert (question.text, question.rule) == ("Allow run_skill_script?", "run_skill_script(forms/fill.py)")
    assert question.preview == ScriptCall("skills/forms/scripts/fill.py", (), {"a": 1}, CODE)
    assert result == '{"a": 1} .'
    assert await house.run() == ([], result)
    house.script.write_text(f"{CODE}print('more')\n")
    asked, refused = await house.run(Reply("deny"))
    assert [question.text for question in asked] == ["Run forms/fill.py, which has changed?"]
    assert "Running it was not allowed." in refused
    assert (await house.run(Reply("once")))[1].endswith("more")
    assert (await house.run())[0] == []


async def test_the_settings_say_how_long_it_may_take(house: House) -> None:
    house.script.write_text("import time\nprint('begun', flush=True)\ntime.sleep(60)\n")
    flags = {"permissions.allow": ["run_skill_script(forms/*)"], "commands": {"skill_timeout": 0.4}}
    asked, result = await house.run(**flags)
    assert asked == []
    assert "ran longer than 0.4 s and was ended" in result
