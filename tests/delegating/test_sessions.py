"""Sub-agents in the house as it is put together, and in the real program that is killed while one works."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from ba_tui.assembly import connect
from ba_tui.core.conversation import Conversation
from ba_tui.core.events import AgentStarted, Asked, Event, Notice, ToolFinished
from ba_tui.core.questions import Reply
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.providers.scripted import ScriptedCall, Step
from tests.loopback import Answer, ModelServer
from tests.loopback.replies import Pace
from tests.program import Program
from tests.script import collect
from tests.skills.world import put

MAIN = """
steps:
- {calls: [{tool: Task, args: {description: write it, prompt: Write., subagent_type: writer}}]}
- {say: Done.}
- {calls: [{tool: delegate_task, args: {description: look, prompt: Look., agent_type: looker}}]}
- {say: Done too.}
"""
WRITER = """
steps:
- {calls: [{tool: write_file, args: {path: new.txt, content: mine}}]}
- {say: I wrote it.}
"""
LOOKER = """
steps:
- {calls: [{tool: shell, args: {command: "rm new.txt"}}, {tool: write_file, args: {path: x.txt, content: no}}]}
- {say: I only looked.}
"""
HOOKS = """
hooks:
  SubagentStart: [{hooks: [{command: "cat >> ../heard.jsonl"}]}]
  subagent_stop: [{matcher: writer, hooks: [{command: "cat >> ../heard.jsonl"}]}]
"""


@pytest.fixture
def folder(tmp_path: Path, ba_home: Path) -> Path:
    work = tmp_path / "work"
    agents = work / ".ba" / "agents"
    agents.mkdir(parents=True)
    for name, script, more in (("writer", WRITER, ""), ("looker", LOOKER, "permissionMode: plan\n")):
        (tmp_path / f"{name}.yaml").write_text(script)
        model = f"model: scripted:{tmp_path}/{name}.yaml\n"
        (agents / f"{name}.md").write_text(f"---\nname: {name}\ndescription: D.\n{model}{more}---\nYou are {name}.\n")
    (tmp_path / "main.yaml").write_text(MAIN)
    (work / ".ba" / "config.yaml").write_text(HOOKS)
    trust_folder(work)
    return work


def talk(folder: Path, **flags: Any) -> Conversation:
    return connect({"model": f"scripted:{folder.parent}/main.yaml", **flags}, folder).library.create()


async def test_approvals_name_the_agent_and_no_agent_does_more_than_its_file_says(folder: Path) -> None:
    made = talk(folder)
    asked: list[tuple[str, str]] = []

    async def said(prompt: str) -> list[Event]:
        turn = made.say(prompt)

        def react(event: Event) -> None:
            if isinstance(event, Asked):
                asked.append((event.agent, event.question.tool))
                turn.answer(event.ask_id, Reply("once"))

        return await collect(turn, react)

    events = await said("Write it.")
    assert asked == [("main/writer-1", "write_file")], "starting an agent asks nothing"
    assert (folder / "new.txt").read_text() == "mine"
    (told,) = [each.result.text for each in events if isinstance(each, ToolFinished) and each.agent == "main"]
    assert told == "I wrote it.\n\nagent_id: main/writer-1"
    events = await said("Look at it.")
    denied = [each.result.is_error for each in events if isinstance(each, ToolFinished) and "looker" in each.agent]
    assert denied == [True, True]
    assert len(asked) == 1
    assert (folder / "new.txt").exists()
    await made.close()
    heard = [
        json.loads(line) for line in (folder.parent / "heard.jsonl").read_text().replace("}{", "}\n{").splitlines()
    ]
    assert [(each["hook_event_name"].lower().replace("_", ""), each["agent_type"]) for each in heard] == [
        *(("subagentstart", "writer"), ("subagentstop", "writer"), ("subagentstart", "looker")),
    ]
    assert heard[0]["agent_id"] == "main/writer-1"
    assert heard[1]["last_assistant_message"] == "I wrote it."


async def test_the_main_agent_may_be_one_of_a_file_and_keeps_its_limits(folder: Path) -> None:
    made = connect({"agents.main": "looker"}, folder).library.create()
    assert made.model.endswith("looker.yaml")
    events = await collect(made.say("Look."))
    assert [each.result.is_error for each in events if isinstance(each, ToolFinished)] == [True, True]
    assert not (folder / "x.txt").exists()
    await made.close()


async def test_an_agent_has_the_effort_and_the_skills_of_its_file(folder: Path) -> None:
    skills = folder / ".ba" / "skills"
    put(skills, "forms", "Fill in every field.", head="allowed-tools: write_file\n")
    put(skills, "secret", "Only for you.", head="disable-model-invocation: true\n")
    put(skills, "main-only", "Not for agents.")
    (folder / ".ba" / "skills.yaml").write_text("optional: {main-only: {available_to_subagent: false}}\n")
    head = "name: clerk\ndescription: D.\neffort: high\nskills: [forms, secret, main-only, nowhere]\n"
    (folder / ".ba" / "agents" / "clerk.md").write_text(f"---\n{head}---\nYou are a clerk.\n")
    trust_folder(folder)
    order = {"description": "fill", "prompt": "Fill.", "agent_type": "clerk"}
    writing = ScriptedCall("write_file", {"path": "form.txt", "content": "x"})
    steps = [
        Step(calls=(ScriptedCall("delegate_task", order),)),
        Step(calls=(writing,)),
        Step(say="Filled."),
        Step(say="Done."),
    ]
    asked: list[str] = []
    with ModelServer(steps) as server:
        address = {"providers.loop.kind": "openai", "providers.loop.base_url": server.openai_url}
        made = talk(folder, model="loop/some-model", effort="low", **address)
        turn = made.say("Let the clerk fill it.")

        def react(event: Event) -> None:
            if isinstance(event, Asked):
                asked.append(event.question.tool)
                turn.answer(event.ask_id, Reply("deny"))

        events = await collect(turn, react)
        await made.close()
    assert [request.json["reasoning_effort"] for request in server.requests] == ["low", "high", "high", "low"]
    system = json.dumps(server.requests[1].json["messages"][0])
    assert "You are a clerk." in system
    assert "Fill in every field." in system
    for kept in ("Only for you.", "Not for agents.", "Fill in every field."):
        assert kept not in json.dumps(server.requests[0].json["messages"])
    assert "Only for you." not in system
    assert "Not for agents." not in system
    assert asked == ["write_file"], "the tools that a skill names are asked about as usual"
    told = [each.text for each in events if isinstance(each, Notice) and "without the skill" in each.text]
    assert [text.partition(": ")[0] for text in told] == [
        f"clerk works without the skill {name}" for name in ("secret", "main-only", "nowhere")
    ]


async def test_a_hook_that_denies_keeps_an_agent_from_being_started(folder: Path) -> None:
    deny = "hooks:\n  PreToolUse: [{matcher: Task, hooks: [{command: 'echo not here >&2; exit 2'}]}]\n"
    (folder / ".ba" / "config.yaml").write_text(deny)
    trust_folder(folder)
    made = talk(folder)
    events = await collect(made.say("Write."))
    (denied,) = [each.result.text for each in events if isinstance(each, ToolFinished)]
    assert "not here" in denied
    assert not [each for each in events if isinstance(each, AgentStarted)]
    await made.close()


async def test_agents_that_are_described_are_offered_from_the_first_request_on(folder: Path) -> None:
    (folder.parent / "hello.yaml").write_text("steps: [{say: Hello.}]")
    made = talk(folder, model=f"scripted:{folder.parent}/hello.yaml")
    await collect(made.say("Hello."))
    assert made.inventory.tools
    line = next(each for each in made.inventory.tools.lines() if each.name == "delegate_task")
    assert "- writer: D." in line.description
    await made.close()


@pytest.mark.timeout(120)
def test_an_agent_of_a_killed_run_goes_on_by_its_id(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "work" / "notes.txt").write_text("hello\n")

    def at(server: ModelServer) -> Program:
        env = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "k", "BA_MODEL": "anthropic/test"}
        return Program(tmp_path / "work", tmp_path / "home", env)

    def delegating(**more: str) -> Step:
        args = {"description": "look", "prompt": "Read the notes.", "agent_type": "explore", **more}
        return Step(calls=(ScriptedCall("delegate_task", args),))

    reading = Step(say="I read them.", calls=(ScriptedCall("read_file", {"path": "notes.txt"}),))
    held = Answer(Step(say="never"), pace=Pace(hold=None, rate=20.0))
    with ModelServer([delegating(), reading, held]) as server:
        process = at(server).start("-p", "look")
        assert server.arrived(3, 60)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    with ModelServer(
        [delegating(resume="main/explore-1", prompt="Go on."), Step(say="hello"), Step(say="End.")]
    ) as server:
        done = at(server).here("-p", "-c", "go on with it")
    assert done.stdout == "End.\n"
    child = json.dumps(server.requests[1].json["messages"])
    for words in ("Read the notes.", "I read them.", "hello", "Go on."):
        assert words in child
    assert "agent_id: main/explore-1" in json.dumps(server.requests[2].json["messages"])
