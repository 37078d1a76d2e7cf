"""Agents in copies in the house as it is put together: real git, two at once, what comes into the project."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ba_tui.assembly import connect
from ba_tui.core.conversation import Conversation
from ba_tui.core.events import AgentStarted, Asked, Event, ToolFinished
from ba_tui.core.questions import Reply
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.providers.scripted import ScriptedCall, Step
from tests.loopback import Answer, ModelServer
from tests.loopback.replies import Pace
from tests.program import Program
from tests.script import collect

WORKER = """
steps:
- {{calls: [{{tool: read_file, args: {{path: {file}}}}}, {{tool: read_file, args: {{path: both.txt}}}}]}}
- calls:
  - {{tool: write_file, args: {{path: {file}, content: "by {name}\\n"}}}}
  - {{tool: write_file, args: {{path: made/{name}.txt, content: new}}}}
  - {{tool: write_file, args: {{path: both.txt, content: "{both}\\n"}}}}
  - {{tool: write_file, args: {{path: closed/{name}.txt, content: "no"}}}}
  - {{tool: shell, args: {{command: "touch {name}-was-here"}}}}
- {{say: I changed {file}.}}
"""
MAIN = """
steps:
- calls:
  - {tool: delegate_task, args: {description: first, prompt: Go., agent_type: one}}
  - {tool: Task, args: {description: second, prompt: Go., subagent_type: two, isolation: worktree}}
- {say: Both are done.}
- {calls: [{tool: apply_changes, args: {agent_id: main/one-1}}]}
- {say: Applied.}
- {calls: [{tool: apply_changes, args: {agent_id: main/two-1, paths: [b.txt, made]}}]}
- {say: Applied.}
- {calls: [{tool: apply_changes, args: {agent_id: main/two-1}}]}
- {say: Applied.}
"""


def repository(work: Path) -> None:
    work.mkdir(exist_ok=True)
    for name in ("a.txt", "b.txt", "both.txt"):
        (work / name).write_text("old\n")
    for args in (("init", "-q"), ("add", "-A"), ("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x")):
        subprocess.run(["git", *args], cwd=work, check=True)


@pytest.fixture
def folder(tmp_path: Path, ba_home: Path) -> Path:
    work = tmp_path / "work"
    repository(work)
    agents = work / ".ba" / "agents"
    agents.mkdir(parents=True)
    for name, file, both, more in (("one", "a.txt", "first", "isolation: worktree\n"), ("two", "b.txt", "second", "")):
        (tmp_path / f"{name}.yaml").write_text(WORKER.format(name=name, file=file, both=both))
        head = f"name: {name}\ndescription: D.\nmodel: scripted:{tmp_path}/{name}.yaml\n{more}"
        (agents / f"{name}.md").write_text(f"---\n{head}---\nYou work.\n")
    (tmp_path / "main.yaml").write_text(MAIN)
    (work / ".ba" / "config.yaml").write_text('permissions: {deny: ["write_file(closed/**)"]}\n')
    trust_folder(work)
    return work


async def said(made: Conversation, prompt: str) -> tuple[list[str], list[Asked], list[Event]]:
    """The results of main, the questions, which get a yes, and all events."""
    asked: list[Asked] = []
    turn = made.say(prompt)

    def react(event: Event) -> None:
        if isinstance(event, Asked):
            asked.append(event)
            turn.answer(event.ask_id, Reply("once"))

    events = await collect(turn, react)
    texts = [each.result.text for each in events if isinstance(each, ToolFinished) and each.agent == "main"]
    return texts, asked, events


def talk(folder: Path, **flags: Any) -> Conversation:
    return connect({"model": f"scripted:{folder.parent}/main.yaml", **flags}, folder).library.create()


def held(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file() and not {".git", ".ba"} & set(path.parts))
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


async def test_two_agents_change_their_copies_and_what_fits_comes_into_the_project(folder: Path) -> None:
    made, before = talk(folder), held(folder)
    reports, asked, events = await said(made, "Let two agents work.")
    assert asked == [], "an edit of a copy asks nothing"
    assert held(folder) == before, "nothing of it is in the project"
    assert all("apply_changes" in report for report in reports)
    places = {each.agent: Path(each.worktree) for each in events if isinstance(each, AgentStarted)}
    copies = [places[name] for name in ("main/one-1", "main/two-1")]
    assert [(copy / name).read_text() for copy, name in zip(copies, ("a.txt", "b.txt"), strict=True)] == [
        *("by one\n", "by two\n"),
    ]
    own = [each.result.text for each in events if isinstance(each, ToolFinished) and each.agent == "main/one-1"]
    assert "Denied by the rule" in own[5]
    assert "There is no tool 'shell'" in own[6]

    texts, asked, _ = await said(made, "Apply one.")
    assert [(each.agent, each.question.tool) for each in asked] == [("main", "apply_changes")]
    assert "Changed a.txt (+1 -1 lines)." in texts[0]
    assert held(folder) == {**before, "a.txt": "by one\n", "both.txt": "first\n", "made/one.txt": "new"}

    texts, _, _ = await said(made, "Apply a part of two.")
    assert "Changed b.txt" in texts[0]
    now = {**before, "a.txt": "by one\n", "b.txt": "by two\n", "both.txt": "first\n"}
    assert held(folder) == {**now, "made/one.txt": "new", "made/two.txt": "new"}

    texts, _, _ = await said(made, "Apply the rest.")
    assert "both.txt: the project changed the same lines" in texts[0]
    assert held(folder)["both.txt"] == "first\n"
    await made.close()


async def test_rules_and_plan_mode_hold_for_what_comes_into_the_project(folder: Path) -> None:
    made, before = talk(folder), held(folder)
    await said(made, "Let two agents work.")
    made.permissions.add("edit_file(a.txt)", "deny", "session")
    texts, asked, _ = await said(made, "Apply one.")
    assert "Denied by the rule" in texts[0]
    made.set_mode("plan")
    more, again, _ = await said(made, "Apply two.")
    assert "Plan mode only reads" in more[0]
    assert (asked, again) == ([], [])
    assert held(folder) == before
    await made.close()


async def test_in_plan_mode_an_agent_changes_not_even_its_copy(folder: Path) -> None:
    made = talk(folder, permission_mode="plan")
    reports, asked, events = await said(made, "Let two agents work.")
    tried = [each.result for each in events if isinstance(each, ToolFinished) and each.agent == "main/one-1"]
    assert [each.is_error for each in tried] == [False, False, True, True, True, True, True]
    assert asked == []
    assert not any("brings" in report for report in reports)
    await made.close()


@pytest.mark.timeout(120)
def test_a_killed_agent_goes_on_in_its_copy(tmp_path: Path) -> None:
    work = tmp_path / "work"
    repository(work)
    (tmp_path / "home").mkdir()

    def at(server: ModelServer) -> Program:
        env = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k", "BA_MODEL": "anthropic/test"}
        return Program(work, tmp_path / "home", env)

    def delegating(**more: str) -> Step:
        args = {"description": "write", "prompt": "Write.", "agent_type": "general", **more}
        return Step(calls=(ScriptedCall("delegate_task", args),))

    writing = Step(calls=(ScriptedCall("write_file", {"path": "new.txt", "content": "mine"}),))
    never = Answer(Step(say="never"), pace=Pace(hold=None, rate=20.0))
    with ModelServer([delegating(isolation="worktree"), writing, never]) as server:
        process = at(server).start("-p", "--trust", "let an agent write")
        assert server.arrived(3, 60)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert not (work / "new.txt").exists()
    reading = Step(calls=(ScriptedCall("read_file", {"path": "new.txt"}),))
    applying = Step(calls=(ScriptedCall("apply_changes", {"agent_id": "main/general-1"}),))
    steps = [delegating(resume="main/general-1"), reading, Step(say="It is there."), applying, Step(say="Done.")]
    with ModelServer(steps) as server:
        done = at(server).run("-p", "-c", "--permission-mode", "accept-edits", "go on with the agent")
        asked = [json.dumps(request.json) for request in server.requests]
    assert done.returncode == 0, done
    assert "mine" in asked[2]
    assert "new.txt" in asked[3]
    assert (work / "new.txt").read_text() == "mine"


async def test_what_comes_in_is_what_the_person_was_shown(folder: Path) -> None:
    made, before = talk(folder), held(folder)
    _, _, events = await said(made, "Let two agents work.")
    places = {each.agent: Path(each.worktree) for each in events if isinstance(each, AgentStarted)}
    copy = places["main/one-1"]
    turn = made.say("Apply one.")

    def react(event: Event) -> None:
        if isinstance(event, Asked):
            # As an agent in the background does that goes on while the question waits.
            (copy / "a.txt").write_text("something else\n")
            turn.answer(event.ask_id, Reply("once"))

    events = await collect(turn, react)
    (text,) = [each.result.text for each in events if isinstance(each, ToolFinished)]
    assert "no longer the changes that the user was asked about" in text
    assert held(folder) == before
    await made.close()
