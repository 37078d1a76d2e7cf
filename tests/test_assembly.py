"""The house as it is put together: flags, sessions, instructions and what a model is told."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ba_tui.assembly import connect
from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import UsageError
from ba_tui.core.events import Asked, Event, Notice, ToolFinished, TurnEnded
from ba_tui.core.questions import Reply
from ba_tui.core.services import Services
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.providers.scripted import Step
from tests.loopback import ModelServer
from tests.script import collect

SCRIPT = "steps: [{say: One.}, {say: Two.}]\nlast: {say: More.}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    (work / ".git").mkdir(parents=True)
    (work / ".git" / "HEAD").write_text("ref: refs/heads/topic\n")
    (work / "a.yaml").write_text(SCRIPT)
    (work / "b.yaml").write_text(SCRIPT)
    trust_folder(work)
    return work


def services(folder: Path, **flags: Any) -> Services:
    given: Mapping[str, object] = {"model": f"scripted:{folder}/a.yaml", **flags}
    return connect(given, folder)


async def test_a_session_is_found_again_with_its_model_and_mode(folder: Path):
    talk = services(folder).library.create()
    talk.set_mode("plan")
    await collect(talk.say("hello"))
    await talk.close()
    library = connect({}, folder).library
    (info,) = library.sessions()
    again = library.open(info.id)
    await again.history()
    assert again.model == f"scripted:{folder}/a.yaml"
    assert again.permissions.mode == "plan"
    assert [message.text for message in again.transcript.messages][1:] == ["One."]
    await again.close()


async def test_flags_win_over_what_a_session_had(folder: Path):
    talk = services(folder).library.create()
    talk.set_mode("plan")
    await collect(talk.say("hello"))
    await talk.close()
    other = connect({"model": f"scripted:{folder}/b.yaml", "permission_mode": "accept-edits"}, folder)
    again = other.library.open(other.library.sessions()[0].id)
    await again.history()
    assert again.model == f"scripted:{folder}/b.yaml"
    assert again.permissions.mode == "accept-edits"
    await again.close()


async def test_a_step_leaves_no_stream_open_behind_it(folder: Path):
    """What is not closed when it is left, the event loop is told of, and closes in a task of its own."""
    left: list[Any] = []
    talk = services(folder).library.create()
    await talk.warm()
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(finalizer=left.append)
    try:
        await collect(talk.say("hello"))
    finally:
        sys.set_asyncgen_hooks(*hooks)
    assert left == []
    await talk.close()


async def test_instructions_go_with_the_first_prompt_once_and_show_in_the_context(folder: Path):
    (folder / "AGENTS.md").write_text("Use tabs.")
    talk = services(folder).library.create()
    assert told(talk) == [("AGENTS.md", "added to the next prompt", "Use tabs.")]
    await collect(talk.say("hello"))
    await collect(talk.say("again"))
    first, _, second, _ = talk.transcript.messages
    assert "Use tabs." in first.text
    assert "Use tabs." not in second.text
    assert "It is " in second.text
    assert told(talk) == [("AGENTS.md", "sent in round 1", "Use tabs.")]
    await talk.close()


def told(talk: Conversation) -> list[tuple[str, str, str]]:
    """The memory files in the window, when they are told, and their words."""
    part = next(part for part in talk.context() if part.label == "Memory files")
    return [(item.label, item.detail, item.text) for item in part.items]


async def test_the_context_tells_system_tools_and_window(folder: Path):
    parts = {part.label: part.tokens for part in services(folder).library.create().context()}
    assert parts["System prompt"] > 200
    assert parts["Tools"] > 500
    assert parts["Reserved for reply"] > 0


async def test_a_system_prompt_of_the_persons_own(folder: Path):
    (folder / "mine.md").write_text("Speak like a pirate.")
    flags = {"system_prompt_file": str(folder / "mine.md"), "append_system_prompt": "Be brief."}
    parts = {part.label: part.tokens for part in services(folder, **flags).library.create().context()}
    assert parts["System prompt"] < 60
    with pytest.raises(UsageError, match=r"gone\.md"):
        services(folder, system_prompt_file=str(folder / "gone.md")).library.create()
    os.mkfifo(folder / "pipe.md")
    with pytest.raises(UsageError, match=r"pipe\.md can't be read: it is not a regular file"):
        services(folder, system_prompt_file=str(folder / "pipe.md")).library.create()


async def test_a_home_that_cannot_be_written_costs_only_the_saving(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / "file").write_text("")
    monkeypatch.setenv("BA_HOME", str(folder / "file" / "home"))
    talk = services(folder).library.create()
    events = await collect(talk.say("hello"))
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].reason == "done"
    assert [event.level for event in events if event.type == "notice"] == ["error"]
    await talk.close()


def test_a_broken_models_file_is_told_and_left_out(folder: Path, ba_home: Path):
    (ba_home / "models.yaml").write_text("models: [{match: 1}]\n")
    (notice,) = services(folder).notices
    assert "models.yaml" in notice.text
    with pytest.raises(UsageError, match=r"models\.yaml"):
        connect({}, folder, strict=True)


def test_models_of_other_providers_are_not_offered(folder: Path):
    assert {info.provider for info in services(folder).catalogue.models()} <= {"anthropic", "openai"}


async def test_the_first_request_is_small_and_keeps_further_tools_within_reach(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    with ModelServer([Step(say="Hello.")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        talk = connect({"model": "openai/any"}, folder).library.create()
        await collect(talk.say("hello"))
        await talk.close()
    (request,) = server.requests
    names = {tool["function"]["name"] for tool in request.json["tools"]}
    assert len(request.body) <= 12 * 1024
    assert {"read_file", "edit_file", "shell", "tool_search"} <= names


OWN = """from ba_tui import tool


@tool(effect="read")
def shout(text: str) -> str:
    \"\"\"Say it loud.\"\"\"
    return text.upper()
"""


async def test_a_tool_of_the_projects_own_runs_once_it_is_trusted(folder: Path):
    (folder / ".ba" / "tools").mkdir(parents=True)
    (folder / ".ba" / "tools" / "shout.py").write_text(OWN)
    (folder / "own.yaml").write_text("steps: [{calls: [{tool: shout, args: {text: hi}}]}, {say: Done.}]\n")
    (notice,) = connect({}, folder, strict=True).notices
    assert (notice.text, "ba trust" in notice.hint) == (
        "This folder is not trusted. Turned off: tools.", True,
    )  # fmt: skip
    trust_folder(folder)
    found = connect({"model": f"scripted:{folder}/own.yaml"}, folder)
    assert found.notices == ()
    talk = found.library.create()
    events = await collect(talk.say("go"))
    assert [event.result.text for event in events if isinstance(event, ToolFinished)] == ["HI"]
    await talk.close()


async def test_long_output_is_kept_whole_and_read_in_parts(folder: Path):
    steps = """
      - calls: [{tool: shell, args: {command: "seq 1 40000"}}]
      - say: Done.
    """
    (folder / "long.yaml").write_text(f"steps:{steps}\n")
    flags = {"model": f"scripted:{folder}/long.yaml", "permissions.allow": ["shell(seq 1 40000)"]}
    talk = connect(flags, folder).library.create()
    events = await collect(talk.say("go"))
    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    ref = finished.result.artifact
    reader = talk.inventory.results
    assert ref
    assert ref in finished.result.text
    assert len(finished.result.text) < 40_000
    assert reader
    assert reader.lines(ref, 39_999, 2).text.split() == ["39999", "40000"]
    await talk.close()


async def test_the_inventory_tells_states_and_figures_of_tools(folder: Path):
    (folder / "now.yaml").write_text("steps: [{calls: [{tool: now, args: {}}]}, {say: Done.}]\n")
    talk = connect({"model": f"scripted:{folder}/now.yaml"}, folder).library.create()
    await collect(talk.say("go"))
    tools = talk.inventory.tools
    assert tools
    lines = {line.name: line for line in tools.lines()}
    assert (lines["now"].state, lines["now"].figures.calls) == ("core", 1)
    assert lines["python"].state == "deferred"
    with pytest.raises(UsageError, match="core"):
        tools.switch("now", on=False)
    tools.switch("web_fetch", on=False)
    assert {line.name: line.state for line in tools.lines()}["web_fetch"] == "off"
    await talk.close()


PRESS = """\
steps:
  - calls: [{tool: shell, args: {command: "echo hi > x.txt"}}]
  - calls: [{tool: write_file, args: {path: y.txt, content: "y"}}]
  - calls: [{tool: list_files, args: {}}]
  - say: Done.
"""


async def test_in_a_folder_that_nobody_trusts_it_only_reads(tmp_path: Path):
    folder = tmp_path / "foreign"
    (folder / ".ba").mkdir(parents=True)
    (folder / "press.yaml").write_text(PRESS)
    given = {"model": f"scripted:{folder}/press.yaml", "permission_mode": "accept-edits"}
    found = connect({**given, "permissions.allow": ["shell"]}, folder)
    assert found.trust
    assert found.trust.look(folder).state == "unknown"
    talk = found.library.create()
    assert talk.permissions.mode == "default"
    events = await collect(talk.say("go"))
    done = [event.result for event in events if isinstance(event, ToolFinished)]
    assert [result.is_error for result in done] == [True, True, False]
    assert all("is not trusted" in result.text and "/trust" in result.text for result in done[:2])
    assert sorted(path.name for path in folder.iterdir()) == [".ba", "press.yaml"]
    await talk.close()


async def test_without_anybody_to_ask_flags_count_but_what_the_folder_brings_does_not(tmp_path: Path):
    folder = tmp_path / "foreign"
    (folder / ".ba").mkdir(parents=True)
    (folder / ".ba" / "config.yaml").write_text("append_system_prompt: obey\n")
    (folder / "press.yaml").write_text(PRESS)
    given = {"model": f"scripted:{folder}/press.yaml", "permission_mode": "accept-edits"}
    found = connect(given, folder, strict=True)
    assert [notice.level for notice in found.notices] == ["warning", "info"]
    talk = found.library.create()
    turn = talk.say("go")

    def agree(event: Event) -> None:
        if isinstance(event, Asked):
            turn.answer(event.ask_id, Reply("once"))

    done = [event.result for event in await collect(turn, agree) if isinstance(event, ToolFinished)]
    assert [result.is_error for result in done] == [False, False, False], done
    await talk.close()


async def test_context_files_of_a_folder_that_nobody_trusts_are_told_to_the_person_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ba_home: Path
):
    (tmp_path / "AGENTS.md").write_text("Theirs.\n@more.md\n")
    (tmp_path / "more.md").write_text("More of theirs.")
    (ba_home / "AGENTS.md").write_text("Mine.")
    for strict in (False, True):
        with ModelServer([Step(say="Hello.")]) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
            found = connect({"model": "openai/any"}, tmp_path, strict=strict)
            assert "Models don't see AGENTS.md (imports more.md)." in found.notices[0].text
            talk = found.library.create()
            await collect(talk.say("hello"))
            await talk.close()
        (request,) = server.requests
        assert b"Mine." in request.body
        assert b"heirs." not in request.body
    trust_folder(tmp_path)
    assert connect({"model": "openai/any"}, tmp_path).notices == ()


@pytest.mark.parametrize(
    "text", ["nonsense: 1\n", "theme: [\n", "\x00", "permissions: {deny: ['shell((']}\n", "permissions: {deny: 3}\n"]
)
def test_settings_of_a_folder_that_nobody_trusts_end_no_run(tmp_path: Path, text: str):
    (tmp_path / ".ba").mkdir()
    (tmp_path / ".ba" / "config.yaml").write_text(text)
    assert any("config.yaml" in notice.text for notice in connect({}, tmp_path, strict=True).notices)
    trust_folder(tmp_path)
    with pytest.raises(UsageError, match=r"config\.yaml"):
        connect({}, tmp_path, strict=True)


def test_a_settings_file_that_leads_out_of_the_project_is_not_read(tmp_path: Path):
    (tmp_path / "work" / ".ba").mkdir(parents=True)
    (tmp_path / "own.yaml").write_text("append_system_prompt: words from elsewhere\n")
    (tmp_path / "work" / ".ba" / "config.yaml").symlink_to(tmp_path / "own.yaml")
    trust_folder(tmp_path / "work")
    found = connect({}, tmp_path / "work")
    assert "was not read: it leads to" in found.notices[0].text
    talk = found.library.create()
    assert not any("words from elsewhere" in item.text for part in talk.context() for item in part.items)


async def test_what_of_context_files_was_not_read_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "AGENTS.md").write_text(f"@.env\n{'long ' * 8_000}")
    (tmp_path / ".env").write_text("WORDS=in a file of secrets\n")
    trust_folder(tmp_path)
    with ModelServer([Step(say="One."), Step(say="Two.")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        talk = connect({"model": "openai/gpt-oss"}, tmp_path).library.create()
        events = [*await collect(talk.say("hello")), *await collect(talk.say("again"))]
        await talk.close()
    told = [(event.text, event.hint) for event in events if isinstance(event, Notice)]
    assert told == [
        ("AGENTS.md was cut at 32,000 characters.", "The model can't see the rest: shorten the file."),
        ("AGENTS.md: @.env was not read: it holds secrets.", "The model can't see it."),
    ]
    assert not any(b"in a file of secrets" in request.body for request in server.requests)


PLANNING = """
steps:
  - calls: [{tool: write_file, args: {path: report.md, content: "too soon"}}]
  - calls: [{tool: present_plan, args: {plan: "1. Write report.md"}}]
  - calls: [{tool: write_file, args: {path: report.md, content: "in time"}}]
  - say: Written.
"""


async def test_plan_mode_ends_with_a_question_and_the_answer_s_mode(folder: Path):
    (folder / "a.yaml").write_text(PLANNING)
    talk = services(folder, permission_mode="plan").library.create()
    turn = talk.say("plan a report")
    async for event in turn:
        if isinstance(event, Asked):
            assert event.question.kind == "plan"
            assert not (folder / "report.md").exists()
            assert turn.answer(event.ask_id, Reply("session"))
    assert (folder / "report.md").read_text() == "in time"
    assert talk.permissions.mode == "accept-edits"
    await talk.close()
    library = connect({}, folder).library
    again = library.open(library.sessions()[0].id)
    await again.history()
    assert again.permissions.mode == "accept-edits"
    await again.close()


async def test_an_unattended_plan_is_an_answer(folder: Path):
    (folder / "a.yaml").write_text("steps: [{say: '1. Read\\n2. Write'}]")
    given = {"model": f"scripted:{folder}/a.yaml", "permission_mode": "plan"}
    talk = connect(given, folder, strict=True).library.create()
    events = await collect(talk.say("plan it"))
    assert not [event for event in events if isinstance(event, Asked)]
    assert any("Nobody can be asked" in message.text for message in talk.transcript.messages)
    await talk.close()
