"""No request names the home folder or the workspace by its whole path, in a session that uses all that ba writes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ba_tui.assembly import connect
from ba_tui.core.events import Asked, Event
from ba_tui.core.messages import user
from ba_tui.core.ports.memory import Draft, Memory
from ba_tui.core.questions import Reply
from ba_tui.core.turn import Turn
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.providers.scripted import ScriptedCall, Step
from tests.loopback import ModelServer
from tests.script import collect
from tests.skills.world import put

NAMES = "zweig-7f3q", "nest-9k2x"
"""Unusual names of the home folder and of the workspace."""


@pytest.fixture(params=["in the home folder", "elsewhere"])
def places_of(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    home = tmp_path / NAMES[0]
    root = (home if request.param == "in the home folder" else tmp_path / "data") / NAMES[1]
    (root / ".ba" / "agents").mkdir(parents=True)
    (root / "sub").mkdir()
    home.mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("BA_HOME", str(home / ".ba-home"))
    return home, root


def filled(home: Path, root: Path) -> None:
    body = 'Run ${CLAUDE_SKILL_DIR}/run.sh, `python scripts/show.py` or "$SKILL_DIR/run.sh"; see references/format.md.'
    files = {"scripts__show_py": "print(1)", "references__format_md": "The format.", "run_sh": "#!/bin/sh\necho ran\n"}
    for folder, name in ((home / ".agents" / "skills", "forms"), (root / ".ba" / "skills", "shapes")):
        skill = put(folder, name, body, **files)
        (skill / "run.sh").chmod(0o755)
    (home / ".ba-home").mkdir(exist_ok=True)
    (home / ".ba-home" / "AGENTS.md").write_text("Be brief. @notes.md\n")
    (home / ".ba-home" / "notes.md").write_text("Use metres.\n")
    (home / ".claude").mkdir()
    (home / ".claude" / "CLAUDE.md").write_text("Answer in English.\n")
    (root / "AGENTS.md").write_text("Use tabs. @sub/more.md\n")
    (root / "sub" / "AGENTS.md").write_text("Here use spaces.\n")
    (root / "sub" / "more.md").write_text("More.\n")
    (root / "sales.csv").write_text("region,amount\nnorth,1\nsouth,2\n")
    (root / "broken.py").write_text("raise ValueError(1)\n")
    (root / ".ba" / "agents" / "looker.md").write_text("---\nname: looker\ndescription: Looks.\n---\nLook.\n")
    (home / "outside.txt").write_text("outside\n")
    trust_folder(root)


def calls(*each: tuple[str, dict[str, object]]) -> Iterator[Step]:
    for name, args in each:
        yield Step(calls=(ScriptedCall(name, args),))


STEPS: Sequence[tuple[str, dict[str, object]]] = (
    ("activate_skill", {"skill_id": "forms"}),
    ("activate_skill", {"skill_id": "shapes"}),
    ("activate_skill", {"skill_id": "missing"}),
    ("activate_skill", {"skill_id": "charts"}),
    ("read_file", {"path": "skills/forms/references/format.md"}),
    ("read_file", {"path": "skills/forms/none.md"}),
    ("run_skill_script", {"skill_id": "forms", "script_name": "show.py"}),
    ("run_skill_script", {"skill_id": "forms", "script_name": "none.py"}),
    ("end_skill", {}),
    ("shell", {"command": "scripts/show.py"}),
    ("read_file", {"path": "sub/more.md"}),
    ("read_file", {"path": "none.txt"}),
    ("read_file", {"path": "~/outside.txt"}),
    ("read_file", {"path": "~/none.txt"}),
    ("read_file", {"path": "../"}),
    ("write_file", {"path": "made.txt", "content": "x"}),
    ("write_file", {"path": "~/made.txt", "content": "x"}),
    ("write_file", {"path": "sub", "content": "x"}),
    ("edit_file", {"path": "made.txt", "old_string": "nope", "new_string": "y"}),
    ("edit_file", {"path": "~/outside.txt", "old_string": "nope", "new_string": "y"}),
    ("list_files", {"path": "."}),
    ("list_files", {"path": "~"}),
    ("list_files", {"path": "none"}),
    ("glob", {"pattern": "**/*.md"}),
    ("glob", {"pattern": "*", "path": "~/none"}),
    ("grep", {"pattern": "tabs"}),
    ("grep", {"pattern": "x", "path": "none"}),
    ("shell", {"command": "cat none.txt; ls sub"}),
    ("shell", {"command": "cd sub && ls"}),
    ("python", {"code": "raise ValueError('x')"}),
    ("python", {"code": "open('none.txt')"}),
    ("query_data", {"sql": "SELECT * FROM 'sales.csv'"}),
    ("query_data", {"sql": "SELECT * FROM 'none.csv'"}),
    ("query_data", {"sql": "SELECT * FROM '~/none.csv'"}),
    ("query_data", {"sql": "SELEC"}),
    ("query_data", {"sql": "ATTACH 'none.db'"}),
    ("data_quality", {"tables": ["sales.csv"]}),
    ("data_quality", {"tables": ["~/none.csv"]}),
    ("chart", {"data": "sales.csv", "x": "region", "y": "amount"}),
    ("chart", {"data": "none.csv"}),
    ("chart", {"data": "sales.csv", "x": "region", "y": "amount", "save": "~/chart.html"}),
    ("python", {"code": "import os; os.chdir('/nowhere')"}),
    ("delegate_task", {"agent_type": "looker", "prompt": "Look at it.", "description": "look"}),
    ("delegate_task", {"agent_type": "none", "prompt": "Look at it.", "description": "look"}),
    ("delegate_task", {"agent_type": "explore", "prompt": "Look.", "description": "look", "isolation": "worktree"}),
    ("delegate_task", {"agent_type": "explore", "prompt": "Look.", "description": "look", "background": True}),
    ("shell", {"command": "cat notes-@skill:forms; ls @skill:forms/none", "background": True}),
    ("shell", {"command": "touch .ba/config.yaml"}),
    ("shell", {"command": "sleep 60", "timeout": 1}),
    ("remember", {"text": "The fiscal year starts in July"}),
    ("tool_search", {"query": "skills"}),
    ("recall", {}),
    ("plan", {"goal": "Look"}),
    ("web_fetch", {"url": "file:///etc/passwd"}),
    ("todo_write", {"items": [{"content": "x", "status": "pending"}]}),
    ("apply_patch", {"patch": "*** Begin Patch\n*** Update File: none.txt\n@@\n-a\n+b\n*** End Patch"}),
)
PROMPTS = (
    "Do all of it with @sales.csv and @sub and @sub/more.md and @skill:shapes and @none.txt",
    "Please remember when the fiscal year starts, and plan it. See @~/outside.txt and @agent:looker.",
    "/forms now",
)


async def test_no_request_names_the_home_folder_or_the_workspace_by_a_whole_path(
    places_of: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, root = places_of
    filled(home, root)
    with ModelServer(calls(*STEPS), last=Step(say="Done.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        library = connect({"model": "openai/any", "memory.embedder": "off"}, root).library
        talk = library.create()
        memory = talk.inventory.feature(Memory)
        assert memory
        await memory.remember(Draft("The fiscal year starts in April"))
        for prompt in PROMPTS:
            work = talk.say(user(prompt))

            def agreed(event: Event, work: Turn = work) -> None:
                if isinstance(event, Asked):
                    work.answer(event.ask_id, Reply("once"))

            await collect(work, agreed)
        await talk.close()
        bodies = [request.body.decode() for request in server.requests]
    assert len(bodies) > len(STEPS)
    leaks = sorted({line for body in bodies for line in whole_paths(body, home, root)})
    assert not leaks, "\n".join(map(repr, leaks))


def whole_paths(body: str, *folders: Path) -> Iterator[str]:
    """The surroundings of each whole path in the texts of a request."""

    def texts(value: object) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            for item in value.values():
                yield from texts(item)
        elif isinstance(value, list):
            for item in value:
                yield from texts(item)

    for text in texts(json.loads(body)):
        for folder in folders:
            start = text.find(os.fspath(folder))
            while start >= 0:
                yield text[max(0, start - 90) : start + 160]
                start = text.find(os.fspath(folder), start + 1)
