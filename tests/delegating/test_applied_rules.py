"""What holds for changes that come in from a copy, in a session: rules, modes, questions, checkpoints, rewinding."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest

from ba_tui.assembly import connect
from ba_tui.core.conversation import Conversation
from ba_tui.core.events import AgentStarted, Asked, Checkpointed, Event, Mode, ToolFinished
from ba_tui.core.questions import Reply
from ba_tui.permissions.trust.grants import trust_folder
from tests.script import collect

MAIN = """
steps:
- {calls: [{tool: delegate_task, args: {description: work, prompt: Go., agent_type: worker}}]}
- {say: It worked.}
- {calls: [{tool: apply_changes, args: {agent_id: main/worker-1}}]}
- {say: Done.}
- {calls: [{tool: apply_changes, args: {agent_id: main/worker-1}}]}
- {say: Done.}
"""
WORKER = """
steps:
- {calls: [{tool: write_file, args: {path: new.txt, content: "new\\n"}}]}
- {say: I made new.txt.}
"""
BEFORE = {"src/a.py": "one = 1\n", "docs/b.md": "Words.\n"}
AFTER = {"src/a.py": "one = 2\n", "new.txt": "new\n"}
EDITORS = ("edit_file", "write_file", "apply_patch")


@pytest.fixture
def folder(tmp_path: Path, ba_home: Path) -> Path:
    work = tmp_path / "work"
    for path, text in {**BEFORE, ".env": "TOKEN=of-the-project\n"}.items():
        file = work / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    (tmp_path / "main.yaml").write_text(MAIN)
    (tmp_path / "worker.yaml").write_text(WORKER)
    agents = work / ".ba" / "agents"
    agents.mkdir(parents=True)
    head = f"name: worker\ndescription: D.\nmodel: scripted:{tmp_path}/worker.yaml\nisolation: worktree\n"
    (agents / "worker.md").write_text(f"---\n{head}---\nYou work.\n")
    return work


class Session:
    """A conversation in ``folder``, whose agent has made one file in its copy, changed one and deleted one."""

    def __init__(self, folder: Path, rules: str = "{}") -> None:
        self.folder = folder
        (folder / ".ba" / "config.yaml").write_text(f"permissions: {rules}\n")
        trust_folder(folder)
        self.talk: Conversation = connect({"model": f"scripted:{folder.parent}/main.yaml"}, folder).library.create()

    async def works(self) -> Path:
        """The copy of the agent after its work."""
        _, events = await self.says("deny")
        assert not [each for each in events if isinstance(each, Asked)]
        (started,) = (each for each in events if isinstance(each, AgentStarted))
        copy = Path(started.worktree)
        (copy / "src" / "a.py").write_text("one = 2\n")
        (copy / "docs" / "b.md").unlink()
        return copy

    async def says(self, answer: Literal["once", "deny"], mode: Mode = "default") -> tuple[str, Sequence[Event]]:
        """What the call of the main agent brought, and all events."""
        self.talk.set_mode(mode)
        turn = self.talk.say("go on")

        def react(event: Event) -> None:
            if isinstance(event, Asked):
                turn.answer(event.ask_id, Reply(answer))

        events = await collect(turn, react)
        (text,) = (each.result.text for each in events if isinstance(each, ToolFinished) and each.agent == "main")
        return text, events

    def files(self) -> dict[str, str]:
        found = (path for path in self.folder.rglob("*") if path.is_file() and path.name != ".env")
        paths = ((path.relative_to(self.folder), path) for path in found)
        return {short.as_posix(): path.read_text() for short, path in paths if short.parts[0] not in {".git", ".ba"}}


def questions(events: Sequence[Event]) -> list[Asked]:
    return [each for each in events if isinstance(each, Asked)]


async def test_the_person_is_asked_and_rewinding_brings_all_of_it_back(folder: Path) -> None:
    session = Session(folder)
    await session.works()
    text, events = await session.says("deny")
    assert len(questions(events)) == 1
    assert not [each for each in events if isinstance(each, Checkpointed)]
    assert session.files() == BEFORE
    text, events = await session.says("once")
    assert "Changed src/a.py" in text
    assert session.files() == AFTER
    assert [each.turn for each in events if isinstance(each, Checkpointed)] == [3]
    await session.talk.past.rewind(3)
    assert session.files() == BEFORE
    await session.talk.close()


async def test_after_a_rewind_the_changes_can_come_in_again(folder: Path) -> None:
    session = Session(folder)
    await session.works()
    await session.says("once")
    await session.talk.past.rewind(2)
    assert session.files() == BEFORE
    await session.says("once")
    assert session.files() == AFTER
    await session.talk.close()


@pytest.mark.parametrize("tool", [*EDITORS, "apply_changes"])
async def test_a_rule_that_denies_edits_of_one_file_keeps_all_of_it_out(folder: Path, tool: str) -> None:
    session = Session(folder, f'{{deny: ["{tool}(src/**)"]}}')
    await session.works()
    text, events = await session.says("once", "accept-edits")
    assert f"Denied by the rule {tool}(src/**)" in text
    assert not [each for each in events if isinstance(each, Asked | Checkpointed)]
    assert session.files() == BEFORE
    await session.talk.close()


async def test_a_rule_that_asks_about_edits_asks_where_the_mode_does_not(folder: Path) -> None:
    session = Session(folder, '{ask: ["edit_file(src/**)"]}')
    await session.works()
    _, events = await session.says("deny", "accept-edits")
    assert len(questions(events)) == 1
    assert session.files() == BEFORE
    await session.talk.close()


async def test_a_rule_that_allows_one_folder_does_not_let_the_others_in(folder: Path) -> None:
    allowed = ", ".join(f'"{tool}(docs/**)"' for tool in (*EDITORS, "apply_changes"))
    session = Session(folder, f"{{allow: [{allowed}]}}")
    await session.works()
    _, events = await session.says("deny")
    assert len(questions(events)) == 1
    assert session.files() == BEFORE
    await session.talk.close()


async def test_plan_mode_changes_nothing(folder: Path) -> None:
    session = Session(folder)
    await session.works()
    _, events = await session.says("once", "plan")
    assert not [each for each in events if isinstance(each, Asked | Checkpointed)]
    assert session.files() == BEFORE
    await session.talk.close()


async def test_secrets_are_not_copied_and_none_comes_in(folder: Path) -> None:
    session = Session(folder)
    copy = await session.works()
    assert not (copy / ".env").exists()
    (copy / ".env").write_text("TOKEN=of-the-agent\n")
    text, _ = await session.says("once", "accept-edits")
    assert "TOKEN" not in text
    assert (folder / ".env").read_text() == "TOKEN=of-the-project\n"
    assert session.files() == BEFORE
    await session.talk.close()


@pytest.mark.parametrize("path", [".git/hooks/post-commit", ".ba/config.yaml"])
async def test_what_would_start_programs_or_set_rules_is_asked_about_in_every_mode(folder: Path, path: str) -> None:
    session = Session(folder)
    copy = await session.works()
    (copy / path).parent.mkdir(parents=True, exist_ok=True)
    (copy / path).write_text("permissions: {mode: auto}\n")
    before = (folder / path).read_bytes() if (folder / path).exists() else None
    _, events = await session.says("deny", "accept-edits")
    assert len(questions(events)) == 1
    assert ((folder / path).read_bytes() if (folder / path).exists() else None) == before
    assert session.files() == BEFORE
    await session.talk.close()
